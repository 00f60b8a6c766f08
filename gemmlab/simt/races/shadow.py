"""Shadow memory: who touched each element of an array since the last barrier.

Lock-step execution hides races: every thread finishes a line before any starts the next. So races
are found from who touched what since the last barrier, not from wrong values.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

# What two threads do to one element, the one at fault first, in words; {} is the other thread.
WORDS = {
    ("read", "write"): "reads what {} wrote",
    ("read", "atomic"): "reads what {} updates",
    ("write", "write"): "overwrites what {} wrote",
    ("write", "read"): "overwrites what {} reads",
    ("write", "atomic"): "overwrites what {} updates",
    ("atomic", "write"): "updates what {} wrote",
    ("atomic", "read"): "updates what {} reads",
}


class Clash(NamedTuple):
    """Two threads that touch the same element.

    lane : the one at fault, by its place in the access; other : the other thread
    ops : what the two do, as in `WORDS`; line : where the other one does it
    lanes : which lanes of the access are at fault in the same way
    at_once : whether both do it in the same execution of the same line
    """

    lane: int
    other: int
    ops: tuple[str, str]
    line: int
    lanes: np.ndarray
    at_once: bool = False

    @property
    def text(self) -> str:
        """What the lane at fault does; {} stands for the other thread."""
        return "writes the same element as {}" if self.at_once else WORDS[self.ops]


def first_clash(
    lanes: np.ndarray, other: np.ndarray, ops: tuple[str, str], lines: np.ndarray, at: Any
) -> Clash | None:
    """The clash of the first of `lanes` with its `other`, if any lane is at fault.

    lines : where each element was touched by the other, of which the lanes touch those `at`
    """
    if not lanes.any():
        return None
    lane = int(lanes.argmax())
    return Clash(lane, int(other[lane]), ops, int(lines[at][lane]), lanes)


def clash_at_once(stays: np.ndarray, lane: np.ndarray, line: int) -> Clash | None:
    """The clash of lanes of one store: each wrote an element, where the value of one `stays`."""
    lanes = stays != lane
    if not lanes.any():
        return None
    first = int(lanes.argmax())
    return Clash(first, int(stays[first]), ("write", "write"), line, lanes, at_once=True)


# The arrays of a `Shadow`, (blocks, elements).
ROWS = (
    *("initialised", "write_epoch", "read_epoch", "writer", "reader", "other_reader"),
    *("write_line", "reader_line", "other_line"),
)


class Shadow:
    """Who wrote and read each element of an array since the last barrier, and in which line.

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
        self.write_line = np.zeros((1, size), np.int32)
        self.reader_line = np.zeros((1, size), np.int32)
        self.other_line = np.zeros((1, size), np.int32)
        self.written_in: int | None = -1  # the last interval with a write; None: of each block
        self.later: list[tuple[tuple, np.ndarray, int, int]] = []
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

    def read(
        self, at: tuple, thread: np.ndarray, epoch: np.ndarray | int, line: int = 0
    ) -> Clash | None:
        """Note that `thread` reads the elements `at`; the first clash with a write, if any."""
        if np.ndim(epoch) == 0 and self.written_in not in (None, epoch):
            if self.later and (self.later[0][2] != epoch or len(self.later) >= self.LATER):
                self.settle(epoch)
            self.later.append((at, thread, epoch, line))
            return None
        self.settle(epoch)
        writer = self.writer[at]
        clash = (self.write_epoch[at] == epoch) & (writer != thread)
        self._note(at, thread, epoch, line)
        return first_clash(clash, writer, ("read", "write"), self.write_line, at)

    def settle(self, epoch: Any = None) -> None:
        """Note the reads that wait, if they are of interval `epoch`, or of whichever."""
        reads, self.later = self.later, []
        for at, thread, of, line in reads:
            if epoch is None or np.ndim(epoch) > 0 or of == epoch:
                self._note(at, thread, of, line)

    def _note(self, at: tuple, thread: np.ndarray, epoch: np.ndarray | int, line: int) -> None:
        fresh = self.read_epoch[at] != epoch
        first = tuple(a[fresh] for a in at)
        self.reader[first] = self.other_reader[first] = thread[fresh]
        self.reader_line[first] = self.other_line[first] = line
        others = self.reader[at] != thread
        second = tuple(a[others] for a in at)
        self.other_reader[second] = thread[others]
        self.other_line[second] = line
        self.read_epoch[at] = epoch

    def write(
        self, at: tuple, thread: np.ndarray, epoch: np.ndarray | int, line: int = 0
    ) -> Clash | None:
        """Note that `thread` writes the elements `at`; the first clash with an access, if any."""
        self.settle(epoch)
        self.written_in = epoch if np.ndim(epoch) == 0 else None
        writer = self.writer[at]
        written = (self.write_epoch[at] == epoch) & (writer != thread)
        clash = first_clash(written, writer, ("write", "write"), self.write_line, at)
        clash = clash or self._read_by_another(at, thread, epoch)
        self.writer[at] = thread
        self.write_epoch[at] = epoch
        self.write_line[at] = line
        self.initialised[at] = True
        return clash or clash_at_once(self.writer[at], thread, line)

    def _read_by_another(
        self, at: tuple, thread: np.ndarray, epoch: np.ndarray | int
    ) -> Clash | None:
        """The clash with another thread that has read an element in this interval, if any."""
        now = self.read_epoch[at] == epoch
        if not now.any():
            return None
        reader, other_reader = self.reader[at], self.other_reader[at]
        lanes = now & ((reader != thread) | (other_reader != thread))
        if not lanes.any():
            return None
        lane = int(lanes.argmax())
        first = reader[lane] != thread[lane]
        other = reader[lane] if first else other_reader[lane]
        line = (self.reader_line if first else self.other_line)[at][lane]
        return Clash(lane, int(other), ("write", "read"), int(line), lanes)
