"""An instruction keeps a pipe or a unit busy for an interval, and later has its result.

A scheduler has arithmetic pipes of its own. They take an instruction and are busy with it for an
interval. Memory is behind a queue: the LSU, which the four schedulers share, takes from their
queues in turn. A barrier is a unit of the SM, too. An instruction that only starts something
(LDGSTS, copies by the TMA) goes to a `Unit` and is done when that says so, by a scoreboard or by a
barrier in shared memory; the scheduler's loop needs to know no more of it. A warp waits until what
holds one of its six scoreboards is done.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from gemmlab.compiled.sass.listing import BARRIERS, Instruction
from gemmlab.compiled.sm.compiled import compiled
from gemmlab.compiled.sm.facts import Facts
from gemmlab.instructions.warpgroup import WARPGROUP
from gemmlab.tiling import WARP

WARPS = WARPGROUP // WARP  # each reads a part of what the product of a warpgroup needs


class Pipe(IntEnum):
    """Arithmetic pipes of a scheduler. FMA is one or two: IMAD runs on the heavy one alone.

    `Facts.fma_pipes` and `product_pipes` say where a GPU differs: before sm_86 there is the heavy
    one alone, and sm_120 has both for integers, too.
    """

    NONE = -1
    FMA_HEAVY = 0
    FMA_LITE = 1
    ALU = 2
    FP64 = 3
    XU = 4
    UNIFORM = 5
    TENSOR = 6
    OF_ALL = 7  # one for all schedulers: constants, special registers


class Unit(IntEnum):
    """A unit does what is not done by a pipe."""

    NONE = 0
    SHARED = 1  # LSU, shared memory
    GLOBAL = 2  # LSU, L1 and what is behind it
    COPY = 3  # likewise, to shared memory
    COPIES = 4  # LDGDEPBAR: a scoreboard for the copies so far
    WAIT = 5  # DEPBAR: until at most so many are under way
    BARRIER = 6
    ARRIVAL = 7  # a barrier for which the warp does not wait
    MBARRIER_INIT = 8
    MBARRIER_ARRIVAL = 9
    MBARRIER_EXPECTS = 10  # an arrival, and bytes that are to come
    MBARRIER_WAIT = 11
    BULK = 12  # the TMA, which copies
    BULK_STORE = 13  # and which stores
    BULK_STORES = 14  # UTMACMDFLUSH: a scoreboard until the stores so far have been read
    REMOTE_STORE = 15  # to another SM of the cluster, where an mbarrier counts the bytes


class Kind(IntEnum):
    """An issue slot is used for one of these kinds, in the words of a picture."""

    FMA = 0
    INTEGER = 1
    FP64 = 2
    SPECIAL = 3
    TENSOR = 4
    SHARED = 5
    GLOBAL = 6
    COPY = 7
    BARRIER = 8
    BRANCH = 9
    UNIFORM = 10
    OTHER = 11


class Use(NamedTuple):
    """An instruction takes a pipe (or the other one) for an interval, or a unit.

    matrices : cycles for which a product keeps shared memory busy
    """

    kind: Kind
    pipe: Pipe = Pipe.NONE
    other: Pipe = Pipe.NONE
    interval: int = 1
    latency: int = 1
    unit: Unit = Unit.NONE
    matrices: int = 0


OPCODES = {
    "fma": "FFMA FADD FMUL HFMA2 HADD2 HMUL2 FFMA32I FADD32I FMUL32I",
    "product": "IMAD IDP",
    "alu": """
        ISETP FSETP ICMP SEL FSEL LOP3 IADD3 IADD VIADD LEA SHF SHL SHR MOV PRMT SGXT BMSK PLOP3
        VIMNMX IMNMX FMNMX VIADDMNMX VIMNMX3 FMNMX3 IABS P2R R2P CS2R LEPC HSETP2 HSET2 HMNMX2
        FSWZADD I2FP F2FP VABSDIFF VABSDIFF4 I2IP FCHK VOTE VOTEU MATCH R2UR""",
    "fp64": "DFMA DADD DMUL DSETP",
    "special": "MUFU F2I F2F FRND POPC FLO BREV I2I F2IP",
    "conversion": "I2F",
    "reduction": "REDUX CREDUX",
    "tensor": "HMMA IMMA DMMA BMMA QMMA",
    "constant": "LDC",
    "slot": "ULDC LDCU NOP",
    "register": "S2R S2UR B2R R2B",
    "shared": "LDS STS LDSM STSM ATOMS SHFL",
    "global": "LDG STG LD ST LDL STL ATOM ATOMG RED REDG SULD SUST TLD TEX",
    "copy": "LDGSTS",
    "copies": "LDGDEPBAR",
    "wait": "DEPBAR WARPGROUP",
    "warpgroup": "HGMMA QGMMA IGMMA",
    "mbarrier": "SYNCS",
    "bulk": "UTMALDG UBLKCP",
    "bulk store": "UTMASTG",
    "bulk stores": "UTMACMDFLUSH",
    "remote": "STAS",
    "barrier": "BAR",
    "branch": """
        BRA BRX JMP JMX CALL RET EXIT BSSY BSYNC BREAK WARPSYNC YIELD KILL NANOSLEEP BPT
        ENDCOLLECTIVE BMOV""",
}
GROUP_OF = {name: group for group, names in OPCODES.items() for name in names.split()}
WITHOUT_PIPE = {
    "bulk": Use(Kind.COPY, unit=Unit.BULK),
    "bulk store": Use(Kind.GLOBAL, unit=Unit.BULK_STORE),
    "bulk stores": Use(Kind.GLOBAL, unit=Unit.BULK_STORES),
    "remote": Use(Kind.SHARED, unit=Unit.REMOTE_STORE),
    "shared": Use(Kind.SHARED, unit=Unit.SHARED),
    "global": Use(Kind.GLOBAL, unit=Unit.GLOBAL),
    "copy": Use(Kind.COPY, unit=Unit.COPY),
    "copies": Use(Kind.COPY, unit=Unit.COPIES),
    "branch": Use(Kind.BRANCH),
    "slot": Use(Kind.OTHER),
}


def is_wide(instruction: Instruction) -> bool:
    """Say whether a product of integers needs more than the lower 32 bits."""
    return instruction.name == "IMAD" and bool({"WIDE", "HI"} & set(instruction.modifiers))


def use(instruction: Instruction, facts: Facts) -> Use:
    """Return what an instruction takes; one that is not known takes its issue slot alone.

    >>> from gemmlab.compiled.sm.facts import facts
    >>> use(Instruction(0, "", "IMAD.WIDE.U32", ()), facts("h200")).pipe.name
    'FMA_HEAVY'
    """
    f, none = facts, Pipe.NONE
    group = GROUP_OF.get(instruction.name, instruction.name[:1])
    match group:
        case "fma":
            return Use(Kind.FMA, *_pipes(f.fma_pipes), f.fma_interval)
        case "product":
            interval = f.wide_interval if is_wide(instruction) else f.fma_interval
            return Use(Kind.INTEGER, *_pipes(f.product_pipes), interval)
        case "alu":
            return Use(Kind.INTEGER, Pipe.ALU, none, f.alu_interval)
        case "fp64":
            return Use(Kind.FP64, Pipe.FP64, none, f.fp64_interval, f.fp64_latency)
        case "special":
            return Use(Kind.SPECIAL, Pipe.XU, none, f.xu_interval, f.xu_latency)
        case "conversion":  # of 64 bits: 16 results a cycle and SM, CUDA C++ Programming Guide
            long = {"U64", "S64"} & set(instruction.modifiers)
            interval = f.xu_interval if long else f.conversion_interval
            return Use(Kind.SPECIAL, Pipe.XU, none, interval, f.xu_latency)
        case "reduction":
            return Use(Kind.SPECIAL, Pipe.XU, none, f.xu_interval, f.reduction_latency)
        case "tensor":
            return Use(
                Kind.TENSOR, Pipe.TENSOR, none, _of_product(instruction, f), f.tensor_latency
            )
        case "warpgroup":  # it goes on while the warp does
            columns = _columns(instruction)
            interval, late = columns // f.wgmma_columns, f.wgmma_latency
            read = round(columns / WARPS / f.wgmma_reads)
            use_of = Use(Kind.TENSOR, Pipe.TENSOR, none, interval, interval + late)
            return use_of._replace(matrices=read)
        case "mbarrier":
            return Use(Kind.BARRIER, unit=_of_mbarrier(instruction))
        case "constant":
            return Use(Kind.OTHER, Pipe.OF_ALL, none, f.of_all_interval, f.constant_latency)
        case "register":
            return Use(Kind.OTHER, Pipe.OF_ALL, none, f.of_all_interval, f.special_latency)
        case "wait" if "DEPBAR" in instruction.opcode:
            return Use(Kind.OTHER, unit=Unit.WAIT)
        case "barrier":
            arrives = "ARV" in instruction.modifiers
            return Use(Kind.BARRIER, unit=Unit.ARRIVAL if arrives else Unit.BARRIER)
        case "U":  # UIADD3, UMOV, ...: one for the whole warp
            return Use(Kind.UNIFORM, Pipe.UNIFORM, none, f.uniform_interval)
    return WITHOUT_PIPE.get(group, Use(Kind.OTHER))


def _pipes(count: int) -> tuple[Pipe, Pipe]:
    """Return the pipes that FMAs may take, of which there are so many."""
    return (Pipe.FMA_LITE, Pipe.FMA_HEAVY) if count > 1 else (Pipe.FMA_HEAVY, Pipe.NONE)


def _of_product(instruction: Instruction, facts: Facts) -> int:
    """Return how long a product of one warp takes a Tensor Core."""
    if instruction.opcode == "HMMA.1688.F32":
        return facts.tensor_short_interval
    if instruction.modifiers[1:] == ("F16",):
        short = facts.tensor_half_interval * facts.tensor_short_interval // facts.tensor_interval
        return short if "1688" in instruction.modifiers else facts.tensor_half_interval
    return facts.tensor_interval


def _columns(instruction: Instruction) -> int:
    """Return the columns of a product of a warpgroup, "64x256x16" say."""
    shape = next(m for m in instruction.modifiers if m.startswith("64x"))
    return int(shape.split("x")[1])


def is_wait(instruction: Instruction) -> bool:
    """Whether an instruction waits for a phase of an mbarrier."""
    return instruction.name == "SYNCS" and "TRYWAIT" in instruction.modifiers


def _of_mbarrier(instruction: Instruction) -> Unit:
    flags = instruction.modifiers
    if "EXCH" in flags:
        return Unit.MBARRIER_INIT
    if is_wait(instruction):
        return Unit.MBARRIER_WAIT
    return Unit.MBARRIER_ARRIVAL if "A1T0" in flags else Unit.MBARRIER_EXPECTS


NEVER = 1 << 60  # a cycle that does not come: something else has to happen first
GROUPS = BARRIERS  # behind the six: groups of products of a warpgroup, as if they held one
HISTORY = 64  # completions that are remembered: DEPBAR counts up to 63


class Scoreboards(NamedTuple):
    """The scoreboards are arrays by warp and by scoreboard.

    until : the cycle in which the last of what holds it is done
    cause : which instruction that is
    pending : how many hold it of which no such cycle is known yet
    history, known : those cycles in their order, and how many there have been
    """

    until: np.ndarray
    cause: np.ndarray
    pending: np.ndarray
    history: np.ndarray
    known: np.ndarray


def free_scoreboards(warps: int) -> Scoreboards:
    """Scoreboards that nothing holds."""
    shape = warps, BARRIERS + 1
    return Scoreboards(
        *(np.zeros(shape, np.int64) for _ in range(3)),
        history=np.zeros((*shape, HISTORY), np.int64),
        known=np.zeros(shape, np.int64),
    )


@compiled
def hold(boards, warp, board, i):
    """Instruction i holds a scoreboard (-1: none) until further notice."""
    if board >= 0:
        boards.pending[warp, board] += 1
        boards.cause[warp, board] = i


@compiled
def complete(boards, warp, board, i, at):
    """Instruction i holds a scoreboard (-1: none) until cycle `at`."""
    if board < 0:
        return
    if at >= boards.until[warp, board]:
        boards.until[warp, board] = at
        boards.cause[warp, board] = i
    boards.history[warp, board, boards.known[warp, board] % HISTORY] = at
    boards.known[warp, board] += 1


@compiled
def free(boards, warp, board, left):
    """Return the cycle in which at most `left` instructions, which end in order, hold a board."""
    left -= boards.pending[warp, board]
    known = boards.known[warp, board]
    if left < 0:
        return NEVER
    if left == 0:
        return boards.until[warp, board]
    if left >= min(known, HISTORY):
        return 0
    return boards.history[warp, board, (known - 1 - left) % HISTORY]
