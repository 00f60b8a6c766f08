"""The shadow of global memory knows who touched each element over a whole launch.

Most kernels touch an array by neighbouring lanes, `x[cuda.grid(1)]`. Such a touch is kept as a run
of elements, so that an array of any size needs little more than a number for each batch of blocks.
"""

from bisect import bisect_left, bisect_right
from typing import NamedTuple

import numpy as np

from gemmlab.simt.races.release import Releases
from gemmlab.simt.races.shadow import Clash, Shadow
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
        first = bisect_right(self.starts, run.start)
        if first and self.runs[first - 1].stop > run.start:
            first -= 1
        return slice(first, bisect_left(self.starts, run.stop, first))

    def spread(self, touches: np.ndarray) -> None:
        """Put what is known into an array of the last touch of each element."""
        for start, stop, touch in self.runs:
            touches[start:stop] = np.arange(touch, touch + stop - start)


class GlobalShadow(Shadow):
    """A `Shadow` of global memory, where fences and atomics order threads of any two blocks.

    written : whether anybody has stored to the array
    runs : what was read, written and updated, while all was by runs; None afterwards
    unwritten : the elements that nobody has ever written; None where all have been
    """

    def __init__(
        self, size: int, threads: int, lanes: int, releases: Releases | None = None
    ) -> None:
        super().__init__(size, threads, lanes, releases)
        self.written = False
        self.unwritten: np.ndarray | None = None
        self.runs: dict[str, Runs] | None = self._no_runs()

    def _no_runs(self) -> dict[str, Runs]:
        return {op: Runs(self.visits) for op in ("read", "write", "atomic")}

    def order(self) -> None:
        """Note a wait of the whole grid: what came before is over."""
        self.floor = self.visits.next
        self.runs = None if self.runs is None else self._no_runs()
        for kept in (self.readers, self.updaters):
            if kept.far is not None:
                kept.far[:] = False

    def read(self, at: np.ndarray, lane: np.ndarray, now: Now) -> tuple[Clash, ...]:
        """Note a read, as a run if it is one; what it clashes with."""
        self.fences = self.releases.fences
        if self._in_runs("read", at, lane, now):
            self.last_reads[now.line] = at, lane
            return ()
        return super().read(at, lane, now)

    def write(self, at: np.ndarray, lane: np.ndarray, now: Now) -> tuple[Clash, ...]:
        """Note a write, as a run if it is one; what it clashes with."""
        self.fences, self.written = self.releases.fences, True
        if self.unwritten is not None:
            self.unwritten[at] = False
        return () if self._in_runs("write", at, lane, now) else super().write(at, lane, now)

    def atomic(self, at: np.ndarray, lane: np.ndarray, now: Now) -> tuple[Clash, ...]:
        """Note an atomic, as a run if it is one; what it clashes with."""
        self.fences, self.written = self.releases.fences, True
        if self.unwritten is not None:
            self.unwritten[at] = False
        clashes = ()
        if not self._in_runs("atomic", at, lane, now):
            clashes = super().atomic(at, lane, now)
        epochs = np.broadcast_to(now.epoch, lane.shape)
        self.releases.update(id(self), at, lane, self.threads, epochs)
        return clashes

    def by_one(self, op: str, at: int, lane: int, now: Now) -> bool:
        """Note a read or a write by one lane, if that is soon done; whether it is."""
        if self.runs is not None or self.unwritten is not None:
            return False
        self.fences = self.releases.fences
        self.written |= op == "write"
        return self.alone(op, at, lane, now)

    def _in_runs(self, op: str, at: np.ndarray, lane: np.ndarray, now: Now) -> bool:
        """Whether an access is noted as a run, because no lane touches what another one did.

        From the first other access on, the touches of each element are kept.
        """
        if self.runs is None:
            return False
        run = run_of(at, lane, now, self.visits, self.fences)
        if run and all(runs.allows(run) for runs in self.runs.values()) and self.runs[op].put(run):
            return True
        kinds = {"read": self.readers, "write": self.writers, "atomic": self.updaters}
        for kind, runs in self.runs.items():
            if runs.runs:
                runs.spread(kinds[kind].begin())
        self.runs = None
        return False

    def unset(self, at: np.ndarray) -> np.ndarray | None:
        """Mark the elements `at` that nobody has written, (elements,); None if all are written."""
        if self.unwritten is None:
            return None
        unset = self.unwritten[at]
        return unset if unset.any() else None
