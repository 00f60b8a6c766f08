"""Registers that an instruction reads: their banks, and the cache of operands.

The register file of a scheduler has two banks, of the even and of the odd registers, and each
gives one register of a warp in a cycle. An instruction with three operands in one bank reads for
three cycles. An operand marked ".reuse" stays in a cache, one entry for each bank and place, and
the next instruction of the warp with that register at that place needs no port.
Source: Z. Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking",
arXiv:1804.06826, section 3.1.
"""

from __future__ import annotations

from typing import NamedTuple

from gemmlab.compiled.sass.listing import Instruction
from gemmlab.compiled.sass.operands import Predicate, Register, parse

PLACES = 3  # operands of an instruction that may come from registers


class Read(NamedTuple):
    """A register that is read: its number, its place among the operands, whether it stays."""

    register: int
    place: int
    reused: bool


def reads(instruction: Instruction) -> list[Read]:
    """The registers that arithmetic reads, in the order of its operands.

    >>> reads(Instruction(0, "", "FFMA", ("R6", "R4.reuse", "R19", "R5")))
    [Read(register=4, place=0, reused=True), Read(register=19, place=1, reused=False), \
Read(register=5, place=2, reused=False)]
    """
    found = []
    place = 0
    for operand in map(parse, _sources(instruction)):
        if isinstance(operand, Predicate):
            continue
        if isinstance(operand, Register) and operand.file == "R" and not operand.is_zero:
            found.append(Read(operand.index, place, operand.reused))
        place += 1
    return found[:PLACES]


def _sources(instruction: Instruction) -> tuple[str, ...]:
    """The operands after those that are written: predicates, a register, or one and the other."""
    written = _predicates(instruction, 0)
    if written == 0 or "SETP" not in instruction.name:
        written = _predicates(instruction, written + 1)
    return instruction.operands[written:]


def _predicates(instruction: Instruction, first: int) -> int:
    """The first operand from `first` on that is no predicate."""
    operands = instruction.operands
    while first < len(operands) and isinstance(parse(operands[first]), Predicate):
        first += 1
    return first
