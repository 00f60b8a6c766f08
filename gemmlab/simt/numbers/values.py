"""Values of a lock-step program: numbers over all lanes, casts, and the functions on them.

A number is a NumPy scalar where every lane agrees, or an array that broadcasts to (blocks,
threads), of the type that it has in Numba; `arithmetic` gives the types of results.
"""

from __future__ import annotations

import builtins
import cmath
import math
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from gemmlab.simt.numbers.no_numbers import NUMBER, shown
from gemmlab.simt.numbers.overflow import convert
from gemmlab.simt.numbers.types import NumberType


class Cast:
    """A number type in a kernel: called, it converts; as an argument, it is a dtype."""

    def __init__(self, dtype: np.dtype) -> None:
        self.dtype = np.dtype(dtype)

    def __call__(self, value: Any = 0) -> Any:
        return convert(value, self.dtype)

    def __repr__(self) -> str:
        return self.dtype.name


def widen(value: Any) -> Any:
    """Integers of any size as int64, as an index is; everything else as it is."""
    dtype = getattr(value, "dtype", None)
    if dtype is not None and dtype.kind in "iu" and dtype != np.int64:
        return value.astype(np.int64, copy=False)
    return value


def as_dtype(value: Any) -> np.dtype:
    """The NumPy dtype of a type as kernels write it: NumPy's, Numba's, or a `Cast`."""
    if isinstance(value, Cast):
        return value.dtype
    numba_dtype = _from_numba(value)
    return np.dtype(value) if numba_dtype is None else numba_dtype


def _from_numba(value: Any) -> np.dtype | None:
    if isinstance(value, NumberType):
        return value.dtype
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
    if len(values) == 1:  # the items of a tuple
        (values,) = values
    if not isinstance(values, tuple):
        raise TypeError("min and max take two numbers or more, or a tuple")
    result = values[0]
    for value in values[1:]:
        result = function(result, value)
    return result


def _len(value: Any) -> Any:
    if isinstance(value, tuple):
        return np.int64(len(value))
    if isinstance(value, NUMBER):
        raise TypeError("a number has no length; len takes arrays and tuples")
    return value.shape[0]


def _round(value: Any, digits: Any = None) -> Any:
    if digits is None:
        return (np.rint(value) if _is_float(value) else value).astype(np.int64)
    return np.round(value, int(digits))


def _int(value: Any = 0) -> Any:
    """An integer has its own type, a float that of an index."""
    value = _as_number(value)
    return value if value.dtype.kind in "iu" else np.trunc(value).astype(np.int64)


def _float(value: Any = 0) -> Any:
    value = _as_number(value)
    return value if value.dtype.kind == "f" else value.astype(np.float64)


def _abs(value: Any) -> Any:
    return np.abs(value.astype(np.int8) if value.dtype == np.bool_ else value)


def _as_number(value: Any) -> Any:
    return value if isinstance(value, NUMBER) else number(value)


def _real(function: Callable) -> Callable:
    """A function of `math`, which computes with integers as float64.

    `floor`, `ceil` and `trunc` give floats, too: so Numba types them in kernels.
    """

    def compute(*values: Any) -> Any:
        return function(*(v if _is_float(v) else np.asarray(v, np.float64)[()] for v in values))

    return compute


def _each(function: Callable) -> Callable:
    """A function of `math` that NumPy does not have, of each element."""

    def compute(*values: Any) -> Any:
        dtype = np.result_type(*(v.dtype if _is_float(v) else np.float64 for v in values))
        found = np.frompyfunc(_quiet(function), len(values), 1)(*values)
        return np.asarray(found).astype(dtype)[()]

    return compute


def _quiet(function: Callable) -> Callable:
    """`function`, giving NaN where it has no value and infinity where that is too large."""

    def compute(*values: float) -> float:
        try:
            return function(*values)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return compute


def _is_float(value: Any) -> bool:
    return getattr(value, "dtype", np.dtype(bool)).kind == "f"


class Range:
    """The bounds of a `for` loop; each may differ from lane to lane."""

    def __init__(self, *bounds: Any) -> None:
        if not 1 <= len(bounds) <= 3:
            raise TypeError(f"range takes 1 to 3 bounds, not {len(bounds)}")
        for bound in bounds:
            if getattr(bound, "dtype", np.dtype(int)).kind not in "iub":
                raise TypeError(f"range takes integers, not {shown(bound)}; use int() of it")
        start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        self.bounds = tuple(widen(b) for b in (start, stop, step))
        self.start, self.stop, self.step = self.bounds


