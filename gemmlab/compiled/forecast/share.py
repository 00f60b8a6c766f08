"""Each SM gets a share of a launch on a whole GPU: which blocks, and how many at once.

At first every SM gets as many as the others. Later ones go, one by one, to where a block has ended.
Blocks of an SM that end together make room for several, while other SMs, a little slower, wait with
theirs; so the last blocks may go to few SMs. Microbenchmark `blocks_that_load`.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from gemmlab import Device
from gemmlab.compiled.sass.execution.machine import Dim
from gemmlab.model.occupancy import check_block, resident_blocks


@dataclass(frozen=True)
class Share:
    """A share is the blocks of the SM that has most to do.

    blocks : how many it gets
    resident : how many at once
    """

    grid: Dim
    blocks: int
    resident: int
    sms: int

    def places(self, count: int, first: int = 0) -> Iterator[Dim]:
        """Yield places in the grid of `count` of its blocks, in the order in which they start.

        first : the number of its first block, one of the first `sms`

        Blocks are handed out in the order of their numbers, x first: every `sms`-th is its. Those
        that it has at once follow each other, and such rounds lie evenly in all that it gets.
        """
        last = math.prod(self.grid) - 1
        further = -(-count // self.resident) - 1
        step = max(self.resident, (self.blocks - self.resident) // max(1, further))
        for i in range(count):
            a_round, place = divmod(i, self.resident)
            its = a_round * step + place
            yield self.place(min(its * self.sms + first, last))

    def place(self, number: int) -> Dim:
        """Return the place in the grid of a block by its number, which counts x first."""
        x, y, _ = self.grid
        return number % x, number // x % y, number // (x * y)


def share(device: Device, grid: Dim, threads: int, shared_bytes: int, registers: int) -> Share:
    """Return the share of one SM of a launch; ValueError for a block that `device` cannot hold."""
    check_block(device, threads, shared_bytes)
    resident = resident_blocks(device, threads, shared_bytes, registers)
    blocks = -(-math.prod(grid) // device.sms)
    return Share(grid, blocks, min(resident, blocks), device.sms)


def most_blocks(share: Share, ends: np.ndarray, spread: float) -> int:
    """Count the blocks of the SM that gets most of a launch; `share.blocks` where all get alike.

    ends : when blocks end on an SM that always has the next one, as far as that is known
    spread : standard deviation of the time of blocks over the SMs, as a part of it

    >>> share = Share((5, 1, 1), 3, 2, 2)
    >>> [most_blocks(share, np.array(ends), 0.01) for ends in ((100, 150, 200), (100, 100, 200))]
    [3, 3]
    >>> most_blocks(Share((6, 1, 1), 3, 2, 2), np.array((100, 100, 200)), 0.01)
    4
    """
    left = math.prod(share.grid) - share.sms * share.resident
    if left <= 0:
        return share.blocks
    times = following(ends, share.resident, share.blocks)
    when = np.outer(speeds(share.sms, spread), times)
    first = np.argsort(when, axis=None, kind="stable")[:left]
    return share.resident + int(np.bincount(first // len(times)).max())


def following(ends: np.ndarray, resident: int, count: int) -> np.ndarray:
    """Return when `count` blocks end on an SM that always has the next one.

    The last `resident` of those that are known ended with less and less beside them, and are left
    out if others are known. From there on each round of blocks takes as long as the one before.
    """
    known = np.sort(ends)[: max(resident, len(ends) - resident)]
    long = len(known) > resident
    each = (known[-1] - known[0]) / (len(known) - 1) if long else known[-1] / resident
    rounds, place = np.divmod(np.arange(max(0, count - len(known))), resident)
    later = known[-resident:][place] + (rounds + 1) * resident * each
    return np.concatenate([known, later])[:count]


def speeds(sms: int, spread: float) -> np.ndarray:
    """Return how long each SM takes, as a multiple of the mean: quantiles of a normal law."""
    law = NormalDist(1.0, spread)
    return np.array([law.inv_cdf((i + 0.5) / sms) for i in range(sms)])
