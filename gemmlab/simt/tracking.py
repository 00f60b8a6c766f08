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
    requests, passes, _ = _per_launch(m, array, at, mask, transactions.wavefronts)
    m.count(line, f"shared_{op}_requests", requests)
    m.count(line, f"shared_{op}_wavefronts", passes)
    least = requests * max(1, array.itemsize // transactions.WORD)
    m.count(line, "shared_bank_conflicts", passes - least)


def _per_launch(m: Machine, array: Array, at: Any, mask: Mask, rule: Any) -> tuple[int, int, int]:
    """(requests, transactions by `rule`, active lanes) of all blocks of the batch.

    Where neither address nor mask depends on the block, one block is counted for all of them, and
    remembered: the same access comes again in the next iteration.
    """
    at = np.asarray(at)
    same = _same(at, mask)
    key = (rule, array.itemsize, at.tobytes(), None if mask is None else mask.tobytes())
    if same and key in m.counted:
        return m.counted[key]
    places, on = by_warp(m, at, mask)
    requests = int(transactions.requests(on).sum())
    if (at.ndim == 2 and at.shape[1] == 1) or at.ndim == 0:  # one address for a whole warp
        passes = requests * (max(1, array.itemsize // 4) if array.space == "shared" else 1)
    else:
        extra = (array.itemsize,) if array.space == "shared" else ()
        passes = int(rule(places * array.itemsize, on, *extra).sum())
    times = len(m.blocks) if same else 1
    result = requests * times, passes * times, int(on.sum()) * times
    if same:
        m.counted[key] = result
    return result


def _same(at: np.ndarray, mask: Mask) -> bool:
    """Whether every block of the batch makes the same access."""
    return (at.ndim < 2 or len(at) == 1) and (not isinstance(mask, np.ndarray) or len(mask) == 1)


def by_warp(m: Machine, at: Any, mask: Mask) -> tuple[np.ndarray, np.ndarray]:
    """Elements and active lanes as (blocks, warps, 32); one block where all do the same."""
    at = np.asarray(at)
    rows = 1 if _same(at, mask) else len(m.blocks)
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
    """Report a race with another block, or with another thread of the block in this interval.

    value : what is written, where it is known
    """
    elements, places = lanes_of(m, at, mask)
    row, thread = places // m.threads, places % m.threads
    lane = m.blocks[row, 0] * m.threads + thread
    epoch = np.broadcast_to(m.epoch, (len(m.blocks), 1))[row, 0]
    clash = getattr(array.shadow, op)(elements, lane, m.threads, epoch)
    if clash is not None:
        i, other, text, count = Clash(*clash)
        block, other_thread = divmod(other, m.threads)
        same = block == m.blocks[row[i], 0]
        lanes = (row[i], thread[i]), (block - m.blocks[0, 0], other_thread)
        values = _at_stake(m, array.buffer[elements[i]], value, *lanes, text)
        name = "thread {other}" if same else f"a thread of block {m.block_name(block)}"
        m.report_hazard(
            "global-race", line, int(m.blocks[row[i], 0]), int(thread[i]), other_thread,
            f"thread {{thread}} {text.format(name)}, at element {int(elements[i])} of {array.name}"
            f"{values}", count,
        )  # fmt: skip


def _at_stake(m: Machine, old: Any, value: Any, lane: tuple, other: tuple, text: str) -> str:
    """The values of a race, as its message ends: what is there, and what two lanes write."""
    values = None if value is None else spread(m, value)
    if text.startswith("writes"):  # both lanes by the same instruction
        return "" if values is None else f" ({values[lane]} and {values[other]})"
    return f" ({old})" if values is None else f" ({old}, now {values[lane]})"


def track_shared(
    m: Machine, line: int, op: str, array: Array, at: Any, mask: Mask, value: Any = None
) -> None:
    """Report a race with another thread since the last barrier, or a read of what none wrote.

    value : what is written, where it is known
    """
    per_block = any(isinstance(x, np.ndarray) and x.ndim == 2 and len(x) > 1
                    for x in (at, mask, m.epoch))  # fmt: skip
    if per_block:
        array.shadow.widen(len(m.blocks))
    if len(array.shadow.writer) > 1:
        elements, places = lanes_of(m, at, mask)
        row, thread = places // m.threads, places % m.threads
        epoch = np.broadcast_to(m.epoch, (len(m.blocks), 1))[row, 0]
    else:
        elements = np.broadcast_to(at, (1, m.threads))[0]
        thread, epoch = m.thread[0], m.epoch
        if mask is not None:
            on = np.broadcast_to(mask, (1, m.threads))[0]
            elements, thread = elements[on], thread[on]
        row = np.zeros_like(thread)
    where = (row, elements)
    times = len(m.blocks) // len(array.shadow.writer)
    if op == "read" and not array.shadow.initialised[where].all():
        unset = ~array.shadow.initialised[where]
        i = int(unset.argmax())
        m.report_hazard(
            "uninitialised-read", line, int(m.blocks[row[i], 0]), int(thread[i]), None,
            f"thread {{thread}} reads {element(array, elements[i])}, which nobody has written",
            times * int(unset.sum()),
        )  # fmt: skip
    clash: Clash | None = getattr(array.shadow, op)(where, thread, epoch)
    if clash is not None:
        i, other, text, count = Clash(*clash)
        old = array.buffer[row[i], elements[i]]
        values = _at_stake(m, old, value, (row[i], thread[i]), (row[i], other), text)
        m.report_hazard(
            "shared-race", line, int(m.blocks[row[i], 0]), int(thread[i]), other,
            f"thread {{thread}} {text.format('{other}')}, {element(array, elements[i])}"
            f"{values}, with no barrier between them", times * count,
        )  # fmt: skip


def element(array: Array, flat: Any) -> str:
    """An element by its indices, such as As[3, 0]."""
    size = array.buffer.shape[0 if array.space == "local" else -1]
    whole = all(np.ndim(d) == 0 for d in array.shape) and array.size == size
    index = np.unravel_index(int(flat), [int(d) for d in array.shape]) if whole else (flat,)
    return f"{array.name}[{', '.join(str(int(i)) for i in index)}]"
