"""The order that fences and atomics make between threads that no barrier orders.

The rule (`book/hazards.md` says what it claims and what not): an atomic on an element, the
flag, *releases* what its thread did before its last `cuda.threadfence()`; what threads of its block
did before a barrier that came before that fence; and what they did before a fence of their own and
then a barrier. For threads of the same block `cuda.threadfence_block()` is a fence as well. A later
atomic on the same flag *acquires* all of that, for its thread at once and for its block from the
next barrier on.
Source: PTX ISA, Memory Consistency Model, release and acquire patterns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from typing import NamedTuple

import numpy as np


class Fence(NamedTuple):
    """A fence of a lane: its number in the launch, from 1, and the barrier interval.

    of_block : whether other threads of the block alone see by it
    """

    number: int
    epoch: int
    of_block: bool


_NONE = Fence(0, 0, False)


class Release(NamedTuple):
    """An atomic on `flag` by `lane` in interval `epoch`.

    far, near : the last fence before it, for threads of other blocks and of its own one
    """

    flag: Hashable
    time: int
    lane: int
    far: Fence
    near: Fence
    epoch: int


class Acquired(NamedTuple):
    """When a block last updated a flag: in interval `epoch`, and in those before it."""

    epoch: int
    time: int
    before: int


class Releases:
    """The fences of a launch, and the atomics after them.

    A lane is block · threads + thread; `fences` counts the calls of fences so far.
    Most launches ask little of what lanes have fenced, so that calls wait in `calls` until then.
    """

    def __init__(self) -> None:
        self.fences = 0
        self.time = 0
        self.calls: list[tuple[int, np.ndarray, np.ndarray, bool]] = []
        self.fenced: dict[int, list[Fence]] = {}  # of each lane, in order
        self.blocks: set[int] = set()  # that have made a fence
        self.last_block = -1  # of these
        self.of_block: dict[int, list[Release]] = defaultdict(list)
        self.last: dict[tuple, tuple] = {}  # of a flag and a lane: what it could release last
        self.flags: set[Hashable] = set()
        self.by_lane: dict[tuple, int] = {}  # of a flag and a lane: when it was updated last
        self.by_block: dict[tuple, Acquired] = {}

    def fence(self, lanes: np.ndarray, threads: int, epochs: np.ndarray, of_block: bool) -> None:
        """Note that `lanes` call `threadfence`, or `threadfence_block`."""
        self.fences += 1
        blocks = np.unique(lanes // threads).tolist()
        self.blocks.update(blocks)
        self.last_block = max(self.last_block, blocks[-1])
        self.calls.append((self.fences, lanes, epochs, of_block))

    def _note_calls(self) -> None:
        """Note for each lane the fences that wait in `calls`."""
        for number, lanes, epochs, of_block in self.calls:
            for lane, epoch in zip(lanes.tolist(), epochs.tolist(), strict=True):
                self.fenced.setdefault(lane, []).append(Fence(number, epoch, of_block))
        self.calls.clear()

    def update(
        self, owner: int, at: np.ndarray, lanes: np.ndarray, threads: int, epochs: np.ndarray
    ) -> None:
        """Note that `lanes` update the elements `at` of array `owner`, one after the other."""
        if not self.fences:
            return
        self._note_calls()
        for e, lane, epoch in zip(at.tolist(), lanes.tolist(), epochs.tolist(), strict=True):
            flag, block = (owner, e), lane // threads
            self.time += 1
            fences = self.fenced.get(lane, (_NONE,))
            far = next((fence for fence in reversed(fences) if not fence.of_block), _NONE)
            near = fences[-1]
            if block in self.blocks and self.last.get((flag, lane)) != (far, near, epoch):
                self.last[flag, lane] = far, near, epoch
                self.of_block[block].append(Release(flag, self.time, lane, far, near, epoch))
                self.flags.add(flag)
            if flag in self.flags:
                self.by_lane[flag, lane] = self.time
                known = self.by_block.get((flag, block), Acquired(epoch, 0, 0))
                before = known.before if known.epoch == epoch else known.time
                self.by_block[flag, block] = Acquired(epoch, self.time, before)

    def orders(self, old: tuple[int, int, int], lane: int, epoch: int, threads: int) -> bool:
        """Whether an access comes before what `lane` does now, in interval `epoch`.

        old : the lane of the access, its interval, and `fences` at the time
        """
        self._note_calls()
        by, then, fences = old
        same = by // threads == lane // threads
        fenced = [fence for fence in self.fenced.get(by, ()) if same or not fence.of_block]
        later = [fence.epoch for fence in fenced if fence.number > fences]
        for release in self.of_block.get(by // threads, ()):
            fence = release.near if same else release.far
            if by == release.lane:
                covers = fences < fence.number
            else:
                covers = then < fence.epoch or (later and later[0] < release.epoch)
            if covers and release.time < self._acquired(release.flag, lane, epoch, threads):
                return True
        return False

    def _acquired(self, flag: Hashable, lane: int, epoch: int, threads: int) -> int:
        """When the flag was last updated by `lane`, or by its block before its last barrier."""
        own = self.by_lane.get((flag, lane), 0)
        block = self.by_block.get((flag, lane // threads))
        if block is None:
            return own
        return max(own, block.time if block.epoch < epoch else block.before)
