"""The shadows of global and of shared memory know who touched each element.

That of global memory lasts for a whole launch. Most kernels touch an array by neighbouring lanes,
`x[cuda.grid(1)]`. Such a touch is kept as a run of elements, so that an array of any size needs
little more than a number for each batch of blocks. That of shared memory tells blocks apart.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gemmlab.simt.races.release import Releases
from gemmlab.simt.races.shadow import Clash, Shadow, Touched
from gemmlab.simt.races.visits import Now, Visits


class Run(NamedTuple):
    """Elements `start` to `stop`, the first of which has `touch`, the next one touch + 1, …"""

    start: int
    stop: int
    touch: int


def run_of(at: np.ndarray, lane: np.ndarray, now: Now, visits: Visits, fences: int) -> Run | None:
    """Give an access by `lane`, in ascending order, to the elements `at` as a run, if it is one."""
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
    forgot : whether a wait of the whole grid has dropped runs
    runs : what was read, written and updated, while all was by runs; None afterwards
    unwritten : the elements that nobody has ever written; None where all have been
    """

    def __init__(
        self, size: int, threads: int, lanes: int, releases: Releases | None = None
    ) -> None:
        super().__init__(size, threads, lanes, releases)
        self.written = self.forgot = False
        self.unwritten: np.ndarray | None = None
        self.runs: dict[str, Runs] | None = self._no_runs()

    def _no_runs(self) -> dict[str, Runs]:
        return {op: Runs(self.visits) for op in ("read", "write", "atomic")}

    def order(self) -> None:
        """Note a wait of the whole grid: what came before is over."""
        self.floor = self.visits.next
        self.forgot |= self.runs is not None and any(r.runs for r in self.runs.values())
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
        self.releases.update(id(self), at, lane, self.threads, epochs, now.syncs)
        return clashes

    def by_one(self, op: str, at: int, lane: int, now: Now) -> bool:
        """Note a touch by one lane, if that is soon done; whether it is."""
        if self.runs is not None or self.unwritten is not None or now.heard is not None:
            return False
        now, self.fences = now.of_one(), self.releases.fences
        if not self._one(op, at, lane, now):
            return False
        self.written |= op != "read"
        if op == "atomic":
            self.releases.update_one(id(self), at, lane, self.threads, now.epoch, now.sync)
        return True

    def _in_runs(self, op: str, at: np.ndarray, lane: np.ndarray, now: Now) -> bool:
        """Say whether an access is noted as a run, because no lane touches what another one did.

        From the first other access on, the touches of each element are kept.
        """
        if self.runs is None:
            return False
        run = run_of(at, lane, now, self.visits, self.fences)
        if run and all(runs.allows(run) for runs in self.runs.values()) and self.runs[op].put(run):
            return True
        self.leave_runs()
        return False

    def leave_runs(self) -> None:
        """Keep the touches of each element from now on."""
        kinds = self._kinds()
        for kind, runs in (self.runs or {}).items():
            if runs.runs:
                runs.spread(kinds[kind].begin())
        self.runs = None

    def reaches_the_end(self) -> bool:
        """Say whether the last element has been stored to, which is soon known."""
        if self.runs is None:
            return self.writers.first is not None and self.writers.first.item(-1) >= 0
        runs = self.runs["write"].runs
        return bool(runs) and runs[-1].stop == self.size

    def has(self, op: str) -> bool:
        """Say whether any element has been touched so."""
        return bool(self.runs[op].runs) if self.runs else self._kinds()[op].first is not None

    def last(self, op: str) -> np.ndarray:
        """Return the last touch of some kind of each element; -1 is none."""
        kept = self._kinds()[op].first
        touches = np.full(self.size, -1, np.int64) if kept is None else kept
        if self.runs:
            self.runs[op].spread(touches)
        return touches

    def touched(self, op: str) -> np.ndarray:
        """Return a number for each element that is at least 0 where it has been touched so."""
        kept = self._kinds()[op].first
        if kept is not None:
            return kept
        touched = np.full(self.size, -1, np.int8)
        for start, stop, _ in self.runs[op].runs if self.runs else ():
            touched[start:stop] = 0
        return touched

    def _kinds(self) -> dict[str, Touched]:
        return {"read": self.readers, "write": self.writers, "atomic": self.updaters}

    def unset(self, at: np.ndarray) -> np.ndarray | None:
        """Mark the elements `at` that nobody has written, (elements,); None if all are written."""
        if self.unwritten is None:
            return None
        unset = self.unwritten[at]
        return unset if unset.any() else None


