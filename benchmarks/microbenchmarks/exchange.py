"""Warps that exchange values: shuffles, votes, and atomics in shared and in global memory."""

from __future__ import annotations

from benchmarks.microbenchmarks.loop import WARP, Loop, lines, registers, started

N = 16  # instructions of a turn
CHAINS = 8
ALL = "0xffffffff"

# name -> what it is, PTX on register {i}, opcodes
EXCHANGES = {
    "shfl_bfly": ("SHFL.BFLY", "shfl.sync.bfly.b32 r{i}, r{i}, 1, 31, " + ALL + ";", {"SHFL": 1}),
    "shfl_idx": ("SHFL.IDX", "shfl.sync.idx.b32 r{i}, r{i}, lane, 31, " + ALL + ";", {"SHFL": 1}),
    "shfl_down": ("SHFL.DOWN", "shfl.sync.down.b32 r{i}, r{i}, 16, 31, " + ALL + ";", {"SHFL": 1}),
    "redux": ("REDUX", "redux.sync.add.s32 r{i}, r{i}, " + ALL + ";", {"REDUX": 1}),
    "vote": (
        "ISETP and VOTE",
        "setp.lt.u32 p{i}, r{i}, ra; vote.sync.ballot.b32 r{i}, p{i}, " + ALL + ";",
        {"ISETP": 1, "VOTE": 1},
    ),
}


MOVED = {"redux": {"MOV": 15, "IMAD": 17}}  # results, from uniform registers


def _exchange(name: str, chains: int) -> Loop:
    title, text, code = EXCHANGES[name]
    kept = registers("r", chains)
    kind = "latency" if chains == 1 else "rate"
    fact = {
        "latency": f"cycles from {title} to one that needs its result",
        "rate": f"cycles of a warp for each {title} of {CHAINS} chains",
    }
    return Loop(
        f"{name}_{kind}",
        fact[kind],
        lines(text.format(i=i % chains) for i in range(2 * N)),
        2 * N,
        {opcode: 2 * N * each for opcode, each in code.items()} | MOVED.get(name, {}),
        started(kept),
        kept,
        (1,) if chains == 1 else (1, 4, 8, 16, 32),
        requires=(8, 0) if name == "redux" else (7, 5),
    )


# which addresses the lanes of a warp have -> the offset of each lane
PLACES = {
    "own": tuple(4 * lane for lane in range(WARP)),
    "two": tuple(4 * (lane % 2) for lane in range(WARP)),
    "same": (0,) * WARP,
    "sectors": tuple(32 * lane for lane in range(WARP)),
}
SHARED = "add.u32 y, y, s;"
GLOBAL = "cvt.u64.u32 v0, y; add.u64 v0, v0, data; add.u64 v0, v0, 65536;"
OWN_WARP = "shr.u32 x, tid, 5; mul.wide.u32 w, x, 1024; add.u64 v0, v0, w;"


def _atomic(
    space: str, returns: bool, places: str, type_: str, code: dict[str, int], apart: bool = False
) -> Loop:
    """Atomic additions; `apart`: each warp has addresses of its own."""
    name = "atom" if returns else "red"
    value = {"u32": "ra", "f32": "fa"}[type_]
    kind = {"u32": "r", "f32": "f"}[type_]
    address = "y" if space == "shared" else "v0"
    text = "{op}.{space}.add.{type} {to}[{address}+{offset}], {value};"
    body = [
        text.format(
            op=name,
            space=space,
            type=type_,
            to=f"{kind}{k}, " if returns else "",
            address=address,
            offset=0,
            value=value,
        )
        for k in range(N)
    ]
    whose = " of its warp" if apart else ""
    return Loop(
        f"{space}_{name}_{type_}_{places}{'_apart' * apart}_rate",
        f"cycles of a warp for each {name}.{space}.add.{type_}, lanes at {places} addresses{whose}",
        lines(body),
        N,
        code,
        (SHARED if space == "shared" else GLOBAL) + (OWN_WARP if apart else ""),
        registers(kind, N) if returns else (),
        turns=20,
        lanes=PLACES[places],
    )


_LATENCY = Loop(
    "shared_atom_u32_latency",
    "cycles from an atomic addition in shared memory to one that adds what it returned",
    lines(["atom.shared.add.u32 r0, [y], r0;"] * N),
    N,
    {"ATOMS": N},
    SHARED + started(["r0"]),
    ("r0",),
    (1,),
    lanes=PLACES["own"],
)
_GLOBAL_LATENCY = Loop(
    "global_atom_u32_latency",
    "cycles from an atomic addition in global memory to one that adds what it returned",
    lines(["atom.global.add.u32 r0, [v0], r0;"] * N),
    N,
    {"ATOMG": N},
    GLOBAL + started(["r0"]),
    ("r0",),
    (1,),
    turns=20,
    lanes=PLACES["own"],
)

# There is no such addition: the warp tries until none of its lanes has been overtaken.
CAS_LOOP = dict.fromkeys(("BSSY", "LDS", "FADD", "ATOMS", "ISETP", "BRA", "BSYNC"), N)

LOOPS = (
    *(_exchange(name, chains) for name in EXCHANGES for chains in (1, CHAINS)),
    _LATENCY,
    _GLOBAL_LATENCY,
    *(
        _atomic("shared", returns, places, "u32", {"ATOMS": N})
        for returns in (False, True)
        for places in ("own", "two", "same")
    ),
    *(_atomic("shared", False, places, "f32", CAS_LOOP) for places in ("own", "two", "same")),
    *(
        _atomic("global", False, places, type_, {"REDG": N}, apart)
        for type_ in ("u32", "f32")
        for places in ("own", "sectors", "same")
        for apart in (False, True)
    ),
    *(
        _atomic("global", True, places, "u32", {"ATOMG": N})
        for places in ("own", "sectors", "same")
    ),
)
