"""What a launch does is counted as Nsight Compute counts it: instructions, requests, sectors.

The blocks that were executed stand for the others, as they do for the time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping

from gemmlab.compiled.forecast.executed import Executed
from gemmlab.compiled.sass.execution.visits import Again, Visit, count

COPY = "copy"  # from global to shared memory, which Nsight Compute has among the loads


def counts(executed: Executed) -> Mapping[str, int]:
    """Count what all blocks of a launch do, by the names of `model.counters`."""
    found = Counter({"inst_executed": count(executed.visits), **_of(executed.visits)})
    times = math.prod(executed.share.grid) / executed.count
    return {name: round(times * number) for name, number in found.items()}


def _of(visits: Iterable[Visit]) -> Counter[str]:
    """Count requests, sectors and wavefronts, those that are done again as often as they are."""
    found: Counter[str] = Counter()
    for visit in visits:
        if isinstance(visit, Again):
            for name, number in _of(visit.period).items():
                found[name] += visit.times * number
            continue
        for _, cost in visit.costs:
            op = "load" if cost.op == COPY else cost.op
            if cost.space == "global" and cost.box is None:
                found[f"global_{op}_requests"] += len(cost.warps)
                found[f"global_{op}_sectors"] += int(cost.sectors.sum())
            elif cost.space == "shared" and op in ("load", "store"):
                found[f"shared_{op}_requests"] += len(cost.warps)
                found[f"shared_{op}_wavefronts"] += int(cost.cycles.sum())
    return found
