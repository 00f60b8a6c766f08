"""What a kernel of numba-cuda-mlir does without PTX: layouts, and views of shared memory."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from numba_cuda_mlir._mlir import ir
from numba_cuda_mlir._mlir.dialects import arith, builtin, llvm
from numba_cuda_mlir._mlir.extras import types as T
from numba_cuda_mlir.numba_cuda import types
from numba_cuda_mlir.numba_cuda.core.errors import TypingError
from numba_cuda_mlir.numba_cuda.typing.npydecl import parse_dtype
from numba_cuda_mlir.numba_cuda.typing.templates import Signature, signature

from gemmlab.instructions.fragments import LayoutFunction
from gemmlab.instructions.memory import BASE_ALIGNMENT
from gemmlab.instructions.numba_cuda_mlir.calls import SPACES, TYPING, Call, constant

SYMBOL = "gemmlab_dynamic_shared"


def layout(function: LayoutFunction) -> Callable:
    """Return the definition of a function of a layout: shifts, masks and sums of 32 bits."""

    def define(context: Any, *args: Any) -> tuple[Signature, Callable]:
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


def shared_view(context: Any, *args: Any) -> tuple[Signature, Callable]:
    """Define `shared_view`, which consists of constants, of which nothing is executed."""
    if len(args) != 3:
        raise TypingError("shared_view takes shape, dtype and offset, by position")
    array, accepted = TYPING.view(parse_dtype(args[1]), args)
    sig = signature(array, *accepted)
    return sig, lambda builder, target, variables, kws: builder.store_var(
        target, _view(Call(builder, sig, variables))
    )


def _view(call: Call) -> Any:
    shape, array = TYPING.shape(call.sig.args[0]), call.sig.return_type
    space = llvm.PointerType.get(SPACES["shared"])
    start = llvm.getelementptr(
        space, _memory(call.lower, space), [call.value(2)], [-(1 << 31)], T.i8(), None
    )
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    rank = len(shape)
    form = ir.Type.parse(
        f"!llvm.struct<(ptr<3>, ptr<3>, i64, array<{rank} x i64>, array<{rank} x i64>)>"
    )
    held = llvm.mlir_undef(form)
    parts = [([0], start), ([1], start), ([2], constant(64, 0))]
    parts += [([3, i], constant(64, n)) for i, n in enumerate(shape)]
    parts += [([4, i], constant(64, n)) for i, n in enumerate(strides)]
    for place, value in parts:
        held = llvm.insertvalue(held, value, place)
    memory = ir.Attribute.parse("#gpu.address_space<workgroup>")
    kind = ir.MemRefType.get(
        shape, call.lower.get_storage_type(array.dtype), memory_space=memory
    )
    return builtin.unrealized_conversion_cast([kind], [held])


def _memory(lower: Any, space: Any) -> Any:
    """Return the address of the block's dynamic shared memory, of which a module says once."""
    body = lower.mlir_gpu_module.bodyRegion.blocks[0]
    known = {str(op.attributes["sym_name"]) for op in body if "sym_name" in op.attributes}
    if f'"{SYMBOL}"' not in known:
        with ir.InsertionPoint.at_block_begin(body):
            llvm.mlir_global(
                ir.Type.parse("!llvm.array<0 x i8>"), SYMBOL, ir.Attribute.parse("#llvm.linkage<external>"),
                addr_space=SPACES["shared"], alignment=BASE_ALIGNMENT,
            )  # fmt: skip
    return llvm.mlir_addressof(space, SYMBOL)
