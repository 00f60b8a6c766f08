"""The order that fences, atomics and mbarriers make between threads that no barrier orders.

The rule (`book/hazards.md` says what it claims and what not): an atomic on an element, the
flag, *releases* what its thread did before its last `cuda.threadfence()`; what threads of its block
did before a barrier that came before that fence; and what they did before a fence of their own and
then a barrier. For threads of the same block `cuda.threadfence_block()` is a fence as well. A later
atomic on the same flag *acquires* all of that, for its thread at once and for its block from the
next barrier on. Among the lanes of a warp that wait for each other, `syncwarp` is a barrier.
An arrival at an mbarrier releases what its thread knows to be over, and a wait
acquires it: `UnderWay` keeps that, for each thread of a block.
Source: PTX ISA, Memory Consistency Model, release and acquire patterns.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple, Protocol

import numpy as np

from gemmlab.model.transactions import WARP

KEPT = 8  # of the times at which a lane has updated a flag

# How many calls of `syncwarp` a lane knows of, of each lane of its warp: a number where they are
# all the same.
Heard = int | tuple[int, ...]


def heard_of(heard: Heard, lane: int) -> int:
    """Return how many calls of `syncwarp` are known of a lane of the same warp."""
    return heard if isinstance(heard, int) else heard[lane % WARP]


class Fence(NamedTuple):
    """A fence of a lane: its number in the launch, from 1, and the barrier interval.

    of_block : whether other threads of the block alone see by it
    sync : calls of `syncwarp` in its warp so far; heard : those that the lane knows of
    """

    number: int
    epoch: int
    of_block: bool
    sync: int = 0
    heard: Heard = 0


_NONE = (Fence(0, 0, False),) * 2  # far and near, of a lane that has made no fence


class Release(NamedTuple):
    """An atomic on `flag` by `lane` in interval `epoch`.

    far, near : the last fence before it, for threads of other blocks and of its own one
    heard : the calls of `syncwarp` that the lane knows of
    """

    flag: Hashable
    time: int
    lane: int
    far: Fence
    near: Fence
    heard: Heard
    epoch: int


_TIME = attrgetter("time")


class Kept(list[Release]):
    """The releases by the lanes of a block or warp, in order.

    flags : that they are on; heard : calls of `syncwarp` that any of them knows of
    """

    def __init__(self) -> None:
        super().__init__()
        self.flags: set[Hashable] = set()
        self.heard = 0

    def note(self, release: Release) -> None:
        """Keep a release, the last one so far."""
        self.append(release)
        self.flags.add(release.flag)
        heard = release.heard
        self.heard = max(self.heard, heard if isinstance(heard, int) else max(heard))


@dataclass
class Updates:
    """The times at which a block last updated a flag: in interval `epoch`, and before it.

    lanes : when each of its lanes did; released : after which fences, and calls of `syncwarp`, they
        did in this interval
    fences, told : how many fences its block had made when these were looked at last, and the lanes
        of which that is known
    turns : of each lane, when it last did after so many calls of `syncwarp`, of which a few are
        kept; nothing before its first call
    """

    epoch: int
    time: int = 0
    before: int = 0
    lanes: dict[int, int] = field(default_factory=dict)
    released: dict[int, tuple[Fence, Fence, Heard]] = field(default_factory=dict)
    turns: dict[int, dict[int, int]] = field(default_factory=dict)
    fences: int = -1
    told: set[int] = field(default_factory=set)

    def acquired(self, epoch: int) -> int:
        """Until when the block has acquired what the flag releases, in interval `epoch`."""
        return self.time if self.epoch < epoch else self.before

    def heard(self, lane: int, known: Heard) -> int:
        """Until when a lane has acquired, by itself or by lanes of its warp that told it."""
        last = self.lanes.get(lane, 0)
        if known:
            first = lane - lane % WARP
            for other in range(first, first + WARP):
                if other in self.lanes:
                    turns, told = self.turns.get(other), heard_of(known, other)
                    turns = {0: self.lanes[other]} if turns is None else turns
                    last = max(last, *(time for sync, time in turns.items() if sync < told), 0)
        return last

    def note(self, lane: int, time: int, sync: int) -> None:
        """Note that a lane updates the flag after so many calls of `syncwarp`."""
        if sync:
            turns = self.turns.setdefault(lane, {0: self.lanes.get(lane, 0)})
            turns[sync] = time
            if len(turns) > KEPT:
                del turns[next(iter(turns))]
        self.lanes[lane] = time


class Told(Protocol):
    """Threads of a cluster tell each other what is over, as `builtins.under_way` keeps it."""

    def told(self, lanes: np.ndarray, by: np.ndarray, fences: np.ndarray) -> np.ndarray: ...


class Syncs(NamedTuple):
    """Calls of `syncwarp`, for each lane of an access, or one number for all.

    sync : those in its warp so far; heard : those that it knows of, of each lane of its warp,
        (lanes, 32); None where that is all of them
    """

    sync: np.ndarray | int = 0
    heard: np.ndarray | None = None

    @property
    def none(self) -> bool:
        """Whether no warp has called `syncwarp` yet."""
        return self.heard is None and isinstance(self.sync, int) and self.sync == 0

    def each(self, lanes: int) -> list[tuple[int, Heard]]:
        """Return both, of each of so many lanes."""
        if isinstance(self.sync, int) and self.heard is None:
            return [(self.sync, self.sync)] * lanes
        syncs = np.broadcast_to(self.sync, lanes).tolist()
        known = syncs if self.heard is None else map(tuple, self.heard.tolist())
        return list(zip(syncs, known, strict=True))


NO_SYNCS = Syncs()


class Releases:
    """The fences of a launch, and the atomics after them.

    A lane is block · threads + thread; `fences` counts the calls of fences so far, and where
    asynchronous instructions run what threads tell each other: `under_way` knows that, by block.
    Most launches ask little of what lanes have fenced, so that calls wait in `calls` until then.
    Lanes that wait for a lock ask again and again, so what is done for each must be little: lanes
    of a block that touch one element are asked about together.
    """

    def __init__(self) -> None:
        self.fences = 0
        self.time = 0
        self.times = [0]  # after so many fences
        self.calls: list[tuple[int, list[int], list[int], bool, Syncs]] = []
        self.fenced: dict[int, list[Fence]] = {}  # of each lane, in order
        self.last: dict[int, tuple[Fence, Fence]] = {}  # far and near, of each lane
        self.blocks: dict[int, int] = {}  # that have made a fence: the last one's number
        self.last_block = -1  # of these
        self.latest: dict[int, Release] = {}  # of each lane
        self.alone = True  # whether each releases nothing but what it has done itself, so far
        self.of_block: dict[int, Kept] = defaultdict(Kept)
        self.of_warp: dict[int, Kept] = defaultdict(Kept)
        self.flags: set[Hashable] = set()
        self.updates: dict[tuple, Updates] = {}  # of a flag and a block
        self.under_way: dict[int, Told] = {}

    def __reduce__(self) -> tuple:
        """A copy in another process knows of nothing: the launch is over there."""
        return Releases, ()

    def count(self) -> int:
        """Count a fence, or threads that tell others what they have done; its number."""
        self.fences += 1
        self.times.append(self.time)
        return self.fences

    def fence(
        self, lanes: np.ndarray, threads: int, epochs: np.ndarray, of_block: bool,
        syncs: Syncs = NO_SYNCS,
    ) -> None:  # fmt: skip
        """Note that `lanes` call `threadfence`, or `threadfence_block`."""
        number = self.count()
        blocks = lanes // threads
        some = [int(blocks[0])] if len(blocks) == 1 else np.unique(blocks).tolist()
        self.blocks.update(dict.fromkeys(some, number))
        self.last_block = max(self.last_block, int(blocks[-1]))
        self.calls.append((number, lanes.tolist(), epochs.tolist(), of_block, syncs))

    def fence_one(self, lane: int, threads: int, epoch: int, of_block: bool) -> None:
        """Note that one lane calls either, where no warp has called `syncwarp`."""
        self._note_calls()
        number, block = self.count(), lane // threads
        self.blocks[block] = number
        self.last_block = max(self.last_block, block)
        self._note(lane, Fence(number, epoch, of_block))

    def _note_calls(self) -> None:
        """Note for each lane the fences that wait in `calls`."""
        if not self.calls:
            return
        for number, lanes, epochs, of_block, syncs in self.calls:
            known = syncs.each(len(lanes))
            for lane, epoch, heard in zip(lanes, epochs, known, strict=True):
                self._note(lane, Fence(number, epoch, of_block, *heard))
        self.calls.clear()

    def _note(self, lane: int, fence: Fence) -> None:
        """Note a fence of a lane."""
        self.fenced.setdefault(lane, []).append(fence)
        self.last[lane] = self.last.get(lane, _NONE)[0] if fence.of_block else fence, fence

    def update(
        self, owner: int, at: np.ndarray, lanes: np.ndarray, threads: int, epochs: np.ndarray,
        syncs: Syncs,
    ) -> None:  # fmt: skip
        """Note that `lanes` update the elements `at` of array `owner`, one after the other."""
        if not self.fences:
            return
        self._note_calls()
        known = None if syncs.none else syncs.each(len(lanes))
        for block, some in together(at, lanes, threads):
            flag, epoch = (owner, int(at[some.start])), int(epochs[some.start])
            self._update(flag, block, lanes[some].tolist(), epoch, known and known[some])

    def update_one(
        self, owner: int, at: int, lane: int, threads: int, epoch: int, sync: int
    ) -> None:
        """Note that one lane updates an element, after so many calls of `syncwarp`."""
        if not self.fences:
            return
        self._note_calls()
        flag, block = (owner, at), lane // threads
        known = self.updates.get((flag, block))
        if known is None or known.epoch != epoch or sync or block not in self.blocks:
            self._update(flag, block, [lane], epoch, [(sync, sync)] if sync else None)
            return
        self.time += 1  # as `_update` does it, for one lane, which asks often
        if known.fences != self.blocks[block]:
            known.fences = self.blocks[block]
            known.told.clear()
        if lane not in known.told:
            self._release_one(flag, block, known, lane, self.time, 0)
            known.told.add(lane)
        if flag in self.flags:
            known.time = known.lanes[lane] = self.time

    def _update(
        self, flag: Hashable, block: int, lanes: list[int], epoch: int,
        syncs: list[tuple[int, Heard]] | None,
    ) -> None:  # fmt: skip
        """Note that lanes of a block update a flag; syncs : None where no lane has any."""
        times = range(self.time + 1, self.time + len(lanes) + 1)
        self.time += len(lanes)
        known = self.updates.get((flag, block)) or Updates(epoch)
        if known.epoch != epoch:
            known.epoch, known.before, known.released = epoch, known.time, {}
            known.told.clear()
        if block in self.blocks:
            if known.fences != self.blocks[block]:
                known.fences = self.blocks[block]
                known.told.clear()
            if syncs is not None or not known.told.issuperset(lanes):
                self._release(flag, block, known, lanes, times, syncs)
        if flag in self.flags:
            known.time = self.time
            if syncs is not None:
                for lane, (sync, _), time in zip(lanes, syncs, times, strict=True):
                    known.note(lane, time, sync)
            else:
                known.lanes.update(zip(lanes, times, strict=True))
            self.updates[flag, block] = known

    def _release(
        self, flag: Hashable, block: int, known: Updates, lanes: list[int], times: range,
        syncs: list[tuple[int, Heard]] | None,
    ) -> None:  # fmt: skip
        """Note which lanes release by an update what they have not released before."""
        heard = [0] * len(lanes) if syncs is None else [heard for _, heard in syncs]
        for lane, told, time in zip(lanes, heard, times, strict=True):
            self._release_one(flag, block, known, lane, time, told)
        known.told.update(lanes)

    def _release_one(
        self, flag: Hashable, block: int, known: Updates, lane: int, time: int, told: Heard
    ) -> None:  # fmt: skip
        """Note that a lane releases by an update what it has not released before."""
        far, near = self.last.get(lane, _NONE)
        last = far, near, told
        if known.released.get(lane) != last:
            self.flags.add(flag)
            self.alone = self.alone and not known.epoch and not told
            known.released[lane] = last
            self.latest[lane] = release = Release(flag, time, lane, far, near, told, known.epoch)
            self.of_block[block].note(release)
            self.of_warp[lane // WARP].note(release)

    def told(
        self, by: np.ndarray, fences: np.ndarray, lanes: np.ndarray, threads: int
    ) -> np.ndarray:
        """Mark accesses of `by`, after so many fences, that `lanes` of their clusters know to be
        over.
        """
        known, blocks = np.zeros(len(by), bool), by // threads
        for block in self.under_way.keys() & set(blocks.tolist()):
            own = np.flatnonzero(blocks == block)
            known[own] = self.under_way[block].told(lanes[own], by[own], fences[own])
        return known

    def order(
        self, old: tuple[int, int, int, int], block: int, lanes: list[int], epoch: int,
        threads: int, syncs: list[Heard],
    ) -> bool | list[bool]:  # fmt: skip
        """Tell which accesses of `lanes`, now in interval `epoch`, flags put after an old one.

        old : the lane of the old access, its interval, `fences` and calls of `syncwarp` at the time
        syncs : those that each of `lanes` knows of
        """
        self._note_calls()
        ordered: bool | list[bool] = False
        for flag, time in self._released(old, block, threads).items():
            known = self.updates.get((flag, block))
            if known is None:
                continue
            if time < known.acquired(epoch):
                return True
            own = [time < known.heard(*lane) for lane in zip(lanes, syncs, strict=True)]
            ordered = [a or b for a, b in zip(ordered, own, strict=True)] if ordered else own
        return ordered

    def orders(
        self, old: tuple[int, int, int, int], lane: int, epoch: int, threads: int, sync: Heard
    ) -> bool:
        """Say of one lane what `order` says of several."""
        self._note_calls()
        block, by = lane // threads, old[0]
        if self.alone and self.last.get(by, _NONE)[1].number <= old[2]:
            return False
        last = self.latest.get(by)
        if last is not None:  # of the lane that had the lock before, as a rule
            fence = last.near if by // threads == block else last.far
            known = self.updates.get((last.flag, block))
            if known and old[2] < fence.number and last.time < known.lanes.get(lane, 0):
                return True
        for flag, time in self._released(old, block, threads).items():
            known = self.updates.get((flag, block))
            if known and (time < known.acquired(epoch) or time < known.heard(lane, sync)):
                return True
        return False

    def _kept(self, old: tuple[int, int, int, int], threads: int) -> Kept | None:
        """Return the releases of which some may be one of an old access; None where none is.

        That is soon said where its thread has made no fence since, and no barrier told others.
        """
        by, then, fences, sync = old
        releases = self.of_block.get(by // threads)
        if releases is None or releases[-1].epoch > then:
            return releases
        releases = self.of_warp.get(by // WARP)  # no barrier since: those of its warp alone
        alone = releases is None or releases.heard <= sync
        return None if alone and self.last.get(by, _NONE)[1].number <= fences else releases

    def may_release(self, old: tuple[int, int, int, int], threads: int) -> bool:
        """Say whether flags may put an old access before what others do now."""
        self._note_calls()
        return self._kept(old, threads) is not None

    def _released(
        self, old: tuple[int, int, int, int], block: int, threads: int
    ) -> dict[Hashable, int]:
        """Return the time at which each flag first released an access, for threads of a block.

        What releases it comes later than the last fence before it.
        """
        by, then, fences, sync = old
        releases = self._kept(old, threads)
        if releases is None:
            return {}
        first = bisect_right(releases, self.times[fences], key=_TIME)
        same = by // threads == block
        fenced = [fence for fence in self.fenced.get(by, ()) if same or not fence.of_block]
        later = next((fence for fence in fenced if fence.number > fences), None)
        found: dict[Hashable, int] = {}
        for at in range(first, len(releases)):
            release = releases[at]
            if release.flag in found:
                continue
            fence = release.near if same else release.far
            if by == release.lane:
                covers = fences < fence.number
            else:
                covers = then < fence.epoch or (later and later.epoch < release.epoch)
            if not covers and by // WARP == release.lane // WARP:
                covers = sync < heard_of(fence.heard, by)
                covers |= later is not None and later.sync < heard_of(release.heard, by)
            if covers:
                found[release.flag] = release.time
                if len(found) == len(releases.flags):
                    break
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
