"""What was worked out from arrays, for when the very same arrays come again.

A kernel's loops make the same accesses over and over: the same array, indexed with the same
variables and with small numbers, by the same lanes.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class Remembered:
    """Results by what they come from: NumPy's integers by value, all other objects by identity.

    The objects are kept, so that their identities stay theirs. When there are too many, all
    results are forgotten.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.results: dict[tuple, tuple[Any, tuple]] = {}

    def get(self, objects: tuple) -> Any:
        """The result that was put for these objects, or None."""
        found = self.results.get(_key(objects))
        return None if found is None else found[0]

    def put(self, objects: tuple, result: Any) -> None:
        """Remember a result."""
        if len(self.results) >= self.most:
            self.results.clear()
        self.results[_key(objects)] = result, objects


def _key(objects: tuple) -> tuple:
    return tuple([(int(o),) if type(o) is np.int64 else id(o) for o in objects])
