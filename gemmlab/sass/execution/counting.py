"""What compiled code asks of memory, by the names of Nsight Compute's counters."""

from __future__ import annotations

from collections.abc import Iterable

from gemmlab.model.counters import TransactionCounters
from gemmlab.sass.execution.machine import Visit


def counters(visits: Iterable[Visit]) -> TransactionCounters:
    """Requests, sectors and wavefronts of all accesses to global and shared memory."""
    found = TransactionCounters()
    for visit in visits:
        for _, cost in visit.costs:
            if cost.space in ("local", "mbarrier"):
                continue
            name = f"{cost.space}_{cost.op}"
            found[f"{name}_requests"] += len(cost.warps)
            if cost.space == "global":
                found[f"{name}_sectors"] += int(cost.sectors.sum())
            else:
                found[f"{name}_wavefronts"] += int(cost.cycles.sum())
    return found
