"""Values of a lock-step program: numbers over all lanes, casts, and the functions on them.

A number is a NumPy scalar where every lane agrees, or an array that broadcasts to (blocks,
threads), of the type that it has in Numba; `arithmetic` gives the types of results.
"""

import builtins
import cmath
import enum
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from gemmlab.here import numbas
from gemmlab.instructions import typed
from gemmlab.simt.numbers.overflow import convert
from gemmlab.simt.numbers.types import TYPES, NumberType

NUMBER = (np.ndarray, np.generic)  # what a kernel computes with: of each lane, or of all


class NoNumber:
    """A value whose every use as a number is an error that tells what to write instead."""

    def error(self) -> Exception:
        """The error says what is wrong, and what to write instead."""
        raise NotImplementedError

    def refuse(self, *args: object, **options: object) -> Any:
        raise self.error()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = refuse
    __rtruediv__ = __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __bool__ = refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __eq__ = __ne__ = refuse  # type: ignore
    __int__ = __index__ = __float__ = __array__ = __array_ufunc__ = refuse


class Unassigned(NoNumber):
    """The value of a local variable before its first assignment."""

    def __init__(self, name: str) -> None:
        self.name = name

    def error(self) -> Exception:
        return NameError(
            f"local variable {self.name!r} is read before it is assigned; assign it above, in "
            "all branches"
        )


class Partly(NoNumber):
    """The value of a device function that has ended without one in the lanes of a mask.

    function : its name; value : of the other lanes, None if there are none; missing : the mask
    """

    def __init__(self, function: str, value: Any, missing: Any) -> None:
        self.function, self.value, self.missing = function, value, missing

    def error(self) -> Exception:
        return TypeError(f"{self.function} returns a value in some threads and none in others")


class Triple(NoNumber):
    """`cuda.threadIdx` and its like: three numbers, of which a kernel uses one at a time."""

    def __init__(self, name: str, x: Any, y: Any, z: Any) -> None:
        self.name, self.x, self.y, self.z = name, x, y, z

    def __repr__(self) -> str:
        return f"cuda.{self.name}"

    def error(self) -> Exception:
        return TypeError(f"cuda.{self.name} is three numbers; write cuda.{self.name}.x, .y or .z")


def truth(test: Any) -> Any:
    """Return the lanes where a condition holds: a number that is not 0, a tuple that is not empty.

    Raises TypeError for what has no truth value, such as an array.
    """
    if isinstance(test, NUMBER):
        return test if test.dtype.kind == "b" else np.not_equal(test, 0)
    if test is None or isinstance(test, (bool, tuple)):
        return bool(test)  # the same for every launch, as far as Numba knows
    if isinstance(test, NoNumber):
        test.refuse()
    raise TypeError(
        f"{shown(test)} is no condition; compare one of its elements, or its size, as x.size > 0"
    )


def several(count: int, what: str) -> str:
    """Return a number of things, in words.

    >>> several(1, "index"), several(2, "name")
    ('1 index', '2 names')
    """
    return f"{count} {what}" + "s" * (count != 1)


def shown(value: Any) -> str:
    """Return a value as an error quotes it: one number, or what there are several of."""
    if isinstance(value, tuple):
        types = [str(getattr(v, "dtype", type(v).__name__)) for v in value]
        same = len(set(types)) == 1
        return (
            f"a tuple of {len(types)} {types[0]}"
            if same and types
            else f"a tuple of {', '.join(types)}"
        )
    if isinstance(value, np.ndarray) and value.ndim:
        return f"{_article(value.dtype.name)} of each thread"
    if isinstance(value, np.generic):
        return f"{value} ({value.dtype})"
    if hasattr(value, "space"):  # an array of a kernel
        return f"the array {value.name}"
    if isinstance(value, NoNumber):
        return repr(value)
    if callable(value):
        return f"the function {getattr(value, '__name__', value)!r}"
    plain = value is None or isinstance(value, (bool, int, float, complex, str))
    return repr(value) if plain else _article(type(value).__name__)


def _article(name: str) -> str:
    return f"an {name}" if name[0] in "aeioAEIO" else f"a {name}"


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
    home = type(value).__module__
    if not home.startswith("numba"):
        return None
    known = TYPES.get("boolean" if str(value) == "bool" else str(value))
    if isinstance(known, NumberType):
        return known.dtype
    if home.startswith("numba.cuda"):
        support: Any = numbas.part("np.numpy_support")
    elif home.startswith(typed.MLIR):
        from numba_cuda_mlir.numba_cuda.np import numpy_support as support
    else:
        from numba.np import numpy_support as support
    try:
        return np.dtype(support.as_dtype(value))
    except Exception:  # what is no type at all, or has no counterpart in NumPy
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
    return _rounded(value.astype(np.float64), int(digits)).astype(value.dtype)[()]


