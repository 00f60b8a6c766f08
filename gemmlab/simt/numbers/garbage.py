"""Memory that nobody has written holds anything: zeros here, or what a launch is tried again with.

Whether such a value decides anything is found by trying: a launch whose outcome stays the same with
zeros, with much above every number, much below, and something between, does not depend on it. The
infinities spread through sums, products and comparisons; the integers differ in each bit.
"""

from typing import Any

import numpy as np

ZERO, MUCH, LITTLE, SOME = 0, 1, -1, 2


def garbage(dtype: Any, which: int) -> np.generic:
    """Return what unwritten memory of this type holds.

    >>> [float(garbage(np.float32, which)) for which in (ZERO, MUCH, LITTLE)]
    [0.0, inf, -inf]
    >>> [hex(int(garbage(np.uint8, which))) for which in (ZERO, MUCH, LITTLE)]
    ['0x0', '0x55', '0xaa']
    """
    dtype = np.dtype(dtype)
    if dtype.kind in "fc":
        return dtype.type({ZERO: 0, MUCH: np.inf, LITTLE: -np.inf, SOME: 123.4}[which])
    if dtype.kind == "b":
        return np.bool_(which == MUCH)
    byte = {ZERO: b"\0", MUCH: b"\x55", LITTLE: b"\xaa", SOME: b"\x36"}[which]
    return np.frombuffer(byte * dtype.itemsize, dtype)[0]
