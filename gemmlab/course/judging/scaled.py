"""Instructions that for a while compute with other values: does a result depend on them?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import numpy as np

from gemmlab import instructions


@contextmanager
def scaled(kind: str, by: int) -> Iterator[None]:
    """For a while the first operand of these instructions, float16 in pairs, is `by` times that."""
    with ExitStack() as stack:
        for one in vars(instructions).values():
            if getattr(one, "kind", "") == kind:
                stack.enter_context(patch.dict(vars(one), meaning=_times(by, one.meaning)))
        yield


def _times(by: int, meaning: Callable) -> Callable:
    def of_more(first: np.ndarray, *rest: np.ndarray, arch: str) -> np.ndarray:
        halves = np.ascontiguousarray(first).view(np.float16) * np.float16(by)
        return meaning(halves.view(first.dtype), *rest, arch=arch)

    return of_more
