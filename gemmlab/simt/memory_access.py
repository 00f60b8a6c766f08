"""Loads and stores: find the element of each lane, count, check, move the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gemmlab.simt.masks import Mask, both, without
from gemmlab.simt.memory import Array
from gemmlab.simt.overflow import Wrapped, convert, exact, wrapped
from gemmlab.simt.tracking import (
    count_global,
    count_shared,
    element,
    lanes_of,
    same_in_blocks,
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
    count_access(m, line, "load", array, found, mask)
    value = fetch(m, line, array, found, mask)
    return value if array.owner.exact is None else _exact_too(m, array, found, value)


def fetch(m: Machine, line: int, array: Array, at: Any, mask: Mask) -> Any:
    """The elements `at` of the active lanes, checked but not counted."""
    if array.space == "local":
        return _load_local(m, line, array, at, mask)
    if array.space == "shared":
        m.copies.check(m, line, "reads", array, at, mask)
        track_shared(m, line, "read", array, at, mask)
        return _shared_values(m, array, at)
    if array.space == "global" and array.shadow is not None:
        track_global(m, line, "read", array, at, mask)
    return array.buffer[at]


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
    count_access(m, line, "store", array, found, mask)
    put(m, line, array, found, mask, value)


def put(m: Machine, line: int, array: Array, at: Any, mask: Mask, value: Any) -> None:
    """Set the elements `at` in the active lanes, checked but not counted."""
    value = convert(value, array.dtype, line)
    if type(value) is Wrapped or array.owner.exact is not None:
        _keep_exact(m, array, at, mask, value)
    if array.space == "global":
        track_global(m, line, "write", array, at, mask, value)
        elements, _ = lanes_of(m, at, mask)
        array.buffer[elements] = spread(m, value)[m.full(mask)]
    elif array.space == "shared":
        m.copies.check(m, line, "writes", array, at, mask)
        track_shared(m, line, "write", array, at, mask, value)
        _store_shared(m, array, at, mask, value)
    else:
        _store_local(m, array, at, mask, value)


def count_access(m: Machine, line: int, op: str, array: Array, at: Any, mask: Mask) -> None:
    """Count an access to global or shared memory."""
    if array.space == "global":
        count_global(m, line, op, array, at, mask)
    elif array.space == "shared":
        count_shared(m, line, op, array, at, mask)


def locate(m: Machine, array: Array, index: Any, line: int) -> tuple[Any, Mask]:
    """The element of each lane in the array's buffer, and the lanes whose index is valid.

    Lanes that are off get element 0. A view instead, where `index` leaves dimensions open. An
    index outside the array is a hazard; negative ones count from the end, as in Numba.
    """
    parts = index if isinstance(index, tuple) else (index,)
    met = (array, m.masks[-1], *parts) if array.space == "shared" else ()
    known = m.located.get(met) if met else None
    if known is not None:
        return known
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
            part, mask = _within(m, array, axis, parts, mask, line)
            offset = offset + (part if stride == 1 else part * stride)
    if shape:
        return array.view(tuple(shape), tuple(strides), offset), mask
    if isinstance(mask, np.ndarray):
        offset = np.where(mask, offset, 0)
    plain = met and mask is m.masks[-1] and not any(type(p) is Wrapped for p in parts)
    if plain and same_in_blocks(np.asarray(offset), mask):
        m.located.put(met, (offset, mask))
    return offset, mask


def _bound(value: Any, extent: Any) -> Any:
    """The bound of a slice, brought into 0 … extent as Python does it."""
    value = widen(value)
    return np.clip(np.where(np.less(value, 0), value + extent, value), 0, extent)[()]


def _within(
    m: Machine, array: Array, axis: int, parts: tuple, mask: Mask, line: int
) -> tuple[Any, Mask]:
    """An index brought into 0 … extent, and the lanes for which that could be done."""
    part, extent = parts[axis], array.shape[axis]
    if getattr(part, "dtype", np.dtype(np.int64)).kind not in "iub":
        raise TypeError(
            f"line {line}: {array.name} is indexed with {part.dtype} numbers; use integers: "
            f"{m.report.source.code(line)}"
        )
    overflown = False
    if type(part) is Wrapped:
        overflown = check_exact(m, array, axis, parts, mask, line)
        part = np.asarray(part)[()]
    part = widen(part)
    low, high = m.extent(part)
    if np.ndim(extent) == 0 and low >= 0 and high < extent:
        return part, mask
    bad = (part >= extent) | (part < -extent)
    outside = both(mask, bad)
    if outside is not False:
        reported = without(outside, overflown)
        if reported is not False:
            lane = _first(m, reported)
            size = int(spread(m, extent)[lane])
            place = _subscript(m, array, parts, lane)
            text = f"{place} is outside, its dimension {axis} has {size} elements"
            m.hazard("out-of-bounds", line, reported, None, text)
        mask = both(mask, ~bad)
    if np.ndim(part) == 0:
        return (part + extent if part < 0 else part), mask
    return np.where(bad, 0, np.where(part < 0, part + extent, part)), mask


def check_exact(m: Machine, array: Array, axis: int, parts: tuple, mask: Mask, line: int) -> Mask:
    """The lanes whose index wrapped somewhere on its way; a hazard if there are any."""
    part = parts[axis]
    lanes = both(mask, np.asarray(part) != exact(part))
    if lanes is not False:
        lane = _first(m, lanes)
        wrong = _subscript(m, array, parts, lane)
        meant = _subscript(m, array, (*parts[:axis], exact(part), *parts[axis + 1 :]), lane)
        text = f"thread {{thread}} means {meant} and gets {wrong}"
        where = f"line {part.line}" if part.line != line else "this line"
        text += f", because the index wraps in {where}, where it is put into {part.kind}"
        m.hazard("index-overflow", line, lanes, None, text)
    return lanes


def _first(m: Machine, lanes: Mask) -> tuple:
    """The first of `lanes`, by block and thread."""
    where = m.full(lanes)
    return np.unravel_index(int(where.argmax()), where.shape)


def _subscript(m: Machine, array: Array, parts: tuple, lane: tuple) -> str:
    """The element that a lane asks for, as its source could write it."""
    index = [":" if isinstance(p, slice) else str(int(spread(m, p)[lane])) for p in parts]
    return f"{array.name}[{', '.join(index)}]"


def _keep_exact(m: Machine, array: Array, at: Any, mask: Mask, value: Any) -> None:
    """Note what elements of integers would hold if `value`, stored to them, had not wrapped."""
    owner = array.owner
    if owner.exact is None:
        owner.exact = array.buffer.astype(np.int64)
    if type(value) is Wrapped:
        owner.narrow = value.kind, value.line
    on = m.full(mask)
    row, thread = np.nonzero(on)
    elements = spread(m, at)[on]
    places = {"shared": (row, elements), "local": (elements, row, thread)}
    owner.exact[places.get(array.space, (elements,))] = spread(m, exact(value))[on]


def _exact_too(m: Machine, array: Array, at: Any, value: Any) -> Any:
    """A loaded `value`, with what it would be if nothing had wrapped."""
    at = spread(m, at)
    places = {"shared": (m.row, at), "local": (at, m.row, m.thread)}
    kept = array.owner.exact[places.get(array.space, (at,))]
    return wrapped(spread(m, value), kept, *array.owner.narrow)


def _shared_values(m: Machine, array: Array, at: Any) -> Any:
    at = np.asarray(at)
    if at.ndim == 0:
        return array.buffer[:, at].reshape(-1, 1)
    if len(at) == 1:
        return array.buffer.take(at[0], axis=1)
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
