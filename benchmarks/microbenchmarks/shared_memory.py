"""Shared memory: latency, and how long its pipe is busy with an access, by the lanes' addresses."""

from __future__ import annotations

from benchmarks.microbenchmarks.arithmetic import CHAINS, TILE, TILE_REGISTERS, A, B, outer_product
from benchmarks.microbenchmarks.loop import (
    SOME_WARPS,
    WARP,
    Loop,
    lines,
    registers,
    started,
)
from benchmarks.microbenchmarks.patterns import SHARED, form

LOADS = 16  # of a turn

SHARED_ADDRESS = "add.u32 y, y, s;"  # of the lane's offset


def load(width: int, first: int, offset: int = 0, kind: str = "r") -> str:
    """PTX that loads `width` bytes from the lane's address, to registers from `first` on."""
    text = form(width, registers(kind, width // 4, first))
    if kind == "f":
        text = text.replace("u32", "f32")
    return f"ld.volatile.shared.{text}, [y+{offset}];"


def store(width: int, offset: int = 0) -> str:
    """PTX that stores `width` bytes at the lane's address."""
    type_, _, values = form(width, registers("r", width // 4)).partition(" ")
    return f"st.volatile.shared.{type_} [y+{offset}], {values};"


def _pattern(name: str, opcode: str) -> Loop:
    pattern = SHARED[name]
    loads = opcode == "LDS"
    step = pattern.width // 4
    body = [load(pattern.width, step * k) if loads else store(pattern.width) for k in range(LOADS)]
    kept = registers("r", LOADS * step) if loads else ()
    return Loop(
        f"{opcode.lower()}_{name}_rate",
        f"cycles of a warp for each {opcode} of {pattern.words}",
        lines(body),
        LOADS,
        {opcode: LOADS},
        SHARED_ADDRESS if loads else SHARED_ADDRESS + started(registers("r", step)),
        kept[:1],
        lanes=pattern.lanes,
    )


def _chase(width: int) -> Loop:
    """What lies at an address is that address."""
    names = {4: "y", 8: "{y, y}", 16: "{y, y, y, y}"}
    vector = {4: "", 8: ".v2", 16: ".v4"}[width]
    n = 2 * LOADS
    return Loop(
        f"lds_{8 * width}_latency",
        f"cycles from an LDS of {width} bytes to one at the address that it loaded",
        lines([f"ld.volatile.shared.{form(width, registers('r', width // 4))}, [r0];"] * n),
        n,
        {"LDS": n},
        f"{SHARED_ADDRESS} st.volatile.shared{vector}.u32 [y], {names[width]}; mov.u32 r0, y;",
        ("r0",),
        (1,),
        lanes=SHARED[f"{8 * width}_own"].lanes,
    )


_STORE_LOAD = Loop(
    "sts_then_lds_latency",
    "cycles for an STS and an LDS of what it stored",
    lines([f"st.volatile.shared.u32 [y], r0; {load(4, 0)}"] * LOADS),
    LOADS,
    {"STS": LOADS, "LDS": LOADS},
    f"{SHARED_ADDRESS} mov.u32 r0, tid;",
    ("r0",),
    (1,),
    lanes=SHARED["32_own"].lanes,
)


def _tile_step(width: int) -> Loop:
    """One step of a register tile: its column of A, its row of B, and their outer product."""
    each = width // 4
    loads = [
        load(width, first + k, 1024 * which + 128 * k, "f")
        for which, first in enumerate((A, B))
        for k in range(0, TILE, each)
    ]
    steps = 2
    count = steps * (len(loads) + TILE * TILE)
    return Loop(
        f"lds{8 * width}_outer8x8_step",
        f"cycles of a warp for each instruction of 8 x 8 outer products with LDS of {width} bytes",
        lines((loads + outer_product()) * steps),
        count,
        {"LDS": steps * len(loads), "FFMA": steps * TILE * TILE},
        f"{SHARED_ADDRESS} {started(TILE_REGISTERS)}",
        TILE_REGISTERS,
        SOME_WARPS,
        lanes=tuple(width * (lane % 16) for lane in range(WARP)),
    )


def _ffma_and_load(ffma: int) -> Loop:
    """A load of a word after so many FFMAs."""
    rounds = 128 // ffma
    chain = [f"fma.rn.f32 f{i % CHAINS}, f{i % CHAINS}, fa, fb;" for i in range(ffma)]
    return Loop(
        f"ffma{ffma}_per_lds32_rate",
        f"cycles of a warp for each instruction where an LDS comes with {ffma} FFMAs",
        lines(text for k in range(rounds) for text in [load(4, k), *chain]),
        rounds * (ffma + 1),
        {"LDS": rounds, "FFMA": rounds * ffma},
        f"{SHARED_ADDRESS} {started(registers('f', CHAINS))}",
        registers("f", CHAINS),
        lanes=SHARED["32_own"].lanes,
    )


_LDMATRIX = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{{0}, {1}, {2}, {3}}}, [{4}];"


def load_matrices(k: int) -> str:
    """PTX that loads four matrices from the lane's address, the k-th time."""
    return _LDMATRIX.format(*registers("r", 4, 4 * k), f"y+{512 * k}")


_LDMATRIX_LATENCY = Loop(
    "ldmatrix_x4_latency",
    "cycles from an LDSM of four matrices to one at the address that it loaded",
    lines([_LDMATRIX.format("r0", "r1", "r2", "r3", "r0")] * LOADS),
    LOADS,
    {"LDSM": LOADS},
    f"{SHARED_ADDRESS} st.volatile.shared.v4.u32 [y], {{s, s, s, s}}; mov.u32 r0, s;",
    ("r0",),
    (1,),
    lanes=SHARED["128_own"].lanes,
)
_LDMATRIX_RATE = Loop(
    "ldmatrix_x4_rate",
    "cycles of a warp for each LDSM of four matrices without bank conflicts",
    lines(map(load_matrices, range(8))),
    8,
    {"LDSM": 8},
    SHARED_ADDRESS,
    registers("r", 32),
    lanes=SHARED["128_own"].lanes,
)

LOOPS = (
    *(_pattern(name, "LDS") for name in SHARED),
    *(
        _pattern(name, "STS")
        for name in ("32_own", "64_own", "128_own", "32_conflict_2", "32_conflict_32")
    ),
    *map(_chase, (4, 8, 16)),
    _STORE_LOAD,
    *map(_tile_step, (4, 16)),
    *map(_ffma_and_load, (4, 8, 16, 32)),
    _LDMATRIX_LATENCY,
    _LDMATRIX_RATE,
)
