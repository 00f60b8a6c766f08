"""What a kernel can do wrong, and the shadow memory that finds it.

Lock-step execution hides races: every thread finishes a line before any starts the next. So races
are found from who touched what since the last barrier, not from wrong values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

KINDS = (
    "out-of-bounds",
    "shared-race",
    "global-race",
    "divergent-barrier",
    "uninitialised-read",
    "async-not-waited",
    "misaligned",
    "index-overflow",
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

    lanes : which of the instruction's lanes are at fault in the same way
    """

    lane: int
    other: int
    text: str
    lanes: np.ndarray


def first_clash(lanes: np.ndarray, other: np.ndarray, text: str) -> Clash | None:
    """The clash of the first of `lanes` with its `other`, if any lane is at fault."""
    if not lanes.any():
        return None
    lane = int(lanes.argmax())
    return Clash(lane, int(other[lane]), text, lanes)


# The arrays of a `Shadow`, (blocks, elements).
ROWS = ("initialised", "write_epoch", "read_epoch", "writer", "reader", "other_reader")


class Shadow:
    """Who wrote and read each element of an array since the last barrier.

    Rows are blocks; one row stands for all while every block does the same. Of the readers one is
    kept, and another one if there is, which is enough to know whether a writer is not alone.
    Only a write in the same interval asks who reads; until one comes, reads wait in `later`.
    """

    LATER = 64  # reads that may wait

    def __init__(self, size: int) -> None:
        self.initialised = np.zeros((1, size), bool)
        self.write_epoch = np.full((1, size), -1, np.int32)
        self.read_epoch = np.full((1, size), -1, np.int32)
        self.writer = np.zeros((1, size), np.int32)
        self.reader = np.zeros((1, size), np.int32)
        self.other_reader = np.zeros((1, size), np.int32)
        self.written_in: int | None = -1  # the last interval with a write; None: of each block
        self.later: list[tuple[tuple, np.ndarray, int]] = []
        self.all_initialised = False

    def widen(self, blocks: int) -> None:
        """Give each block a row of its own."""
        if len(self.writer) != blocks:
            self.settle()
            for name in ROWS:
                setattr(self, name, np.repeat(getattr(self, name), blocks, axis=0))

    def unset(self, at: tuple) -> np.ndarray | None:
        """Which of the elements `at` nobody has written, (elements,); None if all are."""
        if self.all_initialised:
            return None
        self.all_initialised = len(self.initialised) == 1 and bool(self.initialised.all())
        known = self.initialised[at]
        return None if known.all() else ~known

    def read(self, at: tuple, thread: np.ndarray, epoch: np.ndarray | int) -> Clash | None:
        """Note that `thread` reads the elements `at`; the first clash with a write, if any."""
        if np.ndim(epoch) == 0 and self.written_in not in (None, epoch):
            if self.later and (self.later[0][2] != epoch or len(self.later) >= self.LATER):
                self.settle(epoch)
            self.later.append((at, thread, epoch))
            return None
        self.settle(epoch)
        writer = self.writer[at]
        clash = (self.write_epoch[at] == epoch) & (writer != thread)
        self._note(at, thread, epoch)
        return first_clash(clash, writer, "reads what thread {} wrote")

    def settle(self, epoch: Any = None) -> None:
        """Note the reads that wait, if they are of interval `epoch`, or of whichever."""
        reads, self.later = self.later, []
        for at, thread, of in reads:
            if epoch is None or np.ndim(epoch) > 0 or of == epoch:
                self._note(at, thread, of)

    def _note(self, at: tuple, thread: np.ndarray, epoch: np.ndarray | int) -> None:
        fresh = self.read_epoch[at] != epoch
        first = tuple(a[fresh] for a in at)
        self.reader[first] = self.other_reader[first] = thread[fresh]
        others = self.reader[at] != thread
        self.other_reader[tuple(a[others] for a in at)] = thread[others]
        self.read_epoch[at] = epoch

    def write(self, at: tuple, thread: np.ndarray, epoch: np.ndarray | int) -> Clash | None:
        """Note that `thread` writes the elements `at`; the first clash with an access, if any."""
        self.settle(epoch)
        self.written_in = epoch if np.ndim(epoch) == 0 else None
        writer = self.writer[at]
        written = (self.write_epoch[at] == epoch) & (writer != thread)
        now = self.read_epoch[at] == epoch
        reader, other_reader = self.reader[at], self.other_reader[at]
        read = now & ((reader != thread) | (other_reader != thread))
        self.writer[at] = thread
        self.write_epoch[at] = epoch
        self.initialised[at] = True
        other = np.where(reader != thread, reader, other_reader)
        stays = self.writer[at]  # of two lanes of this very store
        return (
            first_clash(written, writer, "overwrites what thread {} wrote")
            or first_clash(read, other, "overwrites what thread {} reads")
            or first_clash(stays != thread, stays, "writes the same element as thread {}")
        )
