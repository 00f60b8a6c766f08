"""Masks say which lanes run: operations on two of them, and the stack of masks.

A mask is None for all lanes, False for none, else a boolean array that broadcasts to (blocks,
threads).
"""

from __future__ import annotations

from typing import Any

import numpy as np

Mask = Any  # None, False, or a boolean array (blocks | 1, threads | 1)


def both(a: Mask, b: Any) -> Mask:
    """The lanes of mask `a` for which the condition `b` holds.

    A mask from which no lane goes stays the same object, by which counts and caches know it.
    """
    if b is None or a is False:
        return a
    if type(b) is np.bool_ or np.ndim(b) == 0:
        return a if b else False
    lanes = b if a is None else a & b
    if not lanes.any():
        return False
    if a is None:
        return None if lanes.all() else lanes
    return a if lanes.shape == a.shape and (lanes == a).all() else lanes


def without(a: Mask, lanes: Mask) -> Mask:
    """The lanes of mask `a` that are not among `lanes`."""
    if lanes is False or a is False:
        return a
    return False if lanes is None or lanes is a else both(a, ~lanes)


def either(a: Mask, b: Mask) -> Mask:
    """The lanes of mask `a` and those of mask `b`."""
    if a is False or b is False:
        return b if a is False else a
    return None if a is None or b is None else a | b


class Masks(list):
    """A stack of masks: the last one is that of the lanes that run now.

    The first is that of the lanes that have not returned from the kernel; each branch, loop,
    iteration and device function puts one on top while it lasts.
    """

    def drop(self, depth: int) -> None:
        """Take the lanes that run out of the masks from `depth` on."""
        lanes, before, after = self[-1], None, None
        for i in range(depth, len(self)):  # the same masks stay the same
            if i == depth or self[i] is not before:
                before, after = self[i], without(self[i], lanes)
            self[i] = after
