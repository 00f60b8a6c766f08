"""Lanes that are at the same instruction, and where they wait for each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gemmlab.tiling import WARP


@dataclass(eq=False)
class Group:
    """Lanes that execute together, maybe of many warps: at `at`, an index into the listing."""

    at: int
    lanes: np.ndarray
    steps: int = 0  # instructions that they have executed

    def __post_init__(self) -> None:
        self.warps = np.flatnonzero(self.lanes.reshape(-1, WARP).any(1))


class Meeting:
    """Lanes that wait until all that are expected have come, warp by warp or block by block."""

    def __init__(self, lanes: int, size: int) -> None:
        """`size` lanes, a warp's or a block's, wait for each other."""
        self.size = size
        self.expected = np.zeros(lanes, bool)
        self.waiting = np.zeros(lanes, bool)

    def complete(self, alive: np.ndarray) -> np.ndarray:
        """The waiting lanes whose partners have all come or ended; they wait no longer."""
        if not self.waiting.any():
            return self.waiting.copy()
        missing = self.expected & alive & ~self.waiting
        free = ~missing.reshape(-1, self.size).any(1)
        gone = self.waiting & np.repeat(free, self.size)
        self.waiting &= ~gone
        return gone


class Groups:
    """The groups that can go on, by the instruction at which they are.

    Lanes of one warp that have parted do not go together again because they are at the same
    instruction: hardware joins them where they wait for each other. Other warps may join.
    """

    PATIENCE = 1 << 9  # steps that one group may be ahead of another

    def __init__(self) -> None:
        self.ready: dict[int, list[Group]] = {}

    def add(self, at: int, lanes: np.ndarray, steps: int) -> None:
        """Let lanes go on at an instruction, with those of other warps that are there already."""
        if not lanes.any():
            return
        group, there = Group(at, lanes, steps), self.ready.setdefault(at, [])
        for i, other in enumerate(there):
            if np.intersect1d(other.warps, group.warps, assume_unique=True).size == 0:
                there[i] = Group(at, other.lanes | lanes, min(other.steps, steps))
                return
        there.append(group)

    def take(self) -> Group:
        """The group to execute: the one furthest behind in the code, unless another starves."""
        hindmost = min((g for there in self.ready.values() for g in there), key=lambda g: g.steps)
        first = self.ready[min(self.ready)][0]
        chosen = first if first.steps - hindmost.steps < self.PATIENCE else hindmost
        there = self.ready[chosen.at]
        there.remove(chosen)
        if not there:
            del self.ready[chosen.at]
        return chosen
