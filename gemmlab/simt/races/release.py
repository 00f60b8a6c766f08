"""The order that fences and atomics make between threads that no barrier orders.

The rule (`book/hazards.md` says what it claims and what not): an atomic on an element, the
flag, *releases* what its thread did before its last `cuda.threadfence()`; what threads of its block
did before a barrier that came before that fence; and what they did before a fence of their own and
then a barrier. A later atomic on the same flag *acquires* all of that, for its thread at once and
for its block from the next barrier on.
Source: PTX ISA, Memory Consistency Model, release and acquire patterns.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np


class Fence(NamedTuple):
    """A fence of a lane: its number in the launch, from 1, and the barrier interval."""

    number: int
    epoch: int


NONE = Fence(0, 0)  # of a lane that has made no fence


class Release(NamedTuple):
    """An atomic on `flag` by `lane` in interval `epoch`, after its last `fence`."""

    flag: Hashable
    time: int
    lane: int
    fence: Fence
    epoch: int


@dataclass
class Updates:
    """When a block last updated a flag: in interval `epoch`, and in those before it.

    lanes : when each of its lanes did; released : what they could release in this interval
    """

    epoch: int
    time: int = 0
    before: int = 0
    lanes: dict[int, int] = field(default_factory=dict)
    released: dict[int, Fence] = field(default_factory=dict)

    def acquired(self, epoch: int) -> int:
        """Until when the block has acquired what the flag releases, in interval `epoch`."""
        return self.time if self.epoch < epoch else self.before


class Releases:
    """The fences of a launch, and the atomics after them.

    A lane is block · threads + thread; `fences` counts the calls of `threadfence` so far. Lanes
    that wait for a lock ask again and again, so what is done for each must be little: lanes of a
    block that touch one element are asked about together.
    """

    def __init__(self) -> None:
        self.fences = 0
        self.time = 0
        self.times = [0]  # after so many fences
        self.fenced: dict[int, list[Fence]] = {}  # of each lane, in order
        self.blocks: set[int] = set()  # that have made a fence
        self.of_block: dict[int, list[Release]] = defaultdict(list)
        self.flags: set[Hashable] = set()
        self.updates: dict[tuple, Updates] = {}  # of a flag and a block

    def fence(self, lanes: np.ndarray, threads: int, epochs: np.ndarray) -> None:
        """Note that `lanes` call `threadfence`."""
        self.fences += 1
        self.times.append(self.time)
        self.blocks.update((lanes // threads).tolist())
        for lane, epoch in zip(lanes.tolist(), epochs.tolist(), strict=True):
            self.fenced.setdefault(lane, []).append(Fence(self.fences, epoch))

    def update(
        self, owner: int, at: np.ndarray, lanes: np.ndarray, threads: int, epochs: np.ndarray
    ) -> None:
        """Note that `lanes` update the elements `at` of array `owner`, one after the other."""
        if not self.fences:
            return
        for block, some in together(at, lanes, threads):
            flag, epoch = (owner, int(at[some.start])), int(epochs[some.start])
            self._update(flag, block, lanes[some].tolist(), epoch)

    def _update(self, flag: Hashable, block: int, lanes: list[int], epoch: int) -> None:
        """Note that lanes of a block update a flag."""
        times = range(self.time + 1, self.time + len(lanes) + 1)
        self.time += len(lanes)
        known = self.updates.get((flag, block)) or Updates(epoch)
        if known.epoch != epoch:
            known.epoch, known.before, known.released = epoch, known.time, {}
        if block in self.blocks:
            fences = [self.fenced[lane][-1] if lane in self.fenced else NONE for lane in lanes]
            if fences != list(map(known.released.get, lanes)):
                self.flags.add(flag)
                for lane, fence, time in zip(lanes, fences, times, strict=True):
                    if known.released.get(lane) != fence:
                        known.released[lane] = fence
                        self.of_block[block].append(Release(flag, time, lane, fence, epoch))
        if flag in self.flags:
            known.time = self.time
            known.lanes.update(zip(lanes, times, strict=True))
            self.updates[flag, block] = known

    def order(
        self, old: tuple[int, int, int], block: int, lanes: list[int], epoch: int, threads: int
    ) -> bool | list[bool]:
        """Which accesses of `lanes` now, in interval `epoch` of their block, come after an old one.

        old : the lane of the old access, its interval, and `fences` at the time
        """
        ordered: bool | list[bool] = False
        for flag, time in self._released(old, threads).items():
            known = self.updates.get((flag, block))
            if known is None:
                continue
            if time < known.acquired(epoch):
                return True
            own = [time < known.lanes.get(lane, 0) for lane in lanes]
            ordered = [a or b for a, b in zip(ordered, own, strict=True)] if ordered else own
        return ordered

    def _released(self, old: tuple[int, int, int], threads: int) -> dict[Hashable, int]:
        """When each flag first released an access.

        What releases it comes later than the last fence before it.
        """
        by, then, fences = old
        releases = self.of_block.get(by // threads, [])
        first = bisect_right(releases, self.times[fences], key=lambda release: release.time)
        if first == len(releases):
            return {}
        found: dict[Hashable, int] = {}
        later = [fence.epoch for fence in self.fenced.get(by, ()) if fence.number > fences]
        for release in releases[first:]:
            if by == release.lane:
                covers = fences < release.fence.number
            else:
                covers = then < release.fence.epoch or (later and later[0] < release.epoch)
            if covers:
                found.setdefault(release.flag, release.time)
        return found


def together(at: np.ndarray, lanes: np.ndarray, threads: int) -> Iterator[tuple[int, slice]]:
    """The lanes of an access in groups of one block and one value of `at`, in order."""
    if len(at) == 1:
        yield int(lanes[0]) // threads, slice(0, 1)
        return
    blocks = lanes // threads
    starts = np.flatnonzero((np.diff(at) != 0) | (np.diff(blocks) != 0)) + 1
    starts = [0, *starts.tolist()] if len(at) else []
    for start, end in pairwise([*starts, len(at)]):
        yield int(blocks[start]), slice(start, end)
