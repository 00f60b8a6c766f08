"""Bits of a lane's integer are counted, turned round and chosen, as by `cuda.popc`."""

from typing import Any

import numpy as np


def _unsigned(value: Any) -> tuple[np.ndarray, int]:
    """Return the bits of an integer as uint64, and how many they are: 32 or 64."""
    value = np.asarray(value)
    if value.dtype.kind not in "iub":
        raise TypeError(f"bits are counted in integers, not in {value.dtype}")
    width = 64 if value.dtype.itemsize == 8 else 32
    bits = value.astype(np.uint64)
    return (bits if width == 64 else bits & np.uint64(0xFFFFFFFF)), width


def popc(value: Any) -> Any:
    """Count the bits that are 1.

    >>> int(popc(np.int32(-1)))
    32
    """
    return np.bitwise_count(_unsigned(value)[0]).astype(np.int32)


def brev(value: Any) -> Any:
    """Return the bits in reverse order: all 64 of a uint64, the lower 32 of others, as in Numba.

    >>> brev(np.int64(1))
    np.uint32(2147483648)
    """
    width = 64 if np.asarray(value).dtype == np.uint64 else 32
    bits, _ = _unsigned(value)
    result = np.zeros_like(bits)
    for i in range(width):
        result |= ((bits >> np.uint64(i)) & np.uint64(1)) << np.uint64(width - 1 - i)
    return result.astype(np.uint32 if width == 32 else np.uint64)[()]


def clz(value: Any) -> Any:
    """Count the bits that are 0 above the highest 1."""
    bits, width = _unsigned(value)
    for shift in (1, 2, 4, 8, 16, 32):
        bits = bits | (bits >> np.uint64(shift))
    return (width - np.bitwise_count(bits).astype(np.int64)).astype(np.int32)[()]


def ffs(value: Any) -> Any:
    """Return the place of the lowest 1, from 1; 0 where there is none."""
    bits, _ = _unsigned(value)
    below = np.bitwise_count(bits ^ (bits - np.uint64(1))).astype(np.int32)
    return np.where(bits == 0, 0, below).astype(np.int32)[()]


def selp(condition: Any, then: Any, other: Any) -> Any:
    """Return `then` where the condition holds, else `other`; both are evaluated."""
    return np.where(np.not_equal(condition, 0), then, other)[()]
