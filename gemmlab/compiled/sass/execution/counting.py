"""What compiled code asks of memory, by the names of Nsight Compute's counters."""

from __future__ import annotations

from collections.abc import Iterable

from gemmlab.compiled.sass.execution.accesses import Cost
from gemmlab.compiled.sass.execution.machine import Visit
from gemmlab.model.counters import TransactionCounters
from gemmlab.model.transactions import SECTOR


def counters(visits: Iterable[Visit]) -> TransactionCounters:
    """Requests, sectors and wavefronts of all accesses to global and shared memory, and the bytes
    that the TMA copies and stores.
    """
    found = TransactionCounters()
    for visit in visits:
        for _, cost in visit.costs:
            found.update(_counted(cost))
    return found


def _counted(cost: Cost) -> dict[str, int]:
    """What one access adds to the counters."""
    requests = {f"{cost.space}_{cost.op}_requests": len(cost.warps)}
    match cost.space, cost.op:
        case "global", _:
            return requests | {f"global_{cost.op}_sectors": int(cost.sectors.sum())}
        case "shared", _:
            return requests | {f"shared_{cost.op}_wavefronts": int(cost.cycles.sum())}
        case "mbarrier", "copy":
            return {"tensor_copy_bytes": cost.amount}
        case "tensor", "store":
            return {"tensor_store_bytes": int(cost.sectors.sum()) * SECTOR}
    return {}
