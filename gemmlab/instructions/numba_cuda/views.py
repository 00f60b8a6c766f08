"""`shared_view` in compiled kernels: constants only, nothing is executed."""

import math
from typing import Any

from llvmlite import ir
from numba.cuda import cgutils, types
from numba.cuda.core.errors import RequireLiteralValue, TypingError
from numba.cuda.extending import lower_builtin
from numba.cuda.typing.npydecl import parse_dtype
from numba.cuda.typing.templates import AbstractTemplate, Signature, signature

from gemmlab.instructions.memory import BASE_ALIGNMENT, shared_view

SHARED = 3  # LLVM's number of the address space
SYMBOL = "gemmlab_dynamic_shared"


def numba_type() -> types.Function:
    """The Numba type of `shared_view`."""
    return types.Function(_View)


class _View(AbstractTemplate):
    key = shared_view
    prefer_literal = True

    def generic(self, args: tuple, kws: dict) -> Signature:
        if kws or len(args) != 3:
            raise TypingError("shared_view takes shape, dtype and offset, by position")
        shape, dtype, offset = args
        element = parse_dtype(dtype)
        if element is None:
            raise TypingError(f"shared_view: {dtype} is no number type")
        if not isinstance(types.unliteral(offset), types.Integer):
            raise TypingError(f"shared_view: offset is {offset}, not a number of bytes")
        array = types.Array(element, len(_shape(shape)), "C")
        return signature(array, shape, dtype, types.intp)

    def get_impl_key(self, sig: Signature) -> Any:
        lower_builtin(_lower, *sig.args)(_lower)
        return _lower


def _shape(shape: types.Type) -> tuple[int, ...]:
    parts = list(shape) if isinstance(shape, types.BaseTuple) else [shape]
    if not all(isinstance(p, types.IntegerLiteral) for p in parts):
        raise RequireLiteralValue(f"shared_view: the shape must be constant, not {shape}")
    sizes = tuple(p.literal_value for p in parts)
    if not all(size >= 1 for size in sizes):
        raise TypingError(f"shared_view: shape={sizes}; use sizes of at least 1")
    return sizes


def _lower(context: Any, builder: Any, sig: Signature, args: tuple) -> Any:
    shape, array = _shape(sig.args[0]), sig.return_type
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
