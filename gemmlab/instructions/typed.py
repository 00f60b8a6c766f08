"""Which arguments a call of an instruction takes, and what it returns, in a compiler's types.

numba-cuda-mlir has the types of Numba-CUDA under other names: whatever is said here holds for both.
How a call compiles stands in the folder of each compiler.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from gemmlab.instructions.fragments import ARGUMENTS, LayoutFunction
from gemmlab.instructions.instruction import (
    Accumulator,
    Box,
    Condition,
    Instruction,
    Literal,
    Matrix,
    Memory,
    Operand,
    Registers,
    Tile,
    Valid,
)

Bound = list[tuple[Operand, list[int]]]  # each operand, and the positions of its arguments
MLIR = "numba_cuda_mlir"  # the package of that compiler
IN_ARRAYS = Memory, Tile, Matrix, Accumulator, Box


def itemsize(array: Any) -> int:
    """Bytes of an element."""
    return array.dtype.bitwidth // 8


@dataclass(frozen=True)
class Typing:
    """The types of a compiler, and its errors of them, by which it is told what a call takes."""

    types: ModuleType
    errors: ModuleType

    def call(self, instruction: Instruction, args: tuple) -> tuple[Bound, Any, tuple]:
        """Return what each argument belongs to, the type of the result and those of the arguments.

        Raises the compiler's TypingError for arguments that the instruction does not take.
        """
        bound = list(self._bind(instruction, args))
        kinds = {args[p[0]].dtype for operand, p in bound if isinstance(operand, Memory)}
        if len(kinds) > 1 and instruction.kind == "async_copy":
            names = " and ".join(sorted(map(str, kinds)))
            text = f"{instruction.name} copies between arrays of one type, not {names}"
            raise self.errors.TypingError(text)
        accepted = tuple(self._accepted(instruction, bound, args))
        return bound, self._result(instruction, bound, args), accepted

    def element(self, operand: Registers, array: Any | None) -> Any:
        """Return the type by which a kernel knows what is in a register."""
        return array.dtype if operand.carrier is None else self.number(operand.carrier.name)

    def number(self, name: str) -> Any:
        """Return the type of numbers that NumPy calls by this name."""
        return getattr(self.types, name)

    def layout(self, function: LayoutFunction, args: tuple) -> tuple[Any, tuple]:
        """Return the type of what a function of a layout returns, and those of its arguments."""
        count, types = ARGUMENTS[function.name], self.types
        if len(args) != count or not all(isinstance(a, types.Integer) for a in args):
            raise self.errors.TypingError(f"{function.name} takes {count} integers, not {args}")
        register = args[1]
        known = isinstance(register, types.IntegerLiteral)
        refusal = function.refusal(register.literal_value) if known else None
        if refusal:
            raise IndexError(refusal)  # after a TypingError Numba would try a variable in its place
        element = function.name == "element"
        returned = types.UniTuple(types.int32, 2) if element else types.boolean
        return returned, (types.int32,) * count

    def view(self, element: Any, args: tuple) -> tuple[Any, tuple]:
        """Return the type of a `shared_view`, and those of its arguments.

        element : the type of an element, as the compiler reads it from `dtype`; None for no number
        """
        shape, dtype, offset = args
        if element is None:
            raise self.errors.TypingError(f"shared_view: {dtype} is no number type")
        if not isinstance(self.types.unliteral(offset), self.types.Integer):
            text = f"shared_view: offset is {offset}, not a number of bytes"
            raise self.errors.TypingError(text)
        array = self.types.Array(element, len(self.shape(shape)), "C")
        return array, (shape, dtype, self.types.intp)

    def shape(self, shape: Any) -> tuple[int, ...]:
        """Return the constant sizes of a `shared_view`."""
        parts = list(shape) if isinstance(shape, self.types.BaseTuple) else [shape]
        if not all(isinstance(p, self.types.IntegerLiteral) for p in parts):
            raise self.errors.RequireLiteralValue(
                f"shared_view: the shape must be constant, not {shape}"
            )
        sizes = tuple(p.literal_value for p in parts)
        if not all(size >= 1 for size in sizes):
            raise self.errors.TypingError(f"shared_view: shape={sizes}; use sizes of at least 1")
        return sizes

    def _refused(self, instruction: Instruction, text: str) -> Exception:
        return self.errors.TypingError(f"{instruction.name}: {text}")

    def _bind(self, instruction: Instruction, args: tuple) -> Iterator[tuple[Operand, list[int]]]:
        """Each operand with the positions of its arguments; an array has an index a dimension."""
        at = 0
        for operand in instruction.operands:
            count = 1
            if isinstance(operand, IN_ARRAYS):
                array = args[at] if at < len(args) else None
                if not isinstance(array, self.types.Array):
                    raise self._refused(instruction, f"{operand.name} is {array}, not an array")
                self._check_array(instruction, operand, array)
                count += _indices(operand, array)
            if isinstance(operand, Valid) and at == len(args):
                return
            if at + count > len(args):
                text = f"{instruction.name} takes more than {len(args)} arguments: {args}"
                raise self.errors.TypingError(text)
            yield operand, list(range(at, at + count))
            at += count
        if at != len(args):
            text = f"{instruction.name} takes {at} arguments, not {len(args)}: {args}"
            raise self.errors.TypingError(text)

    def _check_array(self, instruction: Instruction, operand: Operand, array: Any) -> None:
        if array.layout == "F":
            text = "the elements of a column-major array are no neighbours in a row"
            raise self._refused(instruction, text)
        if isinstance(operand, Tile):
            if array.ndim != 2 or array.dtype != self.number(operand.dtype.name):
                text = f"{instruction.name} takes a matrix of {operand.dtype}, not {array}"
                raise self.errors.TypingError(text)
            return
        if isinstance(operand, (Accumulator, Box)):
            held = self.number("float32" if isinstance(operand, Accumulator) else "uint8")
            if array.ndim != 1 or array.dtype != held:
                text = f"{operand.name} is an array of {held}, not {array}"
                raise self._refused(instruction, text)
            return
        if isinstance(operand, Matrix) and array.ndim < (3 if operand.major == "mn" else 2):
            text = f"an array of {array.ndim} dimensions has no matrix of which rows lie along"
            raise self._refused(instruction, f"{text} {operand.major}")
        kind = self._kind(array.dtype)
        refusal = operand.refusal(array.dtype, kind, itemsize(array) if kind in "iuf" else 0)
        if refusal:
            raise self.errors.TypingError(f"{instruction.name} {refusal}")

    def _kind(self, number: Any) -> str:
        """Return the kind of a number, as NumPy abbreviates it; "O" for what is none."""
        types = self.types
        number = types.unliteral(number)
        if isinstance(number, types.Integer):
            return "i" if number.signed else "u"
        kinds = {types.Boolean: "b", types.Float: "f", types.Complex: "c"}
        return next((kind for of, kind in kinds.items() if isinstance(number, of)), "O")

    def _check_registers(self, instruction: Instruction, operand: Registers, given: Any) -> None:
        parts = [given]
        if operand.count > 1:
            parts = list(given) if isinstance(given, self.types.BaseTuple) else []
        if len(parts) != operand.count or not all(self._kind(p) in operand.kinds for p in parts):
            raise self._refused(instruction, operand.refusal(given))

    def _accepted(self, instruction: Instruction, bound: Bound, args: tuple) -> Iterator[Any]:
        types, array = self.types, None
        for operand, places in bound:
            given = args[places[0]]
            if isinstance(operand, IN_ARRAYS):
                array = given
                yield array
                if isinstance(operand, Box):
                    yield from [types.int32] * (len(places) - 1)
                    continue
                for place in places[1:]:
                    yield self._index(instruction, operand, args[place])
            elif isinstance(operand, Registers):
                self._check_registers(instruction, operand, given)
                one = self.element(operand, array)
                yield one if operand.count == 1 else types.UniTuple(one, operand.count)
            elif isinstance(operand, Literal):
                yield self._literal(instruction, operand, given)
            elif isinstance(operand, Condition):
                yield types.boolean
            else:
                kind = self._kind(given)
                if kind not in "biu":
                    text = f"{operand.name} is {given}; use True or False, or a number of elements"
                    raise self._refused(instruction, text)
                yield types.boolean if kind == "b" else types.int32

    def _literal(self, instruction: Instruction, operand: Literal, given: Any) -> Any:
        if not isinstance(given, self.types.IntegerLiteral):
            raise self.errors.RequireLiteralValue(
                f"{instruction.name}: {operand.name} must be a constant, not {given}"
            )
        value = given.literal_value
        if not 0 <= value <= operand.most:
            text = f"{operand.name}={value}; use 0 to {operand.most}"
            raise self._refused(instruction, text)
        return given

    def _index(self, instruction: Instruction, operand: Memory | Tile, given: Any) -> Any:
        """Type an index: 32 bits where it has no more, or is a constant that needs no more."""
        types = self.types
        index = types.unliteral(given)
        if not isinstance(index, types.Integer):
            text = f"an index of {operand.name} is {index}, not an integer"
            raise self._refused(instruction, text)
        small = isinstance(given, types.IntegerLiteral) and abs(given.literal_value) < 2**31
        return types.int32 if small or index.bitwidth < 32 or index == types.int32 else types.int64

    def _result(self, instruction: Instruction, bound: Bound, args: tuple) -> Any:
        result = instruction.result
        if result is None:
            return self.types.none
        arrays = [args[places[0]] for operand, places in bound if isinstance(operand, Memory)]
        one = self.element(result, arrays[0] if arrays else None)
        return one if result.count == 1 else self.types.UniTuple(one, result.count)


def _indices(operand: Operand, array: Any) -> int:
    if isinstance(operand, Box):
        return 2 if operand.placed else 0
    return 0 if isinstance(operand, Accumulator) else array.ndim


def mlir_asks() -> bool:
    """Say whether numba-cuda-mlir asks, not Numba: the first of them among the callers does.

    A value tells its type to whoever asks for `_numba_type_`; types of two compilers differ.
    """
    frame = sys._getframe(1)
    while frame is not None:
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if package in ("numba", "numba_cuda", MLIR):
            return package == MLIR
        frame = frame.f_back
    return False
