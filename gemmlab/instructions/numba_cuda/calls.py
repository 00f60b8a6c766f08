"""Instructions in compiled kernels: the Numba types that a call takes, and its LLVM code.

Loads and stores become LLVM vector accesses, whose address space and constant offsets LLVM finds
out by itself; everything else is inline PTX. Indices are used as they are: a negative one does not
count from the end, and where all are of 32 bits, so is the arithmetic.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir
from numba.cuda import cgutils, types
from numba.cuda.core import errors
from numba.cuda.core.errors import LoweringError, TypingError
from numba.cuda.core.targetconfig import ConfigStack
from numba.cuda.extending import lower_builtin
from numba.cuda.typing.templates import AbstractTemplate, Signature, signature

from gemmlab.instructions import inline
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
)
from gemmlab.instructions.typed import Bound, Typing, itemsize

TYPING = Typing(types, errors)
GENERIC, GLOBAL, SHARED = 0, 1, 3  # LLVM's numbers of address spaces
I8, I16, I32, I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
FLOAT = ir.FloatType()
SPACES = {"shared": SHARED, "global": GLOBAL, "any": GENERIC}
REGISTERS = {"float32": (FLOAT, "f"), "float16": (I16, "h")}
BITS = (I32, "r")  # what all other registers are: 32 bits without a type


class Call(NamedTuple):
    """A call that is being compiled."""

    context: Any
    builder: Any
    sig: Signature
    args: tuple

    def array(self, places: list[int]) -> tuple[types.Array, Any, list[Any]]:
        """Return an array's type and value, and its indices."""
        first, *rest = places
        kind = self.sig.args[first]
        view = self.context.make_array(kind)(self.context, self.builder, self.args[first])
        return kind, view, [self.args[p] for p in rest]


def lowering(instruction: Instruction, bound: Bound) -> Callable:
    """Return the function that emits the code of a call."""
    emit = _vector_access if instruction.ptx.startswith(("ld.", "st.")) else _inline

    def lower(context: Any, builder: Any, sig: Signature, args: tuple) -> Any:
        flags = ConfigStack.top_or_none()
        refusal = flags and instruction.refusal(tuple(flags.compute_capability))
        if refusal:
            raise LoweringError(refusal)
        return emit(instruction, bound, Call(context, builder, sig, args))

    return lower


def _pointer(call: Call, places: list[int]) -> Any:
    builder = call.builder
    array, view, indices = call.array(places)
    sizes, steps = (
        cgutils.unpack_tuple(builder, part, count=array.ndim) for part in (view.shape, view.strides)
    )
    item = ir.Constant(I64, itemsize(array))
    width = I32 if all(index.type == I32 for index in indices) else I64
    offset = ir.Constant(width, 0)
    for axis, index in enumerate(indices):
        factors = sizes[axis + 1 :]
        if array.layout != "C":  # but the elements of the last dimension are neighbours
            factors = [builder.sdiv(steps[axis], item, flags=["exact"])] * bool(factors)
        index = index if index.type == width else builder.sext(index, width)
        for factor in factors:
            factor = factor if width == I64 else builder.trunc(factor, width)
            index = builder.mul(index, factor, flags=["nsw"])
        offset = builder.add(offset, index, flags=["nsw"])
    if width == I32:
        offset = builder.sext(offset, I64)
    return builder.gep(view.data, [offset], inbounds=True)


def _vector_access(instruction: Instruction, bound: Bound, call: Call) -> Any:
    """Return a load or store of neighbouring elements, of which LLVM makes one vector access."""
    context, builder, sig, args = call
    operand, places = bound[0]
    array = sig.args[0]
    vector = ir.VectorType(context.get_data_type(array.dtype), operand.elements)
    pointer = builder.bitcast(_pointer(call, places), vector.as_pointer())
    lanes = [ir.Constant(I32, i) for i in range(operand.elements)]
    width = operand.width(itemsize(array))
    if operand.access == "read":
        loaded = builder.load(pointer, align=width)
        parts = [builder.extract_element(loaded, lane) for lane in lanes]
        return context.make_tuple(builder, sig.return_type, parts)
    value = ir.Constant(vector, ir.Undefined)
    for i, lane in enumerate(lanes):
        value = builder.insert_element(value, builder.extract_value(args[-1], i), lane)
    builder.store(value, pointer, align=width)
    return context.get_dummy_value()


def _inline(instruction: Instruction, bound: Bound, call: Call) -> Any:
    """The instruction's PTX, with registers, addresses and constants in the places of its names."""
    results: list[tuple[Any, str]] = []
    kept = [p for o, places in bound if isinstance(o, Accumulator) for p in _held(call, o, places)]
    if kept:
        results = [(FLOAT, "=f")] * len(kept)
    elif instruction.result is not None:
        kind, code = REGISTERS.get(instruction.result.dtype, BITS)
        results = [(kind, f"={code}")] * instruction.result.count
    given = [(operand, _operand(instruction, operand, places, call)) for operand, places in bound]
    literals = inline.literals(bound, call.sig.args)
    written = inline.text(instruction, len(kept), literals, [(o, len(v)) for o, v in given])
    inputs = [one for _, values in given for one in values]
    inputs += [(call.builder.load(p), str(i)) for i, p in enumerate(kept)]
    memory = inline.touches_memory(instruction)
    constraints = [code for _, code in (*results, *inputs)] + [inline.MEMORY] * memory
    returned: ir.Type = ir.VoidType()
    if results:
        parts = [kind for kind, _ in results]
        returned = parts[0] if len(parts) == 1 else ir.LiteralStructType(parts)
    function = ir.FunctionType(returned, [value.type for value, _ in inputs])
    asm = ir.InlineAsm(function, written, ",".join(constraints), side_effect=memory)
    attributes = ("convergent",) if instruction.collective else ()
    found = call.builder.call(asm, [value for value, _ in inputs], attrs=attributes)
    for i, pointer in enumerate(kept):
        call.builder.store(call.builder.extract_value(found, i), pointer)
    return _returned(instruction, call, found)


