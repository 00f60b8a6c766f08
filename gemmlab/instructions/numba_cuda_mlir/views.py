"""What a kernel of numba-cuda-mlir does without PTX: layouts, and views of shared memory."""

from collections.abc import Callable, Sequence
from typing import Any

from numba_cuda_mlir._mlir.dialects import arith
from numba_cuda_mlir._mlir.extras import types as T  # noqa: N812  # as its own modules call it
from numba_cuda_mlir.numba_cuda.core.errors import TypingError
from numba_cuda_mlir.numba_cuda.typing.npydecl import parse_dtype
from numba_cuda_mlir.numba_cuda.typing.templates import Signature, signature

from gemmlab.instructions.fragments import LayoutFunction
from gemmlab.instructions.memory import BASE_ALIGNMENT
from gemmlab.instructions.numba_cuda_mlir import arrays
from gemmlab.instructions.numba_cuda_mlir.arrays import constant
from gemmlab.instructions.numba_cuda_mlir.calls import TYPING, Call

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
    memory = arrays.shared_memory(
        call.lower, SYMBOL, "!llvm.array<0 x i8>", arrays.EXTERNAL, BASE_ALIGNMENT
    )
    start = arrays.at(memory, call.value(2), T.i8())
    return arrays.in_shared(start, shape, call.lower.get_storage_type(array.dtype))
