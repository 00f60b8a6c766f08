"""The L2 cache of a simulated launch: which sectors are there, and what device memory must move.

Lines of 128 bytes are the unit that is kept and evicted, and each of their four 32-byte sectors is
fetched on its own, as in NVIDIA's caches: a stride of 128 bytes so fills the cache with lines of
which a quarter is used. (A model of single sectors would hold four times as many of them.)

What the model leaves out:

- The order of accesses is the simulator's: all warps of a batch of blocks execute a line before
  any goes on to the next, so that reuse between the blocks of a batch is seen, their drift not.
- There is no L1: what an SM's own cache would catch counts as a hit here. Bytes of device memory
  hardly change by it, hits do.
- Any line may lie anywhere (no sets, no hash, no two partitions), and the least recently used one
  is replaced. The hardware's policy is not published.
- A store makes its sector valid and dirty without a fetch, even where it covers a part of it.
- The cache is empty when the launch begins, as in Nsight Compute with ``--cache-control all``, and
  what is dirty when it ends counts as written.
"""

from collections import Counter
from typing import Any, Self

import numpy as np

from gemmlab.device import Device, device
from gemmlab.model.transactions import LINE, SECTOR, SECTORS
from gemmlab.simt.memory.array import Array
from gemmlab.simt.memory.batch import Batch
from gemmlab.simt.numbers.lanes import Mask

ALIGNMENT = 256  # bytes, of an allocation: CUDA C++ Programming Guide, Device Memory Accesses
CHUNK = 1 << 16  # accesses that are looked up together