def _operand(
    instruction: Instruction, operand: Operand, places: list[int], call: Call
) -> list[tuple[Any, str]]:
    """Return the values of an operand with their letters in constraints."""
    builder, value = call.builder, call.args[places[0]]
    if isinstance(operand, (Literal, Accumulator)):
        return []
    if isinstance(operand, Matrix):
        address, _ = _address(builder, "shared", _pointer(call, places))
        units = builder.lshr(address, ir.Constant(I32, 4))
        if operand.major != "k":  # the distance of blocks is read, which a rank would change
            units = builder.and_(units, ir.Constant(I32, inline.WITHIN))
        return [(builder.or_(builder.zext(units, I64), _descriptor(call, operand, places)), "l")]
    if isinstance(operand, Box):
        _, view, place = call.array(places)
        return [(builder.ptrtoint(view.data, I64), "l"), *((index, "r") for index in place)]
    if isinstance(operand, Condition):
        return [(builder.zext(value, I32), "r")]
    if isinstance(operand, Memory):
        return [_address(builder, operand.space, _pointer(call, places))]
    if isinstance(operand, Tile):
        stride = builder.trunc(_row_length(call, places), I32)
        return [_address(builder, "any", _pointer(call, places)), (stride, "r")]
    if isinstance(operand, Registers):
        parts = [value]
        if operand.count > 1:
            parts = cgutils.unpack_tuple(builder, value, operand.count)
        kind, code = REGISTERS.get(operand.dtype, BITS)
        return [(p if p.type == kind else builder.bitcast(p, kind), code) for p in parts]
    if call.sig.args[places[0]] == types.boolean:
        size = next(o.bytes for o in instruction.operands if isinstance(o, Memory))
        return [(builder.select(value, ir.Constant(I32, size), ir.Constant(I32, 0)), "r")]
    return [(builder.mul(value, ir.Constant(I32, itemsize(call.sig.args[0]))), "r")]


def _descriptor(call: Call, operand: Matrix, places: list[int]) -> Any:
    """Return the descriptor of a matrix at address 0."""
    swizzled = ir.Constant(I64, inline.SWIZZLED)
    if operand.major == "k":
        return call.builder.or_(swizzled, ir.Constant(I64, inline.BLOCKS))  # one block: not read
    array, view, _ = call.array(places)
    apart = call.builder.extract_value(view.strides, array.ndim - 3)
    units = call.builder.udiv(apart, ir.Constant(I64, 16), flags=["exact"])
    return call.builder.or_(swizzled, call.builder.mul(units, ir.Constant(I64, inline.BLOCKS)))


def _held(call: Call, operand: Accumulator, places: list[int]) -> list[Any]:
    _, view, _ = call.array(places)
    return [call.builder.gep(view.data, [ir.Constant(I32, i)]) for i in range(operand.count)]


def _address(builder: Any, place: str, pointer: Any) -> tuple[Any, str]:
    space, (bits, code) = SPACES[place], inline.ADDRESSES[place]
    if space != GENERIC:
        pointer = builder.addrspacecast(pointer, I8.as_pointer(space))
    address = builder.ptrtoint(pointer, I64)
    return (address if bits == 64 else builder.trunc(address, I32)), code


def _row_length(call: Call, places: list[int]) -> Any:
    """Elements from one row of a matrix to the next."""
    array, view, _ = call.array(places)
    if array.layout == "C":
        return call.builder.extract_value(view.shape, 1)
    step = call.builder.extract_value(view.strides, 0)
    return call.builder.sdiv(step, ir.Constant(I64, itemsize(array)), flags=["exact"])


def _returned(instruction: Instruction, call: Call, found: Any) -> Any:
    """Return the result as the kernel gets it: nothing, a number, or a tuple."""
    context, builder = call.context, call.builder
    result = instruction.result
    if result is None:
        return context.get_dummy_value()
    held = context.get_data_type(TYPING.element(result, None))
    parts = [found]
    if result.count > 1:
        parts = [builder.extract_value(found, i) for i in range(result.count)]
    parts = [p if p.type == held else builder.bitcast(p, held) for p in parts]
    if result.count == 1:
        return parts[0]
    return context.make_tuple(builder, call.sig.return_type, parts)


def numba_type(instruction: Instruction) -> types.Function:
    """The Numba type of a function that compiles to `instruction`."""

    def generic(self: Any, args: tuple, kws: dict) -> Signature | None:
        if kws:
            raise TypingError(f"{instruction.name} takes its operands by position")
        bound, result, accepted = TYPING.call(instruction, args)
        sig = signature(result, *accepted)
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
