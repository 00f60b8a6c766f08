"""Arithmetic: how long one instruction takes, and how many a scheduler issues."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.microbenchmarks.loop import (
    SOME_WARPS,
    Loop,
    lines,
    registers,
    started,
)

CHAIN = 256  # instructions of a turn that depend on each other
INDEPENDENT = 128  # instructions of a turn in `CHAINS` chains
CHAINS = 8


class Operation(NamedTuple):
    """An instruction, as PTX on register number {i}, and the opcodes that ptxas makes of it."""

    title: str
    text: str
    kind: str  # of register, as `registers` names them
    code: dict[str, int]
    rare: int = 1  # it is this much slower than an FFMA: so many fewer are timed


OPERATIONS = {
    "ffma": Operation("FFMA", "fma.rn.f32 f{i}, f{i}, fa, fb;", "f", {"FFMA": 1}),
    "fadd": Operation("FADD", "add.f32 f{i}, f{i}, fa;", "f", {"FADD": 1}),
    "fmul": Operation("FMUL", "mul.f32 f{i}, f{i}, fa;", "f", {"FMUL": 1}),
    "dfma": Operation("DFMA", "fma.rn.f64 d{i}, d{i}, da, db;", "d", {"DFMA": 1}),
    "dadd": Operation("DADD", "add.f64 d{i}, d{i}, da;", "d", {"DADD": 1}),
    "dmul": Operation("DMUL", "mul.f64 d{i}, d{i}, da;", "d", {"DMUL": 1}),
    "imad": Operation("IMAD", "mad.lo.s32 r{i}, r{i}, ra, rb;", "r", {"IMAD": 1}),
    "imad_hi": Operation("IMAD.HI", "mul.hi.u32 r{i}, r{i}, ra;", "r", {"IMAD": 1}),
    "imad_wide": Operation(
        "IMAD.WIDE and LOP3",
        "mov.b64 {{x, y}}, v{i}; xor.b32 x, x, y; mul.wide.u32 v{i}, x, ra;",
        "v",
        {"IMAD.WIDE": 1, "LOP3": 1},
    ),
    "lop3": Operation("LOP3", "lop3.b32 r{i}, r{i}, ra, rb, 0x6a;", "r", {"LOP3": 1}),
    "shf": Operation("SHF", "shf.l.wrap.b32 r{i}, r{i}, ra, rb;", "r", {"SHF": 1}),
    "prmt": Operation("PRMT", "prmt.b32 r{i}, r{i}, ra, rb;", "r", {"PRMT": 1}),
    "lea": Operation(
        "pair of LEA and LEA.HI, an address,",
        "shl.b64 w, v{i}, 3; add.u64 v{i}, w, at;",
        "v",
        {"LEA": 2},
    ),
    "imnmx": Operation(
        "pair of VIMNMX", "max.s32 r{i}, r{i}, ra; min.u32 r{i}, r{i}, rb;", "r", {"VIMNMX": 2}
    ),
    "isetp_sel": Operation(
        "pair of ISETP and SEL",
        "setp.lt.u32 p{i}, r{i}, ra; selp.b32 r{i}, ra, rb, p{i};",
        "r",
        {"ISETP": 1, "SEL": 1},
    ),
    "popc": Operation("POPC", "popc.b32 r{i}, r{i};", "r", {"POPC": 1}, 4),
    "i2f_f2i": Operation(
        "I2FP, F2I and LOP3",
        "cvt.rn.f32.u32 f{i}, r{i}; cvt.rni.u32.f32 r{i}, f{i}; xor.b32 r{i}, r{i}, ra;",
        "r",
        {"I2FP": 1, "F2I": 1, "LOP3": 1},
        4,
    ),
    "mufu_ex2": Operation("MUFU.EX2", "ex2.approx.ftz.f32 f{i}, f{i};", "f", {"MUFU": 1}, 4),
    "mufu_lg2": Operation("MUFU.LG2", "lg2.approx.ftz.f32 f{i}, f{i};", "f", {"MUFU": 1}, 4),
    "mufu_rcp": Operation(
        "MUFU.RCP and FADD",
        "rcp.approx.ftz.f32 f{i}, f{i}; add.f32 f{i}, f{i}, fa;",
        "f",
        {"MUFU": 1, "FADD": 1},
        4,
    ),
    "mufu_rsq": Operation("MUFU.RSQ", "rsqrt.approx.ftz.f32 f{i}, f{i};", "f", {"MUFU": 1}, 4),
    "mufu_sin": Operation(
        "FMUL and MUFU.SIN", "sin.approx.ftz.f32 f{i}, f{i};", "f", {"FMUL": 1, "MUFU": 1}, 4
    ),
}


def _latency(name: str, operation: Operation) -> Loop:
    n = CHAIN // 4
    return Loop(
        f"{name}_latency",
        f"cycles from {operation.title} to one that needs its result",
        lines([operation.text.format(i=0)] * n),
        n,
        {opcode: n * each for opcode, each in operation.code.items()},
        started([f"{operation.kind}0"]),
        (f"{operation.kind}0",),
        (1,),
        turns=200,
    )


def _rate(name: str, operation: Operation) -> Loop:
    n = INDEPENDENT // operation.rare
    chains = registers(operation.kind, CHAINS)
    return Loop(
        f"{name}_rate",
        f"cycles of a warp for each {operation.title} of {CHAINS} chains",
        lines(operation.text.format(i=i % CHAINS) for i in range(n)),
        n,
        {opcode: n * each for opcode, each in operation.code.items()},
        started(chains),
        chains,
    )


def _mixed(name: str, operations: tuple[str, str]) -> Loop:
    one, other = (OPERATIONS[key] for key in operations)
    n = INDEPENDENT // 2
    chains = {f"{op.kind}{i}": None for op in (one, other) for i in range(CHAINS)}
    code: dict[str, int] = {}
    for op in (one, other):
        for opcode, each in op.code.items():
            code[opcode] = code.get(opcode, 0) + n * each
    return Loop(
        name,
        f"cycles of a warp for each instruction where {one.title} and {other.title} alternate",
        lines(f"{one.text} {other.text}".format(i=i % CHAINS) for i in range(n)),
        2 * n,
        code,
        started(chains),
        tuple(chains),
    )


# acc += a b: each FFMA reads its own accumulator, and two numbers that all share.
_ACCUMULATE = Loop(
    "ffma_accumulate_rate",
    "cycles of a warp for each FFMA whose factors are always the same registers",
    lines(f"fma.rn.f32 f{i % CHAINS}, fa, fb, f{i % CHAINS};" for i in range(INDEPENDENT)),
    INDEPENDENT,
    {"FFMA": INDEPENDENT},
    started(registers("f", CHAINS)),
    registers("f", CHAINS),
)

TILE = 8  # a thread's tile of C is TILE x TILE
A, B = 70, 80  # the first registers of a column of A and of a row of B


def outer_product() -> list[str]:
    """FFMAs of one step of a register tile: rows to and fro, so that B's ends are used twice."""
    columns = [range(TILE), range(TILE - 1, -1, -1)]
    return [
        f"fma.rn.f32 f{TILE * row + col}, f{A + row}, f{B + col}, f{TILE * row + col};"
        for row in range(TILE)
        for col in columns[row % 2]
    ]


