"""What an access to memory costs: requests, sectors, wavefronts, bank conflicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gemmlab.model import transactions
from gemmlab.simt.memory.array import Array
from gemmlab.simt.numbers.lanes import same_in_blocks
from gemmlab.simt.numbers.masks import Mask

if TYPE_CHECKING:
    from gemmlab.simt.machine.machine import Machine


def count_access(m: Machine, line: int, op: str, array: Array, at: Any, mask: Mask) -> None:
    """Count an access to global or shared memory: a "load", a "store" or an "atomic"."""
    if array.space not in ("global", "shared"):
        return
    for watch in m.report.watchers:
        watch(m, line, op, array, at, mask)
    if m.apart is not None:
        m.apart.keep(line, op, array, at, mask)
        return
    (_count_global if array.space == "global" else _count_shared)(m, line, op, array, at, mask)


def _count_global(m: Machine, line: int, op: str, array: Array, at: Any, mask: Mask) -> None:
    requests, sectors, lanes = _per_launch(m, array, at, mask, transactions.sectors)
    counters = m.tally.counters(line)
    counters[f"global_{op}_requests"] += requests
    counters[f"global_{op}_sectors"] += sectors
    counters[f"global_{op}_bytes"] += lanes * array.itemsize


def _count_shared(m: Machine, line: int, op: str, array: Array, at: Any, mask: Mask) -> None:
    taken, needed = transactions.SHARED_PASSES[array.merges(op)]
    requests, passes, _ = _per_launch(m, array, at, mask, taken)
    least = requests
    if array.itemsize > transactions.WORD:
        _, least, _ = _per_launch(m, array, at, mask, needed)
    counters = m.tally.counters(line)
    counters[f"shared_{op}_requests"] += requests
    counters[f"shared_{op}_wavefronts"] += passes
    counters["shared_bank_conflicts"] += passes - least


def _per_launch(m: Machine, array: Array, at: Any, mask: Mask, rule: Any) -> tuple[int, int, int]:
    """(requests, transactions by `rule`, active lanes) of all blocks of the batch.

    Blocks that make the same access, perhaps to another place, are counted once. The result is
    cached, because the next iteration makes the same access again.
    """
    met = (rule, array.dtype, at, mask)
    found = m.memory.again.get(met)
    if found is None:
        pattern = _pattern(np.atleast_2d(at), array, mask)
        if not same_in_blocks(pattern, mask):
            return _counts(m, array, pattern, mask, rule)
        key = (rule, array.itemsize, pattern.tobytes(), mask is not None and mask.tobytes())
        found = m.memory.counted.get(key)
        if found is None:
            found = m.memory.counted[key] = _counts(m, array, pattern, mask, rule)
        if same_in_blocks(at, mask):
            m.memory.again.put(met, found)
    return found


def _pattern(at: np.ndarray, array: Array, mask: Mask) -> np.ndarray:
    """The elements of each block, moved towards the array's start; one row where all are alike.

    They move by whole words of shared memory and whole sectors of global memory, which does not
    change the number of transactions.
    """
    if not same_in_blocks(at[:1], mask):
        return at
    bytes_moved = transactions.WORD if array.space == "shared" else transactions.SECTOR
    step = max(1, bytes_moved // array.itemsize)
    pattern = at - at.min(axis=1, keepdims=True) // step * step
    return pattern[:1] if (pattern == pattern[:1]).all() else pattern


def _counts(m: Machine, array: Array, at: np.ndarray, mask: Mask, rule: Any) -> tuple:
    places, on = m.lanes.warps_of(at, mask)
    requests = int(transactions.requests(on).sum())
    wide = array.space == "shared" and array.itemsize > transactions.WORD
    if at.shape[1] == 1 and not wide:  # one address for a whole warp
        passes = requests
    else:
        extra = (array.itemsize,) if array.space == "shared" else ()
        passes = int(rule(places * array.itemsize, on, *extra).sum())
    times = len(m.lanes.blocks) // len(on)
    return requests * times, passes * times, int(on.sum()) * times
