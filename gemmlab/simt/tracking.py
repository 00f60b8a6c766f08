"""What an access costs, and who touched the same element before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gemmlab.model import transactions
from gemmlab.simt.hazards import Clash
from gemmlab.simt.masks import Mask
from gemmlab.simt.memory import Array

if TYPE_CHECKING:
    from gemmlab.simt.machine import Machine


def count_global(m: Machine, line: int, op: str, array: Array, at: Any, mask: Mask) -> None:
    """Requests, sectors and bytes of one access to global memory."""
    for watch in m.report.watchers:
        watch(m, line, op, array, at, mask)
    requests, sectors, lanes = _per_launch(m, array, at, mask, transactions.sectors)
    m.count(line, f"global_{op}_requests", requests)
    m.count(line, f"global_{op}_sectors", sectors)
    m.count(line, f"global_{op}_bytes", lanes * array.itemsize)


def count_shared(m: Machine, line: int, op: str, array: Array, at: Any, mask: Mask) -> None:
    """Requests, wavefronts and bank conflicts of one access to shared memory."""
    for watch in m.report.watchers:
        watch(m, line, op, array, at, mask)
    taken, needed = transactions.SHARED_PASSES[array.merges(op)]
    requests, passes, _ = _per_launch(m, array, at, mask, taken)
    m.count(line, f"shared_{op}_requests", requests)
    m.count(line, f"shared_{op}_wavefronts", passes)
    least = requests
    if array.itemsize > transactions.WORD:
        _, least, _ = _per_launch(m, array, at, mask, needed)
    m.count(line, "shared_bank_conflicts", passes - least)


def _per_launch(m: Machine, array: Array, at: Any, mask: Mask, rule: Any) -> tuple[int, int, int]:
    """(requests, transactions by `rule`, active lanes) of all blocks of the batch.

    Where all blocks do the same, but for where it begins, one is counted for all of them, and
    remembered: the same access comes again in the next iteration.
    """
    met = (rule, array.dtype, at, mask)
    found = m.again.get(met)
    if found is None:
        pattern = _pattern(np.atleast_2d(at), array, mask)
        if not same_in_blocks(pattern, mask):
            return _counts(m, array, pattern, mask, rule)
        key = (rule, array.itemsize, pattern.tobytes(), mask is not None and mask.tobytes())
        found = m.counted.get(key)
        if found is None:
            found = m.counted[key] = _counts(m, array, pattern, mask, rule)
        if same_in_blocks(at, mask):
            m.again.put(met, found)
    return found


def _pattern(at: np.ndarray, array: Array, mask: Mask) -> np.ndarray:
    """The elements of each block, moved to the array's start; one row where all do the same.

    By whole words of shared memory, and by whole sectors of global memory: neither changes how
    many transactions an access takes.
    """
    if not same_in_blocks(at[:1], mask):
        return at
    bytes_moved = transactions.WORD if array.space == "shared" else transactions.SECTOR
    step = max(1, bytes_moved // array.itemsize)
    pattern = at - at.min(axis=1, keepdims=True) // step * step
    return pattern[:1] if (pattern == pattern[:1]).all() else pattern


def _counts(m: Machine, array: Array, at: np.ndarray, mask: Mask, rule: Any) -> tuple:
    places, on = by_warp(m, at, mask)
    requests = int(transactions.requests(on).sum())
    wide = array.space == "shared" and array.itemsize > transactions.WORD
    if at.shape[1] == 1 and not wide:  # one address for a whole warp
        passes = requests
    else:
        extra = (array.itemsize,) if array.space == "shared" else ()
        passes = int(rule(places * array.itemsize, on, *extra).sum())
    times = len(m.blocks) // len(on)
    return requests * times, passes * times, int(on.sum()) * times


def same_in_blocks(at: np.ndarray, mask: Mask) -> bool:
    """Whether every block of the batch makes the same access."""
    return (at.ndim < 2 or len(at) == 1) and (not isinstance(mask, np.ndarray) or len(mask) == 1)


def by_warp(m: Machine, at: Any, mask: Mask) -> tuple[np.ndarray, np.ndarray]:
    """Elements and active lanes as (blocks, warps, 32); one block where all do the same."""
    at = np.asarray(at)
    rows = 1 if same_in_blocks(at, mask) else len(m.blocks)
    warps = (rows, m.threads // transactions.WARP, transactions.WARP)
    shape = (rows, m.threads)
    on = np.ones(warps, bool) if mask is None else np.broadcast_to(mask, shape).reshape(warps)
    return np.broadcast_to(at, shape).reshape(warps), on


def spread(m: Machine, value: Any) -> np.ndarray:
    """A value of each lane, (blocks, threads)."""
    return np.broadcast_to(value, (len(m.blocks), m.threads))


def lanes_of(m: Machine, at: Any, mask: Mask) -> tuple[np.ndarray, np.ndarray]:
    """The elements of the active lanes, one after the other, and those lanes' places."""
    on = m.full(mask)
    return spread(m, at)[on], np.flatnonzero(on)


