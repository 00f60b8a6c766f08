"""How far a result is from the exact one, and how far it may be."""

from __future__ import annotations

import numpy as np

from gemmlab.numerics.dot import tensor_core
from gemmlab.numerics.formats import number_format

__all__ = [
    "backward_error",
    "fma_chain_bound",
    "forward_error",
    "max_relative_error",
    "tensor_core_bound",
]


def max_relative_error(result: object, reference: object) -> float:
    """The largest |x̂ − x| / |x| of all elements.

    Infinity where x̂ is not finite, and where it is not 0 but x is.

    >>> max_relative_error([1.0, 2.002], [1.0, 2.0])
    0.00099...
    """
    result, reference = _pair(result, reference)
    return _largest(np.abs(result - reference), np.abs(reference))


def forward_error(result: object, reference: object) -> float:
    """‖X̂ − X‖ / ‖X‖ in the Frobenius norm; infinity where X̂ is not finite.

    >>> forward_error([3.0, 4.1], [3.0, 4.0])
    0.0199...
    """
    result, reference = _pair(result, reference)
    return _largest(np.linalg.norm(result - reference), np.linalg.norm(reference))


def backward_error(
    result: object, reference: object, a: object, b: object, c: object = 0.0
) -> float:
    """The largest |d̂ − d| / (|A||B| + |C|) of a product with addition, D = AB + C.

    The smallest relative change of each a_ik·b_kj and c_ij that would make D̂ exact. a (m, k),
    b (k, n), c (m, n) or 0; result and reference (m, n). It does not grow when D cancels, which
    the relative error does. Source: N. J. Higham, Accuracy and Stability of Numerical Algorithms,
    2nd ed., section 3.5.
    """
    result, reference = _pair(result, reference)
    a, b, c = (np.abs(np.asarray(x, np.float64)) for x in (a, b, c))
    return _largest(np.abs(result - reference), a @ b + c)


def fma_chain_bound(k: int, dtype: str = "float32") -> float:
    """The backward error that a chain of k FMAs, rounded to nearest, cannot exceed.

    γ_k = k·u / (1 − k·u), u = 2^-p the unit roundoff of `dtype`; infinity from k·u = 1 on.
    Source: Higham, section 3.1.
    """
    k_u = k * number_format(dtype).unit_roundoff
    return k_u / (1 - k_u) if k_u < 1 else np.inf


def tensor_core_bound(
    k: int,
    dtype: str = "float16",
    arch: str = "sm_90",
    *,
    out_dtype: str = "float32",
    outside: bool = False,
) -> float:
    """The backward error that sums of k products on a Tensor Core cannot exceed.

    One block of K_b products truncates K_b + 1 terms, each by less than 2^-F of the largest, and
    rounds the sum: to float32 toward zero, by less than 2^-23 of it, to float16 by at most 2^-11.
    With δ = (K_b + 1)·2^-F + 2^-23 (or 2^-11) each of ⌈k / K_b⌉ blocks in a chain adds δ of what
    is summed so far: (1 + δ)^⌈k / K_b⌉ − 1.

    outside : each block starts from zero and is added to the sum by the CUDA cores, rounded to
    nearest: δ once, and u = 2^-24 for each block: (1 + δ)·(1 + u)^⌈k / K_b⌉ − 1.

    Holds while no sum is so small that the floor of `TensorCore` or subnormals matter.
    """
    core = tensor_core(arch)
    products = min(core.block[dtype], k)
    blocks = -(-k // products)
    rounding = {"float32": 2.0**-23, "float16": 2.0**-11}[out_dtype]
    delta = (products + 1) * 2.0**-core.fraction_bits + rounding
    if outside:
        u = number_format("float32").unit_roundoff
        return float(np.expm1(np.log1p(delta) + blocks * np.log1p(u)))
    return float(np.expm1(blocks * np.log1p(delta)))


def _pair(result: object, reference: object) -> tuple[np.ndarray, np.ndarray]:
    result, reference = (np.asarray(x, np.float64) for x in (result, reference))
    if result.shape != reference.shape:
        raise ValueError(f"the result has shape {result.shape}, the reference {reference.shape}")
    return result, reference


def _largest(difference: object, scale: object) -> float:
    """The largest difference / scale; 0 / 0 is right, and what is not finite infinitely wrong."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(difference == 0, 0.0, np.divide(difference, scale))
    return float(np.max(np.where(np.isfinite(ratio), ratio, np.inf)))
