"""What a compiled kernel does without PTX: shifts and sums for layouts, nothing for shared memory.

`element` and `holds` of a layout become shifts, masks and sums of 32 bits; `shared_view` consists
of constants, of which nothing is executed.
"""

import math
from typing import Any

from llvmlite import ir
from numba.cuda import cgutils, types
from numba.cuda.core.errors import TypingError
from numba.cuda.extending import lower_builtin
from numba.cuda.typing.npydecl import parse_dtype
from numba.cuda.typing.templates import AbstractTemplate, Signature, signature

from gemmlab.instructions.fragments import LayoutFunction
from gemmlab.instructions.memory import BASE_ALIGNMENT, shared_view
from gemmlab.instructions.numba_cuda.calls import TYPING

I32 = ir.IntType(32)


def layout_type(function: LayoutFunction) -> types.Function:
    """The Numba type of a function of a layout."""

    def generic(self: Any, args: tuple, kws: dict) -> Signature:
        if kws:
            raise TypingError(f"{function.name} takes its arguments by position")
        returned, accepted = TYPING.layout(function, args)
        return signature(returned, *accepted)

    def lower(context: Any, builder: Any, sig: Signature, args: tuple) -> Any:
        ij = [_sum(builder, function.layout.steps[axis], *args[:2]) for axis in range(2)]
        if function.name == "element":
            return context.make_tuple(builder, sig.return_type, ij)
        same = [builder.icmp_signed("==", *pair) for pair in zip(ij, args[2:], strict=True)]
        return builder.and_(*same)

    def get_impl_key(self: Any, sig: Signature) -> Any:
        lower_builtin(lower, *sig.args)(lower)
        return lower

    name = f"Layout_{function.name}"
    body = {
        "key": function,
        "prefer_literal": True,
        "generic": generic,
        "get_impl_key": get_impl_key,
    }
    return types.Function(type(name, (AbstractTemplate,), body))


def _sum(builder: Any, steps: tuple[int, ...], lane: Any, register: Any) -> Any:
    """The sum of what the bits of `lane` and `register` add along one axis: no two share a bit."""
    total = ir.Constant(I32, 0)
    for bit, step in enumerate(steps):
        if step:
            number, place = (lane, bit) if bit < 5 else (register, bit - 5)
            moved = step.bit_length() - 1 - place
            only = builder.and_(number, ir.Constant(I32, 1 << place))
            if moved > 0:
                only = builder.shl(only, ir.Constant(I32, moved))
            elif moved < 0:
                only = builder.lshr(only, ir.Constant(I32, -moved))
            total = builder.or_(total, only)
    return total


SHARED = 3  # LLVM's number of the address space
SYMBOL = "gemmlab_dynamic_shared"


def view_type() -> types.Function:
    """The Numba type of `shared_view`."""
    return types.Function(_View)


class _View(AbstractTemplate):
    key = shared_view
    prefer_literal = True

    def generic(self, args: tuple, kws: dict) -> Signature:
        if kws or len(args) != 3:
            raise TypingError("shared_view takes shape, dtype and offset, by position")
        array, accepted = TYPING.view(parse_dtype(args[1]), args)
        return signature(array, *accepted)

    def get_impl_key(self, sig: Signature) -> Any:
        lower_builtin(_lower, *sig.args)(_lower)
        return _lower


def _lower(context: Any, builder: Any, sig: Signature, args: tuple) -> Any:
    shape, array = TYPING.shape(sig.args[0]), sig.return_type
    memory = builder.module.globals.get(SYMBOL)
    if memory is None:
        kind = ir.ArrayType(ir.IntType(8), 0)
        memory = cgutils.add_global_variable(builder.module, kind, SYMBOL, SHARED)
        memory.linkage, memory.align = "external", BASE_ALIGNMENT
    start = builder.addrspacecast(memory, ir.IntType(8).as_pointer(), "generic")
    itemsize = array.dtype.bitwidth // 8
    strides = [itemsize * math.prod(shape[i + 1 :]) for i in range(len(shape))]
    view = context.make_array(array)(context, builder)
    context.populate_array(
        view,
        data=builder.bitcast(builder.gep(start, [args[2]]), view.data.type),
        shape=[context.get_constant(types.intp, n) for n in shape],
        strides=[context.get_constant(types.intp, s) for s in strides],
        itemsize=context.get_constant(types.intp, itemsize),
        meminfo=None,
    )
    return view._getvalue()
