"""Loads and stores: find the element of each lane, count, check, move the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gemmlab.simt.masks import Mask, both
from gemmlab.simt.memory import Array
from gemmlab.simt.tracking import (
    count_global,
    count_shared,
    element,
    lanes_of,
    spread,
    track_global,
    track_shared,
)
from gemmlab.simt.values import widen

if TYPE_CHECKING:
    from gemmlab.simt.machine import Machine


SPACES = ("global", "shared", "local", "constant")
LOADS = {space: f"inst_{space}_load" for space in SPACES}
STORES = {space: f"inst_{space}_store" for space in SPACES}


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
        return array.dtype.type(0)
    m.tick(line, LOADS[array.space])
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
    return value


def store(m: Machine, array: Array, index: Any, value: Any, line: int) -> None:
    """`array[index] = value` for each active lane."""
    found, mask = locate(m, array, index, line)
    if isinstance(found, Array):
        raise TypeError(f"line {line}: assign to single elements of {array.name}, one at a time")
    if mask is False:
        return
    if array.space == "constant":
        raise TypeError(f"line {line}: {array.name or 'a constant array'} cannot be written")
    m.tick(line, STORES[array.space])
    if mask is not None:
        found = np.where(mask, found, 0)
    value = np.asarray(value).astype(array.dtype, copy=False)
    if array.space == "global":
        count_global(m, line, "store", array, found, mask)
        track_global(m, line, "write", array, found, mask, value)
        at, _ = lanes_of(m, found, mask)
        array.buffer[at] = spread(m, value)[m.full(mask)]
    elif array.space == "shared":
        count_shared(m, line, "store", array, found, mask)
        track_shared(m, line, "write", array, found, mask, value)
        _store_shared(m, array, found, mask, value)
    else:
        _store_local(m, array, found, mask, value)


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
    value = widen(value)
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
    part = widen(part)
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


def _shared_values(m: Machine, array: Array, at: Any) -> Any:
    at = np.asarray(at)
    if at.ndim == 0:
        return array.buffer[:, at].reshape(-1, 1)
    if len(at) == 1:
        return array.buffer[:, at[0]]
    return array.buffer[m.row, at]


def _store_shared(m: Machine, array: Array, at: Any, mask: Mask, value: np.ndarray) -> None:
    if mask is None and np.ndim(at) == 2 and len(at) == 1:
        array.buffer[:, np.broadcast_to(at, (1, m.threads))[0]] = spread(m, value)
        return
    elements, places = lanes_of(m, at, mask)
    array.buffer[places // m.threads, elements] = spread(m, value).reshape(-1)[places]


def _load_local(m: Machine, line: int, array: Array, at: Any, mask: Mask) -> Any:
    if np.ndim(at) == 0:
        written, value = array.shadow[int(at)], array.buffer[int(at)].copy()
    else:
        at = spread(m, at)
        value = array.buffer[at, m.row, m.thread]
        shadow = np.broadcast_to(array.shadow, array.buffer.shape)
        written = shadow[at, m.row, m.thread]
    unset = both(mask, ~written)
    if unset is not False:
        first = int(spread(m, at)[m.full(unset)][0])
        text = f"thread {{thread}} reads {element(array, first)}, which it has not written"
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
    elements = spread(m, at)[on]
    array.buffer[elements, rows, threads] = spread(m, value)[on]
    array.shadow[elements, rows, threads] = True
