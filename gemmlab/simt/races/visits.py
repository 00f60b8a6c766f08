"""Touches of memory, and the barriers that put them in order: each touch is one integer.

It is made of the lane and of the number of a visit, which is a line at a moment between barriers.
"""

from typing import Any, NamedTuple, Self

import numpy as np

from gemmlab.model.transactions import WARP
from gemmlab.simt.races.release import NO_SYNCS, Syncs


class Now(NamedTuple):
    """The moment of an access; epoch and sync are numbers, or arrays over its lanes.

    epoch : barriers that the block has passed; sync : how often the warp has waited
    line : of the source
    heard : where lanes have waited for a part of their warp, `Waits.heard`; hearer : the row of it
        of each lane of the access
    lane : the lanes of the access as the launch numbers them; None while there are no fences
    """

    epoch: int | np.ndarray
    sync: int | np.ndarray = 0
    line: int = 0
    heard: np.ndarray | None = None
    hearer: np.ndarray | None = None
    lane: np.ndarray | None = None

    @property
    def syncs(self) -> Syncs:
        """What the lanes of the access know of their warps."""
        return Syncs(self.sync, None if self.heard is None else self.heard[self.hearer])

    def of(self, which: np.ndarray) -> Self:
        """Return the moment, for some of the lanes."""
        return self._replace(
            epoch=self.epoch[which] if isinstance(self.epoch, np.ndarray) else self.epoch,
            sync=self.sync[which] if isinstance(self.sync, np.ndarray) else self.sync,
            hearer=None if self.hearer is None else self.hearer[which],
            lane=None if self.lane is None else self.lane[which],
        )

    def of_one(self) -> Self:
        """Return the moment of a single lane, in plain numbers."""
        if type(self.epoch) is type(self.sync) is int and type(self.lane) is not np.ndarray:
            return self  # asked often
        epoch, sync, lane = (
            int(v[0]) if isinstance(v, np.ndarray) else v
            for v in (self.epoch, self.sync, self.lane)
        )
        return Now(epoch, sync, self.line, lane=lane)


class Visits:
    """The visits of an array, numbered: a line, at a moment.

    A touch is visit · 2^bits + lane; -1 stands for none.

    listed : line, epoch, sync and fences of each visit; table : the same, (4, visits), of the first
        `filled` ones
    """

    def __init__(self, lanes: int) -> None:
        self.bits = max(1, int(lanes - 1).bit_length())
        self.low = (1 << self.bits) - 1
        self.numbers: dict[tuple[int, int, int, int], int] = {}
        self.listed: list[tuple[int, ...]] = []
        self.table, self.filled = np.zeros((4, 64), np.int64), 0

    @property
    def next(self) -> int:
        """The least touch of a visit that is not made yet."""
        return len(self.numbers) << self.bits

    def touches(self, lane: np.ndarray, now: Now, fences: int) -> np.ndarray:
        """Return the touches of the lanes now, after so many fences of the launch."""
        if not isinstance(now.epoch, np.ndarray) and not isinstance(now.sync, np.ndarray):
            return self.touch(lane, now, fences)
        moments = np.empty((2, len(lane)), np.int64)
        moments[0], moments[1] = now.epoch, now.sync
        low = moments.min(axis=1, keepdims=True)
        syncs = int(moments[1].max() - low[1, 0]) + 1
        which = (moments[0] - low[0, 0]) * syncs + (moments[1] - low[1, 0])
        numbers = np.zeros(int(which.max()) + 1, np.int64)
        numbers[which] = 1
        for i in np.flatnonzero(numbers).tolist():
            epoch, sync = divmod(i, syncs)
            epoch, sync = epoch + int(low[0, 0]), sync + int(low[1, 0])
            numbers[i] = self._number(now.line, epoch, sync, fences)
        return lane + (numbers[which] << self.bits)

    def touch(self, lane: Any, now: Now, fences: int) -> Any:
        """Return the touch of a lane, or of several at one moment."""
        number = self.numbers.get((now.line, now.epoch, now.sync, fences))
        if number is None:
            number = self._number(now.line, now.epoch, now.sync, fences)
        return lane + (number << self.bits)

    def _number(self, *visit: int) -> int:
        number = self.numbers.get(visit)
        if number is None:
            number = self.numbers[visit] = len(self.numbers)
            self.listed.append(visit)
        return number

    def lanes(self, touches: np.ndarray) -> np.ndarray:
        return touches & self.low

    def moments(self, touches: np.ndarray) -> np.ndarray:
        """Line, epoch, sync and fences of touches, (4, touches)."""
        since, count = self.filled, len(self.listed)
        if since < count:
            if count > self.table.shape[1]:
                more = np.zeros((4, 2 * count), np.int64)
                more[:, :since] = self.table[:, :since]
                self.table = more
            self.table[:, since:count] = np.array(self.listed[since:], np.int64).T
            self.filled = count
        return self.table[:, touches >> self.bits]


