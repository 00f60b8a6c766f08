"""What each warp executes, as the simulated SM takes it, from the execution of compiled code."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gemmlab.compiled.forecast.l1 import L1
from gemmlab.compiled.sass.execution.machine import Visit
from gemmlab.compiled.sass.execution.memory import Cost
from gemmlab.compiled.sass.listing import Listing
from gemmlab.compiled.sm.streams import Level, Stream


def streams(
    visits: Sequence[Visit], listing: Listing, beyond: np.ndarray, cache: L1,
    written: float = 1.0, partial: float = 1.0, addition: float = 0.0,
    stored: Level = Level.STORED,
) -> list[Stream]:  # fmt: skip
    """A stream for each warp; what `cache` lacks is answered by the warp's `Level` in `beyond`.

    written : as how many sectors one counts that is stored; partial : that is stored in part
    addition : as how many at least an atomic addition does
    stored : the `Level` of what is stored
    """
    parts: list[list[np.ndarray]] = [[] for _ in beyond]
    cached = [_is_cached(i.opcode) for i in listing.instructions]
    for visit in visits:
        cache.round += 1
        length = visit.stop - visit.start
        rows = np.zeros((6, len(visit.warps), length), np.int32)
        rows[0] = np.arange(visit.start, visit.stop)
        for at, cost in visit.costs:
            where = np.searchsorted(visit.warps, cost.warps)
            rows[1, where, at - visit.start] += cost.cycles
            if cost.mbarrier is not None:
                rows[4, where, at - visit.start] = cost.mbarrier
                rows[5, where, at - visit.start] = cost.amount
                rows[2, where, at - visit.start] = cost.sectors
                rows[3, where, at - visit.start] = beyond[cost.warps]
            if cost.space == "tensor":
                sectors = np.rint(written * cost.sectors).astype(np.int32)
                rows[2, where, at - visit.start] += sectors
                rows[3, where, at - visit.start] = int(stored)
            if cost.pieces is None:
                continue
            asked, waits = _asked(cost, cache if cached[at] else None)
            if cost.op == "store":
                asked = written * asked
            if cost.partial is not None:
                asked = asked + (partial - written) * cost.partial
            if cost.op == "atomic":
                additions = np.count_nonzero(cost.pieces >= 0, axis=1)
                asked = np.maximum(asked, addition * additions)
            rows[2, where, at - visit.start] += np.rint(asked).astype(np.int32)
            # L2 adds by itself. What is written takes the place of other lines, as what is read.
            of_op = {"atomic": int(Level.L2), "store": int(stored)}
            level = of_op.get(cost.op, beyond[cost.warps])
            rows[3, where, at - visit.start] = np.where(waits, level, int(Level.L1))
        for row, warp in enumerate(visit.warps):
            parts[warp].append(rows[:, row])
    return [
        Stream(whole[0], whole[1], whole[2], whole[3].astype(np.int8), whole[4], whole[5])
        for whole in (np.concatenate(part, axis=1) for part in parts if part)
    ]


def _is_cached(opcode: str) -> bool:
    """Whether a load looks into L1; those that others must see at once do not."""
    return opcode.startswith(("LDG", "LD.")) and "STRONG" not in opcode


def _asked(cost: Cost, cache: L1 | None) -> tuple[np.ndarray, np.ndarray]:
    """Sectors that each warp's access asks of L2, and whether it waits for L2, (warps,) each."""
    if cache is None or cost.op != "load":
        return cost.sectors, cost.sectors > 0
    asked, waits = np.empty(len(cost.pieces), np.int64), np.empty(len(cost.pieces), bool)
    for i, row in enumerate(cost.pieces.tolist()):
        asked[i], late = cache.load(dict.fromkeys(sector for sector in row if sector >= 0))
        waits[i] = late or asked[i] > 0
    return asked, waits
