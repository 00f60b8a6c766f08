"""How far a sum is from the exact one, how far it may be, and the ways in which it is summed."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gemmlab.formats import exact, number_format, real
from gemmlab.numerics.fma import fma_chain, leading_shape
from gemmlab.numerics.tensor_cores import fused_dot_add, tensor_core

__all__ = [
    "ACCUMULATIONS", "Accumulation", "accumulation", "backward_error", "fma_chain_bound",
    "forward_error", "max_relative_error", "running_sums", "tensor_core_bound",
]  # fmt: skip


def max_relative_error(result: object, reference: object) -> float:
    """Return the largest |x̂ − x| / |x| of all elements.

    Infinity where either is not finite, and where x is 0 but x̂ is not; 0 where there is no element.
    Raises ValueError for arrays of different shapes, TypeError for what is no real number.

    >>> max_relative_error([1.0, 2.002], [1.0, 2.0])
    0.00099...
    """
    result, reference = _pair(result, reference)
    return _largest(_distance(result, reference), np.abs(reference))


def forward_error(result: object, reference: object) -> float:
    """‖X̂ − X‖ / ‖X‖ in the Frobenius norm; infinity where either is not finite.

    Raises ValueError for arrays of different shapes, TypeError for what is no real number.

    >>> forward_error([3.0, 4.1], [3.0, 4.0])
    0.0199...
    """
    result, reference = _pair(result, reference)
    return _largest(_norm(_distance(result, reference)), _norm(reference))


def backward_error(
    result: object, reference: object, a: object, b: object, c: object = 0.0
) -> float:
    """Return the largest |d̂ − d| / (|A||B| + |C|) of a product with addition, D = AB + C.

    The smallest relative change of each a_ik·b_kj and c_ij that would make D̂ exact. a (m, k),
    b (k, n), c (m, n) or 0; result and reference (m, n). It does not grow when D cancels, which
    the relative error does. Raises ValueError for other shapes, TypeError for what is no real
    number. Source: N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section
    3.5.
    """
    result, reference = _pair(result, reference)
    a, b, c = (np.abs(_float64(x)) for x in (a, b, c))
    matrices = all(x.ndim == 2 for x in (result, a, b)) and a.shape[1] == b.shape[0]
    if (
        not matrices
        or result.shape != (a.shape[0], b.shape[1])
        or c.shape not in ((), result.shape)
    ):
        raise ValueError(
            f"A has shape {a.shape}, B {b.shape}, C {c.shape} and the result {result.shape}; use "
            "(m, k), (k, n), (m, n) or a number, and (m, n)"
        )
    with np.errstate(over="ignore", invalid="ignore"):  # beyond the range; of what is not finite
        scale = a @ b + c
    return _largest(_distance(result, reference), scale)


def fma_chain_bound(k: int, dtype: str = "float32") -> float:
    """Return the backward error that a chain of k FMAs, rounded to nearest, cannot exceed.

    γ_k = k·u / (1 − k·u), u = 2^-p the unit roundoff of `dtype`; infinity from k·u = 1 on. Raises
    ValueError for an unknown format and for k < 0. Source: Higham, section 3.1.
    """
    k_u = _products(k) * number_format(dtype).unit_roundoff
    return k_u / (1 - k_u) if k_u < 1 else np.inf


def tensor_core_bound(
    k: int,
    dtype: str = "float16",
    arch: str = "sm_90",
    *,
    out_dtype: str = "float32",
    outside: bool = False,
) -> float:
    """Return the backward error that sums of k products on a Tensor Core cannot exceed.

    One block of K_b products truncates K_b + 1 terms, each by less than 2^-F of the largest, and
    rounds the sum: to float32 toward zero, by less than 2^-23 of it (2^-13 where operands are in
    FP8), to float16 by at most 2^-11. With δ = (K_b + 1)·2^-F + 2^-23 (2^-13, 2^-11) each of
    ⌈k / K_b⌉ blocks in a chain adds δ of what is summed so far: (1 + δ)^⌈k / K_b⌉ − 1.

    outside : each block starts from zero and is added to the sum by the CUDA cores, rounded to
    nearest: δ once, and u = 2^-24 for each block: (1 + δ)·(1 + u)^⌈k / K_b⌉ − 1.

    Holds while no sum is so small that the floor of `TensorCore` or subnormals matter, nor so large
    that it overflows. Raises ValueError for formats and architectures that do not go together, for
    k < 0, and for sums outside in float16.
    """
    core = tensor_core(arch)
    core.formats(dtype, out_dtype)
    if outside and out_dtype != "float32":
        raise ValueError(f"out_dtype={out_dtype!r}: the CUDA cores add blocks in float32")
    products = min(core.block[dtype], _products(k))
    blocks = -(-k // max(1, products))
    nearest = out_dtype == "float16"
    rounding = 2.0 ** -(core.result_bits(dtype, out_dtype) + nearest)
    delta = (products + 1) * 2.0 ** -core.kept(dtype) + rounding
    if outside:
        u = number_format("float32").unit_roundoff
        exponent = np.log1p(delta) + blocks * np.log1p(u)
    else:
        exponent = blocks * np.log1p(delta)
    with np.errstate(over="ignore"):  # beyond float64 the bound says nothing
        return float(np.expm1(exponent))


def _products(k: int) -> int:
    if not isinstance(k, (int, np.integer)) or k < 0:
        raise ValueError(f"k={k!r} is no number of products; use a whole number from 0 on")
    return int(k)


def _float64(x: object) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return real(x).astype(np.float64)


def _pair(result: object, reference: object) -> tuple[np.ndarray, np.ndarray]:
    result, reference = _float64(result), _float64(reference)
    if result.shape != reference.shape:
        raise ValueError(f"the result has shape {result.shape}, the reference {reference.shape}")
    return result, reference


def _distance(result: np.ndarray, reference: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):  # beyond the range; of what is not finite
        return np.abs(result - reference)


def _norm(x: np.ndarray) -> float:
    """The Frobenius norm, in units of the largest: squares neither overflow nor vanish."""
    largest = np.abs(x).max(initial=0)
    if largest == 0 or not np.isfinite(largest):
        return largest
    with np.errstate(over="ignore"):
        return largest * np.linalg.norm(x / largest)


def _largest(difference: object, scale: object) -> float:
    """The largest difference / scale; 0 / 0 is right, and what is not finite infinitely wrong."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(difference == 0, 0.0, np.divide(difference, scale))
    return float(np.max(np.where(np.isfinite(ratio), ratio, np.inf), initial=0))


