"""The problem: C ← αAB + βC, its arithmetic, its bytes, its operands and its rounding error.

A is m×k, B is k×n, C is m×n, all row-major, as everywhere in gemmlab. A or B may be stored
transposed, as BLAS allows: the array then holds Aᵀ (k×m) or Bᵀ (n×k), row-major too.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gemmlab.arguments import finite_number, whole_number
from gemmlab.formats import from_memory, number_format, round_to, to_memory

# How A and B are stored, one letter each: n as it is, t transposed (the trans arguments of BLAS).
LAYOUTS = ("nn", "nt", "tn", "tt")

# The formats that hold running sums: TF32 and bfloat16 are formats of operands alone.
ACCUMULATORS = ("float64", "float32", "float16")


class Arithmetic(NamedTuple):
    """The formats of A and B, of the running sum with α and β, and of C."""

    dtype: str
    accumulate: str
    out_dtype: str

    def __str__(self) -> str:
        usual = Product(1, 1, 1, dtype=self.dtype).arithmetic
        text = self.dtype
        if self.accumulate != usual.accumulate:
            text += f" summed in {self.accumulate}"
        return text if self.out_dtype == usual.out_dtype else f"{text} to {self.out_dtype}"


@dataclass(frozen=True)
class Product:
    """C ← αAB + βC with A (m×k), B (k×n), C (m×n): scalars, formats and layout are checked.

    The fields are those of `Gemm`, which is one such product; `Gemms` is many.
    """

    m: Any
    n: Any
    k: Any
    alpha: float = 1.0
    beta: float = 0.0
    dtype: str = "float32"
    accumulate: str | None = None
    out_dtype: str | None = None
    layout: str = "nn"

    def __post_init__(self) -> None:
        for name in ("alpha", "beta"):
            object.__setattr__(self, name, finite_number(name, getattr(self, name)))
        number_format(self.dtype)
        if self.accumulate is None:
            wide = "float64" if self.dtype == "float64" else "float32"
            object.__setattr__(self, "accumulate", wide)
        if number_format(self.accumulate, "accumulate").name not in ACCUMULATORS:
            raise ValueError(
                f"accumulate={self.accumulate!r} is a format of operands; sums are kept in "
                f"{', '.join(ACCUMULATORS)}"
            )
        largest = number_format(self.accumulate).largest
        for name in ("alpha", "beta"):
            if abs(getattr(self, name)) > largest:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} is too large for accumulate="
                    f"{self.accumulate!r}; use at most {largest:.6g}"
                )
        for name, scalar in zip(("alpha", "beta"), self.scalars(), strict=True):
            if getattr(self, name) != 0 == scalar:
                least = number_format(self.accumulate).smallest
                raise ValueError(
                    f"{name}={getattr(self, name)!r} is too small for accumulate="
                    f"{self.accumulate!r}, where it is 0; use 0, or at least {least:.6g}"
                )
        if self.out_dtype is None:
            out = "float32" if self.dtype == "tf32" else self.dtype
            object.__setattr__(self, "out_dtype", out)
        if number_format(self.out_dtype, "out_dtype").name == "tf32":
            raise ValueError("out_dtype='tf32' is a format of operands; use out_dtype='float32'")
        if self.layout not in LAYOUTS:
            raise ValueError(
                f"layout={self.layout!r} is not known; use one of {', '.join(LAYOUTS)}"
            )

    @property
    def flops(self) -> Any:
        """Floating-point operations of the product, 2mnk: mnk FMAs of two operations each."""
        return 2 * self.m * self.n * self.k

    @property
    def bytes(self) -> Any:
        """Compulsory traffic at β = 0 [B], s·(mk + kn) + s_C·mn: read A and B once, write C once.

        s and s_C are the bytes of an element of `dtype` and of `out_dtype`.
        """
        a, b, c = self.array_bytes
        return a + b + c

    @property
    def array_bytes(self) -> tuple[Any, Any, Any]:
        """The sizes of the arrays of A, B and C in memory [B]."""
        each = number_format(self.dtype).bytes
        c = number_format(self.out_dtype).bytes * self.m * self.n
        return each * self.m * self.k, each * self.k * self.n, c

    @property
    def dram_bytes(self) -> Any:
        """Compulsory traffic [B]: `bytes`, and C once more where β ≠ 0, which has it read."""
        return self.bytes + (self.array_bytes[2] if self.beta != 0 else 0)

    @property
    def intensity(self) -> Any:
        """Arithmetic intensity at β = 0 [FLOP/B], 2mnk / (s·(mk + kn) + s_C·mn)."""
        return self.flops / self.bytes

    @property
    def scaling_flops(self) -> Any:
        """Operations that α and β add to 2mnk: mn for α ≠ 1 and 2mn for β ≠ 0."""
        return self.m * self.n * ((self.alpha != 1) + 2 * (self.beta != 0))

    @property
    def shapes(self) -> tuple[tuple[Any, Any], ...]:
        """The shapes of the arrays of A, B and C, as they are stored."""
        a, b, c = (self.m, self.k), (self.k, self.n), (self.m, self.n)
        left, right = self.layout
        return a if left == "n" else a[::-1], b if right == "n" else b[::-1], c

    @property
    def arithmetic(self) -> Arithmetic:
        """The formats of A and B, of the sum, and of C; `Kernel.arithmetic` lists a kernel's."""
        return Arithmetic(self.dtype, self.accumulate, self.out_dtype)

    @property
    def formats(self) -> tuple[str, str, str]:
        """The formats of A, B and C."""
        return self.dtype, self.dtype, self.out_dtype

    def scalars(self) -> tuple[np.floating, np.floating]:
        """α and β as a kernel takes them: numbers of the accumulation's format.

        >>> Gemm(8, 8, 8, alpha=0.1, dtype="float16").scalars()
        (np.float32(0.1), np.float32(0.0))
        """
        scalar = number_format(self.accumulate).carrier.type
        return scalar(self.alpha), scalar(self.beta)


