"""Lanes of a batch of blocks: their places, masks that say which run, a cache for their arrays.

A mask is None for all lanes, False for none, else a boolean array that broadcasts to (blocks,
threads).
"""

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from gemmlab.device import Device
from gemmlab.model.transactions import WARP

Mask = Any  # None, False, or a boolean array (blocks | 1, threads | 1)


def both(a: Mask, b: Any) -> Mask:
    """Return the lanes of mask `a` for which the condition `b` holds.

    A mask from which no lane goes stays the same object, by which counts and caches know it.
    """
    if b is None or a is False:
        return a
    kind = type(b)  # asked first: this is called for each access and each branch
    if kind is np.bool_ or (b.ndim if kind is np.ndarray else np.ndim(b)) == 0:
        return a if b else False
    lanes = b if a is None else a & b
    if not lanes.any():
        return False
    if a is None:
        return None if lanes.all() else lanes
    return a if lanes.shape == a.shape and (lanes == a).all() else lanes


def without(a: Mask, lanes: Mask) -> Mask:
    """Return the lanes of mask `a` that are not among `lanes`."""
    if lanes is False or a is False:
        return a
    return False if lanes is None or lanes is a else both(a, ~lanes)


def either(a: Mask, b: Mask) -> Mask:
    """Return the lanes of mask `a` and those of mask `b`."""
    if a is False or b is False:
        return b if a is False else a
    return None if a is None or b is None else a | b


class Masks(list):
    """A stack of masks: the last one is that of the lanes that run now.

    The first is that of the lanes that have not returned from the kernel; each branch, loop,
    iteration and device function puts one on top while it lasts.
    """

    def drop(self, depth: int) -> None:
        """Take the lanes that run out of the masks from `depth` on."""
        lanes, before, after = self[-1], None, None
        for i in range(depth, len(self)):  # the same masks stay the same
            if i == depth or self[i] is not before:
                before, after = self[i], without(self[i], lanes)
            self[i] = after


Dim3 = tuple[int, int, int]

# A block of this size, allocated and freed once, is the sign on which glibc's `malloc` keeps freed
# memory for the next arrays over the lanes. Else each of them comes from the system, page by page,
# which takes several times as long as what is computed in it.
np.empty((32 << 20) - (1 << 16), np.uint8)


