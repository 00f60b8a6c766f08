"""Numbers that the source writes out: Python computes with them before Numba sees them."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable

OPERATORS: dict[type, Callable] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
}
LONGEST = 128  # the longest integer that Python computes beforehand, in bits


def folded(node: ast.expr) -> int | float | complex | None:
    """The number that operators on written numbers give; None for anything else.

    >>> folded(ast.parse("2**-2 + 1", mode="eval").body)
    1.25
    """
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, (int, float, complex)) else None
    if not isinstance(node, (ast.BinOp, ast.UnaryOp)) or type(node.op) not in OPERATORS:
        return None
    parts = [node.operand] if isinstance(node, ast.UnaryOp) else [node.left, node.right]
    values = [folded(part) for part in parts]
    if None in values:
        return None
    if isinstance(node.op, (ast.Pow, ast.LShift)) and abs(values[1]) > LONGEST:
        return None
    try:
        result = OPERATORS[type(node.op)](*values)
    except (ArithmeticError, TypeError, ValueError):  # left to the kernel
        return None
    return result if not isinstance(result, int) or result.bit_length() <= LONGEST else None


def known_truth(test: ast.expr) -> bool | None:
    """Whether a condition holds, where written numbers decide it; None elsewhere.

    Numba then leaves the other branch out, with the types of its values.

    >>> known_truth(ast.parse("x or 2.0", mode="eval").body)
    True
    """
    value = folded(test)
    if value is not None:
        return bool(value)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        truth = known_truth(test.operand)
        return None if truth is None else not truth
    if isinstance(test, ast.IfExp):
        chosen = known_truth(test.test)
        return None if chosen is None else known_truth(test.body if chosen else test.orelse)
    if not isinstance(test, ast.BoolOp):
        return None
    truths = {known_truth(part) for part in test.values}
    decides = isinstance(test.op, ast.Or)
    if decides in truths:
        return decides
    return None if None in truths else not decides
