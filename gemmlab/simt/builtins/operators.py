"""Operators by name: the functions of Python's `operator`, and `divmod`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gemmlab.simt.machine.machine import Machine

BINARY = {
    operator.add: "Add",
    operator.sub: "Sub",
    operator.mul: "Mult",
    operator.truediv: "Div",
    operator.floordiv: "FloorDiv",
    operator.mod: "Mod",
    operator.pow: "Pow",
    operator.and_: "BitAnd",
    operator.or_: "BitOr",
    operator.xor: "BitXor",
    operator.lshift: "LShift",
    operator.rshift: "RShift",
}
COMPARE = {
    operator.eq: "Eq",
    operator.ne: "NotEq",
    operator.lt: "Lt",
    operator.le: "LtE",
    operator.gt: "Gt",
    operator.ge: "GtE",
}
UNARY = {operator.neg: "USub", operator.pos: "UAdd", operator.invert: "Invert"}


def named(m: Machine, function: Any) -> Callable | None:
    """What a function of `operator` does on the machine; None for any other value."""
    if function is divmod:
        return lambda a, b: tuple(
            m.operations.binary(op, a, b, m.calls.line) for op in ("FloorDiv", "Mod")
        )
    for table, method in ((BINARY, m.operations.binary), (COMPARE, m.operations.compare)):
        if function in table:
            return lambda a, b: method(table[function], a, b, m.calls.line)
    if function in UNARY:
        return lambda a: m.operations.unary(UNARY[function], a, m.calls.line)
    if function is operator.not_:
        return m.operations.not_
    if function is operator.getitem:
        return lambda array, index: m.memory.load(array, index, m.calls.line)
    return None
