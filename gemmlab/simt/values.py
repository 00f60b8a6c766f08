"""Values of a lock-step program: numbers over all lanes, casts, and the functions on them.

A number is a NumPy scalar where every lane agrees, or an array that broadcasts to (blocks,
threads). Integers are held as int64, which is how Numba computes with them; the two-typed rules of
NumPy (float32 with int64 gives float64) are Numba's as well.
"""

from __future__ import annotations

import builtins
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np


class Unassigned:
    """The value of a local variable before its first assignment."""

    def __init__(self, name: str) -> None:
        self.name = name

    def _read(self, *args: object, **options: object) -> Any:
        raise NameError(f"local variable {self.name!r} is read before it is assigned")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _read
    __rtruediv__ = __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __bool__ = _read
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __eq__ = __ne__ = _read  # type: ignore
    __int__ = __index__ = __float__ = __array__ = __array_ufunc__ = _read


class Cast:
    """A number type in a kernel: called, it converts; as an argument, it is a dtype."""

    def __init__(self, dtype: np.dtype) -> None:
        self.dtype = np.dtype(dtype)

    def __call__(self, value: Any = 0) -> Any:
        return widen(np.asarray(value).astype(self.dtype)[()])

    def __repr__(self) -> str:
        return self.dtype.name


def widen(value: Any) -> Any:
    """Integers of any size as int64 (uint64 stays); everything else as it is."""
    dtype = getattr(value, "dtype", None)
    if dtype is not None and dtype.kind in "iu" and dtype not in (np.int64, np.uint64):
        return value.astype(np.int64)
    return value


def as_dtype(value: Any) -> np.dtype:
    """The NumPy dtype of a type as kernels write it: NumPy's, Numba's, or a `Cast`."""
    if isinstance(value, Cast):
        return value.dtype
    numba_dtype = _from_numba(value)
    return np.dtype(value) if numba_dtype is None else numba_dtype


def _from_numba(value: Any) -> np.dtype | None:
    if "numba" not in sys.modules or not type(value).__module__.startswith("numba"):
        return None
    from numba.np.numpy_support import as_dtype as numba_as_dtype

    try:
        return np.dtype(numba_as_dtype(value))
    except (NotImplementedError, TypeError):
        return None


def _minimum(*values: Any) -> Any:
    return _fold(np.minimum, values)


def _maximum(*values: Any) -> Any:
    return _fold(np.maximum, values)


def _fold(function: Callable, values: tuple) -> Any:
    result = values[0]
    for value in values[1:]:
        result = function(result, value)
    return result


def _int(value: Any) -> Any:
    return np.trunc(value).astype(np.int64)


_FUNCTIONS: dict[Any, Callable] = {
    builtins.abs: np.abs,
    builtins.min: _minimum,
    builtins.max: _maximum,
    builtins.int: _int,
    builtins.float: Cast(np.float64),
    builtins.bool: Cast(np.bool_),
    builtins.len: lambda a: len(a) if isinstance(a, tuple) else a.shape[0],
    builtins.range: lambda *bounds: Range(*bounds),
    math.sqrt: np.sqrt,
    math.exp: np.exp,
    math.log: np.log,
    math.sin: np.sin,
    math.cos: np.cos,
    math.tan: np.tan,
    math.tanh: np.tanh,
    math.pow: np.power,
    math.fabs: np.abs,
    math.floor: lambda v: np.floor(v).astype(np.int64),
    math.ceil: lambda v: np.ceil(v).astype(np.int64),
    math.isnan: np.isnan,
    math.isinf: np.isinf,
}


class Range:
    """The bounds of a `for` loop; each may differ from lane to lane."""

    def __init__(self, *bounds: Any) -> None:
        if not 1 <= len(bounds) <= 3:
            raise TypeError(f"range takes 1 to 3 bounds, not {len(bounds)}")
        start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        self.start, self.stop, self.step = self.bounds = start, stop, step


def number(value: Any) -> Any:
    """A constant or scalar argument as the NumPy scalar of the type that Numba gives it."""
    if isinstance(value, (bool, np.bool_)):
        return np.bool_(value)
    if isinstance(value, int):
        return np.int64(value)
    if isinstance(value, float):
        return np.float64(value)
    if isinstance(value, np.generic):
        return widen(value)
    raise TypeError(f"a {type(value).__name__} is not a number")


def translate(value: Any) -> Any:
    """A value of an enclosing scope as the simulator uses it; TypeError for what it cannot use."""
    if value is None or value is slice or isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return tuple(translate(v) for v in value)
    if isinstance(value, (int, float, np.generic)):
        return number(value)
    try:
        if value in _FUNCTIONS:
            return _FUNCTIONS[value]
    except TypeError:  # not hashable
        pass
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return Cast(value)
    numba_dtype = _from_numba(value)
    if numba_dtype is not None:
        return Cast(numba_dtype)
    if isinstance(value, np.ufunc):
        return value
    raise TypeError(
        f"kernels can use numbers, number types, min, max, abs, len, range, math, cuda and device "
        f"functions, not {type(value).__name__} {getattr(value, '__name__', '')!r}"
    )
