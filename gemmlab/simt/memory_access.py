"""Loads and stores: find the element of each lane, count the transactions, check, move the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gemmlab.model import transactions
from gemmlab.simt.hazards import Clash
from gemmlab.simt.masks import Mask, both
from gemmlab.simt.memory import Array
from gemmlab.simt.values import widen

if TYPE_CHECKING:
    from gemmlab.simt.machine import Machine


def load(m: Machine, array: Array, index: Any, line: int) -> Any:
    """`array[index]` for each active lane, or a view where fewer indices than dimensions are given.

    Lanes that are off get an arbitrary value.
    """
    if not isinstance(array, Array):
        raise TypeError(f"line {line}: {array!r} is not an array")
    found, mask = locate(m, array, index, line)
    if isinstance(found, Array):
        return found
    if mask is False:
        return widen(array.dtype.type(0))
    if mask is not None:
        found = np.where(mask, found, 0)
    if array.space == "global":
        count_global(m, line, "load", array, found, mask)
        if array.shadow is not None:
            track_global(m, line, "read", array, found, mask)
        value = array.buffer[found]
    elif array.space == "shared":
        count_shared(m, line, "load", array, found, mask)
        track_shared(m, line, "read", array, found, mask)
        value = _shared_values(m, array, found)
    elif array.space == "local":
        value = _load_local(m, line, array, found, mask)
    else:
        value = array.buffer[found]
    return widen(value)


def store(m: Machine, array: Array, index: Any, value: Any, line: int) -> None:
    """`array[index] = value` for each active lane."""
    found, mask = locate(m, array, index, line)
    if isinstance(found, Array):
        raise TypeError(f"line {line}: assign to single elements of {array.name}, one at a time")
    if mask is False:
        return
    if array.space == "constant":
        raise TypeError(f"line {line}: {array.name or 'a constant array'} cannot be written")
    if mask is not None:
        found = np.where(mask, found, 0)
    value = np.asarray(value).astype(array.dtype, copy=False)
    if array.space == "global":
        count_global(m, line, "store", array, found, mask)
        track_global(m, line, "write", array, found, mask)
        at, _ = _lanes(m, found, mask)
        array.buffer[at] = _spread(m, value)[m.full(mask)]
    elif array.space == "shared":
        count_shared(m, line, "store", array, found, mask)
        track_shared(m, line, "write", array, found, mask)
        _store_shared(m, array, found, mask, value)
    else:
        _store_local(m, array, found, mask, value)


# Where


def locate(m: Machine, array: Array, index: Any, line: int) -> tuple[Any, Mask]:
    """The element of each lane in the array's buffer, and the lanes whose index is valid.

    A view instead, where `index` leaves dimensions open. An index outside the array is a hazard;
    negative ones count from the end, as in Numba.
    """
    parts = index if isinstance(index, tuple) else (index,)
    if len(parts) > array.ndim:
        raise IndexError(
            f"line {line}: {array.name} has {array.ndim} dimensions, not {len(parts)}: "
            f"{m.report.source.code(line)}"
        )
    mask, offset = m.masks[-1], array.offset
    shape, strides = list(array.shape[len(parts) :]), list(array.strides[len(parts) :])
    for axis in range(len(parts) - 1, -1, -1):
        part, extent, stride = parts[axis], array.shape[axis], array.strides[axis]
        if isinstance(part, slice):
            start = 0 if part.start is None else _bound(part.start, extent)
            stop = extent if part.stop is None else _bound(part.stop, extent)
            offset = offset + start * stride
            shape.insert(0, np.maximum(stop - start, 0))
            strides.insert(0, stride)
        else:
            part, mask = _within(m, array, axis, part, extent, mask, line)
            offset = offset + (part if stride == 1 else part * stride)
    return (array.view(tuple(shape), tuple(strides), offset) if shape else offset), mask


def _bound(value: Any, extent: Any) -> Any:
    """The bound of a slice, brought into 0 … extent as Python does it."""
    return np.clip(np.where(np.less(value, 0), value + extent, value), 0, extent)[()]


def _within(
    m: Machine, array: Array, axis: int, part: Any, extent: Any, mask: Mask, line: int
) -> tuple[Any, Mask]:
    """An index brought into 0 … extent, and the lanes for which that could be done."""
    if getattr(part, "dtype", np.dtype(np.int64)).kind not in "iub":
        raise TypeError(
            f"line {line}: {array.name} is indexed with {part.dtype} numbers; use integers: "
            f"{m.report.source.code(line)}"
        )
    if getattr(part, "dtype", None) == np.uint64:
        part = part.astype(np.int64)
    low, high = m.extent(part)
    if np.ndim(extent) == 0 and low >= 0 and high < extent:
        return part, mask
    bad = (part >= extent) | (part < -extent)
    outside = both(mask, bad)
    if outside is not False:
        where = m.full(outside)
        row, thread = np.unravel_index(int(where.argmax()), where.shape)
        value = int(np.broadcast_to(part, where.shape)[row, thread])
        size = int(np.broadcast_to(extent, where.shape)[row, thread])
        place = ", ".join(str(value) if a == axis else "…" for a in range(array.ndim))
        text = f"{array.name}[{place}] is outside, its dimension {axis} has {size} elements"
        m.hazard("out-of-bounds", line, outside, None, text)
        mask = both(mask, ~bad)
    if np.ndim(part) == 0:
        return (part + extent if part < 0 else part), mask
    return np.where(bad, 0, np.where(part < 0, part + extent, part)), mask


# What it costs


def count_global(m: Machine, line: int, op: str, array: Array, at: Any, mask: Mask) -> None:
    """Requests, sectors and bytes of one access to global memory."""
    requests, sectors, lanes = _per_launch(m, array, at, mask, transactions.sectors)
    m.count(line, f"global_{op}_requests", requests)
    m.count(line, f"global_{op}_sectors", sectors)
    m.count(line, f"global_{op}_bytes", lanes * array.itemsize)


def count_shared(m: Machine, line: int, op: str, array: Array, at: Any, mask: Mask) -> None:
    """Requests, wavefronts and bank conflicts of one access to shared memory."""
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
    same = (at.ndim < 2 or len(at) == 1) and (not isinstance(mask, np.ndarray) or len(mask) == 1)
    key = (rule, array.itemsize, at.tobytes(), None if mask is None else mask.tobytes())
    if same and key in m.counted:
        return m.counted[key]
    rows = 1 if same else len(m.blocks)
    warps = (rows, m.threads // transactions.WARP, transactions.WARP)
    shape = (rows, m.threads)
    on = np.ones(warps, bool) if mask is None else np.broadcast_to(mask, shape).reshape(warps)
    requests = int(transactions.requests(on).sum())
    if (at.ndim == 2 and at.shape[1] == 1) or at.ndim == 0:  # one address for a whole warp
        passes = requests * (max(1, array.itemsize // 4) if array.space == "shared" else 1)
    else:
        address = np.broadcast_to(at, shape).reshape(warps) * array.itemsize
        extra = (array.itemsize,) if array.space == "shared" else ()
        passes = int(rule(address, on, *extra).sum())
    times = len(m.blocks) if same else 1
    result = requests * times, passes * times, int(on.sum()) * times
    if same:
        m.counted[key] = result
    return result


# Who touched it


def _spread(m: Machine, value: Any) -> np.ndarray:
    return np.broadcast_to(value, (len(m.blocks), m.threads))


def _lanes(m: Machine, at: Any, mask: Mask) -> tuple[np.ndarray, np.ndarray]:
    """The elements of the active lanes, one after the other, and those lanes' places."""
    on = m.full(mask)
    return _spread(m, at)[on], np.flatnonzero(on)


