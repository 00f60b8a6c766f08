"""`cuda.libdevice`, NVIDIA's library of functions: the same arithmetic as that of `math`.

A name that ends with f is of float32, `fast_` stands for a quicker one with fewer right bits, and
`_rd`, `_rn`, `_ru`, `_rz` say which way a result is rounded: down, to nearest, up, to zero. What
libdevice returns by pointers is a tuple, as in Numba. Source: libdevice User's Guide; its types
are those of `numba.cuda.libdevicefuncs`.
"""

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np

from gemmlab.numerics.fma import two_sum
from gemmlab.simt.numbers import arithmetic, bits
from gemmlab.simt.numbers.arithmetic import two_product
from gemmlab.simt.numbers.overflow import convert
from gemmlab.simt.numbers.values import each

F32, F64 = np.float32, np.float64
I16, I32, I64, U32, U64 = np.int16, np.int32, np.int64, np.uint32, np.uint64
_NORMAL = NormalDist()
WAYS = ("rd", "rn", "ru", "rz")


def _numbers(function: Callable) -> Callable:
    """Return a function of Python's numbers as one of each lane."""
    return each(function)


def _erfcx(x: float) -> float:
    return 1 / (x * math.sqrt(math.pi)) if x > 25 else math.exp(x * x) * math.erfc(x)


def _quantile(p: float) -> float:
    return -math.inf if p == 0 else math.inf if p == 1 else _NORMAL.inv_cdf(p)


def _sincos(x: Any) -> tuple:
    return np.sin(x), np.cos(x)


def _sincospi(x: Any) -> tuple:
    turns = np.remainder(x, 2) * x.dtype.type(np.pi)
    return np.sin(turns), np.cos(turns)


def _remquo(a: Any, b: Any) -> tuple:
    rest = _numbers(math.remainder)(a, b)
    return rest, np.rint((a - rest) / b).astype(I32)


def _round(x: Any) -> Any:
    """Halves go away from zero."""
    return np.copysign(np.floor(np.abs(x) + x.dtype.type(0.5)), x)


def _exponent(x: Any) -> Any:
    return np.frexp(x)[1] - 1


REAL: dict[str, Callable] = {  # in float64, and with an f in float32
    **{
        name: getattr(np, name)
        for name in (
            "cbrt",
            "ceil",
            "copysign",
            "cos",
            "cosh",
            "exp",
            "exp2",
            "expm1",
            "floor",
            "fmax",
            "fmin",
            "fmod",
            "hypot",
            "log",
            "log10",
            "log1p",
            "log2",
            "nextafter",
            "rint",
            "sin",
            "sinh",
            "sqrt",
            "tan",
            "tanh",
            "trunc",
        )
    },
    **{
        f"a{name}": getattr(np, f"arc{name}")
        for name in ("sin", "sinh", "cos", "cosh", "tan", "tanh", "tan2")
    },
    **{name: _numbers(getattr(math, name)) for name in ("erf", "erfc", "lgamma", "remainder")},
    "fabs": np.abs,
    "exp10": lambda x: np.power(x.dtype.type(10), x),
    "cospi": lambda x: _sincospi(x)[1],
    "sinpi": lambda x: _sincospi(x)[0],
    "fdim": lambda a, b: np.where(a > b, a - b, (a - b) * 0),
    "erfcx": _numbers(_erfcx),
    "erfinv": _numbers(lambda x: _quantile((x + 1) / 2) / math.sqrt(2)),
    "erfcinv": _numbers(lambda x: -_quantile(x / 2) / math.sqrt(2)),
    "normcdf": _numbers(lambda x: math.erfc(-x / math.sqrt(2)) / 2),
    "normcdfinv": _numbers(_quantile),
    "tgamma": _numbers(math.gamma),
    "logb": lambda x: _exponent(x).astype(x.dtype),
    "nearbyint": np.rint,
    "pow": np.power,
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "round": _round,
    "modf": np.modf,
    "sincos": _sincos,
    "sincospi": _sincospi,
    "remquo": _remquo,
    "frexp": np.frexp,
}
FAST = {name: REAL[name] for name in ("cos", "exp10", "exp", "log10", "log2", "log", "pow",
                                      "sincos", "sin", "tan")}  # fmt: skip


