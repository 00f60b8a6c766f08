"""Instructions in kernels that numba-cuda-mlir compiles: the types of a call, and its operations.

Loads and stores become vector accesses, everything else inline PTX, as `numba_cuda` has them. All
is written in MLIR's LLVM dialect, from which libNVVM makes PTX for both compilers. That dialect has
no word for "all lanes together": what is collective says that it has side effects, so that nothing
is moved into a branch.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from numba_cuda_mlir._mlir import ir
from numba_cuda_mlir._mlir.dialects import arith, llvm
from numba_cuda_mlir._mlir.extras import types as T  # noqa: N812  # as its own modules call it
from numba_cuda_mlir.numba_cuda import types
from numba_cuda_mlir.numba_cuda.core import errors
from numba_cuda_mlir.numba_cuda.typing.npydecl import parse_dtype
from numba_cuda_mlir.numba_cuda.typing.templates import Signature, signature
from numba_cuda_mlir.tools import parse_compute_capability

from gemmlab.instructions import inline
from gemmlab.instructions.fragments import LayoutFunction
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
from gemmlab.instructions.memory import BASE_ALIGNMENT
from gemmlab.instructions.numba_cuda_mlir.arrays import (
    EXTERNAL,
    SPACES,
    Array,
    at,
    constant,
    in_shared,
    shared_memory,
)
from gemmlab.instructions.typed import Bound, Typing, itemsize

TYPING = Typing(types, errors)
LETTERS = {"float32": "f", "float16": "h"}  # in constraints; all other registers have 32 bits: "r"


class Call(NamedTuple):
    """A call that is being compiled.

    sig : the types that arguments are converted to
    """

    lower: Any
    sig: Signature
    args: Sequence[Any]

    def value(self, place: int) -> Any:
        """Return an argument, converted to the type that the instruction takes."""
        variable = self.args[place]
        given, wanted = self.lower.get_numba_type(variable.name), self.sig.args[place]
        value = self.lower.load_var(variable)
        return value if given == wanted else self.lower.lower_cast(given, wanted, value)

    def array(self, places: list[int]) -> tuple[types.Array, Array, list[Any]]:
        """Return an array's type and value, and its indices."""
        first, *rest = places
        found = Array(self.lower.load_var(self.args[first]))
        return self.sig.args[first], found, [self.value(p) for p in rest]


def definition(instruction: Instruction) -> Callable:
    """Return the definition of the intrinsic that compiles to `instruction`."""

    def define(context: Any, *args: Any, **named: Any) -> tuple[Signature, Callable]:
        if named:
            raise errors.TypingError(f"{instruction.name} takes its operands by position")
        bound, result, accepted = TYPING.call(instruction, args)
        sig = signature(result, *accepted)

        def lower(builder: Any, target: Any, variables: Sequence[Any], kws: Any) -> None:
            refusal = instruction.refusal(parse_compute_capability(builder.targetoptions["chip"]))
            if refusal:
                raise errors.LoweringError(refusal)
            vector = instruction.ptx.startswith(("ld.", "st."))
            emit = _vector_access if vector else _inline
            builder.store_var(target, emit(instruction, bound, Call(builder, sig, variables)))

        return sig, lower

    return define


def pointer(call: Call, places: list[int]) -> Any:
    """Return the address of an element, computed with 32 bits where all indices have 32."""
    array, view, indices = call.array(places)
    width = 32 if all(call.sig.args[p] == types.int32 for p in places[1:]) else 64
    offset = constant(width, 0)
    for axis, index in enumerate(indices):
        if array.layout == "C":
            factors = [view.size(a) for a in range(axis + 1, array.ndim)]
        else:  # but the elements of the last dimension are neighbours
            factors = [view.step(axis)] * (axis + 1 < array.ndim)
        if width == 64 and index.type != T.i64():
            index = arith.extsi(T.i64(), index)
        for factor in factors:
            factor = factor if width == 64 else arith.trunci(T.i32(), factor)
            index = _without_wrap(arith.muli, index, factor)
        offset = _without_wrap(arith.addi, offset, index)
    if width == 32:
        offset = arith.extsi(T.i64(), offset)
    element = ir.IntegerType.get_signless(8 * itemsize(array))
    return at(view.pointer, offset, element)


def _without_wrap(operation: Callable, lhs: Any, rhs: Any) -> Any:
    return operation(lhs, rhs, overflow_flags=arith.IntegerOverflowFlags.nsw)