EXACT = 2.0**53  # float64 has every whole number below


class Operands(NamedTuple):
    """The arrays of A (m×k, or k×m), B (k×n, or n×k) and C (m×n, before the update)."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray


@dataclass(frozen=True)
class Gemm(Product):
    """C ← αAB + βC with A (m×k), B (k×n), C (m×n).

    dtype : the format of A and B in memory
    accumulate : the format of the running sum, and of α and β; where None, float64 for float64
        operands and float32 for all others
    out_dtype : the format of C in memory; that of A and B where None, but float32 for TF32, in
        which no result is stored
    layout : how A and B are stored: "nt" has B transposed, an n×k array; a kernel is given the
        arrays as they are stored

    Raises TypeError or ValueError for sizes that are not positive whole numbers, scalars that are
    not finite in the format of the sum, formats that are not in `gemmlab.formats.FORMATS`, an
    `accumulate` that is not in `gemmlab.problem.ACCUMULATORS`, TF32 as `out_dtype`, and layouts
    that are not in `gemmlab.problem.LAYOUTS`.

    >>> p = Gemm(m=8192, n=128, k=8192, dtype="float16")
    >>> p.flops, p.bytes, round(p.intensity, 1)
    (17179869184, 138412032, 124.1)
    >>> p.accumulate, p.out_dtype, Gemm(16, 16, 16, dtype="tf32").out_dtype
    ('float32', 'float16', 'float32')
    """

    def __post_init__(self) -> None:
        for name in ("m", "n", "k"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name)))
        super().__post_init__()

    def __str__(self) -> str:
        text = f"{self.m}×{self.n}×{self.k} {self.arithmetic}"
        return text if self.layout == "nn" else f"{text} {self.layout}"

    @property
    def tolerance(self) -> float:
        """The error that correct arithmetic cannot exceed, in the measure of `error`.

        γ = j·u / (1 − j·u) with j = k + 4 roundings of the accumulator's unit roundoff u (k
        products and sums, and the update with α and β), plus the rounding of C to `out_dtype`.
        Source: N. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1.
        """
        j_u = (self.k + 4) * number_format(self.accumulate).unit_roundoff
        if j_u >= 1:
            return 1.0
        return j_u / (1 - j_u) + number_format(self.out_dtype).unit_roundoff

    @property
    def memory(self) -> tuple[np.dtype, ...]:
        """The NumPy types of the arrays of A, B and C: uint16 words where they are bfloat16."""
        return tuple(number_format(name).memory for name in self.formats)

    def oriented(self, operands: Operands) -> Operands:
        """Give A (m×k), B (k×n) and C (m×n) as the formula has them: views of the stored arrays."""
        a, b, c = operands
        left, right = self.layout
        return Operands(a if left == "n" else a.T, b if right == "n" else b.T, c)

    def operands(self, seed: int = 0, kind: str = "normal") -> Operands:
        """Random A, B and C, stored as `layout` says; A and B themselves do not depend on it.

        "normal" draws N(0, 1), rounded to the formats of the arrays. "integers" draws from
        {-2 … 2}: every partial sum is then exact in float32 while 4k < 2²⁴, so that a right kernel
        gives the reference to the last bit.
        Raises ValueError for another kind.
        """
        rng = np.random.default_rng(seed)
        draw = {
            "normal": lambda shape: rng.standard_normal(shape, np.float32),
            "integers": lambda shape: rng.integers(-2, 3, shape),
        }.get(kind)
        if draw is None:
            raise ValueError(f"kind={kind!r} is not known; use 'normal' or 'integers'")
        shapes = (self.m, self.k), (self.k, self.n), (self.m, self.n)
        a, b, c = (
            _in_memory(draw(shape), name) for shape, name in zip(shapes, self.formats, strict=True)
        )
        return Operands(*map(np.ascontiguousarray, self.oriented(Operands(a, b, c))))

    def poisoned(self, c: np.ndarray) -> np.ndarray:
        """A copy of C to run on; full of NaN where β = 0, so that the result shows if C is read."""
        if self.beta != 0:
            return c.copy()
        return np.full_like(c, to_memory(np.nan, self.out_dtype))

    def check_operands(self, operands: Operands) -> None:
        """Raise ValueError or TypeError unless A, B and C have this problem's shapes and formats.

        NaN and infinities in A and B are refused; in C only where β ≠ 0, because β = 0 means that
        C is not read.
        """
        for name, shape, dtype, form, x in zip(
            "ABC", self.shapes, self.memory, self.formats, operands, strict=True
        ):
            if not isinstance(x, np.ndarray):
                raise TypeError(f"{name} is a {type(x).__name__}; use a NumPy array")
            if x.shape != shape:
                raise ValueError(f"{name} has shape {x.shape}; this problem needs {shape}")
            if x.dtype != dtype:
                of = "" if form == dtype.name else f", which holds {form}"
                raise TypeError(f"{name} has dtype {x.dtype}; this problem needs {dtype}{of}")
            values = from_memory(x, form)
            if (name != "C" or self.beta != 0) and not np.isfinite(values).all():
                where = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
                raise ValueError(f"{name}{list(where)} is {values[where]}; operands must be finite")

    def values(self, operands: Operands) -> Operands:
        """Return A (m×k), B (k×n) and C (m×n) in float64, as the formula has them."""
        exact = (
            from_memory(x, form).astype(np.float64)
            for x, form in zip(operands, self.formats, strict=True)
        )
        return self.oriented(Operands(*exact))

    def reference(self, operands: Operands) -> np.ndarray:
        """αAB + βC in float64, (m, n); C is not read where β = 0, as BLAS has it.

        α and β are those that a kernel is given (`scalars`).
        """
        a, b, c = self.values(operands)
        alpha, beta = map(float, self.scalars())
        out = alpha * (a @ b)
        return out + beta * c if beta != 0 else out

    def error(self, result: np.ndarray, operands: Operands) -> float:
        """Return the largest error of `result`, relative to the magnitudes that were summed.

        max over i, j of (|result − reference| − η) / (|α|·|A||B| + |β|·|C|), at least 0, where η is
        the smallest number of C's format or of the sum's, by which a result that underflows may
        differ; infinity where `result` has a NaN or an infinity. A right kernel stays at or below
        `tolerance`.
        """
        return float(np.max(self.errors(result, operands)))

    def errors(self, result: np.ndarray, operands: Operands) -> np.ndarray:
        """Return the error of each element of `result`, (m, n), in the measure of `error`.

        Raises ValueError for a result of another shape.
        """
        if result.shape != (self.m, self.n):
            raise ValueError(f"C has shape {result.shape}; this problem needs {(self.m, self.n)}")
        a, b, c = map(np.abs, self.values(operands))
        alpha, beta = (abs(float(scalar)) for scalar in self.scalars())
        scale = alpha * (a @ b)
        if beta != 0:
            scale += beta * c
        result = from_memory(result, self.out_dtype).astype(np.float64)
        underflow = max(number_format(name).smallest for name in (self.accumulate, self.out_dtype))
        difference = np.abs(result - self.reference(operands))
        difference = np.maximum(difference - underflow, 0)
        # 0 / 0 is a right zero; anything else over a zero scale is wrong by infinitely much.
        with np.errstate(divide="ignore", invalid="ignore"):
            errors = np.where(difference == 0, 0.0, difference / scale)
        return np.where(np.isfinite(errors), errors, np.inf)


@dataclass(frozen=True, eq=False)
class Gemms(Product):
    """Many products in the same formats: m, n and k are arrays of whole numbers that broadcast.

    Raises TypeError or ValueError as `Gemm` does, for arrays whose shapes do not go together, and
    for products of 2⁵³ operations or bytes and more: below, float64 counts them exactly.

    >>> many = Gemms(m=4096, n=[128, 256, 512], k=4096, dtype="float16")
    >>> many.flops.tolist(), many.intensity.round(1).tolist()
    ([4294967296, 8589934592, 17179869184], [120.5, 227.6, 409.6])
    >>> str(many[1])
    '4096×256×4096 float16'
    """

    def __post_init__(self) -> None:
        each = (np.atleast_1d(_whole_numbers(x, getattr(self, x))) for x in "mnk")
        sizes = np.broadcast_arrays(*each)
        for name, size in zip("mnk", sizes, strict=True):
            object.__setattr__(self, name, size)
        super().__post_init__()
        m, n, k = (size.astype(float) for size in sizes)
        most = np.max(2 * np.maximum(m * n * k, 4 * (m * k + k * n + m * n)), initial=0)
        if most >= EXACT:
            raise ValueError(
                f"a product has {most:.3g} operations or bytes; those of many are counted up to "
                f"2^53, {EXACT:.3g}"
            )

    def __len__(self) -> int:
        return len(self.m)

    def __getitem__(self, index: Any) -> "Gemm | Gemms":
        """Give one product, or several of them where the index leaves several."""
        sizes = [getattr(self, x)[index] for x in "mnk"]
        if np.ndim(sizes[0]):
            return Gemms(*sizes, **self._rest)
        return Gemm(*map(int, sizes), **self._rest)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Gemms):
            return NotImplemented
        same = (np.array_equal(getattr(self, x), getattr(other, x)) for x in "mnk")
        return self._rest == other._rest and all(same)

    __hash__ = None  # type: ignore[assignment]  # as arrays have none

    @property
    def _rest(self) -> dict[str, Any]:
        """The fields that all products share."""
        return {x: getattr(self, x) for x in ("alpha", "beta", *Arithmetic._fields, "layout")}


def _whole_numbers(name: str, values: Any) -> np.ndarray:
    """Return an array of int64, or an error that quotes what is wrong."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} holds {array.dtype}; use whole numbers of at least 1")
    if array.size:
        whole_number(name, int(array.min()))
    if array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise ValueError(f"{name} holds {int(array.max())}; use whole numbers below 2^63")
    return array.astype(np.int64)


def _in_memory(values: np.ndarray, dtype: str) -> np.ndarray:
    """Return the array that holds `values`, rounded to a format, in memory."""
    form = number_format(dtype)
    if form.carrier.name == dtype:  # NumPy has the format, and rounds to nearest
        return values.astype(form.carrier)
    return to_memory(round_to(values, dtype), dtype)
