"""Global memory: latency of each level, and loads and stores by the lanes' addresses."""

from __future__ import annotations

from benchmarks.microbenchmarks.arithmetic import CHAINS
from benchmarks.microbenchmarks.loop import WARP, Loop, Ring, lines, registers, started
from benchmarks.microbenchmarks.patterns import GLOBAL, form

CACHED = {"l1": "ca", "l2": "cg"}  # the level in which a load finds its data -> PTX
ZEROS_AT = 65_536  # where the arrays of these loops begin [B]
OWN_LANES = "cvt.u64.u32 v0, y; add.u64 v0, v0, data; "
ADDRESS = OWN_LANES + f"add.u64 v0, v0, {ZEROS_AT}; mov.u32 r100, tid;"
# Each warp has lines of its own, or one would load for all of them.
OWN_WARP = "shr.u32 x, tid, 5; mul.wide.u32 w, x, 8192; add.u64 v0, v0, w;"


def _chase(level: str, cached: str, ring: Ring, turns: int, cold: bool = False) -> Loop:
    return Loop(
        f"ldg_{level}_latency",
        f"cycles from a load that finds its data in {level.upper()} to one at the address loaded",
        lines([f"ld.global.{cached}.u64 v0, [v0];"] * 64),
        64,
        {"LDG.64": 64},
        "add.u64 v0, data, 1024;",
        ("v0",),
        (1,),
        turns=turns,
        passes=1 if cold else 2,  # the ring is longer than one pass, and shorter than two
        data_bytes=ring.bytes + (1 << 20),
        ring=ring,
        cold=cold,
    )


def _loads(cached: str, width: int, count: int, spread: int) -> str:
    """Loads at `count` places `spread` bytes apart, and their sums, so that each is needed."""
    words = width // 4
    texts = [
        f"ld.global.{cached}.{form(width, registers('r', words, words * k))}, [v0+{spread * k}];"
        for k in range(count)
    ]
    loaded = registers("r", words * count)
    sums = [
        f"lop3.b32 r100, r100, {one}, {other}, 0x96;"
        for one, other in zip(loaded[::2], loaded[1::2], strict=True)
    ]
    return lines([*texts, *sums, f"xor.b64 v0, v0, {64 * spread};"])


def _opcode(width: int) -> str:
    return {4: "LDG", 8: "LDG.64", 16: "LDG.128"}[width]


