"""Some instructions are not known here: a forecast says which, and how much hangs on them.

What one does, or on which pipe it runs, may be unknown. Its result is taken for zero. What reads
that, and what reads this, is followed through the registers and shared memory: a branch among them
decides what else is executed.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from gemmlab.compiled.sass.listing import (
    Address,
    Constant,
    Instruction,
    Listing,
    Predicate,
    Register as Reg,
    parse,
)
from gemmlab.compiled.sm.pipes import GROUP_OF

_START = {"R": 0, "UR": 256, "P": 320, "UP": 328}  # of a file's bits in a set of registers
_MEMORY = {"LDS": 336, "STS": 336, "LDSM": 336, "LDL": 337, "STL": 337}  # bits of memories
_RESULTLESS = ("ST", "RED", "BAR", "BRA", "EXIT", "RET", "BSSY", "BSYNC", "WARPSYNC", "CALL")
_WIDE = {"64": 2, "F64": 2, "WIDE": 2, "128": 4}
_FRAGMENTS = "HMMA", "IMMA", "DMMA", "QMMA", "BMMA", "LDSM", "STSM"
_ENDS = "EXIT", "BRA", "RET"


@dataclass(frozen=True)
class Unsure:
    """A part of a forecast is unsure.

    opcodes : how many instructions of the listing are not known, by opcode
    share : of the issue slots, theirs and of what reads their results, directly or not
    decides : whether a branch or an address is among these: then which instructions or which memory
        follows is unsure, too
    """

    opcodes: Mapping[str, int]
    share: float
    decides: bool

    def __str__(self) -> str:
        names = ", ".join(f"{n} {name}" for name, n in self.opcodes.items())
        told = f"not known here: {names}; {self.share:.0%} of the issue slots hang on them"
        return told + self.decides * ", and so does which instructions or addresses follow"


# They take an issue slot, and nothing waits for them; UR… and others of a warp have a pipe.
PIPELESS = {"NOP", "MEMBAR", "ERRBAR", "CGAERRBAR", "CCTL", "CCTLL", "FENCE", "ELECT", "PREEXIT"}


def without_pipe(code: Listing, shares: np.ndarray) -> set[int]:
    """Find the instructions with a share of the slots of which no pipe is known."""
    return {
        i
        for i, one in enumerate(code.instructions)
        if shares[i] and one.name not in GROUP_OF and one.name not in PIPELESS
        if not one.name.startswith("U")
    }


def unsure(code: Listing, shares: np.ndarray, unknown: Collection[int]) -> Unsure | None:
    """Return what is unsure; None where all that was executed is known.

    shares : of the issue slots, of each instruction
    unknown : instructions that were executed without their results
    """
    unknown = {*unknown, *without_pipe(code, shares)}
    if not unknown:
        return None
    hanging = hanging_on(code, unknown)
    share = float(shares[sorted({*unknown, *hanging})].sum())
    opcodes = Counter(code.instructions[i].opcode for i in sorted(unknown))
    decides = any(_decides(code.instructions[i], bits) for i, bits in hanging.items())
    return Unsure(dict(opcodes.most_common()), share, decides)


LOADS = ("LDG", "LD", "ATOM", "ATOMG", "LDGSTS", "UTMALDG")


def depends_on_data(code: Listing) -> bool:
    """Say whether a branch or an address depends on what is loaded from global memory."""
    loads = {i for i, x in enumerate(code.instructions) if x.name in LOADS}
    found = hanging_on(code, loads)
    return any(_decides(code.instructions[i], bits) for i, bits in found.items())


def hanging_on(code: Listing, unknown: Collection[int]) -> dict[int, int]:
    """Find the instructions that read results of these, directly or not, and what they read."""
    instructions, at = code.instructions, {x.address: i for i, x in enumerate(code.instructions)}
    before = [0] * len(instructions)  # sets of registers, a bit each
    found: dict[int, int] = {}
    waiting = set(unknown)
    memories = 0
    while waiting:
        i = waiting.pop()
        one = instructions[i]
        read = (before[i] | memories) & _read(one)
        if read:
            found[i] = found.get(i, 0) | read
        written = _written(one)
        if read or i in unknown:
            after = before[i] | written
            if one.name in ("STS", "STL") and not memories >> _MEMORY[one.name] & 1:
                memories |= 1 << _MEMORY[one.name]
                waiting |= {j for j, x in enumerate(instructions) if x.name in _MEMORY}
        else:
            after = before[i] if one.guard else before[i] & ~(written & _written(one, 1))
        for j in _following(one, i, at, code.functions):
            if after & ~before[j]:
                before[j] |= after
                waiting.add(j)
    return {i: bits for i, bits in found.items() if i not in unknown}


def _following(
    one: Instruction, i: int, at: Mapping[int, int], functions: Mapping[str, int]
) -> Iterator[int]:
    if (one.guard or one.name not in _ENDS) and i + 1 < len(at):
        yield i + 1
    if one.name in ("BRA", "CALL"):
        label = one.operands[-1].strip("`()")
        target = functions.get(label)
        if target is None and label.startswith("0x"):
            target = int(label, 16)
        if target in at:
            yield at[target]


def _width(one: Instruction) -> int:
    if one.name in _FRAGMENTS:
        return 4
    wide = max((_WIDE.get(m, 1) for m in one.modifiers), default=1)
    return max(wide, 2) if one.name[:1] == "D" and one.name != "DEPBAR" else wide


def _bits(file: str, index: int, width: int = 1) -> int:
    return ((1 << width) - 1) << (_START[file] + index)


def _results(one: Instruction) -> int:
    """Return how many of the operands, from the first on, are written."""
    if one.name.startswith(_RESULTLESS):
        return 0
    operands = [parse(text) for text in one.operands]
    count = 0
    while count < len(operands) and isinstance(operands[count], Predicate):
        count += 1
    if count and "SETP" in one.name:
        return count
    if count < len(operands) and isinstance(operands[count], Reg):
        count += 1
        while count < len(operands) - 3 and isinstance(operands[count], Predicate):
            count += 1
    return count


def _written(one: Instruction, width: int | None = None) -> int:
    found = 0
    for text in one.operands[: _results(one)]:
        operand = parse(text)
        if isinstance(operand, Predicate) and not operand.always:
            found |= _bits(operand.file, operand.index)
        elif isinstance(operand, Reg) and not operand.is_zero:
            found |= _bits(operand.file, operand.index, width or _width(one))
    return found


def _read(one: Instruction) -> int:
    found = 0
    if one.guard:
        guard = parse(one.guard)
        found |= 0 if guard.always else _bits(guard.file, guard.index)
    if one.name in ("LDS", "LDL", "LDSM"):
        found |= 1 << _MEMORY[one.name]
    for text in one.operands[_results(one) :]:
        operand = parse(text)
        if isinstance(operand, Predicate) and operand.index != 7:
            found |= _bits(operand.file, operand.index)
        elif isinstance(operand, Reg) and not operand.is_zero:
            found |= _bits(operand.file, operand.index, _width(one))
        elif isinstance(operand, (Address, Constant)):
            found |= _of_address(operand)
    return found


def _of_address(operand: Address | Constant) -> int:
    registers = operand.registers if isinstance(operand, Address) else (operand.index,)
    wide = 2 if getattr(operand, "wide", False) else 1
    return sum(_bits(r.file, r.index, wide) for r in {*registers} if r and not r.is_zero)


def _decides(one: Instruction, bits: int) -> bool:
    """Say whether what an instruction reads, of a set, is a condition or an address."""
    addresses = [parse(text) for text in one.operands if "[" in text]
    places = 0
    for operand in addresses:
        if isinstance(operand, (Address, Constant)):
            places |= _of_address(operand)
    if one.guard:
        guard = parse(one.guard)
        places |= 0 if guard.always else _bits(guard.file, guard.index)
    return bool(bits & places) or one.name in _ENDS
