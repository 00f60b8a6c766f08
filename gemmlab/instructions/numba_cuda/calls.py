"""Instructions in compiled kernels: the Numba types that a call takes, and its LLVM code.

Loads and stores become LLVM vector accesses, whose address space and constant offsets LLVM finds
out by itself; everything else is inline PTX. Indices are used as they are: a negative one does not
count from the end, and where all are of 32 bits, so is the arithmetic.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from llvmlite import ir
from numba.cuda import cgutils, types
from numba.cuda.core.errors import LoweringError, RequireLiteralValue, TypingError
from numba.cuda.core.targetconfig import ConfigStack
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

Bound = list[tuple[Operand, list[int]]]  # each operand, and the positions of its arguments
GENERIC, GLOBAL, SHARED = 0, 1, 3  # LLVM's numbers of address spaces
I8, I16, I32, I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
FLOAT = ir.FloatType()
# Of an address: its space, its type and its letter in constraints.
ADDRESSES = {"shared": (SHARED, I32, "r"), "global": (GLOBAL, I64, "l"), "any": (GENERIC, I64, "l")}
REGISTERS = {"float32": (FLOAT, "f"), "float16": (I16, "h")}
BITS = (I32, "r")  # what all other registers are: 32 bits without a type
# The descriptor of a matrix in shared memory: the 128-byte swizzle (1 << 62), 1024 bytes from eight
# rows to the next eight; then the distance of blocks of 64 rows of the matrix, where they are
# blocks, and the address. PTX ISA 9.0, "Matrix Descriptor Format"; all in units of 16 bytes.
SWIZZLED, BLOCKS = 1 << 62 | (1024 >> 4) << 32, 1 << 16


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


def itemsize(array: types.Array) -> int:
    """Bytes of an element."""
    return array.dtype.bitwidth // 8


def register_type(operand: Registers, array: types.Array | None) -> types.Type:
    """Return the type by which a kernel knows what is in a register."""
    return array.dtype if operand.carrier is None else getattr(types, operand.carrier.name)


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
    names, results = {}, []
    kept = [p for o, places in bound if isinstance(o, Accumulator) for p in _held(call, o, places)]
    if kept:
        results = [(FLOAT, "=f")] * len(kept)
    elif instruction.result is not None:
        kind, code = REGISTERS.get(instruction.result.dtype, BITS)
        results = [(kind, f"={code}")] * instruction.result.count
        names = _named(instruction.result.name, range(len(results)))
    inputs: list[tuple[Any, str]] = []
    for operand, places in bound:
        found = _operand(instruction, operand, places, call)
        if isinstance(operand, Literal):
            names[operand.name] = str(call.sig.args[places[0]].literal_value)
        if isinstance(operand, Accumulator):
            names |= _named(operand.name, range(len(kept)))
        first = len(results) + len(inputs)
        names |= _named(operand.name, range(first, first + len(found)), operand)
        inputs += found
    names |= {
        o.name: "" for o in instruction.operands if isinstance(o, Valid) and o.name not in names
    }
    memory = any(not isinstance(o, Registers) for o in instruction.operands) or not inputs
    # What is updated in place goes in by the registers in which it comes out.
    inputs += [(call.builder.load(p), str(i)) for i, p in enumerate(kept)]
    constraints = [code for _, code in (*results, *inputs)] + ["~{memory}"] * memory
    returned: ir.Type = ir.VoidType()
    if results:
        parts = [kind for kind, _ in results]
        returned = parts[0] if len(parts) == 1 else ir.LiteralStructType(parts)
    function = ir.FunctionType(returned, [value.type for value, _ in inputs])
    text = instruction.ptx.format(**names)
    text += "" if text.startswith("{") else ";"  # a block of several instructions ends itself
    asm = ir.InlineAsm(function, text, ",".join(constraints), side_effect=memory)
    attributes = ("convergent",) if instruction.collective else ()
    found = call.builder.call(asm, [value for value, _ in inputs], attrs=attributes)
    for i, pointer in enumerate(kept):
        call.builder.store(call.builder.extract_value(found, i), pointer)
    return _returned(instruction, call, found)


def _named(name: str, places: range, operand: Operand | None = None) -> dict[str, str]:
    """Return the names that the instruction's text has for the registers in `places`."""
    if isinstance(operand, Literal) or not places:
        return {}
    text = [f"${i}" for i in places]
    if isinstance(operand, Tile):
        return {name: text[0], f"{name}_stride": text[1]}
    if isinstance(operand, Box):
        return dict(zip((name, f"{name}_row", f"{name}_column"), text, strict=False))
    if isinstance(operand, Valid):
        return {name: f", {text[0]}"}
    single = {f"{name}{i}": one for i, one in enumerate(text)}
    return {name: ", ".join(text), **single}


def _operand(
    instruction: Instruction, operand: Operand, places: list[int], call: Call
) -> list[tuple[Any, str]]:
    """Return the values of an operand with their letters in constraints."""
    builder, value = call.builder, call.args[places[0]]
    if isinstance(operand, (Literal, Accumulator)):
        return []
    if isinstance(operand, Matrix):
        address, _ = _address(builder, "shared", _pointer(call, places))
        units = builder.zext(builder.lshr(address, ir.Constant(I32, 4)), I64)
        return [(builder.or_(units, _descriptor(call, operand, places)), "l")]
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
    swizzled = ir.Constant(I64, SWIZZLED)
    if operand.major == "k":
        return call.builder.or_(swizzled, ir.Constant(I64, BLOCKS))  # one block: not read
    array, view, _ = call.array(places)
    apart = call.builder.extract_value(view.strides, array.ndim - 3)
    units = call.builder.udiv(apart, ir.Constant(I64, 16), flags=["exact"])
    return call.builder.or_(swizzled, call.builder.mul(units, ir.Constant(I64, BLOCKS)))


def _held(call: Call, operand: Accumulator, places: list[int]) -> list[Any]:
    _, view, _ = call.array(places)
    return [call.builder.gep(view.data, [ir.Constant(I32, i)]) for i in range(operand.count)]


def _address(builder: Any, place: str, pointer: Any) -> tuple[Any, str]:
    space, integer, code = ADDRESSES[place]
    if space != GENERIC:
        pointer = builder.addrspacecast(pointer, I8.as_pointer(space))
    address = builder.ptrtoint(pointer, I64)
    return (address if integer is I64 else builder.trunc(address, integer)), code


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
    held = context.get_data_type(register_type(result, None))
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
    """Each operand with the positions of its arguments; an array has an index a dimension."""
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
    """Return the kind of a number, as NumPy abbreviates it; "O" for what is none."""
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
    """The type of an index: 32 bits where it has no more, or is a constant that needs no more."""
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