def _vector_access(instruction: Instruction, bound: Bound, call: Call) -> Any:
    """Return a load or store of neighbouring elements, of which LLVM makes one vector access."""
    operand, places = bound[0]
    array = call.sig.args[0]
    element = call.lower.get_storage_type(array.dtype)
    vector = ir.VectorType.get([operand.elements], element)
    place = pointer(call, places)
    width = operand.width(itemsize(array))
    lanes = [constant(32, i) for i in range(operand.elements)]
    if operand.access == "read":
        loaded = llvm.load(vector, place, alignment=width)
        parts = [llvm.extractelement(loaded, lane) for lane in lanes]
        return tuple(call.lower.from_storage(array.dtype, part) for part in parts)
    value = llvm.mlir_undef(vector)
    for lane, part in zip(lanes, call.value(len(call.args) - 1), strict=True):
        part = call.lower.as_storage(array.dtype, part)
        value = llvm.insertelement(value, part, lane)
    llvm.store(value, place, alignment=width)
    return None


def _inline(instruction: Instruction, bound: Bound, call: Call) -> Any:
    """The instruction's PTX, with registers, addresses and constants in the places of its names."""
    results: list[tuple[Any, str]] = []
    kept = [p for o, places in bound if isinstance(o, Accumulator) for p in _held(call, o, places)]
    if kept:
        results = [(T.f32(), "=f")] * len(kept)
    elif instruction.result is not None:
        kind, code = register(instruction.result.dtype)
        results = [(kind, f"={code}")] * instruction.result.count
    given = [(operand, _operand(instruction, operand, places, call)) for operand, places in bound]
    literals = inline.literals(bound, call.sig.args)
    written = inline.text(instruction, len(kept), literals, [(o, len(v)) for o, v in given])
    inputs = [one for _, values in given for one in values]
    inputs += [(llvm.load(T.f32(), p), str(i)) for i, p in enumerate(kept)]
    memory = inline.touches_memory(instruction)
    codes = [code for _, code in (*results, *inputs)] + [inline.MEMORY] * memory
    kinds = [kind for kind, _ in results]
    returned = llvm.StructType.get_literal(kinds) if len(kinds) > 1 else (*kinds, None)[0]
    found = llvm.inline_asm(
        returned, [value for value, _ in inputs], written, ",".join(codes),
        has_side_effects=memory or instruction.collective,
    )  # fmt: skip
    parts = [found]
    if len(kinds) > 1:
        parts = [llvm.extractvalue(kind, found, [i]) for i, kind in enumerate(kinds)]
    for place, part in zip(kept, parts if kept else (), strict=True):
        llvm.store(part, place)
    return _returned(instruction, call, parts)


def register(what: str) -> tuple[Any, str]:
    """Return the type of a register that holds `what`, and its letter in constraints."""
    code = LETTERS.get(what, "r")
    return {"f": T.f32, "h": T.i16, "r": T.i32}[code](), code


def _operand(
    instruction: Instruction, operand: Operand, places: list[int], call: Call
) -> list[tuple[Any, str]]:
    """Return the values of an operand with their letters in constraints."""
    if isinstance(operand, (Literal, Accumulator)):
        return []
    if isinstance(operand, Matrix):
        address, _ = _address("shared", pointer(call, places))
        units = arith.shrui(address, constant(32, 4))
        if operand.major != "k":  # the distance of blocks is read, which a rank would change
            units = arith.andi(units, constant(32, inline.WITHIN))
        descriptor = _descriptor(call, operand, places)
        return [(arith.ori(arith.extui(T.i64(), units), descriptor), "l")]
    if isinstance(operand, Box):
        _, view, place = call.array(places)
        start = llvm.ptrtoint(T.i64(), view.pointer)
        return [(start, "l"), *((index, "r") for index in place)]
    if isinstance(operand, Memory):
        return [_address(operand.space, pointer(call, places))]
    if isinstance(operand, Tile):
        stride = arith.trunci(T.i32(), _row_length(call, places))
        return [_address("any", pointer(call, places)), (stride, "r")]
    value = call.value(places[0])
    if isinstance(operand, Condition):
        return [(arith.extui(T.i32(), value), "r")]
    if isinstance(operand, Registers):
        kind, code = register(operand.dtype)
        parts = value if operand.count > 1 else [value]
        return [(p if p.type == kind else llvm.bitcast(kind, p), code) for p in parts]
    if call.sig.args[places[0]] == types.boolean:
        size = next(o.bytes for o in instruction.operands if isinstance(o, Memory))
        return [(arith.select(value, constant(32, size), constant(32, 0)), "r")]
    return [(arith.muli(value, constant(32, itemsize(call.sig.args[0]))), "r")]


