"""What checks draw anew comes from here: from the system, or from the seed of a class.

A check draws cases that nobody knows by heart. For a grade they must be the same for each learner
and each time: `seeded` then decides them. The copy in which an answer runs forgets the seed
(`forget`), so that an answer cannot draw what is still to come.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

_drawing: list[tuple[str, int]] = []  # the seed, and how many generators it has given


def generator() -> np.random.Generator:
    """A generator for what this check draws."""
    if not _drawing:
        return np.random.default_rng()
    seed, given = _drawing[-1]
    _drawing[-1] = seed, given + 1
    digest = hashlib.sha256(f"{seed}/{given}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest, "little"))


@contextmanager
def seeded(seed: str) -> Iterator[None]:
    """Let a text decide all that is drawn meanwhile."""
    _drawing.append((seed, 0))
    try:
        yield
    finally:
        forget()


def forget() -> None:
    """Draw from the system again, and keep nothing of the seed."""
    _drawing.clear()
