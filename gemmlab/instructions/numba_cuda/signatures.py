"""Instructions in compiled kernels: which arguments they take, and of which Numba types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numba.cuda import types
from numba.cuda.core.errors import RequireLiteralValue, TypingError
from numba.cuda.extending import lower_builtin
from numba.cuda.typing.templates import AbstractTemplate, Signature, signature

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
from gemmlab.instructions.numba_cuda.lowering import Bound, itemsize, lowering, register_type


def numba_type(instruction: Instruction) -> types.Function:
    """The Numba type of a function that compiles to `instruction`."""

    def generic(self: Any, args: tuple, kws: dict) -> Signature | None:
        if kws:
            raise TypingError(f"{instruction.name} takes its operands by position")
        bound = list(_bind(instruction, args))
        kinds = {args[p[0]].dtype for operand, p in bound if isinstance(operand, Memory)}
        if len(kinds) > 1 and instruction.kind == "async_copy":
            names = " and ".join(sorted(map(str, kinds)))
            raise TypingError(f"{instruction.name} copies between arrays of one type, not {names}")
        accepted = _accepted(instruction, bound, args)
        sig = signature(_result_type(instruction, bound, args), *accepted)
        if sig.args not in self.lowered:
            self.lowered[sig.args] = lowering(instruction, bound)
            lower_builtin(self.lowered[sig.args], *sig.args)(self.lowered[sig.args])
        return sig

    template = type(
        f"Template_{instruction.name}",
        (AbstractTemplate,),
        {
            "key": instruction,
            "prefer_literal": True,
            "lowered": {},
            "generic": generic,
            "get_impl_key": lambda self, sig: self.lowered[sig.args],
        },
    )
    return types.Function(template)


def _bind(instruction: Instruction, args: tuple) -> Iterator[tuple[Operand, list[int]]]:
    """Which arguments belong to which operand; an array takes as many indices as dimensions."""
    at = 0
    for operand in instruction.operands:
        if isinstance(operand, (Memory, Tile, Matrix, Accumulator, Box)):
            array = args[at] if at < len(args) else None
            if not isinstance(array, types.Array):
                raise TypingError(f"{instruction.name}: {operand.name} is {array}, not an array")
            _check_array(instruction, operand, array)
            count = 1 + _indices(operand, array)
        else:
            count = 1
        if isinstance(operand, Valid) and at == len(args):
            return
        if at + count > len(args):
            raise TypingError(f"{instruction.name} takes more than {len(args)} arguments: {args}")
        yield operand, list(range(at, at + count))
        at += count
    if at != len(args):
        raise TypingError(f"{instruction.name} takes {at} arguments, not {len(args)}: {args}")


def _indices(operand: Operand, array: types.Array) -> int:
    """How many indices follow an array."""
    if isinstance(operand, Box):
        return 2 if operand.placed else 0
    return 0 if isinstance(operand, Accumulator) else array.ndim


def _check_array(instruction: Instruction, operand: Operand, array: types.Array) -> None:
    if array.layout == "F":
        raise TypingError(
            f"{instruction.name}: the elements of a column-major array are no neighbours in a row"
        )
    if isinstance(operand, Tile):
        if array.ndim != 2 or array.dtype != getattr(types, operand.dtype.name):
            raise TypingError(f"{instruction.name} takes a matrix of {operand.dtype}, not {array}")
        return
    if isinstance(operand, (Accumulator, Box)):
        held = types.float32 if isinstance(operand, Accumulator) else types.uint8
        if array.ndim != 1 or array.dtype != held:
            text = f"{operand.name} is an array of {held}, not {array}"
            raise TypingError(f"{instruction.name}: {text}")
        return
    if isinstance(operand, Matrix) and array.ndim < (3 if operand.major == "mn" else 2):
        text = f"an array of {array.ndim} dimensions has no matrix of which rows lie along"
        raise TypingError(f"{instruction.name}: {text} {operand.major}")
    kind = _kind(array.dtype)
    refusal = operand.refusal(array.dtype, kind, itemsize(array) if kind in "iuf" else 0)
    if refusal:
        raise TypingError(f"{instruction.name} {refusal}")


def _kind(number: types.Type) -> str:
    """The kind of a number, as NumPy abbreviates it; "O" for what is none."""
    number = types.unliteral(number)
    if isinstance(number, types.Integer):
        return "i" if number.signed else "u"
    kinds = {types.Boolean: "b", types.Float: "f", types.Complex: "c"}
    return next((kind for of, kind in kinds.items() if isinstance(number, of)), "O")


def _check_registers(instruction: Instruction, operand: Registers, given: types.Type) -> None:
    parts = [given]
    if operand.count > 1:
        parts = list(given) if isinstance(given, types.BaseTuple) else []
    if len(parts) != operand.count or not all(_kind(p) in operand.kinds for p in parts):
        raise TypingError(f"{instruction.name}: {operand.refusal(given)}")


def _accepted(instruction: Instruction, bound: Bound, args: tuple) -> Iterator[types.Type]:
    """The types to which the arguments are converted."""
    array = None
    for operand, places in bound:
        if isinstance(operand, (Memory, Tile, Matrix, Accumulator, Box)):
            array = args[places[0]]
            yield array
            if isinstance(operand, Box):
                yield from [types.int32] * (len(places) - 1)
                continue
            for place in places[1:]:
                yield _index(instruction, operand, args[place])
        elif isinstance(operand, Registers):
            _check_registers(instruction, operand, args[places[0]])
            one = register_type(operand, array)
            yield one if operand.count == 1 else types.UniTuple(one, operand.count)
        elif isinstance(operand, Literal):
            value = args[places[0]]
            if not isinstance(value, types.IntegerLiteral):
                raise RequireLiteralValue(
                    f"{instruction.name}: {operand.name} must be a constant, not {value}"
                )
            if not 0 <= value.literal_value <= operand.most:
                raise TypingError(
                    f"{instruction.name}: {operand.name}={value.literal_value}; use 0 to "
                    f"{operand.most}"
                )
            yield value
        elif isinstance(operand, Condition):
            yield types.boolean
        else:
            kind = _kind(args[places[0]])
            if kind not in "biu":
                raise TypingError(
                    f"{instruction.name}: {operand.name} is {args[places[0]]}; use True or False, "
                    "or a number of elements"
                )
            yield types.boolean if kind == "b" else types.int32


def _index(instruction: Instruction, operand: Memory | Tile, given: types.Type) -> types.Type:
    """32 bits for an index that has no more, and for a constant that needs no more."""
    index = types.unliteral(given)
    if not isinstance(index, types.Integer):
        raise TypingError(
            f"{instruction.name}: an index of {operand.name} is {index}, not an integer"
        )
    small = isinstance(given, types.IntegerLiteral) and abs(given.literal_value) < 2**31
    return types.int32 if small or index.bitwidth < 32 or index == types.int32 else types.int64


def _result_type(instruction: Instruction, bound: Bound, args: tuple) -> types.Type:
    result = instruction.result
    if result is None:
        return types.none
    arrays = [args[places[0]] for operand, places in bound if isinstance(operand, Memory)]
    one = register_type(result, arrays[0] if arrays else None)
    return one if result.count == 1 else types.UniTuple(one, result.count)
