"""The problem: C ← αAB + βC, its arithmetic, its bytes, its operands and its rounding error.

A is m×k, B is k×n, C is m×n, all row-major, as everywhere in gemmlab. A or B may be stored
transposed, as BLAS allows: the array then holds Aᵀ (k×m) or Bᵀ (n×k), row-major too.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


class DType(NamedTuple):
    """A number format of matrix elements: bytes in memory and unit roundoff u = 2^-p."""

    bytes: int
    unit_roundoff: float


# Significand bits p of each format (implicit bit included): IEEE 754-2019 table 3.5; bfloat16 and
# TF32 as defined in NVIDIA's A100 whitepaper. A TF32 element occupies a whole float32 in memory.
DTYPES = {
    "float64": DType(8, 2.0**-53),
    "float32": DType(4, 2.0**-24),
    "tf32": DType(4, 2.0**-11),
    "bfloat16": DType(2, 2.0**-8),
    "float16": DType(2, 2.0**-11),
}

# How A and B are stored, one letter each: n as it is, t transposed (the trans arguments of BLAS).
LAYOUTS = ("nn", "nt", "tn", "tt")

# The formats that NumPy can hold, and so the ones that operands can be made of.
NUMPY_DTYPES = ("float64", "float32", "float16")


class Operands(NamedTuple):
    """The arrays of A (m×k, or k×m), B (k×n, or n×k) and C (m×n, before the update)."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray


