"""A state is the registers of warps that execute compiled code; operands are read in it."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gemmlab.compiled.sass.listing import (
    Constant,
    Immediate,
    Instruction,
    Operand,
    Predicate,
    Register,
    parse,
)
from gemmlab.tiling import WARP

Row = np.ndarray  # one value a lane
Mask = np.ndarray | None  # the lanes that take part; None for all
Read = Callable[[], Any]  # a row, or one value for all lanes
Write = Callable[[Any, Mask], None]
Step = Callable[[Mask], None]  # an instruction, for the lanes that take part
WORD = np.uint64(32)


class State:
    """A state has registers and predicates of `lanes` lanes, a row each, and the constant banks.

    Uniform registers have a row, too: what a warp shares stands there once for each of its lanes.
    """

    def __init__(self, lanes: int, constants: dict[int, bytes]) -> None:
        self.lanes = lanes
        self.registers = {
            "R": np.zeros((256, lanes), np.uint32),
            "UR": np.zeros((64, lanes), np.uint32),
        }
        self.predicates = {file: np.zeros((8, lanes), bool) for file in ("P", "UP")}
        for rows in self.predicates.values():
            rows[-1] = True
        self.constants = {
            bank: np.frombuffer(data + bytes(-len(data) % 4 + 8), np.uint32)
            for bank, data in constants.items()
        }


def warps_with(lanes: np.ndarray) -> np.ndarray:
    """Return all lanes of the warps that have one of these."""
    return np.repeat(lanes.reshape(-1, WARP).any(1), WARP)


class Operands:
    """The operands of one instruction, to be read and written in a state."""

    def __init__(self, instruction: Instruction, state: State) -> None:
        self.instruction, self.state = instruction, state
        self.all: list[Operand] = [parse(text) for text in instruction.operands]

    def __len__(self) -> int:
        return len(self.all)

    def word(self, index: int, part: int = 0) -> Read:
        """Return what reads an operand as uint32, with its sign and its inversion.

        part : how many words further on
        """
        operand = self.all[index]
        read = self._word(operand, part)
        if isinstance(operand, (Register, Constant)):
            if operand.inverted:
                return lambda: ~read()
            if operand.negative:
                return lambda: np.negative(read())
        return read

    def bits(self, index: int) -> Read:
        """Return what reads an operand as uint32, whatever its sign."""
        return self._word(self.all[index], 0)

    def constant_place(self, index: int) -> Read:
        """Return what reads the place of a constant in its bank [B]."""
        operand = self.all[index]
        if operand.index is None:
            return lambda: np.int32(operand.offset)
        at = self._word(operand.index, 0)
        return lambda: at().astype(np.int32) + np.int32(operand.offset)

    def magnitude(self, index: int) -> tuple[Read, bool]:
        """Return what reads an operand without its sign, and whether to subtract it."""
        operand = self.all[index]
        if getattr(operand, "negative", False):
            return self._word(operand, 0), True
        return self.word(index), False

    def double_word(self, index: int) -> Read:
        """Return what reads an operand as uint64: a register and its successor."""
        operand = self.all[index]
        if isinstance(operand, Immediate):
            value = np.uint64(operand.integer % 2**64)
            return lambda: value
        if isinstance(operand, Register) and operand.is_zero:
            return lambda: np.uint64(0)
        read = self._pair(operand)
        return (lambda: np.negative(read())) if operand.negative else read

    def float32(self, index: int) -> Read:
        """Return what reads an operand as float32, with its sign and its absolute value."""
        operand = self.all[index]
        if isinstance(operand, Immediate):
            value = _float32(operand)
            return lambda: value
        read = self._word(operand, 0)
        return _signed(lambda: read().view(np.float32), operand)

    def float64(self, index: int) -> Read:
        """Return what reads an operand as float64: a register and its successor."""
        operand = self.all[index]
        if isinstance(operand, Immediate):
            value = np.float64(operand.real)
            return lambda: value
        read = self._pair(operand)
        return _signed(lambda: read().view(np.float64), operand)

    def predicate(self, index: int) -> Read:
        """Return what reads a predicate as bool."""
        operand = self.all[index]
        if not isinstance(operand, Predicate):
            raise NotImplementedError(f"{self.instruction}: operand {index} is no predicate")
        row = self.state.predicates[operand.file][operand.index]
        return (lambda: ~row) if operand.negated else (lambda: row)

    def to(self, index: int, dtype: Any = np.uint32, part: int = 0) -> Write:
        """Return what puts values into a register, or one `part` further on; RZ keeps nothing."""
        operand = self.all[index]
        if not isinstance(operand, Register) or operand.is_zero:
            return _nowhere
        row = self.state.registers[operand.file][operand.index + part].view(dtype)
        return self._put(row, operand.file == "UR")

    def to_pair(self, index: int) -> Write:
        """Return what puts uint64 or float64 values into a register and its successor."""
        low, high = self.to(index), self.to(index, part=1)

        def write(value: Any, mask: Mask) -> None:
            bits = np.asarray(value).view(np.uint64)
            low(bits.astype(np.uint32), mask)
            high((bits >> WORD).astype(np.uint32), mask)

        return write

    def to_predicate(self, index: int) -> Write:
        """Return what puts truth values into a predicate; PT keeps nothing."""
        operand = self.all[index]
        if not isinstance(operand, Predicate) or operand.always:
            return _nowhere
        return self._put(self.state.predicates[operand.file][operand.index], operand.file == "UP")

    def is_predicate(self, index: int) -> bool:
        return index < len(self.all) and isinstance(self.all[index], Predicate)

    def _put(self, row: np.ndarray, uniform: bool) -> Write:
        def write(value: Any, mask: Mask) -> None:
            if mask is None:
                row[...] = value
            else:
                mask = warps_with(mask) if uniform else mask
                np.copyto(row, value, where=mask)

        return write

    def _pair(self, operand: Operand) -> Read:
        """Return what reads the bits of an operand and of the word after it, as uint64."""
        low, high = self._word(operand, 0), self._word(operand, 1)
        return lambda: (high().astype(np.uint64) << WORD) | low()

    def _word(self, operand: Operand, part: int) -> Read:
        """Return what reads the bits of an operand, `part` words further on, as uint32."""
        if isinstance(operand, Register):
            rows = self.state.registers[operand.file]
            row = rows[operand.index if operand.is_zero else operand.index + part]
            return lambda: row
        if isinstance(operand, Constant):
            bank = self.state.constants[operand.bank]
            if operand.index is None:
                value = bank[operand.offset // 4 + part]
                return lambda: value
            at = self._word(operand.index, 0)
            offset = operand.offset + 4 * part
            # Lanes that are off may hold any place; what they read is kept nowhere.
            return lambda: bank.take((at().astype(np.int32) + offset) // 4, mode="clip")
        if isinstance(operand, Immediate):
            if part:
                return lambda: np.uint32(0)
            value = _bits(operand)
            return lambda: value
        raise NotImplementedError(f"{self.instruction}: cannot read {operand}")


def _bits(operand: Immediate) -> np.uint32:
    """Return an immediate of an instruction that takes bits: an integer, or a float's pattern."""
    try:
        return np.uint32(operand.integer % 2**32)
    except ValueError:
        return _float32(operand).view(np.uint32)


def _float32(operand: Immediate) -> np.float32:
    with np.errstate(over="ignore"):
        return np.float32(operand.real)


def _signed(read: Read, operand: Operand) -> Read:
    absolute, negative = getattr(operand, "absolute", False), getattr(operand, "negative", False)
    if absolute:
        return (lambda: -np.abs(read())) if negative else (lambda: np.abs(read()))
    return (lambda: np.negative(read())) if negative else read


def _nowhere(value: Any, mask: Mask) -> None:
    """A write to RZ or PT."""