class L2:
    """A write-back cache with least-recently-used replacement.

    size : capacity [B], of which whole lines are used
    counts : "l2_hits" and "l2_misses" of sectors, "dram_read_bytes" and "dram_write_bytes"

    >>> cache = L2(256)                                     # two lines
    >>> cache.access([0, 1, 0, 4, 8, 0], reads=True)        # sectors; 0 and 1 share a line
    >>> cache.finish()["l2_hits"], cache.counts["dram_read_bytes"]
    (1, 160)
    """

    def __init__(self, size: int) -> None:
        if size < LINE:
            raise ValueError(f"an L2 of {size} B holds no line; use at least {LINE} B")
        self.capacity = size // LINE
        self.counts = Counter(l2_hits=0, l2_misses=0, dram_read_bytes=0, dram_write_bytes=0)
        self.bases: dict[int, int] = {}  # the first sector of each array, by its address here
        self.end = 0
        self.clock = 0
        self.used = np.empty(0, np.int64)  # when each line was last touched; -1 where it is out
        self.valid, self.dirty = np.empty((2, 0), bool)  # of each sector
        self.pending: list[tuple[np.ndarray, bool, bool]] = []
        self.waiting = 0

    @classmethod
    def of(cls, target: Device | str) -> Self:
        """The L2 of a device; raises ValueError where its size is not known."""
        target = device(target)
        if target.l2_bytes is None:
            raise ValueError(f"no L2 size is known for {target.title}; give a device that has one")
        return cls(target.l2_bytes)

    def watch(self, m: Batch, line: int, op: str, array: Array, at: Any, mask: Mask) -> None:
        """Take note of one access of all warps, block after block and warp after warp."""
        if array.space != "global":
            return
        at, on = m.lanes.warps_of(at, mask)
        pieces = np.where(on, at * array.itemsize // SECTOR, -1)
        pieces.sort(axis=-1)
        new = pieces >= 0
        new[..., 1:] &= np.diff(pieces, axis=-1) != 0
        sectors = np.tile(pieces[new], len(m.lanes.blocks) // len(on)) + self._base(array.buffer)
        self.access(sectors, reads=op != "store", writes=op != "load")

    def _base(self, buffer: np.ndarray) -> int:
        address = buffer.__array_interface__["data"][0]  # the same for arrays that overlap
        if address not in self.bases:
            self.bases[address] = self.end
            self.end += -(-buffer.nbytes // ALIGNMENT) * (ALIGNMENT // SECTOR)
        return self.bases[address]

    def access(self, sectors: Any, reads: bool = False, writes: bool = False) -> None:
        """Touch `sectors`, numbers from 0, one after the other."""
        sectors = np.asarray(sectors, np.int64)
        self.pending.append((sectors, reads, writes))
        self.waiting += len(sectors)
        if self.waiting >= CHUNK:
            self._settle()

    def finish(self) -> Counter[str]:
        """Write back what is dirty; the counts of all accesses."""
        self._settle()
        self._evict(np.flatnonzero(self.used >= 0))
        return self.counts

    def _settle(self) -> None:
        """Look up what is pending, at most as many accesses at once as there are lines."""
        if not self.waiting:
            return
        sectors = np.concatenate([s for s, _, _ in self.pending])
        lengths = [len(s) for s, _, _ in self.pending]
        reads = np.repeat([r for _, r, _ in self.pending], lengths)
        writes = np.repeat([w for _, _, w in self.pending], lengths)
        self.pending, self.waiting = [], 0
        self._grow(int(sectors.max()) // SECTORS + 1)
        step = min(CHUNK, self.capacity)
        for start in range(0, len(sectors), step):
            part = slice(start, start + step)
            self._look_up(sectors[part], reads[part], writes[part])

    def _grow(self, lines: int) -> None:
        more = lines - len(self.used)
        if more > 0:
            self.used = np.append(self.used, np.full(more, -1))
            self.valid = np.append(self.valid, np.zeros(more * SECTORS, bool))
            self.dirty = np.append(self.dirty, np.zeros(more * SECTORS, bool))

    def _look_up(self, sectors: np.ndarray, reads: np.ndarray, writes: np.ndarray) -> None:
        """No line that is touched here is evicted after it: there are fewer than the cache holds.

        So a line is looked up where it is first touched, and is there from then on.
        """
        lines, first = np.unique(sectors // SECTORS, return_index=True)
        self._evict(lines[~self._there(lines, first)])
        pieces, first = np.unique(sectors, return_index=True)
        absent = ~self.valid[pieces]
        misses = int(absent.sum())
        self.counts["l2_hits"] += len(sectors) - misses
        self.counts["l2_misses"] += misses
        self.counts["dram_read_bytes"] += SECTOR * int((absent & reads[first]).sum())
        self.valid[pieces] = True
        self.dirty[sectors[writes]] = True
        # Of equal indices the last one stays.
        self.used[sectors // SECTORS] = self.clock + np.arange(len(sectors))
        self.clock += len(sectors)
        resident = np.flatnonzero(self.used >= 0)
        surplus = len(resident) - self.capacity
        if surplus > 0:
            self._evict(resident[np.argpartition(self.used[resident], surplus)[:surplus]])

    def _there(self, lines: np.ndarray, first: np.ndarray) -> np.ndarray:
        """Whether each of the distinct `lines` is still in the cache when it is `first` touched.

        It is if fewer lines than the cache holds were touched since: those touched later before
        now, and those touched now that were not among them.
        """
        age = self.used[lines]
        known = age >= 0
        all_ages = self.used[self.used >= 0]
        if len(all_ages) + int((~known).sum()) <= self.capacity:
            return known
        all_ages.sort()
        newer = len(all_ages) - np.searchsorted(all_ages, age, side="right")
        order = np.argsort(first)
        fetched = np.empty_like(newer)
        fetched[order] = smaller_before(age[order])
        return known & (newer + fetched < self.capacity)

    def _evict(self, lines: np.ndarray) -> None:
        dirty = self.dirty.reshape(-1, SECTORS)
        self.counts["dram_write_bytes"] += SECTOR * int(dirty[lines].sum())
        dirty[lines] = self.valid.reshape(-1, SECTORS)[lines] = False
        self.used[lines] = -1


def smaller_before(values: np.ndarray) -> np.ndarray:
    """Return the number of smaller values before each value; equal ones may count or not.

    >>> smaller_before(np.array([3, 1, 4, 2]))
    array([0, 0, 2, 1])
    """
    rank = np.empty(len(values), np.int64)
    rank[np.argsort(values, kind="stable")] = np.arange(len(values))
    found = np.zeros(len(values), np.int64)
    order = np.arange(len(values))
    # Two ranks differ first in one bit: there the smaller has 0, the larger 1. Bit by bit, `order`
    # groups ranks that agree in all higher bits, each group in the order of `values`.
    for bit in reversed(range(len(values).bit_length())):
        ranks = rank[order]
        group, one = ranks >> (bit + 1), (ranks >> bit) & 1
        zeros = np.cumsum(1 - one)
        start = np.searchsorted(group, group)
        earlier = zeros[start] - (1 - one[start])
        found[order] += one * (zeros - earlier)
        order = order[np.argsort(ranks >> bit, kind="stable")]
    return found