def track_global(m: Machine, line: int, op: str, array: Array, at: Any, mask: Mask) -> None:
    """Report a race with another block, or with another thread of the block in this interval."""
    elements, places = _lanes(m, at, mask)
    row, thread = places // m.threads, places % m.threads
    lane = m.blocks[row, 0] * m.threads + thread
    epoch = np.broadcast_to(m.epoch, (len(m.blocks), 1))[row, 0]
    clash = getattr(array.shadow, op)(elements, lane, m.threads, epoch)
    if clash is not None:
        i, other, text = clash
        block, other_thread = divmod(other, m.threads)
        same = block == m.blocks[row[i], 0]
        name = "thread {other}" if same else f"a thread of block {m.block_name(block)}"
        m.report_hazard(
            "global-race", line, int(m.blocks[row[i], 0]), int(thread[i]), other_thread,
            f"thread {{thread}} {text.format(name)}, at element {int(elements[i])} of {array.name}",
        )  # fmt: skip


def track_shared(m: Machine, line: int, op: str, array: Array, at: Any, mask: Mask) -> None:
    """Report a race with another thread since the last barrier, or a read of what none wrote."""
    per_block = any(isinstance(x, np.ndarray) and x.ndim == 2 and len(x) > 1
                    for x in (at, mask, m.epoch))  # fmt: skip
    if per_block:
        array.shadow.widen(len(m.blocks))
    if len(array.shadow.writer) > 1:
        elements, places = _lanes(m, at, mask)
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
    if op == "read" and not array.shadow.initialised[where].all():
        i = int((~array.shadow.initialised[where]).argmax())
        m.report_hazard(
            "uninitialised-read", line, int(m.blocks[row[i], 0]), int(thread[i]), None,
            f"thread {{thread}} reads {_element(array, elements[i])}, which nobody has written",
        )  # fmt: skip
    clash: Clash | None = getattr(array.shadow, op)(where, thread, epoch)
    if clash is not None:
        i, other, text = clash
        m.report_hazard(
            "shared-race", line, int(m.blocks[row[i], 0]), int(thread[i]), other,
            f"thread {{thread}} {text.format('{other}')}, {_element(array, elements[i])}, "
            "with no barrier between them",
        )  # fmt: skip