class SharedShadow(Shadow):
    """A `Shadow` of shared memory, which a barrier of the block puts in order as a whole.

    Elements are those of one block after those of another; the first block stands for all while
    every block does the same. Lanes are the threads of a block.
    Reads clash only with what else is done before the next barrier, and so do atomics: until there
    is something else, they wait in `later`.

    elements : of a block; rows : how many blocks are told apart
    """

    LATER = 1 << 20  # elements of accesses that may wait

    def __init__(self, elements: int, threads: int, releases: Releases | None = None) -> None:
        super().__init__(elements, threads, threads, releases)
        self.elements, self.rows = elements, 1
        self.initialised = np.zeros(elements, bool)
        self.complete, self.wrote = False, False  # all is initialised; more may be since last seen
        self.epoch: int | np.ndarray = 0
        self.done = ""  # what alone has been done since the last barrier; "several" of these
        self.later: list[tuple[np.ndarray, np.ndarray, Now]] = []
        self.waiting = 0

    def widen(self, blocks: int) -> None:
        """Tell the elements of each block apart."""
        if self.rows == 1 and blocks > 1:
            self.settle()
            size, starts = self.elements, np.arange(blocks).reshape(-1, 1) * self.elements
            self._change(size * blocks, lambda rows: np.tile(rows, blocks))
            self.last_reads = {
                line: ((at + starts).ravel(), np.tile(lane, blocks))
                for line, (at, lane) in self.last_reads.items()
            }
            self.rows = blocks

    def refine(self, unit: int) -> None:
        """Track units of so many bytes from now on, where they are smaller than those till now."""
        if unit < self.unit:
            self.settle()
            parts = self.unit // unit
            self.elements *= parts
            self._change(self.size * parts, lambda rows: np.repeat(rows, parts))
            self.last_reads.clear()
            self.unit = unit

    def _change(self, size: int, rule: Callable[[np.ndarray], np.ndarray]) -> None:
        self.size, self.initialised = size, rule(self.initialised)
        for touched in (self.writers, self.readers, self.updaters):
            touched.change(size, rule)

    def unset(self, at: np.ndarray) -> np.ndarray | None:
        """Mark the elements `at` that nobody has written, (elements,); None if all are written."""
        if self.wrote and not self.complete:
            self.complete, self.wrote = bool(self.initialised.all()), False
        if self.complete:
            return None
        known = self.initialised[at]
        return None if known.all() else ~known

    def read(self, at: np.ndarray, lane: np.ndarray, now: Now) -> tuple[Clash, ...]:
        """Note a read, at once or before another kind of access; what it clashes with."""
        if self._waits("read", at, lane, now):
            self.last_reads[now.line] = at, lane
            return ()
        return super().read(at, lane, now)

    def write(self, at: np.ndarray, lane: np.ndarray, now: Now) -> tuple[Clash, ...]:
        """Note a write, and with it what waits; what it clashes with."""
        self._waits("write", at, lane, now)
        self.initialised[at] = self.wrote = True
        return super().write(at, lane, now)

    def atomic(self, at: np.ndarray, lane: np.ndarray, now: Now) -> tuple[Clash, ...]:
        """Note an atomic, at once or before another kind of access; what it clashes with."""
        if self._waits("atomic", at, lane, now):
            return ()
        return super().atomic(at, lane, now)

    def look(self, op: str, at: np.ndarray, lane: np.ndarray, now: Now) -> tuple[Clash, ...]:
        """Find what an asynchronous "read" or "write" for `lane` clashes with; it is not noted."""
        self._waits("write", at, lane, now)
        others = {"write": self.writers, "atomic": self.updaters}
        if op == "write":
            others["read"] = self.readers
            self.initialised[at] = self.wrote = True
        return self._clashes(op, at, lane, now, **others)

    def sent(self, at: np.ndarray, known: np.ndarray) -> tuple[int, int, int] | None:
        """Note a copy that another block sends to the elements `at`; find a touch it may overtake.


        known : after how many fences of the launch what each thread did is known to be over
        Returns which of the elements, the thread that touches it and its line; None if all is.
        """
        self.settle()
        self.initialised[at] = self.wrote = True
        for touched in (self.writers, self.readers, self.updaters):
            for rows in touched.kept():
                which = np.flatnonzero(rows[at] >= max(0, self.floor))
                touches = rows[at[which]]
                line, _, _, fences = self.visits.moments(touches)
                threads = self.visits.lanes(touches)
                late = known[threads] <= fences
                if late.any():
                    i = int(late.argmax())
                    return int(which[i]), int(threads[i]), int(line[i])
        return None

    def _waits(self, op: str, at: np.ndarray, lane: np.ndarray, now: Now) -> bool:
        """Say whether an access may wait: nothing else has been done since the last barrier."""
        if self.fences != self.releases.fences:
            self.settle()  # what waits was done before the fence
            self.fences = self.releases.fences
        if isinstance(now.epoch, np.ndarray) or isinstance(self.epoch, np.ndarray):
            self.epoch = now.epoch  # blocks differ from now on
        elif now.epoch != self.epoch:
            self.epoch, self.floor, self.done = now.epoch, self.visits.next, ""
            self.later.clear()
            self.waiting = 0
        several = op == "write" or now.heard is not None or isinstance(now.epoch, np.ndarray)
        if several or self.done not in ("", op):
            self.settle()
            self.done = "several"
            return False
        self.done = op
        self.later.append((at, lane, now))
        self.waiting += len(at)
        if self.waiting > self.LATER:
            self.settle()
        return True

    def settle(self) -> None:
        """Note the accesses that wait."""
        kept = self.readers if self.done == "read" else self.updaters
        for at, lane, now in self.later:
            self._keep(kept, at, lane, now)
        self.later.clear()
        self.waiting = 0
