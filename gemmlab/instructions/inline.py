"""An instruction's PTX as LLVM takes inline assembly: registers by their numbers, "$0" first.

Results have the first numbers. What is updated in place goes in by the registers in which it comes
out, after all that goes in otherwise.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from gemmlab.instructions.instruction import (
    Accumulator,
    Box,
    Instruction,
    Literal,
    Operand,
    Registers,
    Tile,
    Valid,
)

# Of an address in an address space: the bits of its integer, and its letter in constraints.
ADDRESSES = {"shared": (32, "r"), "global": (64, "l"), "any": (64, "l")}
# The descriptor of a matrix in shared memory: the 128-byte swizzle (1 << 62), 1024 bytes from eight
# rows to the next eight; then the distance of blocks of 64 rows of the matrix, where they are
# blocks, and the address. PTX ISA 9.0, "Matrix Descriptor Format"; all in units of 16 bytes.
SWIZZLED, BLOCKS = 1 << 62 | (1024 >> 4) << 32, 1 << 16
WITHIN = (1 << 14) - 1  # of an address, in these units: above is the block's rank in its cluster
MEMORY = "~{memory}"


def text(
    instruction: Instruction, kept: int, literals: dict[str, int],
    inputs: Sequence[tuple[Operand, int]],
) -> str:  # fmt: skip
    """Return the instruction's PTX with registers and constants in the places of its names.

    kept : registers of an accumulator; literals : constants by the names of their operands
    inputs : the operands that the call has, each with its number of registers that go in
    """
    result = instruction.result
    names = {name: str(value) for name, value in literals.items()}
    if result is not None:
        names |= _named(result.name, range(result.count))
    first = kept or (result.count if result else 0)
    for operand, count in inputs:
        if isinstance(operand, Accumulator):
            names |= _named(operand.name, range(kept))
        names |= _named(operand.name, range(first, first + count), operand)
        first += count
    names |= {
        o.name: "" for o in instruction.operands if isinstance(o, Valid) and o.name not in names
    }
    written = instruction.ptx.format(**names)
    return written if written.startswith("{") else f"{written};"  # a block ends itself


def literals(
    bound: Iterable[tuple[Operand, Sequence[int]]], types: Sequence[Any]
) -> dict[str, int]:
    """Return the constants of a call by the names of their operands; types : of its arguments."""
    return {o.name: types[places[0]].literal_value for o, places in bound if isinstance(o, Literal)}


def touches_memory(instruction: Instruction) -> bool:
    """Say whether more than registers changes, so that no load or store may pass."""
    return not instruction.operands or any(
        not isinstance(o, Registers) for o in instruction.operands
    )


def _named(name: str, places: range, operand: Operand | None = None) -> dict[str, str]:
    """Return the names that the instruction's text has for the registers in `places`."""
    if isinstance(operand, Literal) or not places:
        return {}
    found = [f"${i}" for i in places]
    if isinstance(operand, Tile):
        return {name: found[0], f"{name}_stride": found[1]}
    if isinstance(operand, Box):
        return dict(zip((name, f"{name}_row", f"{name}_column"), found, strict=False))
    if isinstance(operand, Valid):
        return {name: f", {found[0]}"}
    single = {f"{name}{i}": one for i, one in enumerate(found)}
    return {name: ", ".join(found), **single}
