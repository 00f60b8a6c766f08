"""Sums of products of float16 numbers in whole multiples of 2⁻⁴⁸, which int64 holds exactly.

Sums are numbers of float32 in magnitude below 2¹⁴. Nothing is taken from `gemmlab.numerics`.
"""

import numpy as np

ONE = 1 << 48


def _top(whole):
    """⌊log2 |whole|⌋ of numbers with at most 53 significant bits; -1 for 0."""
    return np.frexp(whole.astype(np.float64))[1].astype(np.int64) - 1


def _unit(top, fraction_bits):
    """The weight of the last bit of a number that has so many below its first."""
    return np.int64(1) << np.maximum(top - fraction_bits, 0)


def _whole(x):
    """x · 2²⁴ of float16 numbers."""
    return (x.astype(np.float64) * 2**24).astype(np.int64)


def _cut(whole, unit):
    """Toward zero, to a multiple of `unit`."""
    return np.sign(whole) * (np.abs(whole) // unit * unit)


def on_cuda_cores(a, b, start=0):
    """Σ a·b along the last axis after `start`, each sum rounded to the nearest float32, even."""
    total = np.full(a.shape[:-1], start, np.int64)
    for p in np.moveaxis(_whole(a) * _whole(b), -1, 0):
        total += p
        gap = _unit(_top(total), 23)
        quotient, rest = np.divmod(total, gap)
        up = (2 * rest > gap) | ((2 * rest == gap) & (quotient % 2 == 1))
        total = (quotient + up) * gap
    return total


def on_hopper(a, b, start=0):
    """Σ a·b in blocks of 16 after `start`, and what cutting and rounding took, of either."""
    total = np.full(a.shape[:-1], start, np.int64)
    cut, rounded = np.zeros_like(total), np.zeros_like(total)
    scale = [np.maximum(_top(x), -14) for x in (a, b)]  # of subnormals, too
    exponents = np.where((a != 0) & (b != 0), sum(scale) + 48, 0)
    for first in range(0, a.shape[-1], 16):
        block = np.s_[..., first : first + 16]
        terms = np.concatenate([total[..., None], _whole(a[block]) * _whole(b[block])], axis=-1)
        largest = np.maximum(_top(total), exponents[block].max(axis=-1))
        kept = _cut(terms, _unit(largest, 25)[..., None])
        added = kept.sum(axis=-1)
        total = _cut(added, _unit(_top(added), 23))
        cut += (terms - kept).sum(axis=-1)
        rounded += added - total
    return total, cut, rounded
