"""Integers that wrapped, with the exact values that they would have without.

Numba computes with integers in 64 bits; they wrap where they are put into fewer. A number that
wrapped carries its exact value, modulo 2⁶⁴, through some operators and not through others; the
rule, and why, stands in `book/hazards.md`. An index must equal its exact value.
"""

from typing import Any

import numpy as np

NARROW = frozenset(np.dtype(t) for t in (np.int8, np.int16, np.int32, np.uint32))
CARRIES = (
    *(np.add, np.subtract, np.multiply, np.left_shift, np.negative, np.positive),
    *(np.minimum, np.maximum),
)


class Wrapped(np.ndarray):
    """An array of integers of which some have wrapped.

    exact : their exact values, int64; kind : the type that was too narrow; line : where
    """

    exact: np.ndarray | None
    kind: str
    line: int

    def __array_finalize__(self, obj: Any) -> None:
        self.exact = getattr(obj, "exact", None)
        self.kind, self.line = getattr(obj, "kind", ""), getattr(obj, "line", 0)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        result = getattr(ufunc, method)(*_plain(inputs), **options)
        carries = ufunc in CARRIES or (ufunc is np.floor_divide and not self.kind.startswith("u"))
        if method != "__call__" or not carries:
            return result
        return wrapped(result, ufunc(*(exact(v) for v in inputs)), self.kind, self.line)

    def __array_function__(self, function: Any, _: Any, inputs: Any, options: Any) -> Any:
        result = function(*_plain(inputs), **options)
        if function is not np.where or len(inputs) != 3:
            return result
        kept = np.where(_plain(inputs[0]), exact(inputs[1]), exact(inputs[2]))
        return wrapped(result, kept, self.kind, self.line)


def _plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(_plain(v) for v in value)
    return np.asarray(value) if isinstance(value, Wrapped) else value


def exact(value: Any) -> Any:
    """Return the exact value of an integer."""
    carried = getattr(value, "exact", None)
    whole = carried is not None and np.shape(carried) == np.shape(value)
    return carried if whole else np.asarray(value).astype(np.int64)


def wrapped(value: Any, kept: Any, kind: str, line: int = 0) -> Any:
    """Return `value` with the exact value `kept`, where that is another number."""
    if value.dtype.kind not in "iu" or np.array_equal(value, kept):
        return value
    result = np.asarray(value).view(Wrapped)
    result.exact, result.kind, result.line = np.asarray(kept), kind, line
    return result


def convert(value: Any, dtype: np.dtype, line: int = 0) -> Any:
    """Return `value` in another type, for each lane.

    >>> v = convert(np.int64(3_000_000_000), np.dtype(np.int32)) + 1
    >>> int(v), int(exact(v))
    (-1294967295, 3000000001)
    """
    if type(value) is dtype.type or (type(value) is np.ndarray and value.dtype == dtype):
        return value
    if getattr(value, "dtype", dtype).kind == "c" and dtype.kind != "c":
        raise TypeError(f"a {value.dtype} has no {dtype} that stands for it; use .real or abs()")
    result = np.asarray(value).astype(dtype, copy=False)[()]
    if isinstance(value, Wrapped):
        return wrapped(result, exact(value), value.kind, value.line)
    source = getattr(value, "dtype", result.dtype)
    if dtype in NARROW and source.kind in "iu" and not np.can_cast(source, dtype):
        return wrapped(result, exact(value), dtype.name, line)
    return result