@dataclass(frozen=True)
class Launch:
    """A launch: what `simulate` is asked for, checked.

    cluster : sizes of a cluster, in blocks; debug, fastmath : as `cuda.jit` was told
    unwritten : what unwritten memory holds, as in `garbage`; most_turns : of a loop, more of which
        end a launch that is tried again
    """

    grid: Dim3
    block: Dim3
    shared_bytes: int
    max_steps: int
    contract: bool
    gpu: Device | None
    debug: bool = False
    fastmath: bool = False
    unwritten: int = 0
    most_turns: int = sys.maxsize
    cluster: Dim3 = (1, 1, 1)

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    def clusters(self) -> np.ndarray:
        """Return the linear indices of the blocks of each cluster, by rank: (clusters, blocks)."""
        (x, y, z), (cx, cy, cz) = self.grid, self.cluster
        blocks = np.arange(self.blocks).reshape(z // cz, cz, y // cy, cy, x // cx, cx)
        return blocks.transpose(0, 2, 4, 1, 3, 5).reshape(-1, cx * cy * cz)


class Lanes:
    """The lanes of a batch of blocks.

    grid, block : sizes of the launch, as (x, y, z)
    blocks : linear indices of the batch's blocks, (blocks, 1); row : their places in the batch
    threads : lanes of a block: whole warps, of which the last may have lanes without a thread
    thread : linear indices of the lanes in their block, (1, threads)
    shape : (blocks, threads); place : the lanes, numbered; first_lane : the number of the first
        one in the launch, whose lanes are numbered block by block
    present : the mask of the lanes that have a thread
    """

    def __init__(self, grid: Dim3, block: Dim3, blocks: np.ndarray) -> None:
        self.grid, self.block = grid, block
        threads = block[0] * block[1] * block[2]
        self.threads = -(-threads // WARP) * WARP
        self.blocks = blocks.reshape(-1, 1)
        self.row = np.arange(len(blocks)).reshape(-1, 1)
        self.thread = np.arange(self.threads).reshape(1, -1)
        self.shape = (len(blocks), self.threads)
        self.place = np.arange(len(blocks) * self.threads).reshape(self.shape)
        self.first_lane = int(blocks[0]) * self.threads
        self.present: Mask = None if threads == self.threads else self.thread < threads
        self._last: tuple[Mask, np.ndarray] | None = None

    # Values and masks as arrays over all lanes

    def full(self, mask: Mask) -> np.ndarray:
        """Return a mask as an array (blocks, threads)."""
        if mask is None or mask is False:
            return np.full(self.shape, mask is None)
        return self.spread(mask)

    def spread(self, value: Any) -> np.ndarray:
        """Return a value as an array over all lanes, (blocks, threads)."""
        return _of_shape(value, self.shape)

    def in_warps(self, value: Any) -> np.ndarray:
        """Return a value as an array over all lanes, warp by warp, (blocks, warps, 32)."""
        return np.broadcast_to(value, self.shape).reshape(len(self.blocks), -1, WARP)

    def of_warps(self, value: np.ndarray) -> np.ndarray:
        """Return a value of each warp or of its lanes, (blocks, warps, 1 or 32), for each lane."""
        shape = (len(self.blocks), self.threads // WARP, WARP)
        return np.broadcast_to(value, shape).reshape(self.shape)

    def of(self, value: Any, mask: Mask) -> tuple[np.ndarray, np.ndarray]:
        """Return the values of the active lanes, and the places of these lanes, both flat."""
        places = self.places(mask)
        if np.ndim(value) == 0:
            value = np.asarray(value)
            values = np.empty(len(places), value.dtype)
            values.fill(value)  # a third of the time of np.full, for few lanes
            return values, places
        values = self.spread(value).ravel()
        return (values if mask is None else values.take(places)), places

    def at(self, value: Any, place: int) -> Any:
        """Return the value of the lane at one place."""
        if np.ndim(value) == 0:
            return value
        row, thread = divmod(place, self.threads)
        rows, columns = value.shape
        return value[row if rows > 1 else 0, thread if columns > 1 else 0]

    def places(self, mask: Mask) -> np.ndarray:
        """The places of the active lanes, flat; the last ones are kept, for the next access."""
        if mask is None:
            return self.place.ravel()
        if self._last is None or self._last[0] is not mask:
            self._last = mask, np.flatnonzero(self.full(mask))  # faster than indexing by the mask
        return self._last[1]

    def warps_of(self, at: Any, mask: Mask) -> tuple[np.ndarray, np.ndarray]:
        """Elements and active lanes as (blocks, warps, 32); one block where all do the same."""
        at = np.asarray(at)
        rows = 1 if same_in_blocks(at, mask) else len(self.blocks)
        warps = (rows, self.threads // WARP, WARP)
        shape = (rows, self.threads)
        on = np.ones(warps, bool) if mask is None else _of_shape(mask, shape).reshape(warps)
        return _of_shape(at, shape).reshape(warps), on

    # Where a lane stands

    def first(self, mask: Mask) -> tuple[int, int]:
        """Return the row and the thread of the first lane of a mask."""
        return divmod(int(self.full(mask).argmax()), self.threads)

    def thread_at(self, thread: int) -> Dim3:
        """Return a thread's place in its block, from its linear index."""
        return position(thread, self.block)

    def block_at(self, block: int) -> Dim3:
        return position(block, self.grid)

    def thread_name(self, thread: int) -> str:
        """Return a thread's place as messages write it."""
        return short(self.thread_at(thread), self.block)

    def block_name(self, block: int) -> str:
        return short(self.block_at(block), self.grid)


def _of_shape(value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Broadcast a value, which mostly has the shape already: to ask first is much faster."""
    has_it = type(value) is np.ndarray and value.shape == shape
    return value if has_it else np.broadcast_to(value, shape)


def same_in_blocks(at: np.ndarray, mask: Mask) -> bool:
    """Say whether every block of the batch makes the same access."""
    return (at.ndim < 2 or len(at) == 1) and (not isinstance(mask, np.ndarray) or len(mask) == 1)


def position(index: int, extent: Dim3) -> Dim3:
    """Return the place (x, y, z) of a linear index.

    >>> position(7, (4, 2, 1))
    (3, 1, 0)
    """
    x, y, _ = extent
    return (index % x, index // x % y, index // (x * y))


def short(position: Dim3, extent: Dim3) -> str:
    """Return a position with as many of its coordinates as the launch has dimensions.

    >>> short((3, 1, 0), (4, 2, 1))
    '(3, 1)'
    """
    used = max([i + 1 for i, e in enumerate(extent) if e > 1], default=1)
    return "(" + ", ".join(str(p) for p in position[:used]) + ")"


class IdentityCache:
    """At most `most` results, by what they come from; all are dropped when there are more.

    NumPy's integers are told apart by value, all other objects by identity; the objects are kept,
    so that no other one gets their identity.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.results: dict[tuple, tuple[Any, tuple]] = {}

    def get(self, objects: tuple) -> Any:
        found = self.results.get(_key(objects))
        return None if found is None else found[0]

    def put(self, objects: tuple, result: Any) -> None:
        if len(self.results) >= self.most:
            self.results.clear()
        self.results[_key(objects)] = result, objects


def _key(objects: tuple) -> tuple:
    return tuple([(int(o),) if type(o) is np.int64 else id(o) for o in objects])
