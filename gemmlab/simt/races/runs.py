"""Touches of neighbouring elements by neighbouring lanes, kept as their first one and their number.

Most kernels touch an array so, `x[cuda.grid(1)]`, and an array of any size then needs little more
than a number for each batch of blocks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple

import numpy as np

from gemmlab.simt.races.visits import Now, Visits


class Run(NamedTuple):
    """Elements `start` to `stop`, the first of which has `touch`, the next one touch + 1, …"""

    start: int
    stop: int
    touch: int


def run_of(at: np.ndarray, lane: np.ndarray, now: Now, visits: Visits, fences: int) -> Run | None:
    """An access by `lane`, in ascending order, to the elements `at` as a run, if it is one."""
    start, first, last = int(at[0]), int(lane[0]), len(at) - 1
    if int(at[-1]) - start != last or int(lane[-1]) - first != last:
        return None
    if isinstance(now.epoch, np.ndarray) or isinstance(now.sync, np.ndarray):
        return None
    if not (at - lane == start - first).all():
        return None
    return Run(start, start + len(at), visits.touch(first, now, fences))


class Runs:
    """The last touches of some kind, as runs that do not overlap."""

    MOST = 1 << 12

    def __init__(self, visits: Visits) -> None:
        self.visits = visits
        self.starts: list[int] = []
        self.runs: list[Run] = []

    def allows(self, run: Run) -> bool:
        """Whether the elements of a run that were touched before were touched by the same lanes."""
        low, ahead = self.visits.low, (run.touch & self.visits.low) - run.start
        return all((r.touch & low) - r.start == ahead for r in self.runs[self._meets(run)])

    def put(self, run: Run) -> bool:
        """Note a run; False for one that overlaps with a part of another, or one too many."""
        met = self._meets(run)
        before = self.runs[met]
        if len(before) > 1 or any(r[:2] != run[:2] for r in before) or len(self.runs) >= self.MOST:
            return False
        self.starts[met], self.runs[met] = [run.start], [run]
        return True

    def _meets(self, run: Run) -> slice:
        """The runs that overlap with this one."""
        first = bisect_right(self.starts, run.start)
        if first and self.runs[first - 1].stop > run.start:
            first -= 1
        return slice(first, bisect_left(self.starts, run.stop, first))

    def spread(self, touches: np.ndarray) -> None:
        """Put what is known into an array of the last touch of each element."""
        for start, stop, touch in self.runs:
            touches[start:stop] = np.arange(touch, touch + stop - start)
