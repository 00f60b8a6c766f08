"""A cache keyed by the identity of the arrays.

A kernel's loops make the same accesses over and over: the same array, indexed with the same
variables and with small numbers, by the same lanes.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class IdentityCache:
    """At most `most` results, by what they come from; all are dropped when there are more.

    NumPy's integers are told apart by value, all other objects by identity; the objects are kept,
    so that no other one gets their identity.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.results: dict[tuple, tuple[Any, tuple]] = {}

    def get(self, objects: tuple) -> Any:
        """The result for these objects, or None."""
        found = self.results.get(_key(objects))
        return None if found is None else found[0]

    def put(self, objects: tuple, result: Any) -> None:
        """Keep the result for these objects."""
        if len(self.results) >= self.most:
            self.results.clear()
        self.results[_key(objects)] = result, objects


def _key(objects: tuple) -> tuple:
    return tuple([(int(o),) if type(o) is np.int64 else id(o) for o in objects])