def track_global(
    m: Machine, line: int, op: str, array: Array, at: Any, mask: Mask, value: Any = None
) -> None:
    """Report a race with another thread that nothing puts before this one.

    value : what is written, where it is known
    """
    elements, places = lanes_of(m, at, mask)
    row, thread = places // m.threads, places % m.threads
    lane = m.blocks[row, 0] * m.threads + thread
    epoch = np.broadcast_to(m.epoch, (len(m.blocks), 1))[row, 0]
    sync = 0 if m.syncs is None else m.syncs[row, thread // transactions.WARP]
    clash: Clash | None = getattr(array.shadow, op)(elements, lane, m.threads, epoch, sync)
    if clash is None:
        return
    i = clash.lane
    block, other = divmod(clash.other, m.threads)
    same = block == m.blocks[row[i], 0]
    lanes = (row[i], thread[i]), (block - m.blocks[0, 0], other)
    values = _at_stake(m, array.buffer[elements[i]], value, *lanes, clash.text)
    name = "thread {other}" + ("" if same else f" of block {m.block_name(block)}")
    m.report_hazard(
        "global-race", line, int(m.blocks[row[i], 0]), int(thread[i]), other,
        f"thread {{thread}} {clash.text.format(name)}, {element(array, elements[i])}{values}, "
        + (_between(int(thread[i]), other) if same else "and nothing orders the two blocks"),
        int(clash.lanes.sum()),
    )  # fmt: skip


def _at_stake(m: Machine, old: Any, value: Any, lane: tuple, other: tuple, text: str) -> str:
    """The values of a race: what is there, and what two lanes write."""
    values = None if value is None else spread(m, value)
    if text.startswith("writes"):  # both lanes by the same instruction
        return "" if values is None else f" ({values[lane]!s} and {values[other]!s})"
    return f" ({old!s})" if values is None else f" ({old!s}, now {values[lane]!s})"


def _between(thread: int, other: int) -> str:
    """What would have kept two threads of a block apart, and is not there."""
    wait = " or syncwarp" if thread // transactions.WARP == other // transactions.WARP else ""
    return f"with no barrier{wait} between them"


def track_shared(
    m: Machine, line: int, op: str, array: Array, at: Any, mask: Mask, value: Any = None
) -> None:
    """Report a race with another thread since the last barrier, or a read of what none wrote.

    value : what is written, where it is known
    """
    shadow = array.shadow
    if np.ndim(m.epoch) > 0 or not same_in_blocks(np.asarray(at), mask):
        shadow.widen(len(m.blocks))
    epoch = m.epoch
    if len(shadow.writer) > 1:
        elements, places = lanes_of(m, at, mask)
        row, thread = places // m.threads, places % m.threads
        epoch = np.broadcast_to(m.epoch, (len(m.blocks), 1))[row, 0]
    else:
        row, elements, thread = _in_one_row(m, at, mask)
    times = len(m.blocks) // len(shadow.writer)
    units, where, lanes, moment = 1, (row, elements), thread, epoch
    if shadow.unit:  # elements may be made of several units that are tracked
        units = array.itemsize // shadow.unit
        where = np.repeat(row, units), (elements[:, None] * units + np.arange(units)).ravel()
        lanes = np.repeat(thread, units)
        moment = np.repeat(epoch, units) if np.ndim(epoch) else epoch
    unset = None if op == "write" else shadow.unset(where)
    if unset is not None:
        unset = unset.reshape(-1, units).any(axis=1)
        i = int(unset.argmax())
        m.report_hazard(
            "uninitialised-read", line, int(m.blocks[row[i], 0]), int(thread[i]), None,
            f"thread {{thread}} {'reads' if op == 'read' else 'updates'} "
            f"{element(array, elements[i])}, which nobody has written", times * int(unset.sum()),
        )  # fmt: skip
    clash: Clash | None = getattr(shadow, op)(where, lanes, moment)
    if clash is not None:
        i, other = clash.lane // units, clash.other
        old = array.buffer[row[i], elements[i]]
        values = _at_stake(m, old, value, (row[i], thread[i]), (row[i], other), clash.text)
        m.report_hazard(
            "shared-race", line, int(m.blocks[row[i], 0]), int(thread[i]), other,
            f"thread {{thread}} {clash.text.format('{other}')}, {element(array, elements[i])}"
            f"{values}, {_between(int(thread[i]), other)}",
            times * int(clash.lanes.reshape(-1, units).any(axis=1).sum()),
        )  # fmt: skip


def _in_one_row(m: Machine, at: Any, mask: Mask) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row 0, the elements and the threads of the active lanes, where every block does the same."""
    known = m.again.get((_in_one_row, at, mask))
    if known is None:
        elements, thread = np.broadcast_to(at, (1, m.threads))[0], m.thread[0]
        if mask is not None:
            on = np.broadcast_to(mask, (1, m.threads))[0]
            elements, thread = elements[on], thread[on]
        known = np.zeros_like(thread), elements, thread
        m.again.put((_in_one_row, at, mask), known)
    return known


def element(array: Array, flat: Any) -> str:
    """An element of a buffer by its indices in the array that owns it, such as As[3, 0]."""
    owner, rest = array.owner, int(flat) - int(array.owner.offset)
    index = dict.fromkeys(range(owner.ndim), 0)
    for axis in sorted(index, key=lambda i: -owner.strides[i]):
        if owner.shape[axis] > 1:
            index[axis], rest = divmod(rest, int(owner.strides[axis]))
    return f"{owner.name}[{', '.join(str(i) for i in index.values())}]"
