"""What instructions compare is noted in turns of a loop, to know how long it comes out the same.

All that is noted are whole numbers of lanes with the bounds between which nothing changes: of
x < y that is x - y, below 0 or not; of a sum with a carry the sum, up to the next power of two.
Numbers that grow by the same step each time reach a bound in a time that is known.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gemmlab.compiled.sass.execution.effects import base_name, registers
from gemmlab.compiled.sass.execution.memory import sum_of
from gemmlab.compiled.sass.execution.state import Mask, Operands, Read, State
from gemmlab.compiled.sass.listing import (
    Address,
    Immediate,
    Instruction,
    Predicate,
    Register,
    parse,
)
from gemmlab.model.transactions import SECTOR

FAR = 1 << 60  # a bound that nothing reaches
SPAN = 1 << 32  # of a word


class Quantity(NamedTuple):
    """A number of each lane and its bounds; its steps have to be multiples of `multiple`."""

    value: Any
    low: Any = 0
    high: Any = SPAN - 1
    multiple: int = 1


class Note(NamedTuple):
    """The instruction at an index of the listing is executed by lanes with such quantities."""

    at: int
    mask: Mask
    quantities: list[Quantity]


def periods_left(periods: Sequence[Sequence[Note]]) -> int:
    """Count how often more all comes out as in these periods of a loop; 0 where they differ.

    >>> turn = [[Note(7, None, [Quantity(np.array([x]), 0, 100)])] for x in (40, 50, 60)]
    >>> periods_left(turn)
    4
    """
    if len({tuple(note.at for note in period) for period in periods}) > 1:
        return 0
    left = FAR
    for notes in zip(*periods, strict=True):
        masks = [note.mask for note in notes]
        if any((m is None) != (masks[0] is None) for m in masks):
            return 0
        if masks[0] is not None and any(not np.array_equal(m, masks[0]) for m in masks[1:]):
            return 0
        for quantities in zip(*(note.quantities for note in notes), strict=True):
            left = min(left, _left(quantities, masks[0]))
    return left


def missing(periods: Sequence[Sequence[Note]]) -> int:
    """Return in how many such periods all steps are the multiples that they have to be."""
    found = 1
    for before, after in zip(*periods[-2:], strict=False):
        for old, new in zip(before.quantities, after.quantities, strict=False):
            if new.multiple > 1:
                step = np.asarray(new.value) - np.asarray(old.value)
                steps = step if after.mask is None else step[after.mask]
                found = max(
                    found, new.multiple // math.gcd(new.multiple, *map(int, np.unique(steps)))
                )
    return found


def _left(quantities: Sequence[Quantity], mask: Mask) -> int:
    first, second, third = (np.asarray(q.value, np.int64) for q in quantities)
    step = third - second
    if not step.any() and not (second - first).any():
        return FAR
    last = quantities[-1]
    room = np.where(
        step > 0,
        (last.high - third) // np.maximum(step, 1),
        np.where(step < 0, (third - last.low) // np.maximum(-step, 1), FAR),
    )
    room = np.where((step == second - first) & (step % last.multiple == 0), room, 0)
    if mask is not None:
        room = np.where(mask, room, FAR)
    return int(room.min())


def grows(instruction: Instruction, affine: int) -> str:
    """Say what an instruction makes of numbers that grow by steps: "same", "affine" or "unknown".

    affine : the registers that grow, as bits; what else it reads stays as it is

    >>> grows(Instruction(0, "", "IMAD", ("R2", "R3", "R4", "R5")), 1 << 3)
    'affine'
    >>> grows(Instruction(0, "", "IMAD", ("R2", "R3", "R3", "R5")), 1 << 3)
    'unknown'
    """
    name, flags = base_name(instruction), instruction.modifiers
    operands = [parse(text) for text in instruction.operands]
    carries = len(operands) > 1 and isinstance(operands[1], Predicate)
    match name:
        case "ISETP":
            return "same"
        case "MOV" | "IADD3" | "VIADD" | "SEL" | "VIMNMX":
            return "affine"
        case "LEA":
            return "unknown" if carries and "HI" in flags else "affine"
        case "R2UR":
            return "affine" if isinstance(operands[0], Register) else "unknown"
        case "IMAD":
            factors = [o for o in operands[1:3] if registers(o) & affine]
            return "unknown" if carries or "HI" in flags or len(factors) > 1 else "affine"
        case "SHF":
            if registers(operands[2]) & affine:
                return "unknown"
            if "L" in flags:
                return "affine"
            return (
                "same" if _is_sign(instruction) else "affine" if _shifted(operands) else "unknown"
            )
        case "LOP3":
            mask = _mask(instruction, operands)
            if mask is None:
                return "affine" if _is_inversion(instruction, operands) else "unknown"
            return "same" if mask > 0 else "affine"
    return "unknown"


def _is_sign(i: Instruction) -> bool:
    return "S32" in i.modifiers and "HI" in i.modifiers and i.operands[2] == "0x1f"


def _shifted(operands: list) -> int | None:
    """Return the index of the operand that is shifted to the right by a constant."""
    if not isinstance(operands[2], Immediate):
        return None
    low = operands[1]
    return 3 if isinstance(low, Register) and low.is_zero else 1


def _mask(i: Instruction, operands: list) -> int | None:
    """Return 2^s of a & (2^s - 1), -2^s of a & -2^s, None of anything else."""
    given = [o for o in operands if isinstance(o, Immediate)]
    if len(given) < 2 or given[-1].integer != 0xC0 or given[0].integer == 0:
        return None
    bits = given[0].integer % SPAN
    if bits & (bits + 1) == 0:
        return bits + 1
    other = SPAN - bits
    return -other if other & (other - 1) == 0 else None


def _is_inversion(i: Instruction, operands: list) -> bool:
    words = [o for o in operands[1:] if isinstance(o, Register)]
    table = [o for o in operands if isinstance(o, Immediate)][-1].integer
    return sum(not o.is_zero for o in words) == 1 and table in (0x33, 0x0F, 0x55)


Reader = Callable[[], list[Quantity]]


def reader(instruction: Instruction, state: State) -> Reader | None:
    """Return what notes the quantities on which an instruction's outcome depends; None for none."""
    name, o = base_name(instruction), Operands(instruction, state)
    if name in GLOBAL:
        return _addressed(o, GLOBAL[name])
    carries = o.is_predicate(1)
    if name == "ISETP":
        return _compared(o, 2)
    if name == "VIMNMX":
        return _compared(o, 1)
    if name == "IADD3" and carries:
        return _added(o)
    if name == "LEA" and carries and "HI" not in instruction.modifiers:
        return _added_shifted(o)
    if name == "SHF" and "R" in instruction.modifiers:
        if _is_sign(instruction):
            read = o.word(3)
            return lambda: [_less(_signed(read()), 0)]
        return _divided(o)
    if name == "LOP3" and (mask := _mask(instruction, o.all)) is not None:
        first = 1 + o.is_predicate(0)
        masked = o.word(first + isinstance(o.all[first], Immediate))
        return lambda: [Quantity(_unsigned(masked()), multiple=abs(mask))]
    return None


