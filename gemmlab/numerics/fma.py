"""The arithmetic of the CUDA cores: a float32 fused multiply-add, and chains of it."""

from typing import Any

import numpy as np

from gemmlab.formats import FORMATS, doubles, exact, round_to

__all__ = ["fma", "fma_chain"]


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """(s, e) of float64 with s the rounded sum and s + e the exact one. Source: D. Knuth, TAOCP 2.

    >>> two_sum(1.0, 2.0**-60)
    (1.0, 8.673617379884035e-19)
    """
    s = a + b
    v = s - a
    return s, (a - (s - v)) + (b - v)


def sum_to_odd(a: Any, b: Any) -> Any:
    """The sum a + b in float64, rounded to odd: if inexact, to the neighbour whose last bit is 1.

    Rounding the result to a shorter format is then rounding the exact sum. Source: S. Boldo,
    G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to
    odd", IEEE Trans. Computers 57 (2008).
    """
    s, lost = two_sum(a, b)
    s = np.asarray(s)
    even = (s.view(np.int64) & 1) == 0
    toward = np.where(lost > 0, np.inf, -np.inf)
    # Where the sum is not finite, so is one of the terms, and nothing is to be mended.
    fix = even & (lost != 0) & np.isfinite(s) & np.isfinite(lost)
    return np.where(fix, np.nextafter(s, toward), s)[()]


_NORMAL = np.finfo(np.float32).smallest_normal
_LEAST = np.iinfo(np.int64).min


def sum_to_single(a: Any, b: Any) -> Any:
    """The sum a + b of float64 numbers, rounded once, to float32.

    Only where rounding to float64 could turn the later rounding is the sum rounded to odd there.
    """
    total = a + b
    if _any_tie(total) or _any_subnormal(total):
        total = sum_to_odd(a, b)
    return total.astype(np.float32)


def _any_tie(total: Any) -> Any:
    """Say whether any of these sums, perhaps only after rounding, lies halfway between two float32.

    Of its bits those below a float32's are then 1000…, which shifted to the top are the least
    integer: one shift and one minimum find it, faster than a mask and a comparison.
    """
    return (total.view(np.int64) << 35).min() == _LEAST


def _any_subnormal(total: Any) -> Any:
    """Say whether any of these sums is below the normal numbers of float32, and not zero."""
    small = abs(total) < _NORMAL
    return small.any() and (small & (total != 0)).any()


def fma(a: object, b: object, c: object, rounding: str = "RN") -> np.ndarray:
    """a·b + c of float32 numbers, rounded once to float32; arrays broadcast.

    The product is exact in float64, and the sum is rounded to odd there (`sum_to_odd`). Raises
    ValueError for values that are not float32 numbers, and for an unknown rounding.

    >>> float(fma(1 + 2**-12, 1 + 2**-12, -1.0) * 2**24)
    8193.0
    """
    x, y, z = (doubles(exact(v, FORMATS["float32"])) for v in (a, b, c))
    with np.errstate(invalid="ignore"):  # 0 · ∞ and ∞ − ∞
        odd = sum_to_odd(x * y, z)
    if rounding != "RN":
        return round_to(odd, "float32", rounding)
    with np.errstate(over="ignore"):
        return odd.astype(np.float32)  # IEEE 754: to nearest, ties to even


def fma_chain(a: object, b: object, c: object = 0.0, rounding: str = "RN") -> np.ndarray:
    """Give the sum c + Σ a_i·b_i by one FMA after the other, in the order of i; a, b (…, K), c (…).

    This is how a CUDA core accumulates a dot product. Operands are float32 numbers; the leading
    axes broadcast. Returns float32 (…): c itself for K = 0. Raises ValueError for shapes that do
    not go together, and what `fma` refuses.

    >>> float(fma_chain([1.0, 2.0], [3.0, 4.0]))
    11.0
    """
    a, b, c = (exact(v, FORMATS["float32"]) for v in (a, b, c))
    total = np.array(np.broadcast_to(c, leading_shape(a, b, c)))
    for i in range(a.shape[-1]):
        total = fma(a[..., i], b[..., i], total, rounding)
    return total[()]


def leading_shape(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[int, ...]:
    """The shape of c + Σ a_i·b_i with a, b (…, K) and c (…); ValueError where there is none."""
    if a.ndim and a.shape[-1:] == b.shape[-1:]:
        try:
            return np.broadcast_shapes(a.shape[:-1], b.shape[:-1], c.shape)
        except ValueError:
            pass
    raise ValueError(
        f"a has shape {a.shape} and b {b.shape}, c {c.shape}; use (…, K) for a and b, one K, "
        "(…) for c, with leading axes that broadcast"
    )
