"""The 128-byte swizzle of shared memory, in which copies write tiles and `wgmma` reads them.

Source: PTX ISA 9.0, "Swizzling modes" of tensors: bits 4 to 6 of an address are XORed with bits 7
to 9.
"""

from __future__ import annotations

from typing import Any

ROW = 128  # bytes
PATTERN = 1024  # bytes, after which it repeats


def swizzled(first: Any, i: Any, j: Any, itemsize: int) -> Any:
    """The element at row i and column j of a tile with rows of 128 bytes, from `first` on.

    >>> [int(swizzled(0, 1, j, 2)) for j in (0, 8, 63)]
    [72, 64, 119]
    """
    byte = (first + i * (ROW // itemsize) + j) * itemsize
    return (byte ^ (byte >> 7 & 7) << 4) // itemsize