def _rounded(x: Any, digits: int) -> Any:
    """Round to decimal digits as Numba does, in float64; halves go to the even digit."""
    large, more = 10.0 ** min(abs(digits), 22), 10.0 ** max(abs(digits) - 22, 0)
    y = (x * large) * more if digits >= 0 else (x / large) / more
    z = np.rint(y)
    found = (z / more) / large if digits >= 0 else (z * more) * large
    return np.where(np.isfinite(y), found, x)


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
    """Return a function of `math`, which computes with integers as float64.

    `floor`, `ceil` and `trunc` give floats, too: so Numba types them in kernels.
    """

    def compute(*values: Any) -> Any:
        return function(*(v if _is_float(v) else np.asarray(v, np.float64)[()] for v in values))

    return compute


def each(function: Callable) -> Callable:
    """Return a function of `math` that NumPy does not have, of each element."""

    def compute(*values: Any) -> Any:
        dtype = np.result_type(*(v.dtype if _is_float(v) else np.float64 for v in values))
        found = np.frompyfunc(_quiet(function), len(values), 1)(*values)
        return np.asarray(found).astype(dtype)[()]

    return compute


def _quiet(function: Callable) -> Callable:
    """Return `function`, giving NaN where it has no value and infinity where that is too large."""

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


# Functions of `math` that NumPy has by the same name, and those that it has by another one.
_SAME = (
    *("sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "exp2", "expm1", "log2", "log10"),
    *("log1p", "sinh", "cosh", "hypot", "copysign", "fmod", "degrees", "radians", "cbrt"),
    *("trunc", "floor", "ceil"),
)
_OTHER = {
    **{"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2"},
    **{"asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh", "pow": "power"},
    **{"fabs": "abs"},
}
_OF_COMPLEX = "exp", "sqrt", "log10", "sin", "cos", "tan", "sinh", "cosh", "tanh"


def _complex_function(function: Callable) -> Callable:
    """Return a function of `cmath`, which makes a complex number of a real one."""
    return lambda value: function(_as_complex(value))


def _as_complex(value: Any) -> Any:
    value = _as_number(value)
    return value if value.dtype.kind == "c" else value.astype(np.complex128)


def _complex_log(value: Any, base: Any = None) -> Any:
    found = np.log(_as_complex(value))
    return found if base is None else found / np.log(_as_complex(base))


def _complex_rect(r: Any, phi: Any) -> Any:
    return _complex(r * np.cos(phi), r * np.sin(phi))


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
    **{getattr(math, name): _real(getattr(np, name)) for name in _SAME},
    **{getattr(math, name): _real(getattr(np, its)) for name, its in _OTHER.items()},
    math.remainder: each(math.remainder),
    math.erf: each(math.erf),
    math.erfc: each(math.erfc),
    math.gamma: each(math.gamma),
    math.lgamma: each(math.lgamma),
    math.modf: np.modf,
    math.frexp: np.frexp,
    math.ldexp: np.ldexp,
    math.isfinite: np.isfinite,
    builtins.round: _round,
    math.nextafter: _real(np.nextafter),
    **{getattr(cmath, name): _complex_function(getattr(np, name)) for name in _OF_COMPLEX},
    **{
        getattr(cmath, f"a{name}"): _complex_function(getattr(np, f"arc{name}"))
        for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")
    },
    cmath.log: _complex_log,
    cmath.phase: np.angle,
    cmath.polar: lambda z: (np.abs(z), np.angle(z)),
    cmath.rect: _complex_rect,
    **{getattr(cmath, name): getattr(np, name) for name in ("isfinite", "isinf", "isnan")},
    math.isnan: np.isnan,
    math.isinf: np.isinf,
}


def like(value: tuple, items: Iterable) -> tuple:
    """Return a tuple of other items, with the names of `value` where that is a named one."""
    return type(value)(*items) if hasattr(value, "_fields") else tuple(items)


def number(value: Any) -> Any:
    """Return a constant or scalar argument as the NumPy scalar of the type that Numba gives it."""
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
    if isinstance(value, enum.Enum):
        return number(value.value)
    if isinstance(value, np.generic) and value.dtype.kind in "biufc":
        return value
    raise TypeError(f"a {type(value).__name__} is not a number")


def translate(value: Any) -> Any:
    """A value of an enclosing scope as the simulator uses it; TypeError for what it cannot use."""
    if value is None or value is slice or isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return like(value, (translate(v) for v in value))
    if isinstance(value, (int, float, complex, np.generic, enum.Enum)):
        return number(value)
    if isinstance(value, type) and issubclass(value, Exception):
        return value  # to be raised
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