def _rest(op: str, result: Any, *operands: Any) -> Any:
    """Return a number with the sign of what the exact result is above the rounded one."""
    r, a, *more = (np.asarray(v, F64) for v in (result, *operands))
    if op == "sqrt":
        more = [r]
    if op in ("add", "sub", "mul", "fma"):
        if op in ("mul", "fma"):
            high, low = two_product(a, more[0])
        else:
            high, low = two_sum(a, more[0] if op == "add" else -more[0])
        if op == "fma":
            high, rest = two_sum(high, more[1])
            low = rest + low
        return (high - r) + low
    high, low = two_product(r, more[0])  # of a quotient or a root
    return ((a - high) - low) * (np.sign(more[0]) if op == "div" else 1)


ARITHMETIC: dict[str, Callable] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "sqrt": np.sqrt,
    "fma": arithmetic.fma,
}


def _turned(result: Any, rest: Any, way: str) -> Any:
    """Return a result that is rounded to nearest as it is rounded another way."""
    up, down = (np.nextafter(result, result.dtype.type(s)) for s in (np.inf, -np.inf))
    if way == "rz":
        up, down = np.where(result < 0, up, result), np.where(result > 0, down, result)
    elif way != "ru":
        up = result
    if way == "ru":
        down = result
    turned = np.where(rest > 0, up, np.where(rest < 0, down, result))
    return np.where(np.isfinite(result), turned, result).astype(result.dtype)[()]


def _rounded(op: str, way: str) -> Callable:
    def compute(*values: Any) -> Any:
        result = ARITHMETIC[op](*values)
        return result if way == "rn" else _turned(result, _rest(op, result, *values), way)

    return compute


def _reciprocal(way: str) -> Callable:
    divide = _rounded("div", way)
    return lambda x: divide(x.dtype.type(1), x)


WHOLE = {"rd": np.floor, "rn": np.rint, "ru": np.ceil, "rz": np.trunc}


def _to_whole(way: str, to: type) -> Callable:
    """A float becomes an integer; what is too large, the nearest one that there is."""
    least, most = np.iinfo(to).min, np.iinfo(to).max

    def compute(x: Any) -> Any:
        x = WHOLE[way](x.astype(F64))
        inside = np.where((x >= least) & (x < F64(most)), x, 0).astype(to)
        return np.where(x >= F64(most), most, np.where(x < least, least, inside)).astype(to)[()]

    return compute


def _to_float(way: str, to: type) -> Callable:
    """A number becomes a narrower float."""

    def compute(x: Any) -> Any:
        result = x.astype(to)
        exact = x.astype(np.longdouble) - result.astype(np.longdouble)
        return result if way == "rn" else _turned(result, exact, way)

    return compute


def _then(function: Callable, to: type) -> Callable:
    return lambda x: function(x).astype(to)


def _as_seen(function: Callable, kind: type) -> Callable:
    return lambda x: function(x.astype(kind))


def _bits(to: type) -> Callable:
    return lambda x: np.asarray(x).view(to)[()]


def _high(width: int, kind: type, result: type) -> Callable:
    """Return the upper half of a product."""

    def upper(a: int, b: int) -> int:
        return (a * b >> width) % (1 << width)

    def compute(a: Any, b: Any) -> Any:
        product = np.frompyfunc(upper, 2, 1)(
            *(np.asarray(v.astype(kind)).astype(object) for v in (a, b))
        )
        return np.asarray(product).astype(f"u{width // 8}").view(result)[()]

    return compute


def _low24(kind: type) -> Callable:
    shift = kind(8)
    return lambda a, b: (((a.astype(kind) << shift) >> shift) * ((b.astype(kind) << shift) >> shift)
                         ).astype(I32)  # fmt: skip


