"""`element` and `holds` of a layout in compiled kernels: shifts, masks and sums of 32 bits."""

from typing import Any

from llvmlite import ir
from numba.cuda import types
from numba.cuda.core.errors import TypingError
from numba.cuda.extending import lower_builtin
from numba.cuda.typing.templates import AbstractTemplate, Signature, signature

from gemmlab.instructions.fragments import ARGUMENTS, LayoutFunction

I32 = ir.IntType(32)


def numba_type(function: LayoutFunction) -> types.Function:
    """The Numba type of a function of a layout."""
    count = ARGUMENTS[function.name]

    def generic(self: Any, args: tuple, kws: dict) -> Signature:
        if kws or len(args) != count or not all(isinstance(a, types.Integer) for a in args):
            raise TypingError(f"{function.name} takes {count} integers, not {args}")
        register = args[1]
        known = isinstance(register, types.IntegerLiteral)
        refusal = function.refusal(register.literal_value) if known else None
        if refusal:
            raise IndexError(refusal)  # after a TypingError Numba would try a variable in its place
        element = function.name == "element"
        returned = types.UniTuple(types.int32, 2) if element else types.boolean
        return signature(returned, *[types.int32] * count)

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
