"""A program is a listing as tables of numbers, one row an instruction, which the loop reads."""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from gemmlab.compiled.sass.listing import BYTES, Immediate, Instruction, Listing, Name, parse
from gemmlab.compiled.sm.facts import Facts
from gemmlab.compiled.sm.pipes import GROUPS, Kind, Pipe, Unit, Use, is_wide, use
from gemmlab.compiled.sm.registers import PLACES, reads
from gemmlab.tiling import WARP

NO = -1  # in a table: there is none
GROUP = "gsb0"  # what products of a warpgroup are grouped by
_WIDTHS = {"64": 2, "128": 4}


class Program(NamedTuple):
    """A program has arrays by the index of an instruction in the listing; `NO` is none.

    stall, write, read, waits : its control fields; `waits` has a bit for each scoreboard
    kind, pipe, other, interval, latency, unit : its `pipes.Use`
    words, stores : registers of a lane that a load fills or a store reads, and whether it is that
    barrier, expected : of BAR, its number, and the warps that it is for (0: the whole block)
    board, left : of DEPBAR, the scoreboard, and how many may still be under way
    group : the scoreboard of a warp's groups of products, of the last product of one
    line : of instructions that are fetched together
    registers, reused : (n, 3), what it reads by places, and whether that stays in the cache
    wide : each of them is the first of two
    slots : cycles in which its scheduler issues nothing else
    matrices : cycles for which a product keeps shared memory busy
    """

    stall: np.ndarray
    write: np.ndarray
    read: np.ndarray
    waits: np.ndarray
    kind: np.ndarray
    pipe: np.ndarray
    other: np.ndarray
    interval: np.ndarray
    latency: np.ndarray
    unit: np.ndarray
    words: np.ndarray
    stores: np.ndarray
    barrier: np.ndarray
    expected: np.ndarray
    board: np.ndarray
    left: np.ndarray
    group: np.ndarray
    line: np.ndarray
    registers: np.ndarray
    reused: np.ndarray
    wide: np.ndarray
    slots: np.ndarray
    matrices: np.ndarray


@lru_cache(maxsize=32)  # the same code is simulated again and again: other effects, other streams
def program(listing: Listing, facts: Facts) -> Program:
    """Make the tables of a listing; ValueError for a barrier whose number is in a register."""
    rows = [_row(i, facts) for i in listing.instructions]
    columns = [np.array(column, np.int64) for column in zip(*rows, strict=True)]
    return Program(*columns)


def _row(instruction: Instruction, facts: Facts) -> tuple:
    control = instruction.control
    used = use(instruction, facts)
    barrier, expected = _barrier(instruction, used.unit)
    board, left = _limit(instruction, used.unit)
    registers, reused = [NO] * PLACES, [0] * PLACES
    for register, place, stays in reads(instruction) if reads_ports(used) else ():
        registers[place], reused[place] = register, stays
    return (
        stall(instruction, facts),
        NO if control.write_barrier is None else control.write_barrier,
        NO if control.read_barrier is None else control.read_barrier,
        sum(1 << b for b in control.waits),
        used.kind,
        used.pipe,
        used.other,
        used.interval,
        used.latency,
        used.unit,
        max((_WIDTHS.get(m, 1) for m in instruction.modifiers), default=1),
        instruction.name.startswith("ST"),
        barrier,
        expected,
        board,
        left,
        GROUPS if used.kind == Kind.TENSOR and GROUP in instruction.operands else NO,
        instruction.address // facts.line_bytes,
        registers,
        reused,
        used.pipe == Pipe.FP64,
        _slots(instruction, used, facts),
        used.matrices,
    )


def stall(instruction: Instruction, facts: Facts) -> int:
    """Return the cycles until the warp's next instruction that the compiler has written."""
    cycles = max(1, instruction.control.stall)
    if is_wide(instruction) and cycles > 1:
        return math.ceil(facts.wide_stall * cycles)
    return max(cycles, 2) if instruction.control.yields else cycles


def _slots(instruction: Instruction, used: Use, facts: Facts) -> int:
    """Return the cycles in which a scheduler issues an instruction: half of an HMMA's interval.

    Source: decision 017, with eight FMUL or FFMA beside a product of 16x8x16, four of 16x8x8. That
    is while it reads registers: no longer where its Tensor Core is slower.
    """
    return max(1, min(used.interval // 2, facts.tensor_slots)) if instruction.name == "HMMA" else 1


def reads_ports(used: Use) -> bool:
    """Say whether an instruction reads operands as arithmetic does."""
    return used.pipe not in (Pipe.NONE, Pipe.UNIFORM, Pipe.TENSOR, Pipe.OF_ALL)


def _barrier(instruction: Instruction, unit: Unit) -> tuple[int, int]:
    """Return the number of a barrier and the warps that it is for."""
    if unit not in (Unit.BARRIER, Unit.ARRIVAL):
        return NO, NO
    operands = [parse(text) for text in instruction.operands]
    match operands:
        case [Immediate() as number, Immediate() as threads, *_]:
            return number.integer, threads.integer // WARP
        case [Immediate() as number, *_]:
            return number.integer, 0
    raise ValueError(f"a barrier with a number known beforehand is needed, not {instruction}")


def _limit(instruction: Instruction, unit: Unit) -> tuple[int, int]:
    """Return the scoreboard of a DEPBAR and how many of its instructions may be under way."""
    if unit != Unit.WAIT:
        return NO, NO
    match [parse(text) for text in instruction.operands]:
        case [Name(text), Immediate() as left, *_] if text == GROUP:
            return GROUPS, left.integer
        case [Name(text), Immediate() as left, *_] if text.startswith("SB"):
            return int(text.removeprefix("SB")), left.integer
    return NO, NO


def lines(listing: Listing, facts: Facts) -> int:
    """Count the lines of instructions that a listing has."""
    last = max(i.address for i in listing.instructions) + BYTES
    return -(-last // facts.line_bytes)
