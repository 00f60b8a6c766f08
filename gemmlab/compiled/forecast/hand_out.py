"""Who gets the last blocks: the SM with a free place gets the next one, and so some get more.

At first every SM gets as many as the others. Later ones go, one by one, to where a block has ended.
Blocks of an SM that end together make room for several, while other SMs, a little slower, wait with
theirs; so the last blocks may go to few SMs. Microbenchmark `blocks_that_load`.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from gemmlab.compiled.forecast.launches import Share


def most_blocks(share: Share, ends: np.ndarray, spread: float) -> int:
    """Blocks of the SM that gets most of a launch; `share.blocks` where all get alike.

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
    """When `count` blocks end on an SM that always has the next one.

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
    """How long each of the SMs takes, as a multiple of the mean: quantiles of a normal law."""
    law = NormalDist(1.0, spread)
    return np.array([law.inv_cdf((i + 0.5) / sms) for i in range(sms)])
