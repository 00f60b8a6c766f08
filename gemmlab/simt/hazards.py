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

    Rows are blocks; one row stands for all while every block does the same. Readers are kept as
    the first and the last, which is enough to know whether another thread has read.
    """

    def __init__(self, size: int) -> None:
        self.initialised = np.zeros((1, size), bool)
        self.write_epoch = np.full((1, size), -1, np.int32)
        self.read_epoch = np.full((1, size), -1, np.int32)
        self.writer = np.zeros((1, size), np.int32)
        self.first_reader = np.zeros((1, size), np.int32)
        self.last_reader = np.zeros((1, size), np.int32)

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
        self.first_reader[tuple(a[fresh] for a in at)] = thread[fresh]
        backwards = tuple(a[::-1] for a in at)  # of the lanes that read one element the lowest wins
        self.last_reader[backwards] = thread[::-1]
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
        first, last = self.first_reader[at], self.last_reader[at]
        read = now & ((first != thread) | (last != thread))
        self.writer[at] = thread
        self.write_epoch[at] = epoch
        self.initialised[at] = True
        together = self.writer[at] != thread  # two lanes of this very store: the later one stays
        if written.any():
            lane = int(written.argmax())
            return lane, int(writer[lane]), "overwrites what thread {} wrote"
        if read.any():
            lane = int(read.argmax())
            other = first if first[lane] != thread[lane] else last
            return lane, int(other[lane]), "overwrites what thread {} reads"
        if together.any():
            lane = int(together.argmax())
            other_thread = int(self.writer[tuple(a[lane] for a in at)])
            return lane, other_thread, "writes the same element as thread {}"
        return None


class GlobalShadow:
    """Who wrote each element of an array in global memory, over a whole launch.

    Blocks run in no order, so that two of them must not write one element, nor one read what
    another writes. Threads of one block are ordered by barriers, as in shared memory.
    """

    def __init__(self, size: int) -> None:
        self.writer = np.full(size, -1, np.int64)  # block · threads + thread
        self.write_epoch = np.full(size, -1, np.int32)
        self.reader = np.full(size, -1, np.int64)
        self.read_epoch = np.full(size, -1, np.int32)

    def _clash(
        self,
        at: np.ndarray,
        lane: np.ndarray,
        threads: int,
        epoch: np.ndarray,
        other: np.ndarray,
        other_epoch: np.ndarray,
    ) -> np.ndarray:
        before, when = other[at], other_epoch[at]
        same_block = before // threads == lane // threads
        return (before >= 0) & (before != lane) & (~same_block | (when == epoch))

    def read(
        self, at: np.ndarray, lane: np.ndarray, threads: int, epoch: np.ndarray
    ) -> Clash | None:
        """Note that `lane` (over the whole grid) reads; the first clash with a write, if any."""
        clash = self._clash(at, lane, threads, epoch, self.writer, self.write_epoch)
        self.reader[at], self.read_epoch[at] = lane, epoch
        if clash.any():
            i = int(clash.argmax())
            return i, int(self.writer[at[i]]), "reads what {} wrote"
        return None

    def write(
        self, at: np.ndarray, lane: np.ndarray, threads: int, epoch: np.ndarray
    ) -> Clash | None:
        """Note that `lane` (over the whole grid) writes; the first clash, if any."""
        before, reader = self.writer[at], self.reader[at]
        written = self._clash(at, lane, threads, epoch, self.writer, self.write_epoch)
        read = self._clash(at, lane, threads, epoch, self.reader, self.read_epoch)
        self.writer[at], self.write_epoch[at] = lane, epoch
        together = self.writer[at] != lane
        for clash, other, text in (
            (written, before, "overwrites what {} wrote"),
            (read, reader, "overwrites what {} reads"),
            (together, self.writer[at], "writes the same element as {}"),
        ):
            if clash.any():
                i = int(clash.argmax())
                return i, int(other[i]), text
        return None
