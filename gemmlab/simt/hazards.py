"""What a kernel can do wrong, and the shadow memory that finds it.

Lock-step execution hides races: every thread finishes a line before any starts the next. So races
are found from who touched what since the last barrier, not from wrong values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

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

    kind : one of `KINDS`; line, code : the line of `file`, and its text
    block, threads : where, as (x, y, z); the threads involved, the one at fault first
    count : lanes at fault, over all the times that a simulation that collects found it
    """

    kind: str
    line: int
    code: str
    block: tuple[int, int, int]
    threads: tuple[tuple[int, int, int], ...]
    message: str
    file: str = field(default="", repr=False)
    count: int = field(default=1, compare=False)

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}\n  line {self.line}: {self.code}"


class HazardError(RuntimeError):
    """Raised at the first hazard of a simulation; `.hazard` describes it."""

    def __init__(self, hazard: Hazard) -> None:
        super().__init__(str(hazard))
        self.hazard = hazard


class Clash(NamedTuple):
    """Two threads that touch the same element: the lane at fault, the other, and what they do.

    lanes : how many are at fault in the same way, by the same instruction
    """

    lane: int
    other: int
    text: str
    lanes: int = 1


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
            return Clash(lane, int(writer[lane]), "reads what thread {} wrote", int(clash.sum()))
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
            text = "overwrites what thread {} wrote"
            return Clash(lane, int(writer[lane]), text, int(written.sum()))
        if read.any():
            lane = int(read.argmax())
            other = reader if reader[lane] != thread[lane] else other_reader
            text = "overwrites what thread {} reads"
            return Clash(lane, int(other[lane]), text, int(read.sum()))
        if together.any():
            lane = int(together.argmax())
            other_thread = int(self.writer[tuple(a[lane] for a in at)])
            text = "writes the same element as thread {}"
            return Clash(lane, other_thread, text, int(together.sum()))
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
            return Clash(i, int(writer[i]), "reads what {} wrote", int(clash.sum()))
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
                return Clash(i, int(other[i]), text, int(clash.sum()))
        return None


def _apart(other: np.ndarray, lane: np.ndarray, threads: int, now: np.ndarray) -> np.ndarray:
    """Where `other` is another lane that no barrier orders: of another block, or of `now`."""
    return (other >= 0) & (other != lane) & ((other // threads != lane // threads) | now)
