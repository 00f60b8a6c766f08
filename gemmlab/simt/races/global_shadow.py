"""Who wrote, read and updated each element of an array in global memory, over a whole launch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gemmlab.model.transactions import WARP
from gemmlab.simt.races.release import Releases
from gemmlab.simt.races.shadow import Clash, clash_at_once, first_clash

# The bits of a moment: barrier interval, waits of the warp, fences of the launch.
SYNCS_AT, EPOCH_AT = 20, 40
FENCES = (1 << SYNCS_AT) - 1


class Visit(NamedTuple):
    """An access: its lanes, block · threads + thread, the moment of each, and its line."""

    lane: np.ndarray
    moment: np.ndarray
    threads: int
    line: int


class Touches:
    """The last lane to touch each element in some way, -1 for none, and when and where."""

    def __init__(self, size: int) -> None:
        self.lane = np.full(size, -1, np.int64)
        self.moment = np.zeros(size, np.int64)
        self.line = np.zeros(size, np.int32)

    def put(self, at: np.ndarray, now: Visit, which: np.ndarray | slice = slice(None)) -> None:
        """Note the access; of lanes that touch one element the last one stays."""
        self.lane[at[which]] = now.lane[which]
        self.moment[at[which]] = now.moment[which]
        self.line[at[which]] = now.line


class GlobalShadow:
    """Who touched the elements of an array; finds accesses that nothing puts in order.

    Two threads are ordered by a barrier if they are of one block, by `syncwarp` too if they are of
    one warp, and by `release` wherever they are. Atomics do not race with each other.
    Of the readers, and of those who update, two are kept that are as far from each other as any:
    of two blocks, else of two warps, else two lanes. Whoever races with any of them races with one
    of these two, unless a fence and an atomic put that one in order.
    """

    def __init__(self, size: int, releases: Releases | None = None) -> None:
        self.size, self.releases = size, releases or Releases()
        self.written = False
        self.since = 0  # the interval that began when the whole grid last waited
        self.writer = Touches(size)
        self.readers: tuple[Touches, ...] = ()
        self.updaters: tuple[Touches, ...] = ()

    def order(self, epoch: int) -> None:
        """Begin interval `epoch` after a wait of the whole grid: what came before is over."""
        self.since = epoch

    def read(
        self, at: np.ndarray, lane: np.ndarray, threads: int, epoch: np.ndarray,
        sync: np.ndarray | int = 0, line: int = 0,
    ) -> Clash | None:  # fmt: skip
        """Note that `lane` reads the elements `at`; the first clash, if any.

        threads : of a block; epoch : barrier interval; sync : how often its warp has waited
        line : of the source
        """
        now = self._now(lane, threads, epoch, sync, line)
        self.readers = self.readers or (Touches(self.size), Touches(self.size))
        clash = self._first(at, now, ("read", "write", (self.writer,)),
                            ("read", "atomic", self.updaters))  # fmt: skip
        self._keep(self.readers, at, now)
        return clash

    def write(
        self, at: np.ndarray, lane: np.ndarray, threads: int, epoch: np.ndarray,
        sync: np.ndarray | int = 0, line: int = 0,
    ) -> Clash | None:  # fmt: skip
        """Note that `lane` writes the elements `at`; the first clash, if any."""
        now = self._now(lane, threads, epoch, sync, line)
        clash = self._first(at, now, ("write", "write", (self.writer,)),
                            ("write", "read", self.readers),
                            ("write", "atomic", self.updaters))  # fmt: skip
        self.written = True
        self.writer.put(at, now)
        return clash or clash_at_once(self.writer.lane[at], lane, line)

    def atomic(
        self, at: np.ndarray, lane: np.ndarray, threads: int, epoch: np.ndarray,
        sync: np.ndarray | int = 0, line: int = 0,
    ) -> Clash | None:  # fmt: skip
        """Note that `lane` updates the elements `at` by an atomic; the first clash, if any."""
        now = self._now(lane, threads, epoch, sync, line)
        self.written = True
        self.updaters = self.updaters or (Touches(self.size), Touches(self.size))
        clash = self._first(at, now, ("atomic", "write", (self.writer,)),
                            ("atomic", "read", self.readers))  # fmt: skip
        self._keep(self.updaters, at, now)
        self.releases.update(id(self), at, lane, threads, np.broadcast_to(epoch, lane.shape))
        return clash

    def _now(
        self, lane: np.ndarray, threads: int, epoch: np.ndarray, sync: np.ndarray | int, line: int
    ) -> Visit:
        moment = np.asarray(epoch).astype(np.int64) << EPOCH_AT
        moment = moment | (np.asarray(sync) << SYNCS_AT) | min(self.releases.fences, FENCES)
        return Visit(lane, np.broadcast_to(moment, lane.shape), threads, line)

    def _first(self, at: np.ndarray, now: Visit, *kinds: tuple[str, str, tuple]) -> Clash | None:
        for *ops, touches in kinds:
            for touched in touches:
                races = self._races(touched, at, now)
                clash = first_clash(races, touched.lane[at], tuple(ops), touched.line, at)
                if clash is not None:
                    return clash
        return None

    def _races(self, touched: Touches, at: np.ndarray, now: Visit) -> np.ndarray:
        """Where another lane touched the element, and nothing puts it before `now`."""
        lane = touched.lane[at]
        races = (lane >= 0) & (lane != now.lane)
        if not races.any():
            return races
        then = touched.moment[at]
        apart = _distance(lane, now.lane, now.threads)
        waited = (apart < 3) & (then >> EPOCH_AT < now.moment >> EPOCH_AT)
        waited |= (apart < 2) & (then >> SYNCS_AT < now.moment >> SYNCS_AT)
        races &= ~waited & (then >> EPOCH_AT >= self.since)
        if self.releases.fences:
            for i in np.flatnonzero(races).tolist():
                old = int(lane[i]), int(then[i] >> EPOCH_AT), int(then[i] & FENCES)
                epoch = int(now.moment[i] >> EPOCH_AT)
                races[i] = not self.releases.orders(old, int(now.lane[i]), epoch, now.threads)
        return races

    def _keep(self, pair: tuple[Touches, ...], at: np.ndarray, now: Visit) -> None:
        """Note an access among those that may be concurrent, two of which are kept."""
        first, second = pair
        free = ~self._races(second, at, now)
        first.put(at, now, ~self._races(first, at, now))
        far = _distance(first.lane[at], now.lane, now.threads)
        for distance in (1, 2, 3):
            kept = _distance(first.lane[at], second.lane[at], now.threads)
            second.put(at, now, (far == distance) & (free | (kept < distance)))


def _distance(a: np.ndarray, b: np.ndarray, threads: int) -> np.ndarray:
    """0 for the same lane, 1 for lanes of one warp, 2 of one block, 3 of two blocks."""
    block = a // threads != b // threads
    warp = a // WARP != b // WARP
    return (a != b).astype(np.int8) + (warp | block) + block
