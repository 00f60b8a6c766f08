"""What a kernel that shares tiles may load and store, and how evenly: the technique, counted.

All of it on the largest case, whose tiles are whole. Budgets are those of the best plain style, and
the shares of threads may differ by a factor of `UNEVEN`: half of them copy, say.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gemmlab.course.judging.kernels_on_trial import Trial
from gemmlab.course.judging.verdict import Finding
from gemmlab.model.transactions import SECTOR

UNEVEN = 2  # times the mean of all threads, at most, is what one of them may do
ONE_EACH = 1.5  # the same, where tiles have one element or group for each thread to copy
GLOBAL = ("A", "B", "C", "W")
FLOAT = 4  # bytes

Facts = tuple[tuple[str, str], ...]


def judge(trials: list[Trial], facts: Facts = (), own: int = 0, of_c: int = 0) -> Finding:
    """The first budget that is not kept; "passed", with all the numbers, where all are.

    facts : more that an exercise has counted
    of_c : bytes of C that may be loaded beside A and B
    own : elements of C that are a thread's own, those of its thread tile if nothing else is said
    """
    last = trials[-1]
    counters, shares = last.report.counters, last.report.shares
    loaded, sectors = counters["global_load_bytes"], counters["global_load_sectors"]
    budget = global_budget(last)
    beside = loaded - int(shares.of("load", "A", "B").sum())
    allowed = budget + min(beside, of_c)
    copied, multiplied = shares.of("load", "A", "B"), of_shared(shares, "load")
    stored = shares.of("store", "C") // FLOAT
    own = own or int(np.prod(last.tiling.thread))
    details = {
        "loaded": loaded, "sectors": sectors, "budget": budget, "counters": dict(counters),
    }  # fmt: skip
    facts = (
        ("Values", f"right in all {len(trials)} cases and in one drawn anew, with no hazard"),
        ("Case", str(last.run.case)),
        ("Loaded from A and B", f"{loaded - beside} B; each block once per element: {budget} B"),
        *((("Loaded from C or a workspace", f"{beside} B"),) if beside else ()),
        ("Global load sectors", f"{sectors}; budget {budget // SECTOR}"),
        ("Copied by a thread", f"{_range(copied)} B"),
        ("Stored by a thread", f"{_range(stored)} elements of C; its own are {own}"),
        *facts,
    )
    too_large = next((t for t in trials if t.report.shares.shared_bytes > shared_limit(t)), None)
    if not multiplied.any():
        return Finding("shared-memory-not-used", facts, details)
    if loaded > allowed:
        return Finding("traffic-over-budget", facts, details)
    if stored.max() > own:
        return Finding("few-threads-multiply", facts, details)
    if uneven(multiplied):
        told = (("Loaded from shared memory by a thread", f"{_range(multiplied)} B"),)
        return Finding("few-threads-multiply", facts + told, details)
    if uneven(copied):
        return Finding("few-threads-copy", facts, details)
    if sectors > allowed // SECTOR:
        return Finding("copy-not-coalesced", facts, details)
    if too_large is not None:
        return _fixed(too_large, facts, details)
    return Finding("passed", facts, details)


def global_budget(trial: Trial) -> int:
    """Bytes of A and B, if each block loads each element that it needs once."""
    p = trial.run.case.problem
    across, down = trial.tiling.grid(p)
    return FLOAT * (across * p.m * p.k + down * p.k * p.n)


def shared_limit(trial: Trial) -> int:
    """Bytes of shared memory that two buffers of padded tiles take, with room to spare."""
    bm, bn, bk = trial.tiling.block
    return 2 * FLOAT * 2 * (bm + bn) * (bk + 4)


def _fixed(trial: Trial, facts: Facts, details: dict[str, Any]) -> Finding:
    taken = trial.report.shares.shared_bytes
    text = f"{taken} B with T={trial.run.case.tile}; two padded tiles take {shared_limit(trial)} B"
    told = (("Shared memory of a block", text),)
    return Finding("tile-size-fixed", facts + told, details | {"shared_bytes": taken})


def of_shared(shares: Any, op: str) -> np.ndarray:
    """What each thread loads from, or stores to, all shared arrays."""
    names = {name for _, name in shares.bytes} - set(GLOBAL)
    return shares.of(op, *names)


def uneven(share: np.ndarray, most: float = UNEVEN) -> bool:
    """Whether a thread's share is more than `most` times the mean."""
    return bool(share.max() > most * share.mean())


def _range(share: np.ndarray) -> str:
    least, most = int(share.min()), int(share.max())
    return f"{most}" if least == most else f"{least} … {most}"
