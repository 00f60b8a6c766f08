"""The shadow of shared memory knows who touched each element, in each block."""

from collections.abc import Callable

import numpy as np

from gemmlab.simt.races.release import Releases
from gemmlab.simt.races.shadow import Clash, Shadow
from gemmlab.simt.races.visits import Now


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

    def _waits(self, op: str, at: np.ndarray, lane: np.ndarray, now: Now) -> bool:
        """Whether an access may wait: nothing else has been done since the last barrier."""
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