@dataclass(frozen=True)
class Accumulation:
    """A way to sum products.

    unit : "cuda": one FMA after the other in float32; "tensor": blocks on the Tensor Core
    out_dtype : the format of the running sum
    outside : each block starts from zero, and the CUDA cores add it to the sum in float32
    """

    name: str
    title: str
    unit: str
    out_dtype: str = "float32"
    outside: bool = False

    def bound(self, k: int, dtype: str = "float16", arch: str = "sm_90") -> float:
        """The backward error of k products cannot exceed this: see `numerics.errors`."""
        if self.unit == "cuda":
            return fma_chain_bound(k)
        return tensor_core_bound(k, dtype, arch, out_dtype=self.out_dtype, outside=self.outside)


ACCUMULATIONS = {
    a.name: a
    for a in (
        Accumulation("cuda", "CUDA cores, one FMA after the other", "cuda"),
        Accumulation("inside", "Tensor Core", "tensor"),
        Accumulation("outside", "Tensor Core, blocks added outside", "tensor", outside=True),
        Accumulation("float16", "Tensor Core, float16 sums", "tensor", "float16"),
    )
}


def accumulation(name: str) -> Accumulation:
    """Return the way called `name`; ValueError, listing what is known, for another."""
    if not isinstance(name, str) or name not in ACCUMULATIONS:
        known = ", ".join(ACCUMULATIONS)
        raise ValueError(f"accumulation={name!r} is not known; use one of {known}")
    return ACCUMULATIONS[name]


def running_sums(
    a: object,
    b: object,
    lengths: Sequence[int],
    way: str,
    *,
    dtype: str = "float16",
    arch: str = "sm_90",
) -> np.ndarray:
    """Σ a_i·b_i over the first `lengths` products, summed as `way` does; (len(lengths), …) float64.

    a, b : (…, K) numbers of format `dtype`; lengths : ascending, the last at most K
    way : a name in `ACCUMULATIONS`

    At a length that is no whole number of blocks a short block ends the sum so far. Raises
    ValueError for lengths that do not ascend from 1 to at most K, and what `fused_dot_add` refuses.

    >>> thirds, ones = np.full(4096, 1 / 3, np.float16), np.ones(4096, np.float16)
    >>> [running_sums(thirds, ones, [2048, 4096], way).tolist() for way in ("inside", "float16")]
    [[682.5, 1365.0], [684.5, 1355.0]]
    """
    chosen, core = accumulation(way), tensor_core(arch)
    source, target = core.formats(dtype, chosen.out_dtype)
    a, b = exact(a, source), exact(b, source)
    total = np.zeros(leading_shape(a, b, np.zeros(())), target.carrier)
    edges = [0, *lengths]
    whole = all(isinstance(n, (int, np.integer)) for n in edges)
    if len(edges) < 2 or not whole or sorted(set(edges)) != edges or edges[-1] > a.shape[-1]:
        raise ValueError(f"lengths={lengths!r} must ascend from 1 to at most {a.shape[-1]}")
    sums = []
    for first, last in pairwise(edges):
        x, y = a[..., first:last], b[..., first:last]
        if chosen.unit == "cuda":
            total = fma_chain(x.astype(np.float32), y.astype(np.float32), total)
        elif chosen.outside:
            for start in range(0, last - first, core.block[dtype]):
                part = np.s_[..., start : start + core.block[dtype]]
                block = fused_dot_add(x[part], y[part], 0.0, dtype=dtype, arch=arch)
                with np.errstate(over="ignore", invalid="ignore"):  # beyond float32; ∞ − ∞
                    total = total + block
        else:
            total = fused_dot_add(x, y, total, dtype=dtype, arch=arch, out_dtype=chosen.out_dtype)
        sums.append(np.asarray(total, np.float64))
    return np.stack(sums)
