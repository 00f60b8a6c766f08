"""Float32 products from Tensor Cores: splitting and error correction (TCEC).

x = high + low / s with both parts in the format of the Tensor Core. Then

    A·B ≈ A_high·B_high + (A_low·B_high + A_high·B_low) / s  [ + A_low·B_low / s² ]

Sources: S. Markidis et al., "NVIDIA Tensor Core programmability, performance & precision",
IPDPSW 2018; H. Ootomo, R. Yokota, "Recovering single precision accuracy from Tensor Cores while
surpassing the FP32 theoretical peak performance", IJHPCA 36 (2022); their "Reducing shared memory
footprint to leverage high throughput on Tensor Cores", HPC Asia 2023 (policies).
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gemmlab.arguments import whole_number
from gemmlab.formats import (
    EIGHT_BITS,
    FORMATS,
    TENSOR_FORMATS,
    Format,
    doubles,
    exact,
    number_format,
    round_to,
)
from gemmlab.numerics.fma import fma_chain
from gemmlab.numerics.tensor_cores import Mma, mma_named, products, tensor_core

__all__ = ["POLICIES", "Policy", "Split", "emulated_matmul", "split", "split_range"]

# How each format is reached from float32, the narrowest first; FP8 keeps too little in two parts.
_ROUNDING = {
    name: FORMATS[name].tensor for name in reversed(TENSOR_FORMATS) if name not in EIGHT_BITS
}


class Split(NamedTuple):
    """A float32 array as two arrays of a narrower format: x ≈ high + low / scale."""

    high: np.ndarray
    low: np.ndarray
    scale: float

    @property
    def value(self) -> np.ndarray:
        """The sum high + low / scale in float64, where it is exact; NaN where high is infinite."""
        with np.errstate(invalid="ignore"):  # ∞ − ∞
            return self.high.astype(np.float64) + self.low.astype(np.float64) / self.scale


def _check_scale(scale: float) -> None:
    """Raise ValueError but for a power of two that is, like its inverse, a normal float32."""
    known = isinstance(scale, (int, float, np.integer, np.floating))
    if not known or not 2.0**-126 <= scale <= 2.0**126 or math.frexp(scale)[0] != 0.5:
        raise ValueError(f"scale={scale!r} is not a power of two from 2^-126 to 2^126")


@dataclass(frozen=True)
class Policy:
    """A way to compute a product of float32 matrices.

    instruction : a name in `MMAS`, or "simt": one FMA after the other on the CUDA cores
    products : 1: operands are rounded; 3: corrected, low·low left out; 4: with it
    scale : s, by which low parts are multiplied before they are rounded
    outside : main products start from zero and are added by the CUDA cores, rounded to nearest,
        once in `every` instructions; else the Tensor Core accumulates them too. Corrections have a
        sum of their own in it, but with scale 1 and nothing outside all products share one.
    """

    instruction: str = "m16n8k16.f32.f16"
    products: int = 3
    scale: float = 2.0**11
    outside: bool = True
    every: int = 1

    def __post_init__(self) -> None:
        if self.products not in (1, 3, 4):
            raise ValueError(f"products={self.products!r}: use 1, 3 or 4")
        _check_scale(self.scale)
        object.__setattr__(self, "every", whole_number("every", self.every))
        if self.instruction != "simt" and mma_named(self.instruction).out_dtype != "float32":
            raise ValueError(f"instruction={self.instruction!r} does not accumulate in float32")

    @property
    def one_sum(self) -> bool:
        """Whether main products and corrections share one sum in the Tensor Core."""
        return not self.outside and self.scale == 1

    @property
    def mma(self) -> Mma | None:
        """The Tensor Core instruction; None for "simt"."""
        return None if self.instruction == "simt" else mma_named(self.instruction)


# The split of TF32 needs no scale: its low part has the exponents of float32.
POLICIES = {
    "simt": Policy("simt", products=1, outside=False),
    "fp16": Policy(products=1, outside=False),
    "tf32": Policy("m16n8k8.f32.tf32", products=1, scale=1.0, outside=False),
    "markidis": Policy(products=4, scale=1.0, outside=False),
    "tcec_fp16": Policy(),
    "tcec_tf32": Policy("m16n8k8.f32.tf32", scale=1.0),
}


def split(x: object, dtype: str = "float16", scale: float = 2.0**11) -> Split:
    """Two parts of float32 numbers in format `dtype`: high = fl(x), low = fl((x − high)·scale).

    The difference is exact. With scale = 2^11 the low part of a float16 split has the magnitude of
    the high one, so that it underflows no sooner. Rounding is to nearest, ties to even, for TF32
    away from zero. Where high is infinite, low is infinite or NaN. Raises ValueError for values
    that are not float32 numbers, another `dtype` than float16, bfloat16 or tf32, and a scale that
    is no power of two from 2^-126 to 2^126.

    >>> s = split(1 + 2**-12 + 2**-20)
    >>> float(s.high), float(s.low), float(s.value) == 1 + 2**-12 + 2**-20
    (1.0, 0.501953125, True)
    """
    _check_split(dtype, scale)
    x = doubles(exact(x, FORMATS["float32"]))
    high = round_to(x, dtype, _ROUNDING[dtype])
    with np.errstate(invalid="ignore"):  # ∞ − ∞
        low = round_to((x - high) * scale, dtype, _ROUNDING[dtype])
    return Split(high, low, scale)


def split_range(dtype: str = "float16", scale: float = 2.0**11) -> tuple[float, float]:
    """Return the range of |x| in which `split` has a relative error of at most 2^-(2p).

    p is the precision of `dtype`. Upwards the largest number of the high part sets the limit; with
    a scale of 2^(p + j), j > 0, the low part is 2^j times as large, and the limit as much lower.
    Downwards the low part does: where it is subnormal it is wrong by up to half the smallest
    number, over the scale, which is 2^-(2p)·|x| at |x| = smallest · 2^(2p − 1) / scale. Below the
    normal numbers of high no scale helps: high is then wrong by as much as at the smallest normal
    one. Where the first limit is above the second, there is no such range. Raises ValueError as
    `split` does.

    >>> least, largest = split_range("float16", scale=1.0)
    >>> least, largest
    (0.125, 65504.0)
    """
    form = _check_split(dtype, scale)
    least = form.smallest * 2.0 ** (2 * form.precision - 1) / scale
    return max(least, form.smallest_normal), form.largest / max(1.0, scale / 2.0**form.precision)


def _check_split(dtype: str, scale: float) -> Format:
    if not isinstance(dtype, str) or dtype not in _ROUNDING:
        raise ValueError(f"dtype={dtype!r}: use one of {', '.join(_ROUNDING)}")
    _check_scale(scale)
    return number_format(dtype)


def emulated_matmul(
    a: object, b: object, policy: Policy = POLICIES["tcec_fp16"], arch: str = "sm_90"
) -> np.ndarray:
    """A·B of float32 matrices as `policy` computes it on `arch`, to the bit; a (m, k), b (k, n).

    k is filled with zeros to whole instructions. Returns float32 (m, n); where an operand's high
    part is infinite, a NaN. Raises ValueError for shapes that do not match, values that are not
    float32 numbers, and an instruction that `arch` does not have.

    >>> a = np.float32([[1 + 2**-12]])
    >>> [float(emulated_matmul(a, a, POLICIES[p])[0, 0]) for p in ("fp16", "simt")]
    [1.0, 1.00048828125]
    """
    if not isinstance(policy, Policy):
        raise TypeError(
            f"policy={policy!r}: use a Policy, or one of POLICIES: {', '.join(POLICIES)}"
        )
    tensor_core(arch)
    a, b = (exact(x, FORMATS["float32"]) for x in (a, b))
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise ValueError(f"A has shape {a.shape} and B {b.shape}; use (m, k) and (k, n)")
    rows, columns = a[:, None, :], b.T[None, :, :]
    step = policy.mma
    if step is None:
        return fma_chain(rows, columns)
    short = -a.shape[1] % step.k
    rows, columns = (np.pad(x, ((0, 0), (0, 0), (0, short))) for x in (rows, columns))
    x, y = (split(v, step.dtype, policy.scale) for v in (rows, columns))

    def multiply(u: np.ndarray, v: np.ndarray, total: np.ndarray, start: int) -> np.ndarray:
        part = np.s_[..., start : start + step.k]
        return products(u[part], v[part], total, step, arch)

    zero = np.zeros((a.shape[0], b.shape[1]), np.float32)
    main, part, cross, lowest = zero, zero, zero, zero
    often = policy.every * step.k
    with np.errstate(invalid="ignore", over="ignore"):  # beyond the range of the format
        for start in range(0, rows.shape[-1], step.k):
            if policy.one_sum:
                cross, lowest = main, main
            if policy.products == 4:
                lowest = multiply(x.low, y.low, lowest, start)
                cross = lowest if policy.one_sum else cross
            if policy.products > 1:
                cross = multiply(x.low, y.high, cross, start)
                cross = multiply(x.high, y.low, cross, start)
            if policy.outside:
                part = multiply(x.high, y.high, part if start % often else zero, start)
                if (start + step.k) % often == 0 or start + step.k == rows.shape[-1]:
                    main = main + part
            else:
                main = multiply(x.high, y.high, cross if policy.one_sum else main, start)
        if policy.products == 1 or policy.one_sum:
            return main
        inverse = np.float32(1 / policy.scale)
        return main + (cross + lowest * inverse) * inverse
