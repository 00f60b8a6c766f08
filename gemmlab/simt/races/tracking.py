"""Accesses checked for races with other threads, and for reads of unwritten shared memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gemmlab.model.transactions import WARP
from gemmlab.simt.numbers.lanes import same_in_blocks
from gemmlab.simt.numbers.masks import Mask
from gemmlab.simt.races.shadow import Clash

if TYPE_CHECKING:
    from gemmlab.simt.machine.machine import Machine
    from gemmlab.simt.memory.array import Array


def track_global(
    m: Machine, line: int, op: str, array: Array, at: Any, mask: Mask, value: Any = None
) -> None:
    """Report a race: an access by another thread, and nothing orders the two.

    op : "read", "write" or "atomic"; value : what is written, where it is known
    """
    if array.shadow is None:  # as of an array that the host has marked
        raise TypeError(f"{array.name} is read-only, and cannot be written; pass a copy of it")
    elements, places = m.lanes.of(at, mask)
    row, thread = places // m.lanes.threads, places % m.lanes.threads
    lane = m.lanes.blocks[row, 0] * m.lanes.threads + thread
    sync = 0 if m.waits.syncs is None else m.waits.syncs[row, thread // WARP]
    clash: Clash | None = getattr(array.shadow, op)(
        elements, lane, m.lanes.threads, m.waits.epochs(row), sync, line
    )
    if clash is None:
        return
    i = clash.lane
    block, other = divmod(clash.other, m.lanes.threads)
    who = int(m.lanes.blocks[row[i], 0]), int(thread[i])
    lanes = (row[i], thread[i]), (block - m.lanes.blocks[0, 0], other)
    values = _at_stake(m, array.buffer[elements[i]], value, *lanes, clash)
    place = array.element(elements[i])
    count = int(clash.lanes.sum())
    m.findings.race(line, clash, who, (block, other), place, values, count)


def track_shared(
    m: Machine, line: int, op: str, array: Array, at: Any, mask: Mask, value: Any = None
) -> None:
    """Report a race with another thread of the block, or a read of an unwritten element.

    op : "read", "write" or "atomic"; value : what is written, where it is known
    """
    shadow, blocks, epoch = array.shadow, m.lanes.blocks, m.waits.epoch
    if np.ndim(epoch) > 0 or not same_in_blocks(np.asarray(at), mask):
        shadow.widen(len(blocks))
    if len(shadow.writer) > 1:
        elements, places = m.lanes.of(at, mask)
        row, thread = places // m.lanes.threads, places % m.lanes.threads
        epoch = m.waits.epochs(row)
    else:
        row, elements, thread = _in_one_row(m, at, mask)
    times = len(blocks) // len(shadow.writer)
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
        lane = int(blocks[row[i], 0]), int(thread[i])
        m.findings.unwritten(line, lane, array.element(elements[i]), op, times * int(unset.sum()))
    clash: Clash | None = getattr(shadow, op)(where, lanes, moment, line)
    if clash is not None:
        i, other = clash.lane // units, clash.other
        old = array.buffer[row[i], elements[i]]
        values = _at_stake(m, old, value, (row[i], thread[i]), (row[i], other), clash)
        block = int(blocks[row[i], 0])
        count = times * int(clash.lanes.reshape(-1, units).any(axis=1).sum())
        who, place = (block, int(thread[i])), array.element(elements[i])
        m.findings.race(line, clash, who, (block, other), place, values, count)


def _at_stake(m: Machine, old: Any, value: Any, lane: tuple, other: tuple, clash: Clash) -> str:
    """The values of a race as its message shows them: the one in memory, those that lanes write."""
    values = None if value is None else m.lanes.spread(value)
    if clash.at_once:
        return "" if values is None else f" ({values[lane]!s} and {values[other]!s})"
    return f" ({old!s})" if values is None else f" ({old!s}, now {values[lane]!s})"


def _in_one_row(m: Machine, at: Any, mask: Mask) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row 0, the elements and the threads of the active lanes, where every block does the same."""
    known = m.memory.again.get((_in_one_row, at, mask))
    if known is None:
        threads = m.lanes.threads
        elements, thread = np.broadcast_to(at, (1, threads))[0], m.lanes.thread[0]
        if mask is not None:
            on = np.broadcast_to(mask, (1, threads))[0]
            elements, thread = elements[on], thread[on]
        known = np.zeros_like(thread), elements, thread
        m.memory.again.put((_in_one_row, at, mask), known)
    return known