def _byte_perm(a: Any, b: Any, selector: Any) -> Any:
    both = a.astype(U32).astype(U64) | (b.astype(U32).astype(U64) << U64(32))
    result = np.zeros(np.broadcast(a, b, selector).shape, U64)
    for i in range(4):
        place = (selector.astype(U32).astype(U64) >> U64(4 * i)) & U64(7)
        result = result | (((both >> (place * U64(8))) & U64(255)) << U64(8 * i))
    return result.astype(U32).astype(I32)[()]


def _sad(kind: type) -> Callable:
    def compute(a: Any, b: Any, c: Any) -> Any:
        one, other = (v.astype(kind).astype(I64) for v in (a, b))
        return (np.abs(one - other) + c).astype(I32)

    return compute


def _mean(kind: type, more: int) -> Callable:
    return lambda a, b: ((a.astype(kind).astype(I64) + b.astype(kind) + more) >> 1).astype(I32)


def _pair(function: np.ufunc, kind: type, result: type) -> Callable:
    return lambda a, b: function(a.astype(kind), b.astype(kind)).astype(result)


# name -> the function, and the types of its arguments
Table = dict[str, tuple[Callable, tuple[type, ...]]]


def _of_numbers() -> Table:
    """Return the functions of one format: those of `math`, arithmetic and predicates."""
    two = {"copysign", "fmax", "fmin", "fmod", "hypot", "nextafter", "atan2", "remainder", "fdim",
           "pow", "remquo"}  # fmt: skip
    made: Table = {"fast_fdividef": (np.divide, (F32, F32))}
    for name, function in FAST.items():
        made[f"fast_{name}f"] = function, (F32,) * (2 if name == "pow" else 1)
    for kind, f, letter in ((F64, "", "d"), (F32, "f", "f")):
        for name, function in REAL.items():
            made[f"{name}{f}"] = function, (kind,) * (2 if name in two else 1)
        for way in WAYS:
            for op in ("add", "mul", "div") + ("sub",) * (kind is F32):
                made[f"{letter}{op}_{way}"] = _rounded(op, way), (kind, kind)
            made[f"{letter}sqrt_{way}"] = _rounded("sqrt", way), (kind,)
            made[f"{letter}rcp_{way}"] = _reciprocal(way), (kind,)
            made[f"fma{f}_{way}"] = _rounded("fma", way), (kind,) * 3
        made[f"fma{f}"] = arithmetic.fma, (kind,) * 3
        made |= {
            f"isnan{letter}": (lambda x: np.isnan(x).astype(I32), (kind,)),
            f"isinf{letter}": (lambda x: np.isinf(x).astype(I32), (kind,)),
            f"signbit{letter}": (lambda x: np.signbit(x).astype(I32), (kind,)),
            f"ilogb{f}": (lambda x: _exponent(x).astype(I32), (kind,)),
            f"ldexp{f}": (np.ldexp, (kind, I32)),
            f"scalbn{f}": (np.ldexp, (kind, I32)),
            f"powi{f}": (lambda x, n, kind=kind: np.power(x, n.astype(kind)), (kind, I32)),
        }
    finite = lambda x: np.isfinite(x).astype(I32)  # noqa: E731 (as those above)
    return made | {"isfinited": (finite, (F64,)), "finitef": (finite, (F32,))}


