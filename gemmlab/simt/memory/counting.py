"""An access to memory costs requests, sectors, wavefronts and bank conflicts, counted here."""

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from gemmlab.model import transactions
from gemmlab.simt.memory.array import Array
from gemmlab.simt.memory.batch import MemoryBatch
from gemmlab.simt.numbers.lanes import Mask, same_in_blocks

GLOBAL = (transactions.sectors,)
# The counters of an access, by space and operation; `_cost` gives the amounts.
COUNTERS = {
    (space, op): tuple(name.format(op) for name in names)
    for op in ("load", "store", "atomic")
    for space, names in {
        "global": ("global_{}_requests", "global_{}_sectors", "global_{}_bytes"),
        "shared": ("shared_{}_requests", "shared_{}_wavefronts", "shared_bank_conflicts"),
    }.items()
}


@dataclass(frozen=True, eq=False)  # told apart by identity, which is fast
class OneAddress:
    """An access of all lanes of a warp to one address: a request, a sector or wavefront, bytes.

    names : of the counters; itemsize : bytes of each lane, where these are counted
    """

    names: tuple[str, str, str]
    itemsize: int


def count_access(m: MemoryBatch, line: int, op: str, array: Array, at: Any, mask: Mask) -> None:
    """Count an access to global or shared memory: a "load", a "store" or an "atomic"."""
    if array.space not in ("global", "shared"):
        return
    for watch in m.report.watchers:
        watch(m, line, op, array, at, mask)
    if m.apart is not None:
        m.apart.keep(line, op, array, at, mask)
        return
    if mask is m.masks[-1] and _one_for_all(array, at):
        m.tally.tick(line, _access(array.space, op, array.itemsize))
        return
    m.tally.add(line, COUNTERS[array.space, op], _cost(m, op, array, at, mask))


@cache
def _access(space: str, op: str, itemsize: int) -> OneAddress:
    return OneAddress(COUNTERS[space, op], itemsize if space == "global" else 0)


def _one_for_all(array: Array, at: Any) -> bool:
    """Say whether all lanes of a warp ask for one address, and get it at once."""
    narrow = array.space == "global" or array.itemsize <= transactions.WORD
    return narrow and (type(at) is np.int64 or getattr(at, "shape", (1,))[-1:] in ((), (1,)))


def _cost(m: MemoryBatch, op: str, array: Array, at: Any, mask: Mask) -> tuple[int, int, int]:
    """An access adds these amounts to its `COUNTERS`, over all blocks of the batch.

    The result is cached, because the next iteration makes the same access again.
    """
    requests, lanes = m.tally.active(mask)
    is_global = array.space == "global"
    if _one_for_all(array, at):
        return requests, requests, lanes * array.itemsize if is_global else 0
    rules = GLOBAL if is_global else transactions.SHARED_PASSES[array.merges(op)]
    met = (rules, array.dtype, at, mask)
    cost = m.memory.again.get(met)
    if cost is None:
        passes = _transactions(m, array, at, mask, rules[0])
        if is_global:
            last = lanes * array.itemsize
        elif array.itemsize > transactions.WORD:
            last = passes - _transactions(m, array, at, mask, rules[1])
        else:
            last = passes - requests
        cost = requests, passes, last
        if same_in_blocks(at, mask):
            m.memory.again.put(met, cost)
    return cost


def _transactions(m: MemoryBatch, array: Array, at: Any, mask: Mask, rule: Any) -> int:
    """Transactions by `rule` of all blocks of the batch.

    Blocks that make the same access, perhaps to another place, are counted once.
    """
    pattern = _pattern(np.atleast_2d(at), array, mask)
    places, on = m.lanes.warps_of(pattern, mask)
    width = array.itemsize if array.space == "shared" else 0
    if not same_in_blocks(pattern, mask):
        return _counted(rule, places * array.itemsize, on, width)
    one = _of_a_block(rule, (places * array.itemsize).tobytes(), on.tobytes(), width)
    return one * len(m.lanes.blocks)


def _pattern(at: np.ndarray, array: Array, mask: Mask) -> np.ndarray:
    """The elements of each block, moved towards the array's start; one row where all are alike.

    They move by whole words of shared memory and whole sectors of global memory, which does not
    change the number of transactions.
    """
    if not same_in_blocks(at[:1], mask):
        return at
    bytes_moved = transactions.WORD if array.space == "shared" else transactions.SECTOR
    step = max(1, bytes_moved // array.itemsize)
    if len(at) > 1:
        moved = at[:, :1] - at[:1, :1]
        alike = not (moved % step).any() and (at - moved == at[:1]).all()
        at = at[:1] if alike else at
    return at - at.min(axis=1, keepdims=True) // step * step


def _counted(rule: Any, addresses: np.ndarray, on: np.ndarray, width: int) -> int:
    """Transactions of all warps; `width` bytes a lane where the memory is shared, else 0."""
    return int(rule(addresses, on, *([width] if width else [])).sum())


@lru_cache(maxsize=1024)  # of this launch and of those to come
def _of_a_block(rule: Any, addresses: bytes, on: bytes, width: int) -> int:
    lanes = np.frombuffer(addresses, np.int64), np.frombuffer(on, bool)
    return _counted(rule, *(part.reshape(-1, transactions.WARP) for part in lanes), width)