def _rate(level: str, pattern: str, spread: int | None = None) -> Loop:
    """Words of the same lines in L1, so that its size does not matter; other sectors in L2."""
    width = GLOBAL[pattern].width
    count = 16 if width < 16 else 8
    spread = spread or width
    return Loop(
        f"ldg_{level}_{pattern}_rate",
        f"cycles of a warp for each load from {level.upper()} of {GLOBAL[pattern].words}",
        _loads(CACHED[level], width, count, spread),
        count,
        {_opcode(width): count, "LOP3": count * width // 8 + 1},
        ADDRESS if level == "l1" else ADDRESS + OWN_WARP,
        ("r100",),
        turns=100,
        shared_bytes=1024,
        lanes=GLOBAL[pattern].lanes,
    )


def _latency(pattern: str) -> Loop:
    """A load, and a LOP3 that makes the next address of what was loaded, which is 0."""
    width = GLOBAL[pattern].width
    n = 16
    copies = {4: 17, 8: 17, 16: 6}[width]  # of the address's upper half
    words = registers("r", width // 4)
    both = {
        4: "",
        8: "xor.b32 r0, r0, r1;",
        16: "lop3.b32 r0, r0, r1, r2, 0x96; xor.b32 r0, r0, r3;",
    }
    text = (
        f"ld.global.ca.{form(width, words)}, [v0]; {both[width]} "
        "cvt.u64.u32 v1, r0; xor.b64 v0, v0, v1;"
    )
    return Loop(
        f"ldg_l1_{pattern}_latency",
        f"cycles for a load that finds its data in L1 and a LOP3 on it, of {GLOBAL[pattern].words}",
        lines([text] * n),
        n,
        {_opcode(width): n, "LOP3": n * (1 if width < 16 else 2), "IMAD.MOV": copies},
        ADDRESS,
        ("v0",),
        (1,),
        shared_bytes=1024,
        lanes=GLOBAL[pattern].lanes,
    )


_INDEX_AND_VALUE = Loop(
    "ldg_l1_index_then_value",
    "cycles for a load that hits L1 and the address that it makes (LEA and LEA.HI)",
    lines(
        ["ld.global.ca.u32 r0, [v0]; mad.wide.u32 v0, r0, 4, v0;"] * 16
    ),
    16,
    {"LDG": 16, "LEA": 32},
    ADDRESS,
    ("v0",),
    (1,),
    lanes=GLOBAL["32_own"].lanes,
)  # fmt: skip


def _ffma_and_load(ffma: int) -> Loop:
    """Loads that hit L1 among so many FFMAs each."""
    count = 8
    each = [f"fma.rn.f32 f{i % CHAINS}, f{i % CHAINS}, fa, fb;" for i in range(ffma)]
    loads, rest = [], _loads("ca", 4, count, 4).split("\n")
    loads, rest = rest[:count], rest[count:]
    return Loop(
        f"ffma{ffma}_per_ldg_l1",
        f"cycles of a warp for each instruction where a load from L1 comes with {ffma} FFMAs",
        lines([text for one in loads for text in (one, *each)] + rest),
        count * (ffma + 1),
        {"LDG": count, "FFMA": count * ffma, "LOP3": count // 2 + 1},
        ADDRESS + started(registers("f", CHAINS)),
        ("r100", *registers("f", CHAINS)),
        lanes=GLOBAL["32_own"].lanes,
    )


# Each block has an array of its own, and all together fit into L2.
_PER_BLOCK = 131_072
_BLOCK = (
    "mov.u32 x, %ctaid.x; mul.wide.u32 w, x, {bytes}; add.u64 v0, v0, w; "
    "shr.u32 x, tid, 5; mul.wide.u32 w, x, {warp}; add.u64 v0, v0, w;"
)
L2_BYTES = 32 << 20


def _everywhere_rate(width: int) -> Loop:
    count = 16 if width == 4 else 8
    pattern = f"{8 * width}_own"
    setup = ADDRESS + _BLOCK.format(bytes=_PER_BLOCK, warp=count * WARP * width)
    return Loop(
        f"ldg_l2_{8 * width}_rate_all_sms",
        f"cycles of a warp for each load of {width} bytes a lane from L2 while all SMs load",
        _loads("cg", width, count, WARP * width).rpartition("\n")[0] + "\nxor.b64 v0, v0, 512;",
        count,
        {_opcode(width): count, "LOP3": count * width // 8 + 1},
        setup,
        ("r100",),
        of_sms=1.0,
        turns=100,
        data_bytes=L2_BYTES,
        lanes=GLOBAL[pattern].lanes,
    )


_EVERYWHERE_LATENCY = Loop(
    "ldg_l2_latency_all_sms",
    "cycles for a load from L2 and a LOP3 on it while so many warps of all SMs do the same",
    lines(
        ["ld.global.cg.u32 r0, [v0]; cvt.u64.u32 v1, r0; xor.b64 v0, v0, v1; xor.b64 v0, v0, 128;"]
        * 16
    ),
    16,
    {"LDG": 16, "LOP3": 16, "IMAD.MOV": 17},
    ADDRESS + _BLOCK.format(bytes=_PER_BLOCK, warp=4096),
    ("v0",),
    of_sms=1.0,
    turns=100,
    data_bytes=L2_BYTES,
    lanes=GLOBAL["32_own"].lanes,
)


def _store(pattern: str) -> Loop:
    width = GLOBAL[pattern].width
    value = {4: "u32", 16: "v4.u32"}[width]
    names = {4: "r0", 16: "{r0, r1, r2, r3}"}[width]
    return Loop(
        f"stg_{pattern}_rate",
        f"cycles of a warp for each store to L2 of {GLOBAL[pattern].words}",
        lines(f"st.global.{value} [v0+{512 * k}], {names};" for k in range(16)),
        16,
        {"STG": 16},
        ADDRESS + OWN_WARP + started(registers("r", width // 4)),
        turns=50,
        lanes=GLOBAL[pattern].lanes,
    )


def _store_everywhere(pattern: str) -> Loop:
    """Each SM has lines of its own."""
    return Loop(
        f"stg_{pattern}_rate_all_sms",
        f"cycles of a warp for each store to L2 of {GLOBAL[pattern].words} while all SMs store",
        lines(f"st.global.u32 [v0+{4 * k}], r0;" for k in range(16)),
        16,
        {"STG": 16},
        ADDRESS + _BLOCK.format(bytes=128, warp=64) + started(("r0",)),
        warps=(8,),
        turns=50,
        of_sms=1.0,
        data_bytes=L2_BYTES,
        lanes=GLOBAL[pattern].lanes,
    )


# Copies that go on while the warp does; each thread to its own place.
def copies(width: int, text: str, count: int) -> tuple[list[str], str]:
    """PTX of each of so many copies of a warp, and what comes before the loop."""
    setup = (
        f"mul.wide.u32 w, tid, {width}; add.u64 v0, data, w; add.u64 v0, v0, {ZEROS_AT}; "
        f"mul.lo.u32 y, lane, {width}; add.u32 y, y, s;"
    )
    one = f"cp.async.{text}.shared.global [y+{{to}}], [v0+{{at}}], {width};"
    room = 16_384 // (WARP * width)
    return [one.format(to=k % room * WARP * width, at=512 * k) for k in range(count)], setup


def _around(addresses: int) -> dict[str, int]:
    """What ptxas adds to copies in a loop: addresses, and three loads that never happen."""
    return {"LDS": 3, "IADD3": addresses, "IMAD.X": addresses}


def _copy_latency(width: int, text: str) -> Loop:
    (one,), setup = copies(width, text, 1)
    return Loop(
        f"ldgsts_{8 * width}_latency",
        f"cycles for a copy of {width} bytes a lane to shared memory and the wait for it",
        lines([f"{one} cp.async.commit_group; cp.async.wait_group 0;"] * 8),
        8,
        {"LDGSTS": 8, "LDGDEPBAR": 8, "DEPBAR": 8} | _around(1),
        setup,
        warps=(1,),
        requires=(8, 0),
    )


def _copy_rate(width: int, text: str) -> Loop:
    begun, setup = copies(width, text, 16)
    return Loop(
        f"ldgsts_{8 * width}_rate",
        f"cycles of a warp for each of 16 copies of {width} bytes a lane to shared memory",
        lines([*begun, "cp.async.commit_group;\ncp.async.wait_group 1;"]),
        16,
        {"LDGSTS": 16, "LDGDEPBAR": 1, "DEPBAR": 1} | _around(3),
        setup,
        turns=100,
        requires=(8, 0),
    )


LOOPS = (
    _chase("l1", "ca", Ring(16 << 10, 128), 100),
    _chase("l2", "cg", Ring(4 << 20, 4224), 100),
    _chase("dram", "cg", Ring(256 << 20, 66_048), 50, cold=True),
    *map(_latency, GLOBAL),
    *(_rate("l1", pattern) for pattern in GLOBAL),
    *(_rate("l2", pattern, 512) for pattern in ("32_own", "32_stride_8", "32_column", "128_own")),
    _INDEX_AND_VALUE,
    *map(_ffma_and_load, (4, 8, 16)),
    *map(_everywhere_rate, (4, 16)),
    _EVERYWHERE_LATENCY,
    *map(_store, ("32_own", "32_stride_2", "32_stride_8", "32_stride_32", "32_column", "128_own")),
    *map(_store_everywhere, ("32_own", "32_stride_8", "32_stride_32", "32_column")),
    *(_copy_latency(*kind) for kind in ((4, "ca"), (16, "cg"))),
    *(_copy_rate(*kind) for kind in ((4, "ca"), (16, "cg"))),
)