class Together:
    """`zip` and `enumerate`: the items of several sources, side by side."""

    def __init__(self, *sources: Any) -> None:
        self.sources = sources


def _enumerate(values: Any, start: Any = 0) -> Together:
    return Together(Range(start, np.iinfo(np.int64).max), values)


def _complex(real: Any, imag: Any = False) -> Any:
    parts = [np.asarray(v) for v in (real, imag)]
    result = np.empty(np.broadcast_shapes(*(p.shape for p in parts)), np.complex64)
    result = result.astype(np.result_type(*(p.dtype for p in parts), np.complex64))
    result.real, result.imag = parts
    return result[()]


_FUNCTIONS: dict[Any, Callable] = {
    builtins.abs: _abs,
    builtins.min: _minimum,
    builtins.max: _maximum,
    builtins.int: _int,
    builtins.float: _float,
    builtins.bool: Cast(np.bool_),
    builtins.len: _len,
    builtins.range: Range,
    builtins.enumerate: _enumerate,
    builtins.zip: Together,
    builtins.complex: _complex,
    math.sqrt: _real(np.sqrt),
    math.exp: _real(np.exp),
    math.log: _real(np.log),
    math.sin: _real(np.sin),
    math.cos: _real(np.cos),
    math.tan: _real(np.tan),
    math.tanh: _real(np.tanh),
    math.exp2: _real(np.exp2),
    math.expm1: _real(np.expm1),
    math.log2: _real(np.log2),
    math.log10: _real(np.log10),
    math.log1p: _real(np.log1p),
    math.asin: _real(np.arcsin),
    math.acos: _real(np.arccos),
    math.atan: _real(np.arctan),
    math.atan2: _real(np.arctan2),
    math.sinh: _real(np.sinh),
    math.cosh: _real(np.cosh),
    math.asinh: _real(np.arcsinh),
    math.acosh: _real(np.arccosh),
    math.atanh: _real(np.arctanh),
    math.hypot: _real(np.hypot),
    math.copysign: _real(np.copysign),
    math.fmod: _real(np.fmod),
    math.degrees: _real(np.degrees),
    math.radians: _real(np.radians),
    math.cbrt: _real(np.cbrt),
    math.pow: _real(np.power),
    math.fabs: _real(np.abs),
    math.trunc: _real(np.trunc),
    math.remainder: _each(math.remainder),
    math.erf: _each(math.erf),
    math.erfc: _each(math.erfc),
    math.gamma: _each(math.gamma),
    math.lgamma: _each(math.lgamma),
    math.modf: np.modf,
    math.frexp: np.frexp,
    math.ldexp: np.ldexp,
    math.isfinite: np.isfinite,
    builtins.round: _round,
    cmath.exp: np.exp,
    cmath.log: np.log,
    cmath.sqrt: np.sqrt,
    cmath.phase: np.angle,
    math.floor: _real(np.floor),
    math.ceil: _real(np.ceil),
    math.isnan: np.isnan,
    math.isinf: np.isinf,
}


def like(value: tuple, items: Iterable) -> tuple:
    """A tuple of other items, with the names of `value` where that is a named one."""
    return type(value)(*items) if hasattr(value, "_fields") else tuple(items)


def number(value: Any) -> Any:
    """A constant or scalar argument as the NumPy scalar of the type that Numba gives it."""
    if isinstance(value, (bool, np.bool_)):
        return np.bool_(value)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise TypeError(f"{value} does not fit into 64 bits")
        return np.int64(value) if value < 2**63 else np.uint64(value)
    if isinstance(value, float):
        return np.float64(value)
    if isinstance(value, complex):
        return np.complex128(value)
    if isinstance(value, np.generic):
        return value
    raise TypeError(f"a {type(value).__name__} is not a number")


def translate(value: Any) -> Any:
    """A value of an enclosing scope as the simulator uses it; TypeError for what it cannot use."""
    if value is None or value is slice or isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return like(value, (translate(v) for v in value))
    if isinstance(value, (int, float, complex, np.generic)):
        return number(value)
    try:
        if value in _FUNCTIONS:
            return _FUNCTIONS[value]
    except TypeError:  # not hashable
        pass
    if isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
        return value  # a named tuple
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return Cast(value)
    numba_dtype = _from_numba(value)
    if numba_dtype is not None:
        return Cast(numba_dtype)
    raise TypeError(
        f"kernels can use numbers, number types, min, max, abs, len, range, math, cuda and device "
        f"functions, not {shown(value)}"
    )
