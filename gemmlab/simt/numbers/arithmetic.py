"""Operators with the number types that Numba gives them, where NumPy's differ.

Integers grow to 64 bits before an operation, unsigned only where both operands are; a float32
with an integer of 32 bits or more is float64, except as the base of a power.
Source: Numba, "NBEP 1: Changes in integer typing", and the types of its operators.
"""

import operator
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from gemmlab.numerics.fma import sum_to_odd, sum_to_single, two_sum
from gemmlab.simt.numbers.values import NUMBER, NoNumber, number, shown

# The name in `ast` of an operator, and the function of it: Python's, which computes with NumPy's
# scalars several times as fast as the ufunc does, but for powers, whose last bit differs.
BINARY: dict[str, Callable] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mult": operator.mul,
    "Div": operator.truediv,
    "FloorDiv": operator.floordiv,
    "Mod": operator.mod,
    "Pow": np.power,
    "BitAnd": operator.and_,
    "BitOr": operator.or_,
    "BitXor": operator.xor,
    "LShift": operator.lshift,
    "RShift": operator.rshift,
}
UNARY: dict[str, Callable] = {"UAdd": np.positive, "USub": np.negative, "Invert": np.invert}
COMPARE: dict[str, Callable] = {
    **{"Eq": operator.eq, "NotEq": operator.ne, "Lt": operator.lt},
    **{"LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge},
}
_LOGIC = ("BitAnd", "BitOr", "BitXor")
_SHIFTS = ("LShift", "RShift")
_SIGNED, _UNSIGNED, _FLOAT = (np.dtype(t) for t in (np.int64, np.uint64, np.float64))
_SINGLE, _LEAST = np.dtype(np.float32), np.iinfo(np.int64).min

# A function, and the types that its operands get; None for the type that they have.
Plan = tuple[Callable, np.dtype | None, np.dtype | None]
_plans: dict[tuple[str, str, str], Plan] = {}


def operands(op: str, a: np.dtype, b: np.dtype) -> tuple[np.dtype, np.dtype]:
    """Return the types in which operator `op` computes with operands of types `a` and `b`.

    >>> operands("Add", np.dtype(np.int32), np.dtype(np.uint8))[0].name
    'int64'
    >>> operands("Pow", np.dtype(np.float32), np.dtype(np.int64))[0].name
    'float32'
    """
    if "c" in (a.kind, b.kind) and op in ("FloorDiv", "Mod"):
        raise TypeError(f"{op} of {a} and {b} is not defined; use real numbers")
    if a.kind in "fc" or b.kind in "fc":
        if op in _LOGIC + _SHIFTS:
            raise TypeError(f"{op} of {a} and {b} is not defined; use integers")
        if op == "Pow" and a.kind == "f" and b.kind not in "fc":
            return a, _SIGNED
        if np.uint16 in (a, b):  # Numba has no safe way from it to float32
            a, b = (np.dtype(np.uint32) if t == np.uint16 else t for t in (a, b))
        common = np.promote_types(a, b)
        return common, common
    if op in _LOGIC and a == b == np.bool_:
        return a, b
    if op == "Div":
        return _FLOAT, _FLOAT
    if op in _SHIFTS:
        common = _UNSIGNED if a.kind == "u" else _SIGNED
    else:
        common = _UNSIGNED if a.kind == b.kind == "u" else _SIGNED
    return common, common


def _floor_divide(a: Any, b: Any) -> Any:
    """Return the quotient, rounded down; of the least integer by -1 it is 0, as Numba has it."""
    result = np.floor_divide(a, b)
    if np.ndim(b) == 0 and b != -1:
        return result
    return np.where((b == -1) & (a == _LEAST), 0, result)[()]


def _power(a: Any, b: Any) -> Any:
    """Return `a` to an integer power, by repeated multiplication, as Numba has it.

    Integers with a negative exponent: 1 and -1 have a power, 0 gives the least integer, and all
    others 0.
    """
    result, factor, left = np.ones_like(a), a, np.abs(b)
    while left.any():
        result = np.where(left & 1, result * factor, result)
        left, factor = left >> 1, factor * factor
    if b.dtype.kind == "u" or not np.less(b, 0).any():
        return result[()]
    if a.dtype.kind == "i":
        inverse = np.where(np.abs(a) == 1, result, np.where(a == 0, np.iinfo(a.dtype).min, 0))
    else:
        inverse = (1.0 / result).astype(a.dtype)
    return np.where(np.less(b, 0), inverse, result)[()]


def _plan(op: str, a: np.dtype, b: np.dtype) -> Plan:
    first, second = operands(op, a, b)
    function = BINARY[op]
    if op == "Pow" and second.kind in "iu":
        function = _power
    elif op == "FloorDiv" and first == _SIGNED:
        function = _floor_divide
    plan = function, None if first == a else first, None if second == b else second
    _plans[op, a.char, b.char] = plan
    return plan


def _number(value: Any) -> Any:
    """Return an operand that is no NumPy number, as one."""
    if isinstance(value, NoNumber):
        value.refuse()
    if not isinstance(value, (bool, int, float, complex)):
        raise TypeError(f"{shown(value)} is no number; compute with elements, as in x[i]")
    return number(value)


def binary(op: str, a: Any, b: Any) -> Any:
    """Return `a op b` as Numba types it, for each lane."""
    if not isinstance(a, NUMBER):
        a = _number(a)
    if not isinstance(b, NUMBER):
        b = _number(b)
    plan = _plans.get((op, a.dtype.char, b.dtype.char)) or _plan(op, a.dtype, b.dtype)
    function, first, second = plan
    if first is not None:
        a = a.astype(first)
    if second is not None:
        b = b.astype(second)
    return function(a, b)


def comparable(a: Any, b: Any) -> tuple[Any, Any]:
    """Signed and unsigned integers as Numba compares them: as float64 where no integer has both."""
    if np.uint64 not in (a.dtype, b.dtype):
        return a, b
    return a.astype(np.float64), b.astype(np.float64)


def unary(op: str, a: Any) -> Any:
    """`op a` as Numba types it: computed in the type of an integer, which then grows to 64 bits.

    >>> int(unary("Invert", np.uint8(0)) >> 4), int(unary("USub", np.uint32(1)))
    (15, 4294967295)
    """
    if not isinstance(a, NUMBER):
        a = _number(a)
    kind = a.dtype.kind
    if kind == "b" and op != "Invert":
        a = a.astype(_SIGNED)
    if kind == "f" and op == "Invert":
        raise TypeError(f"~ of {a.dtype} is not defined; use an integer")
    result = UNARY[op](a)
    return result.astype(_UNSIGNED if kind == "u" else _SIGNED) if kind in "iu" else result


def fuses(a: Any, b: Any, c: Any) -> bool:
    """Say whether a·b + c is one FMA: of float32 or float16, and the product of the sum's type.

    Compilers contract sums of float64, too. To round one once takes NumPy 40 times as long as the
    two operations, so it is left to `cuda.fma`.
    """
    try:
        return _fuse(a.dtype.char, b.dtype.char, c.dtype.char)
    except AttributeError:  # of what is no number
        return False


@cache
def _product(a: str, b: str) -> np.dtype:
    return operands("Mult", np.dtype(a), np.dtype(b))[0]


@cache
def _fuse(a: str, b: str, c: str) -> bool:
    product = _product(a, b)
    narrow = product.kind == "f" and product != np.float64
    return narrow and operands("Add", product, np.dtype(c))[0] == product


def fma(a: Any, b: Any, c: Any) -> Any:
    """a·b + c, rounded once, in the type of a·b; for each lane.

    In float32 and float16 the product is exact in float64; in float64 it is the sum of two. Where
    rounding to float64 could turn a later rounding, the sum is rounded to odd first. The algorithm
    for float64 is that of the source of `sum_to_odd`.

    >>> float(fma(np.float32(1 + 2**-12), np.float32(1 + 2**-12), np.float32(-1)) * 2**24)
    8193.0
    """
    dtype = _product(a.dtype.char, b.dtype.char)
    if dtype is _FLOAT:
        return _fma64(*(v.astype(np.float64, copy=False) for v in (a, b, c)))
    product = np.multiply(a, b, dtype=np.float64)
    if dtype is _SINGLE:
        return sum_to_single(product, c)
    return (product + c).astype(dtype)


def two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """(p, e) with p the rounded product and p + e the exact one, short of over- and underflow."""
    p = a * b
    high = []
    for v in (a, b):
        t = v * 134217729.0  # 2**27 + 1: Veltkamp's splitting
        high.append(t - (t - v))
    (ah, bh), (al, bl) = high, (a - high[0], b - high[1])
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def _fma64(a: Any, b: Any, c: Any) -> Any:
    p, pe = two_product(a, b)
    low, rest = two_sum(c, pe)
    high, more = two_sum(p, low)
    result = high + sum_to_odd(more, rest)
    return np.where(np.isfinite(result), result, p + c)[()]
