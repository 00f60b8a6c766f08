"""What a kernel can do wrong, and the shadow memory that finds it.

Lock-step execution hides races: every thread finishes a line before any starts the next. So races
are found from who touched what since the last barrier, not from wrong values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

KINDS = (
    "out-of-bounds",
    "shared-race",
    "global-race",
    "divergent-barrier",
    "uninitialised-read",
    "async-not-waited",
    "misaligned",
    "step-limit",
)


@dataclass(frozen=True)
class Hazard:
    """One thing that a kernel did wrong.

    kind : one of `KINDS`; line : in the kernel's file; code : that line's text
    block, threads : where, as (x, y, z); the threads involved, the one at fault first
    """

    kind: str
    line: int
    code: str
    block: tuple[int, int, int]
    threads: tuple[tuple[int, int, int], ...]
    message: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}\n  line {self.line}: {self.code}"


class HazardError(RuntimeError):
    """Raised at the first hazard of a simulation; `.hazard` describes it."""

    def __init__(self, hazard: Hazard) -> None:
        super().__init__(str(hazard))
        self.hazard = hazard


# Two threads that touch the same element: (index of the lane at fault, the other's thread, text).
Clash = tuple[int, int, str]


class Shadow:
    """Who wrote and read each element of an array since the last barrier.

    Rows are blocks; one row stands for all while every block does the same. Of the readers one is
    kept, and another one if there is, which is enough to know whether a writer is not alone.
    """

    def __init__(self, size: int) -> None:
        self.initialised = np.zeros((1, size), bool)
        self.write_epoch = np.full((1, size), -1, np.int32)
        self.read_epoch = np.full((1, size), -1, np.int32)
        self.writer = np.zeros((1, size), np.int32)
        self.reader = np.zeros((1, size), np.int32)
        self.other_reader = np.zeros((1, size), np.int32)

    def widen(self, blocks: int) -> None:
        """Give each block a row of its own."""
        if len(self.writer) != blocks:
            for name, rows in vars(self).items():
                setattr(self, name, np.repeat(rows, blocks, axis=0))

    def read(self, at: tuple, thread: np.ndarray, epoch: np.ndarray | int) -> Clash | None:
        """Note that `thread` reads the elements `at`; the first clash with a write, if any."""
        writer = self.writer[at]
        clash = (self.write_epoch[at] == epoch) & (writer != thread)
        fresh = self.read_epoch[at] != epoch
        first = tuple(a[fresh] for a in at)
        self.reader[first] = self.other_reader[first] = thread[fresh]
        others = self.reader[at] != thread
        self.other_reader[tuple(a[others] for a in at)] = thread[others]
        self.read_epoch[at] = epoch
        if clash.any():
            lane = int(clash.argmax())
            return lane, int(writer[lane]), "reads what thread {} wrote"
        return None

    def write(self, at: tuple, thread: np.ndarray, epoch: np.ndarray | int) -> Clash | None:
        """Note that `thread` writes the elements `at`; the first clash with an access, if any."""
        writer = self.writer[at]
        written = (self.write_epoch[at] == epoch) & (writer != thread)
        now = self.read_epoch[at] == epoch
        reader, other_reader = self.reader[at], self.other_reader[at]
        read = now & ((reader != thread) | (other_reader != thread))
        self.writer[at] = thread
        self.write_epoch[at] = epoch
        self.initialised[at] = True
        together = self.writer[at] != thread  # two lanes of this very store: the later one stays
        if written.any():
            lane = int(written.argmax())
            return lane, int(writer[lane]), "overwrites what thread {} wrote"
        if read.any():
            lane = int(read.argmax())
            other = reader if reader[lane] != thread[lane] else other_reader
            return lane, int(other[lane]), "overwrites what thread {} reads"
        if together.any():
            lane = int(together.argmax())
            other_thread = int(self.writer[tuple(a[lane] for a in at)])
            return lane, other_thread, "writes the same element as thread {}"
        return None


class GlobalShadow:
    """Who wrote and read each element of an array in global memory, over a whole launch.

    Blocks run in no order, so that two of them must not write one element, nor one read what
    another writes. Threads of one block are ordered by barriers, as in shared memory. A lane is
    block · threads + thread, and -1 where there is none.
    """

    def __init__(self, size: int) -> None:
        self.writer = np.full(size, -1, np.int64)
        self.write_epoch = np.full(size, -1, np.int32)
        # Two readers of different blocks, if there are; two readers of the last barrier interval.
        self.visitor, self.other_visitor = np.full((2, size), -1, np.int64)
        self.reader, self.other_reader = np.full((2, size), -1, np.int64)
        self.read_epoch = np.full(size, -1, np.int32)

    def read(
        self, at: np.ndarray, lane: np.ndarray, threads: int, epoch: np.ndarray
    ) -> Clash | None:
        """Note that `lane` (over the whole grid) reads; the first clash with a write, if any."""
        writer = self.writer[at]
        clash = _apart(writer, lane, threads, self.write_epoch[at] == epoch)
        new = self.visitor[at] < 0
        self.visitor[at[new]] = lane[new]
        elsewhere = self.visitor[at] // threads != lane // threads
        self.other_visitor[at[elsewhere]] = lane[elsewhere]
        fresh = (self.read_epoch[at] != epoch) | (self.reader[at] // threads != lane // threads)
        self.reader[at[fresh]] = self.other_reader[at[fresh]] = lane[fresh]
        others = self.reader[at] != lane
        self.other_reader[at[others]] = lane[others]
        self.read_epoch[at] = epoch
        if clash.any():
            i = int(clash.argmax())
            return i, int(writer[i]), "reads what {} wrote"
        return None

    def write(
        self, at: np.ndarray, lane: np.ndarray, threads: int, epoch: np.ndarray
    ) -> Clash | None:
        """Note that `lane` (over the whole grid) writes; the first clash, if any."""
        before = self.writer[at]
        clashes = [(before, self.write_epoch[at] == epoch, "overwrites what {} wrote")]
        for readers, now in (
            ((self.visitor, self.other_visitor), np.bool_(False)),
            ((self.reader, self.other_reader), self.read_epoch[at] == epoch),
        ):
            clashes += [(readers_of[at], now, "overwrites what {} reads") for readers_of in readers]
        self.writer[at], self.write_epoch[at] = lane, epoch
        clashes.append((self.writer[at], np.bool_(True), "writes the same element as {}"))
        for other, now, text in clashes:
            clash = _apart(other, lane, threads, now)
            if clash.any():
                i = int(clash.argmax())
                return i, int(other[i]), text
        return None


def _apart(other: np.ndarray, lane: np.ndarray, threads: int, now: np.ndarray) -> np.ndarray:
    """Where `other` is another lane that no barrier orders: of another block, or of `now`."""
    return (other >= 0) & (other != lane) & ((other // threads != lane // threads) | now)