def _descriptor(call: Call, operand: Matrix, places: list[int]) -> Any:
    """Return the descriptor of a matrix at address 0."""
    if operand.major == "k":
        return constant(64, inline.SWIZZLED | inline.BLOCKS)  # one block: not read
    array, view, _ = call.array(places)
    apart = arith.muli(view.step(array.ndim - 3), constant(64, itemsize(array)))
    units = arith.divui(apart, constant(64, 16))
    blocks = arith.muli(units, constant(64, inline.BLOCKS))
    return arith.ori(constant(64, inline.SWIZZLED), blocks)


def _held(call: Call, operand: Accumulator, places: list[int]) -> list[Any]:
    _, view, _ = call.array(places)
    return [at(view.pointer, constant(64, i), T.f32()) for i in range(operand.count)]


def _address(place: str, start: Any) -> tuple[Any, str]:
    space, (bits, code) = SPACES[place], inline.ADDRESSES[place]
    if space:
        start = llvm.addrspacecast(llvm.PointerType.get(space), start)
    address = llvm.ptrtoint(T.i64(), start)
    return (address if bits == 64 else arith.trunci(T.i32(), address)), code


def _row_length(call: Call, places: list[int]) -> Any:
    """Elements from one row of a matrix to the next."""
    array, view, _ = call.array(places)
    return view.size(1) if array.layout == "C" else view.step(0)


def _returned(instruction: Instruction, call: Call, parts: list[Any]) -> Any:
    """Return the result as the kernel gets it: nothing, a number, or a tuple."""
    result = instruction.result
    if result is None:
        return None
    kind = call.lower.get_mlir_type(TYPING.element(result, None))
    parts = [p if p.type == kind else llvm.bitcast(kind, p) for p in parts]
    return parts[0] if result.count == 1 else tuple(parts)


SYMBOL = "gemmlab_dynamic_shared"


def layout(function: LayoutFunction) -> Callable:
    """Return the definition of a function of a layout: shifts, masks and sums of 32 bits."""

    def define(context: Any, *args: Any, **named: Any) -> tuple[Signature, Callable]:
        if named:
            raise errors.TypingError(f"{function.name} takes its arguments by position")
        returned, accepted = TYPING.layout(function, args)
        sig = signature(returned, *accepted)

        def lower(builder: Any, target: Any, variables: Sequence[Any], kws: Any) -> None:
            call = Call(builder, sig, variables)
            lane, register, *wanted = (call.value(i) for i in range(len(variables)))
            ij = tuple(_sum(function.layout.steps[axis], lane, register) for axis in range(2))
            if function.name != "element":
                equal = arith.CmpIPredicate.eq
                same = [arith.cmpi(equal, *pair) for pair in zip(ij, wanted, strict=True)]
                ij = arith.andi(*same)
            builder.store_var(target, ij)

        return sig, lower

    return define


def _sum(steps: tuple[int, ...], lane: Any, register: Any) -> Any:
    """The sum of what the bits of `lane` and `register` add along one axis: no two share a bit."""
    total = constant(32, 0)
    for bit, step in enumerate(steps):
        if step:
            number, place = (lane, bit) if bit < 5 else (register, bit - 5)
            moved = step.bit_length() - 1 - place
            only = arith.andi(number, constant(32, 1 << place))
            if moved > 0:
                only = arith.shli(only, constant(32, moved))
            elif moved < 0:
                only = arith.shrui(only, constant(32, -moved))
            total = arith.ori(total, only)
    return total


def shared_view(context: Any, *args: Any, **named: Any) -> tuple[Signature, Callable]:
    """Define `shared_view`, which consists of constants, of which nothing is executed."""
    if named or len(args) != 3:
        raise errors.TypingError("shared_view takes shape, dtype and offset, by position")
    array, accepted = TYPING.view(parse_dtype(args[1]), args)
    sig = signature(array, *accepted)
    return sig, lambda builder, target, variables, kws: builder.store_var(
        target, _view(Call(builder, sig, variables))
    )


def _view(call: Call) -> Any:
    shape, array = TYPING.shape(call.sig.args[0]), call.sig.return_type
    memory = shared_memory(call.lower, SYMBOL, "!llvm.array<0 x i8>", EXTERNAL, BASE_ALIGNMENT)
    start = at(memory, call.value(2), T.i8())
    return in_shared(start, shape, call.lower.get_storage_type(array.dtype))
