"""Arithmetic reads registers by the ports of two banks, with a cache of operands before them.

The register file of a scheduler has two banks, of the even and of the odd registers, and each
gives one register of a warp in a cycle. An instruction with three operands in one bank reads for
three cycles. An operand marked ".reuse" stays in a cache, one entry for each bank and place, and
the next instruction of the warp with that register at that place needs no port.
Source: Z. Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking",
arXiv:1804.06826, section 3.1.

A Tensor Core reads for an HMMA as long as it multiplies, past the ports. What other arithmetic
reads meanwhile takes the same way, and the product takes that much longer.
"""

from typing import NamedTuple

import numpy as np

from gemmlab.compiled.sass.listing import Immediate, Instruction, Predicate, Register, parse
from gemmlab.compiled.sm.compiled import compiled
from gemmlab.compiled.sm.facts import Facts
from gemmlab.compiled.sm.result import SCHEDULERS

PLACES = 3  # operands of an instruction that may come from registers


class Read(NamedTuple):
    """A register that is read: its number, its place among the operands, whether it stays."""

    register: int
    place: int
    reused: bool


def reads(instruction: Instruction) -> list[Read]:
    """List the registers that arithmetic reads, in the order of its operands.

    >>> reads(Instruction(0, "", "FFMA", ("R6", "R4.reuse", "R19", "R5")))
    [Read(register=4, place=0, reused=True), Read(register=19, place=1, reused=False), \
Read(register=5, place=2, reused=False)]
    """
    found: list[Read] = []
    place, before = 0, None
    for operand in map(parse, _sources(instruction)):
        halves = isinstance(operand, Immediate) and isinstance(before, Immediate)  # of one operand
        before = operand
        if isinstance(operand, Predicate) or halves:
            continue
        if isinstance(operand, Register) and operand.file == "R" and not operand.is_zero:
            found.append(Read(operand.index, place, operand.reused))
        place += 1
    return found[:PLACES]


def _sources(instruction: Instruction) -> tuple[str, ...]:
    """Return the operands after those written: predicates, a register, or one and the other."""
    written = _predicates(instruction, 0)
    if written == 0 or "SETP" not in instruction.name:
        written = _predicates(instruction, written + 1)
    return instruction.operands[written:]


def _predicates(instruction: Instruction, first: int) -> int:
    """Return the place of the first operand from `first` on that is no predicate."""
    operands = instruction.operands
    while first < len(operands) and isinstance(parse(operands[first]), Predicate):
        first += 1
    return first


BANKS = 2  # of registers: the even and the odd ones
AHEAD = 8  # cycles for which a port remembers that it is taken; a power of 2 beyond the window


class Ports(NamedTuple):
    """The ways into the register file.

    cached : (schedulers, 2, banks, places, 2), the warp and the register in the cache, -1 for
        none; FP64 has a cache of its own
    taken : (schedulers, banks, `AHEAD`), cycles in which a port reads, each at its remainder
    free : (schedulers,), the cycle from which the next instruction can begin to read
    products : (schedulers,), until when a Tensor Core reads for an HMMA
    owed : (schedulers,), registers that others have read meanwhile, less than `facts.shared_reads`
    """

    cached: np.ndarray
    taken: np.ndarray
    free: np.ndarray
    products: np.ndarray
    owed: np.ndarray


def free_ports(facts: Facts) -> Ports:
    """Ports that nobody has used."""
    return Ports(
        cached=np.full((SCHEDULERS, 2, BANKS, PLACES, 2), -1),
        taken=np.full((SCHEDULERS, BANKS, AHEAD), -1),
        free=np.zeros(SCHEDULERS, np.int64),
        products=np.zeros(SCHEDULERS, np.int64),
        owed=np.zeros(SCHEDULERS, np.int64),
    )


@compiled
def misses(ports, code, i, scheduler, warp):
    """Count the registers that instruction i reads from each bank and the cache lacks."""
    even, odd = 0, 0
    for place in range(PLACES):
        register = code.registers[i, place]
        if register < 0:
            continue
        cached = ports.cached[scheduler, code.wide[i], register % BANKS, place]
        again = False
        for earlier in range(place):
            again |= code.registers[i, earlier] == register
        if not again and (cached[0] != warp or cached[1] != register):
            even += code.wide[i] or register % BANKS == 0
            odd += code.wide[i] or register % BANKS == 1
        cached[0] = warp if code.reused[i, place] else -1
        cached[1] = register
    return even, odd


@compiled
def take(ports, facts, scheduler, bank, count, first):
    """The port of a bank reads `count` times in the window that begins in cycle `first`."""
    for cycle in range(first, first + facts.operand_window):
        if count > 0 and ports.taken[scheduler, bank, cycle % AHEAD] != cycle:
            ports.taken[scheduler, bank, cycle % AHEAD] = cycle
            count -= 1


@compiled
def room(ports, facts, scheduler, bank, first):
    """Count the cycles of the window that begins in cycle `first` in which a port is free."""
    count = 0
    for cycle in range(first, first + facts.operand_window):
        if ports.taken[scheduler, bank, cycle % AHEAD] != cycle:
            count += 1
    return count


@compiled
def read_operands(ports, code, facts, i, scheduler, warp, t):
    """Arithmetic that issues in cycle t reads its operands as soon as the ports have room.

    Returns the cycles that it needs the port for of which it needs more.
    """
    even, odd = misses(ports, code, i, scheduler, warp)
    first = max(t, ports.free[scheduler])
    while (
        room(ports, facts, scheduler, 0, first) < even
        or room(ports, facts, scheduler, 1, first) < odd
    ):
        first += 1
    take(ports, facts, scheduler, 0, even, first)
    take(ports, facts, scheduler, 1, odd, first)
    ports.free[scheduler] = first + 1
    return max(even, odd)


@compiled
def delay_product(ports, code, facts, i, scheduler, warp, t):
    """Arithmetic that issues in cycle t delays the HMMA that is reading by so many cycles.

    Both share a way, on which `facts.shared_reads` registers pass in a cycle.
    """
    if t >= ports.products[scheduler]:
        return 0
    for place in range(PLACES):
        if code.registers[i, place] >= 0:
            ports.owed[scheduler] += 1 + code.wide[i]
    late = ports.owed[scheduler] // facts.shared_reads
    ports.owed[scheduler] -= late * facts.shared_reads
    return late