def distance(a: np.ndarray, b: np.ndarray, threads: int) -> np.ndarray:
    """0 for the same lane, 1 for lanes of one warp, 2 of one block, 3 of two blocks."""
    block = a // threads != b // threads
    warp = a // WARP != b // WARP
    return (a != b).astype(np.int8) + (warp | block) + block


class Waits:
    """The barriers that a batch of `blocks` blocks, of `threads` threads, has passed.

    epoch : barriers so far: a number, or one for each block, (blocks, 1), where they differ
    syncs : calls of `syncwarp` in each warp, (blocks, warps); None before the first one
    heard : the last of these calls of each lane that each lane of its warp knows of, directly or by
        others, (blocks · warps · 32, 32); None while all calls are for whole warps
    alike : whether all blocks have waited alike
    """

    def __init__(self, blocks: int, threads: int) -> None:
        self.blocks, self.threads = blocks, threads
        self.epoch: Any = 0
        self.syncs: np.ndarray | None = None
        self.heard: np.ndarray | None = None
        self.alike = True

    def epochs(self, row: np.ndarray) -> np.ndarray:
        """Return the barriers so far of the blocks in these rows."""
        if isinstance(self.epoch, int):
            return np.full(len(row), self.epoch)
        return np.broadcast_to(self.epoch, (self.blocks, 1))[row, 0]

    def of_warps(self, places: np.ndarray) -> Syncs:
        """Return what the lanes at these places know of their warps."""
        return NO_SYNCS if self.syncs is None else self.now(0, places).syncs

    def now(self, line: int, places: np.ndarray, lane: Any = None) -> Now:
        """Return the moment of an access in a line by the lanes at these places.

        lane : their numbers in the launch, where there are fences
        """
        epoch = self.epoch if isinstance(self.epoch, int) else _one(self.epoch)
        if epoch is None:
            epoch = self.epochs(places // self.threads)
        if self.syncs is None:
            return Now(epoch, 0, line, None, None, lane)
        sync = _one(self.syncs)
        if sync is None:
            sync = self.syncs.reshape(-1)[places // WARP]
        return Now(epoch, sync, line, self.heard, None if self.heard is None else places, lane)

    def sync_warps(self, on: np.ndarray, named: np.ndarray, alike: bool) -> None:
        """Let the lanes `on`, (blocks, warps, 32), wait each for those that it has `named`.

        named : (blocks, warps, 32, 32), or True where all wait for all; alike : whether blocks are
        """
        if self.syncs is None:
            self.syncs = np.zeros(on.shape[:2], np.int64)
        if self.heard is None and named is not True:
            own = np.repeat(self.syncs.ravel(), WARP).reshape(-1, 1)
            self.heard = np.repeat(own, WARP, axis=1)
        self.alike &= alike
        self.syncs += on.any(axis=-1)
        if self.heard is not None:
            heard = self.heard.reshape(*on.shape, WARP)
            lanes = np.broadcast_to(named, heard.shape) & on[..., :, None]
            known = heard.copy()
            for lane in range(WARP):  # each lane tells those that name it what it knows
                told = np.where(lanes[..., lane, None], heard[..., lane, None, :], 0)
                np.maximum(known, told, out=known)
            np.copyto(heard, np.where(lanes, self.syncs[..., None, None], known))


def _one(counts: Any) -> int | None:
    """Return the number that all counts are, if they are all the same."""
    if np.ndim(counts) == 0:
        return int(counts)
    first = int(counts.flat[0])
    return first if (counts == first).all() else None