def _conversions() -> Table:
    """Return what turns a number of one format into one of another, each way of rounding."""
    whole = (("int", I32, I32), ("uint", I32, U32), ("ll", I64, I64), ("ull", I64, U64))
    made: Table = {
        "float2half_rn": (lambda x: np.asarray(x.astype(np.float16)).view(I16)[()], (F32,)),
        "half2float": (lambda x: np.asarray(x).view(np.float16).astype(F32)[()], (I16,)),
    }
    for name, kind, f in (("float", F32, "f"), ("double", F64, "")):
        made[f"llrint{f}"] = _to_whole("rn", I64), (kind,)
        made[f"llround{f}"] = (lambda x: _to_whole("rz", I64)(_round(x))), (kind,)
        for way in WAYS:
            for short, held, seen in whole:  # an unsigned number is held in a signed one
                made[f"{name}2{short}_{way}"] = _then(_to_whole(way, seen), held), (kind,)
                if way == "rn" or kind is F32 or held is I64:  # all others are exact
                    made[f"{short}2{name}_{way}"] = _as_seen(_to_float(way, kind), seen), (held,)
    return made | {f"double2float_{way}": (_to_float(way, F32), (F64,)) for way in WAYS}


def _hilo(high: Any, low: Any) -> Any:
    bits = (high.astype(I64) << 32) | low.astype(U32).astype(I64)
    return np.asarray(bits).view(F64)[()]


# Functions of integers, of bits, and the two of float32 alone
_OTHERS: Table = {
    "frsqrt_rn": (lambda x: (1 / np.sqrt(x.astype(F64))).astype(F32), (F32,)),
    "saturatef": (lambda x: np.where(np.isnan(x), F32(0), np.clip(x, F32(0), F32(1))), (F32,)),
    "double2hiint": (lambda x: (np.asarray(x).view(I64) >> 32).astype(I32)[()], (F64,)),
    "double2loint": (lambda x: np.asarray(x).view(I64).astype(I32)[()], (F64,)),
    "hiloint2double": (_hilo, (I32, I32)),
    "double_as_longlong": (_bits(I64), (F64,)),
    "longlong_as_double": (_bits(F64), (I64,)),
    "float_as_int": (_bits(I32), (F32,)),
    "int_as_float": (_bits(F32), (I32,)),
    "abs": (np.abs, (I32,)),
    "llabs": (np.abs, (I64,)),
    "brev": (lambda x: bits.brev(x.astype(U32)).astype(I32), (I32,)),
    "brevll": (lambda x: bits.brev(x.astype(U64)).astype(I64), (I64,)),
    **{f"{name}{tail}": (getattr(bits, name), (kind,))
       for name in ("clz", "ffs", "popc") for tail, kind in (("", I32), ("ll", I64))},
    **{f"{short}{name}": (_pair(function, kind, result), (result, result))
       for name, function in (("max", np.maximum), ("min", np.minimum))
       for short, kind, result in (("", I32, I32), ("u", U32, I32), ("ll", I64, I64),
                                   ("ull", U64, I64))},
    "mulhi": (_high(32, I32, I32), (I32, I32)),
    "umulhi": (_high(32, U32, I32), (I32, I32)),
    "mul64hi": (_high(64, I64, I64), (I64, I64)),
    "umul64hi": (_high(64, U64, I64), (I64, I64)),
    "mul24": (_low24(I32), (I32, I32)),
    "umul24": (_low24(U32), (I32, I32)),
    "byte_perm": (_byte_perm, (I32, I32, I32)),
    "sad": (_sad(I32), (I32, I32, I32)),
    "usad": (_sad(U32), (I32, I32, I32)),
    "hadd": (_mean(I32, 0), (I32, I32)),
    "rhadd": (_mean(I32, 1), (I32, I32)),
    "uhadd": (_mean(U32, 0), (I32, I32)),
    "urhadd": (_mean(U32, 1), (I32, I32)),
}  # fmt: skip

TABLE = _of_numbers() | _conversions() | _OTHERS


def function(name: str) -> Callable:
    """Return a function of libdevice as a kernel calls it: arguments become those of its types."""
    compute, types = TABLE[name]
    formats = [np.dtype(kind) for kind in types]

    def call(*values: Any) -> Any:
        if len(values) != len(formats):
            raise TypeError(
                f"cuda.libdevice.{name} takes {len(formats)} arguments, not {len(values)}"
            )
        return compute(*(convert(v, f) for v, f in zip(values, formats, strict=True)))

    return call