@dataclass(frozen=True)
class Gemm:
    """C ← αAB + βC with A (m×k), B (k×n), C (m×n).

    `dtype` is the format of A, B and C in memory, `accumulate` that of the running sum. `layout`
    says how A and B are stored: "nt" has B transposed, an n×k array; a kernel is given the arrays
    as they are stored.
    Raises TypeError or ValueError for sizes that are not positive whole numbers, scalars that are
    not finite, formats that are not in `DTYPES` and layouts that are not in `LAYOUTS`.

    >>> p = Gemm(m=8192, n=128, k=8192, dtype="float16")
    >>> p.flops, p.bytes, round(p.intensity, 1)
    (17179869184, 138412032, 124.1)
    """

    m: int
    n: int
    k: int
    alpha: float = 1.0
    beta: float = 0.0
    dtype: str = "float32"
    accumulate: str = "float32"
    layout: str = "nn"

    def __post_init__(self) -> None:
        for name in ("m", "n", "k"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name)))
        for name in ("alpha", "beta"):
            object.__setattr__(self, name, _finite(name, getattr(self, name)))
        for name in ("dtype", "accumulate"):
            known_format(name, getattr(self, name))
        if self.layout not in LAYOUTS:
            raise ValueError(
                f"layout={self.layout!r} is not known; use one of {', '.join(LAYOUTS)}"
            )

    def __str__(self) -> str:
        text = f"{self.m}×{self.n}×{self.k} {self.dtype}"
        return text if self.layout == "nn" else f"{text} {self.layout}"

    @property
    def flops(self) -> int:
        """Floating-point operations of the product, 2mnk: mnk FMAs of two operations each."""
        return 2 * self.m * self.n * self.k

    @property
    def bytes(self) -> int:
        """Compulsory traffic at β = 0 [B], s·(mk + kn + mn): read A and B once, write C once."""
        elements = self.m * self.k + self.k * self.n + self.m * self.n
        return DTYPES[self.dtype].bytes * elements

    @property
    def intensity(self) -> float:
        """Arithmetic intensity at β = 0 [FLOP/B], 2mnk / (s·(mk + kn + mn))."""
        return self.flops / self.bytes

    @property
    def scaling_flops(self) -> int:
        """Operations that α and β add to 2mnk: mn for α ≠ 1 and 2mn for β ≠ 0."""
        return self.m * self.n * ((self.alpha != 1) + 2 * (self.beta != 0))

    @property
    def tolerance(self) -> float:
        """The error that correct arithmetic cannot exceed, in the measure of `error`.

        γ = j·u / (1 − j·u) with j = k + 4 roundings of the accumulator's unit roundoff u (k
        products and sums, and the update with α and β), plus the rounding of C to `dtype`.
        Source: N. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1.
        """
        j_u = (self.k + 4) * DTYPES[self.accumulate].unit_roundoff
        if j_u >= 1:
            return 1.0
        return j_u / (1 - j_u) + DTYPES[self.dtype].unit_roundoff

    @property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """The shapes of the arrays of A, B and C, as they are stored."""
        a, b, c = (self.m, self.k), (self.k, self.n), (self.m, self.n)
        left, right = self.layout
        return a if left == "n" else a[::-1], b if right == "n" else b[::-1], c

    def oriented(self, operands: Operands) -> Operands:
        """A (m×k), B (k×n) and C (m×n) as the formula has them: views of the stored arrays."""
        a, b, c = operands
        left, right = self.layout
        return Operands(a if left == "n" else a.T, b if right == "n" else b.T, c)

    def operands(self, seed: int = 0, kind: str = "normal") -> Operands:
        """Random A, B and C, stored as `layout` says; A and B themselves do not depend on it.

        "normal" draws N(0, 1). "integers" draws from {-2 … 2}: every partial sum is then exact in
        float32 while 4k < 2²⁴, so that a right kernel gives the reference to the last bit.
        Raises ValueError for another kind, and for a dtype that NumPy does not have.
        """
        dtype = self.numpy_dtype
        rng = np.random.default_rng(seed)
        draw = {
            "normal": lambda shape: rng.standard_normal(shape, np.float32),
            "integers": lambda shape: rng.integers(-2, 3, shape),
        }.get(kind)
        if draw is None:
            raise ValueError(f"kind={kind!r} is not known; use 'normal' or 'integers'")
        shapes = (self.m, self.k), (self.k, self.n), (self.m, self.n)
        stored = self.oriented(Operands(*(draw(shape).astype(dtype) for shape in shapes)))
        return Operands(*map(np.ascontiguousarray, stored))

    @property
    def numpy_dtype(self) -> np.dtype:
        """The NumPy dtype of the operands; ValueError where NumPy has none."""
        if self.dtype not in NUMPY_DTYPES:
            raise ValueError(
                f"NumPy cannot hold dtype={self.dtype!r}: operands can be {', '.join(NUMPY_DTYPES)}"
            )
        return np.dtype(self.dtype)

    def check_operands(self, operands: Operands) -> None:
        """Raise ValueError or TypeError unless A, B and C have this problem's shapes and dtype.

        NaN and infinities in A and B are refused; in C only where β ≠ 0, because β = 0 means that
        C is not read.
        """
        for name, shape, x in zip("ABC", self.shapes, operands, strict=True):
            if not isinstance(x, np.ndarray):
                raise TypeError(f"{name} is a {type(x).__name__}; use a NumPy array")
            if x.shape != shape:
                raise ValueError(f"{name} has shape {x.shape}; this problem needs {shape}")
            if x.dtype != self.numpy_dtype:
                raise TypeError(f"{name} has dtype {x.dtype}; this problem needs {self.dtype}")
            if (name != "C" or self.beta != 0) and not np.isfinite(x).all():
                where = tuple(int(i) for i in np.argwhere(~np.isfinite(x))[0])
                raise ValueError(f"{name}{list(where)} is {x[where]}; operands must be finite")

    def reference(self, operands: Operands) -> np.ndarray:
        """αAB + βC in float64, (m, n); C is not read where β = 0, as BLAS has it."""
        a, b, c = self.oriented(operands)
        out = self.alpha * (a.astype(np.float64) @ b.astype(np.float64))
        return out + self.beta * c.astype(np.float64) if self.beta != 0 else out

    def error(self, result: np.ndarray, operands: Operands) -> float:
        """The largest error of `result`, relative to the magnitudes that were summed.

        max over i, j of |result − reference| / (|α|·|A||B| + |β|·|C|); infinity where `result` has
        a NaN or an infinity. A right kernel stays at or below `tolerance`.
        """
        return float(np.max(self.errors(result, operands)))

    def errors(self, result: np.ndarray, operands: Operands) -> np.ndarray:
        """The error of each element of `result`, (m, n), in the measure of `error`."""
        if result.shape != (self.m, self.n):
            raise ValueError(f"C has shape {result.shape}; this problem needs {(self.m, self.n)}")
        a, b, c = (np.abs(x.astype(np.float64)) for x in self.oriented(operands))
        scale = abs(self.alpha) * (a @ b)
        if self.beta != 0:
            scale += abs(self.beta) * c
        difference = np.abs(result.astype(np.float64) - self.reference(operands))
        # 0 / 0 is a right zero; anything else over a zero scale is wrong by infinitely much.
        with np.errstate(divide="ignore", invalid="ignore"):
            errors = np.where(difference == 0, 0.0, difference / scale)
        return np.where(np.isfinite(errors), errors, np.inf)


def known_format(name: str, value: object) -> DType:
    """The format that is called `value`; ValueError, quoting it, for one not in `DTYPES`.

    >>> known_format("dtype", "float16").bytes
    2
    """
    if not isinstance(value, str) or value not in DTYPES:
        raise ValueError(f"{name}={value!r} is not a known format; use one of {', '.join(DTYPES)}")
    return DTYPES[value]


def whole_number(name: str, value: object, least: int = 1) -> int:
    """`value` as an int, or an error that quotes it.

    >>> whole_number("m", 0)
    Traceback (most recent call last):
        ...
    ValueError: m=0 is too small; use a whole number of at least 1
    """
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        message = f"{name}={value!r} is not a whole number; use an int of at least {least}"
        raise TypeError(message) from None
    if number < least:
        raise ValueError(f"{name}={value!r} is too small; use a whole number of at least {least}")
    return number


def _finite(name: str, value: object) -> float:
    try:
        if isinstance(value, (str, bytes, bool, np.bool_)):
            raise TypeError
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise TypeError(f"{name}={value!r} is not a number") from None
    if not np.isfinite(number):
        raise ValueError(f"{name}={value!r} is not finite; use a finite number")
    return number
