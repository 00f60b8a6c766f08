"""Two blocks in a row: they run on the two SMs of a TPC, which ask L2 together.

What both of them read comes once for both, as if each had a larger share of L2. Microbenchmark
`tma_together_by_2`, decision 020.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from gemmlab.compiled.forecast.launches import Share
from gemmlab.compiled.sass.execution.machine import Dim, Visit
from gemmlab.compiled.sass.execution.memory import Cost

_OF_WARPS = ("warps", "cycles", "sectors", "pieces", "partial")  # fields of a `Cost`


def neighbour(share: Share, block: int) -> list[Dim]:
    """The place of the block that is beside another, by their numbers; none beside a last one.

    >>> neighbour(Share((5, 1, 1), 1, 1, 132), 3), neighbour(Share((5, 1, 1), 1, 1, 132), 4)
    ([(2, 0, 0)], [])
    """
    beside = block ^ 1
    return [share.place(beside)] if beside < np.prod(share.grid) else []


def first_warps(visits: Iterable[Visit], count: int) -> list[Visit]:
    """What the first `count` warps did, without the others."""
    found = []
    for visit in visits:
        mine = visit.warps < count
        if mine.all():
            found.append(visit)
        elif mine.any():
            costs = [(at, _some(cost, cost.warps < count)) for at, cost in visit.costs]
            kept = [(at, cost) for at, cost in costs if len(cost.warps)]
            found.append(Visit(visit.start, visit.warps[mine], visit.stop, kept))
    return found


def _some(cost: Cost, chosen: np.ndarray) -> Cost:
    rows = {name: getattr(cost, name) for name in _OF_WARPS}
    return cost._replace(**{n: row[chosen] for n, row in rows.items() if row is not None})


def asked_together(visits: Iterable[Visit], warps: int, blocks: Sequence[int]) -> float:
    """How often two blocks ask for what comes from L2 once: from 1, where they share nothing, to 2.

    warps : of a block; blocks : the two, by their numbers among those that were executed
    """
    pieces: dict[int, list[np.ndarray]] = {block: [] for block in blocks}
    boxes: dict[int, Counter] = {block: Counter() for block in blocks}
    stored = 0
    for cost in (cost for visit in visits for _, cost in visit.costs):
        for block in blocks:
            its = cost.warps // warps == block
            if cost.op not in ("load", "copy"):
                stored += int(cost.sectors[its].sum())
            elif cost.box is not None:
                boxes[block][cost.box] += int(cost.sectors[its].sum())
            elif cost.pieces is not None:
                pieces[block].append(cost.pieces[its].ravel())
    loads = [_counted(pieces[block]) for block in blocks]
    asked = stored + sum(sum(of.values()) for of in (*loads, *boxes.values()))
    come = stored + sum(sum((a | b).values()) for a, b in (loads, boxes.values()))
    return asked / come if come else 1.0


def _counted(pieces: list[np.ndarray]) -> Counter:
    """How often each sector is asked for."""
    every = np.concatenate([np.empty(0, np.int64), *pieces])
    sectors, counts = np.unique(every[every >= 0], return_counts=True)
    return Counter(dict(zip(sectors.tolist(), counts.tolist(), strict=True)))
