"""Control: fetching instructions, branches, predicates, barriers, and which warp goes first."""

from __future__ import annotations

from benchmarks.microbenchmarks.arithmetic import CHAINS
from benchmarks.microbenchmarks.loop import (
    SOME_WARPS,
    WARP,
    Loop,
    between_blocks,
    each_warp,
    lines,
    registers,
    started,
)
from benchmarks.microbenchmarks.patterns import SHARED
from benchmarks.microbenchmarks.shared_memory import SHARED_ADDRESS, load

FFMA = "fma.rn.f32 f{i}, f{i}, fa, fb;"
LENGTHS = (
    *(4, 8, 16, 32, 64, 128, 256, 512, 1024, 1536),
    *(1792, 1920, 2048, 2176, 2304, 2560, 3072, 4096, 6144, 8192),
)
TURN_INSTRUCTIONS = 40_000  # of a timed loop, or 20 turns of it
EIGHT = registers("f", CHAINS)


def _ffma(count: int, guard: str = "") -> list[str]:
    return [f"{guard} {FFMA.format(i=i % CHAINS)}".strip() for i in range(count)]


def _length(n: int) -> Loop:
    return Loop(
        f"loop_of_{n}_ffma",
        f"cycles of a warp for each FFMA in a loop of {n}, {16 * (n + 3) / 1024:.3g} KB of code",
        lines(_ffma(n)),
        n,
        {"FFMA": n},
        started(EIGHT),
        EIGHT,
        SOME_WARPS,
        turns=max(20, TURN_INSTRUCTIONS // n),
    )


N = 16  # branches of a turn
# Ten stores are too much to be done under a predicate instead.
_STORES = lines(f"st.volatile.shared.u32 [s+{4 * k}], ra;" for k in range(10))

_TAKEN = Loop(
    "branch_taken",
    "cycles of a warp for each branch that all its lanes take, with an FFMA",
    lines(f"{FFMA.format(i=k % CHAINS)} @on bra OVER{k};\n{_STORES}\nOVER{k}:" for k in range(N)),
    N,
    {"FFMA": N, "BRA": N, "STS": 10 * N},
    started(EIGHT),
    EIGHT,
)
_CONDITIONS = lines(f"setp.eq.u32 p{k}, ra, {77 + k};" for k in range(6))
_NOT_TAKEN = Loop(
    "branch_not_taken",
    "cycles of a warp for each branch that none of its lanes takes, with an FFMA",
    lines(f"{FFMA.format(i=k)} @p{k} bra ASIDE;" for k in range(6))
    + f"\nbra BACK;\nASIDE:\n{_STORES}\nBACK:",
    6,
    {"FFMA": 6, "BRA": 6, "ISETP": 5, "STS": 10},
    started(EIGHT) + _CONDITIONS,
    EIGHT,
)
_DIVERGENT = Loop(
    "branch_divergent",
    "cycles of a warp for 16 FFMAs of its even lanes and 16 of the odd ones, and their meeting",
    lines(
        [
            "@odd bra ODD;",
            *(FFMA.format(i=0) for _ in range(16)),
            "bra MEET;\nODD:",
            *(FFMA.format(i=1) for _ in range(16)),
            "MEET:",
        ]
    ),
    1,
    {"FFMA": 32, "BRA": 2, "BSSY": 1, "BSYNC": 1},
    started(EIGHT),
    EIGHT,
)
_PREDICATED_OFF = Loop(
    "ffma_predicated_off_rate",
    "cycles of a warp for each FFMA whose predicate is false in all lanes",
    lines(_ffma(512, "@off")),
    512,
    {"FFMA": 512, "MOV": 8},
    started(EIGHT),
    EIGHT,
)
_BARRIER = Loop(
    "bar_sync",
    "cycles from one barrier of a block to the next",
    lines(["bar.sync 0;"] * 32),
    32,
    {"BAR": 32},
)
_HALF_BARRIER = Loop(
    "bar_sync_of_pairs",
    "cycles from one barrier to the next where each two warps have one of their own",
    lines(["bar.sync x, 64;"] * 32),
    32,
    {"BAR": 32},
    "shr.u32 x, tid, 6; add.u32 x, x, 1;",  # barrier 0 is that of the whole block
    warps=(2, 4, 8, 16),
)
_EXCHANGE = Loop(
    "sts_bar_lds_bar",
    "cycles for a store, a barrier, a load and a barrier, as each step of a tile has them",
    lines([f"st.volatile.shared.u32 [y], r0; bar.sync 0; {load(4, 0)} bar.sync 0;"] * 8),
    8,
    {"STS": 8, "LDS": 8, "BAR": 16},
    SHARED_ADDRESS + "mov.u32 r0, tid;",
    ("r0",),
    lanes=SHARED["32_own"].lanes,
)
# A constant's address is its value, so that it can be the next address.
_TABLE = ".const .align 16 .b8 table[2048];"
_CONSTANT_LATENCY = Loop(
    "ldc_latency",
    "cycles from an LDC to one at the address that it loaded",
    lines(["ld.const.u32 r0, [r0];"] * 32),
    32,
    {"LDC": 32},
    "mov.u32 r0, table; add.u32 r0, r0, y;",
    ("r0",),
    (1,),
    constants=_TABLE,
)
_CONSTANT_RATE = Loop(
    "ldc_rate",
    "cycles of a warp for each LDC at an address that all lanes share",
    lines(
        [f"ld.const.u32 r{k}, [x+{4 * k}];" for k in range(16)]
        + [f"lop3.b32 x, x, r{k}, r{k + 1}, 0x96;" for k in range(0, 16, 2)]
    ),
    16,
    {"LDC": 16, "LOP3": 8},
    "mov.u32 x, table; add.u32 x, x, y;",
    ("r0",),
    constants=_TABLE,
)
# What all lanes have alike the compiler computes once for the warp.
_UNIFORM = Loop(
    "uiadd3_rate",
    "cycles of a warp for each addition of a number that all lanes have alike, UIADD3",
    lines(f"add.u32 r{k % 8}, r{k % 8}, r{8 + k % 8};" for k in range(128)),
    64,
    {"UIADD3": 64},  # each has three operands
    "mov.u32 x, %ctaid.x;" + lines(f"mad.lo.u32 r{k}, x, {2 * k + 3}, {k};" for k in range(16)),
    registers("r", 8),
)
_CONSTANT_OPERAND = Loop(
    "ffma_constant_operand_rate",
    "cycles of a warp for each FFMA with an operand from a constant bank",
    lines(
        f"ld.const.f32 fc, [table+{16 * (i % 32)}]; fma.rn.f32 f{i % 8}, f{i % 8}, fc, fb;"
        for i in range(128)
    ),
    128,
    {"FFMA": 128},
    started(EIGHT),
    EIGHT,
    constants=_TABLE,
)
_SPECIAL = Loop(
    "s2r_rate",
    "cycles of a warp for each S2R",
    lines(f"mov.u32 r{k}, %smid;" for k in range(16)),
    16,
    {"S2R": 11, "S2UR": 5},
    keep=registers("r", 16),
)
_CLOCK = Loop(
    "cs2r_rate",
    "cycles of a warp for each reading of the clock, CS2R",
    lines(f"mov.u64 v{k}, %clock64;" for k in range(16)),
    16,
    {"CS2R": 16},
    keep=registers("v", 16),
)
_FIRST = Loop(
    "warp_order_ffma",
    "when each warp of a block ends, all with the same FFMAs: whom the scheduler prefers",
    lines(_ffma(256)),
    256,
    {"FFMA": 256},
    started(EIGHT),
    EIGHT,
    (8, 16, 32),
    turns=8,
    observe=each_warp,
)
_FIRST_CHAIN = Loop(
    "warp_order_chain",
    "when each warp of a block ends, all with the same chain of FFMAs, four cycles apart",
    lines([FFMA.format(i=0)] * 256),
    256,
    {"FFMA": 256},
    started(EIGHT),
    EIGHT,
    (8, 16, 32),
    turns=8,
    observe=each_warp,
)
_FIRST_LOADS = Loop(
    "warp_order_lds",
    "when each warp of a block ends, all with the same loads from shared memory",
    lines(load(4, k) for k in range(16)),
    16,
    {"LDS": 16},
    SHARED_ADDRESS,
    ("r0",),
    (8, 16, 32),
    turns=32,
    lanes=SHARED["32_own"].lanes,
    observe=each_warp,
)

# One chain in each warp and four blocks or two on an SM: blocks end when they began in turn.
_SUCCESSION = tuple(
    Loop(
        f"blocks_in_succession_{threads}_threads",
        "cycles from a block's end to the entry of the next, and from there, past its first loads, "
        "to its loop",
        lines([FFMA.format(i=0)] * 64),
        64,
        {"FFMA": 64},
        started(EIGHT),
        EIGHT,
        (threads // WARP,),
        blocks_per_sm=32,
        of_sms=1.0,
        turns=16,
        passes=1,
        shared_bytes=48 << 10,
        observe=between_blocks,
    )
    for threads in (64, 256, 1024)
)

LOOPS = (
    *map(_length, LENGTHS),
    _TAKEN,
    _NOT_TAKEN,
    _DIVERGENT,
    _PREDICATED_OFF,
    _BARRIER,
    _HALF_BARRIER,
    _EXCHANGE,
    _CONSTANT_LATENCY,
    _CONSTANT_RATE,
    _UNIFORM,
    _CONSTANT_OPERAND,
    _SPECIAL,
    _CLOCK,
    _FIRST,
    _FIRST_CHAIN,
    _FIRST_LOADS,
    *_SUCCESSION,
)