def _element(array: Array, flat: Any) -> str:
    """An element by its indices, such as As[3, 0]."""
    size = array.buffer.shape[0 if array.space == "local" else -1]
    whole = all(np.ndim(d) == 0 for d in array.shape) and array.size == size
    index = np.unravel_index(int(flat), [int(d) for d in array.shape]) if whole else (flat,)
    return f"{array.name}[{', '.join(str(int(i)) for i in index)}]"


# Moving the data


def _shared_values(m: Machine, array: Array, at: Any) -> Any:
    at = np.asarray(at)
    if at.ndim == 0:
        return array.buffer[:, at].reshape(-1, 1)
    if len(at) == 1:
        return array.buffer[:, at[0]]
    return array.buffer[m.row, at]


def _store_shared(m: Machine, array: Array, at: Any, mask: Mask, value: np.ndarray) -> None:
    if mask is None and np.ndim(at) == 2 and len(at) == 1:
        array.buffer[:, np.broadcast_to(at, (1, m.threads))[0]] = _spread(m, value)
        return
    elements, places = _lanes(m, at, mask)
    array.buffer[places // m.threads, elements] = _spread(m, value).reshape(-1)[places]


def _load_local(m: Machine, line: int, array: Array, at: Any, mask: Mask) -> Any:
    if np.ndim(at) == 0:
        written, value = array.shadow[int(at)], array.buffer[int(at)].copy()
    else:
        at = _spread(m, at)
        value = array.buffer[at, m.row, m.thread]
        shadow = np.broadcast_to(array.shadow, array.buffer.shape)
        written = shadow[at, m.row, m.thread]
    unset = both(mask, ~written)
    if unset is not False:
        first = int(_spread(m, at)[m.full(unset)][0])
        text = f"thread {{thread}} reads {_element(array, first)}, which it has not written"
        m.hazard("uninitialised-read", line, unset, None, text)
    return value


def _store_local(m: Machine, array: Array, at: Any, mask: Mask, value: np.ndarray) -> None:
    everywhere = mask is None
    if np.ndim(at) == 0 and (everywhere or array.shadow[int(at)].all()):
        np.copyto(array.buffer[int(at)], value, where=True if everywhere else mask)
        array.shadow[int(at)] = True
        return
    if array.shadow.shape != array.buffer.shape:
        array.shadow = np.broadcast_to(array.shadow, array.buffer.shape).copy()
    on = m.full(mask)
    rows, threads = np.nonzero(on)
    elements = _spread(m, at)[on]
    array.buffer[elements, rows, threads] = _spread(m, value)[on]
    array.shadow[elements, rows, threads] = True