TILE_REGISTERS = registers("f", TILE * TILE)
_FACTORS = registers("f", TILE, A) + registers("f", TILE, B)

_OUTER = Loop(
    "ffma_outer8x8_rate",
    "cycles of a warp for each FFMA of 8 x 8 outer products, as register tiles have them",
    lines(outer_product() * 4),
    4 * TILE * TILE,
    {"FFMA": 4 * TILE * TILE},
    started(TILE_REGISTERS + _FACTORS),
    TILE_REGISTERS,
    SOME_WARPS,
)
_THREE = Loop(
    "ffma_3_new_sources_rate",
    "cycles of a warp for each FFMA where all three operands differ from those of its neighbours",
    lines(
        f"fma.rn.f32 f{i % 16}, f{A + i % 9}, f{A + 9 + i * 5 % 9}, f{i % 16};" for i in range(144)
    ),
    144,
    {"FFMA": 144},
    started(registers("f", 16) + registers("f", 18, A)),
    registers("f", 16),
    SOME_WARPS,
)
_IADD3 = Loop(
    "iadd3_rate",
    "cycles of a warp for each IADD3 that adds three registers",
    lines(
        f"add.u32 x, r{i % 8}, r{(i + 3) % 8}; add.u32 r{i % 8}, x, r{(i + 5) % 8};"
        for i in range(INDEPENDENT)
    ),
    INDEPENDENT,
    {"IADD3": INDEPENDENT},
    started(registers("r", 8)),
    registers("r", 8),
)
_IADD = Loop(
    "iadd_rate",
    "cycles of a warp for each of addition and XOR, as the compiler shares additions out",
    lines(
        f"add.s32 r{i % 8}, r{i % 8}, ra; xor.b32 r{i % 8}, r{i % 8}, rb;"
        for i in range(INDEPENDENT)
    ),
    2 * INDEPENDENT,
    {"IMAD": INDEPENDENT, "LOP3": INDEPENDENT},
    started(registers("r", 8)),
    registers("r", 8),
)
# What ptxas makes of four divisions and four additions.
DIVISION = {
    **{
        "I2F": 4,
        "MUFU": 4,
        "F2I": 4,
        "IMAD": 19,
        "IMAD.MOV": 7,
        "IADD3": 14,
        "ISETP": 12,
        "VIADD": 7,
    },
    **{"LOP3": 4, "HFMA2": 1},
}
_DIVISION = Loop(
    "udiv_rate",
    "cycles of a warp for each division of unsigned integers, which is a sequence of instructions",
    lines(f"div.u32 r{i}, ra, r{i}; add.u32 r{i}, r{i}, rb;" for i in range(4)),
    4,
    DIVISION,
    started(registers("r", 4)),
    registers("r", 4),
)

_EVERYWHERE = Loop(
    "ffma_all_sms",
    "cycles of a warp for each FFMA while all SMs compute for 0.2 s, and their clock",
    lines(OPERATIONS["ffma"].text.format(i=i % CHAINS) for i in range(INDEPENDENT)),
    INDEPENDENT,
    {"FFMA": INDEPENDENT},
    started(registers("f", CHAINS)),
    registers("f", CHAINS),
    (16,),
    of_sms=1.0,
    turns=800_000,
    passes=1,
)

LOOPS = (
    *(_latency(name, operation) for name, operation in OPERATIONS.items()),
    *(_rate(name, operation) for name, operation in OPERATIONS.items()),
    _IADD3,
    _IADD,
    _DIVISION,
    _ACCUMULATE,
    _OUTER,
    _THREE,
    _EVERYWHERE,
    _mixed("ffma_imad_rate", ("ffma", "imad")),
    _mixed("ffma_lop3_rate", ("ffma", "lop3")),
    _mixed("imad_lop3_rate", ("imad", "lop3")),
    _mixed("ffma_mufu_rate", ("ffma", "mufu_ex2")),
    _mixed("ffma_dfma_rate", ("ffma", "dfma")),
)