# Accesses to arrays, and which of their addresses that is. What one costs stays the same, and so
# does what comes with it, if it goes on by whole sectors.
GLOBAL = dict.fromkeys(("LDG", "STG", "LD", "ST", "ATOM", "ATOMG", "RED", "REDG"), 0) | {
    "LDGSTS": 1
}


def _addressed(o: Operands, which: int) -> Reader:
    at = [operand for operand in o.all if isinstance(operand, Address)][which]
    read = sum_of(o, replace(at, wide=True))
    return lambda: [Quantity(np.asarray(read()).astype(np.int64), -FAR, FAR, SECTOR)]


def _signed(word: Any) -> Any:
    return np.asarray(word).view(np.int32).astype(np.int64)


def _unsigned(word: Any) -> Any:
    return np.asarray(word).astype(np.int64)


def _less(x: Any, y: Any) -> Quantity:
    """Note that x < y, or not."""
    apart = x - y
    return Quantity(apart, np.where(apart < 0, -FAR, 0), np.where(apart < 0, -1, FAR))


def _compared(o: Operands, first: int) -> Reader:
    flags = o.instruction.modifiers
    a, b = o.word(first), o.word(first + 1)
    unsigned = "U32" in flags
    of = _unsigned if unsigned else _signed
    least, most = (0, SPAN - 1) if unsigned else (-SPAN // 2, SPAN // 2 - 1)
    decides = set(flags) if "EX" not in flags else set()
    strict = o.instruction.name.endswith("MNMX") or bool(decides & {"LT", "GE"})
    loose = bool(decides & {"LE", "GT"})

    def read() -> list[Quantity]:
        x, y = of(a()), of(b())
        found = [Quantity(x, least, most), Quantity(y, least, most)]
        if strict:
            return [*found, _less(x, y)]
        if loose:
            return [*found, _less(y, x)]
        apart = x - y  # equality, and words above others that decide where these are equal
        low = np.where(apart < 0, -FAR, np.where(apart > 0, 1, 0))
        high = np.where(apart < 0, -1, np.where(apart > 0, FAR, 0))
        return [*found, Quantity(apart, low, high)]

    return read


def _sum(parts: list[tuple[Any, bool]], carries: int) -> list[Quantity]:
    """Note the parts of a sum, and between which multiples of 2³² it is."""
    found = [Quantity(part) for part, _ in parts]
    total = sum((SPAN - part if negative else part) for part, negative in parts) + carries
    low = total // SPAN * SPAN
    return [*found, Quantity(total, low, low + SPAN - 1)]


def _added(o: Operands) -> Reader:
    first = 1
    while o.is_predicate(first):
        first += 1
    sources = [o.magnitude(i) for i in range(first, min(first + 3, len(o)))]
    carried = "X" in o.instruction.modifiers
    ins = [o.predicate(i) for i in range(first + 3, len(o)) if o.is_predicate(i)] if carried else []

    def read() -> list[Quantity]:
        parts = [(_unsigned(word()), negative) for word, negative in sources]
        return _sum(parts, sum(np.asarray(one()).astype(np.int64) for one in ins))

    return read


def _added_shifted(o: Operands) -> Reader:
    word, negative = o.magnitude(2)
    other, less = o.magnitude(3)
    shift = o.word(4)
    carried = o.predicate(len(o) - 1) if "X" in o.instruction.modifiers else None

    def read() -> list[Quantity]:
        moved = (np.asarray(word()) << (shift() & np.uint32(31))).astype(np.int64)
        more = 0 if carried is None else np.asarray(carried()).astype(np.int64)
        return _sum([(moved, negative), (_unsigned(other()), less)], more)

    return read


def _divided(o: Operands) -> Reader | None:
    at = _shifted(o.all)
    if at is None:
        return None
    read: Read = o.word(at)
    of = _signed if at == 3 and "S32" in o.instruction.modifiers else _unsigned
    least, most = (0, SPAN - 1) if of is _unsigned else (-SPAN // 2, SPAN // 2 - 1)
    multiple = 1 << (o.all[2].integer & 31)
    return lambda: [Quantity(of(read()), least, most, multiple)]
