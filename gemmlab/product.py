"""What follows from the sizes and formats of C ← αAB + βC alone, for one product or for many.

Each formula is written once and takes whole numbers as it takes arrays of them, so that the same
lines answer for a `Gemm` and for the hundred thousand of a `Gemms`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from gemmlab.arguments import finite_number
from gemmlab.formats import number_format

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
