"""Indices: the element of each lane in an array, and the lanes whose index is outside of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gemmlab.simt.memory.array import Array
from gemmlab.simt.numbers.lanes import same_in_blocks
from gemmlab.simt.numbers.masks import Mask, both, without
from gemmlab.simt.numbers.no_numbers import NUMBER, NoNumber, several, shown
from gemmlab.simt.numbers.overflow import Wrapped, exact
from gemmlab.simt.numbers.values import widen
from gemmlab.simt.races.hazards import Element

if TYPE_CHECKING:
    from gemmlab.simt.machine.machine import Machine


def locate(m: Machine, array: Array, index: Any, line: int, op: str) -> tuple[Any, Mask]:
    """The element of each lane in the array's buffer, and the lanes whose index is valid.

    Lanes that are off get any element. A view instead, where `index` leaves dimensions open. An
    index outside the array is a hazard; negative ones count from the end, as in Numba.
    op : what is done with the element: "read", "write" or "atomic"
    """
    if type(index) is np.int64 and type(array.offset) is np.int64 and len(array.shape) == 1:
        (extent,), (stride,) = array.shape, array.strides
        if type(extent) is np.int64 and 0 <= index < extent:  # of one element for all lanes
            return array.offset + (index if stride == 1 else index * stride), m.masks[-1]
    parts = index if isinstance(index, tuple) else (index,)
    met = (array, m.masks[-1], *parts) if array.space == "shared" else ()
    known = m.memory.located.get(met) if met else None
    if known is not None:
        return known
    if len(parts) > array.ndim:
        raise IndexError(
            f"{array.name} has {several(array.ndim, 'dimension')}, and {len(parts)} indices here"
        )
    mask, offset = m.masks[-1], array.offset
    shape: list = []
    strides: list = []
    if len(parts) < array.ndim:
        shape, strides = list(array.shape[len(parts) :]), list(array.strides[len(parts) :])
    for axis in range(len(parts) - 1, -1, -1):
        part, extent, stride = parts[axis], array.shape[axis], array.strides[axis]
        if type(part) is np.int64 and type(extent) is np.int64 and 0 <= part < extent:
            offset = offset + part * stride  # the same for all lanes
        elif isinstance(part, slice):
            start, size, step = _elements(part, extent)
            offset = offset + start * stride
            shape.insert(0, size)
            strides.insert(0, step * stride)
        else:
            part, mask = _within(m, array, axis, parts, mask, line, op)
            moved = part if stride == 1 else part * stride
            # An index as it is stays the object that caches know.
            offset = moved if type(offset) is np.int64 and offset == 0 else offset + moved
    if shape:
        return array.view(tuple(shape), tuple(strides), offset), mask
    if np.ndim(array.offset) > 0 and isinstance(mask, np.ndarray):
        offset = np.where(mask, offset, 0)  # a view may begin anywhere in lanes that are off
    plain = met and mask is m.masks[-1] and not any(type(p) is Wrapped for p in parts)
    if plain and same_in_blocks(np.asarray(offset), mask):
        m.memory.located.put(met, (offset, mask))
    return offset, mask


def _elements(part: slice, extent: Any) -> tuple[Any, Any, int]:
    """The first index of a slice, the number of its elements, and the step between them."""
    if part.step is not None and np.ndim(part.step) > 0:
        raise TypeError("the step of a slice differs between threads; write a loop over elements")
    step = 1 if part.step is None else int(part.step)
    if step == 0:
        raise ValueError("the step of a slice is 0")
    first, last = (0, extent) if step > 0 else (extent - 1, -1)
    least, most = (0, extent) if step > 0 else (-1, extent - 1)
    start = first if part.start is None else _bound(part.start, extent, least, most)
    stop = last if part.stop is None else _bound(part.stop, extent, least, most)
    return start, np.maximum(-((start - stop) // step), 0), step


def _bound(value: Any, extent: Any, least: Any, most: Any) -> Any:
    """The bound of a slice, brought between two indices as Python does it."""
    value = widen(value)
    return np.clip(np.where(np.less(value, 0), value + extent, value), least, most)[()]


def _within(
    m: Machine, array: Array, axis: int, parts: tuple, mask: Mask, line: int, op: str
) -> tuple[Any, Mask]:
    """An index counted from 0, and the lanes whose index is inside."""
    part, extent = parts[axis], array.shape[axis]
    if isinstance(part, NoNumber):
        part.refuse()
    if not isinstance(part, (*NUMBER, int)):
        raise TypeError(f"{array.name} is indexed with {shown(part)}; use integers")
    if getattr(part, "dtype", np.dtype(np.int64)).kind not in "iub":
        raise TypeError(
            f"{array.name} is indexed with {part.dtype} numbers; use integers, as i // 2 gives"
        )
    overflown = False
    if type(part) is Wrapped:
        overflown = check_exact(m, array, axis, parts, mask, line, op)
        part = np.asarray(part)[()]
    if getattr(part, "dtype", None) != np.int64:
        part = np.asarray(part).astype(np.int64)[()]
    low, high = m.memory.extent(part)
    if np.ndim(extent) == 0 and low >= 0 and high < extent:
        return part, mask
    if np.ndim(part) > 0 and isinstance(mask, np.ndarray):
        part = np.where(mask, part, 0)  # it may be outside in lanes that are off
        if np.ndim(extent) == 0 and part.min() >= 0 and part.max() < extent:
            return part, mask
    bad = (part >= extent) | (part < -extent)
    outside = both(mask, bad)
    if outside is not False:
        reported = without(outside, overflown)
        if reported is not False:
            lane = m.lanes.first(reported)
            size = int(m.lanes.spread(extent)[lane])
            place = _asked_for(m, array, parts, lane)
            text = f"{place} is outside, its dimension {axis} has {size} elements"
            m.findings.hazard("out-of-bounds", line, reported, text, element=place, op=op)
        mask = both(mask, ~bad)
    if np.ndim(part) == 0:
        return (part + extent if part < 0 else part), mask
    wraps = both(mask, part < 0) if low < 0 <= high else False  # x[-1 - i] is meant so
    if wraps is not False:
        place = _asked_for(m, array, parts, m.lanes.first(wraps))
        text = f"thread {{thread}} uses {place}, which is counted from the end, as in Numba"
        m.findings.note("negative-index", line, wraps, text)
    return np.where(bad, 0, np.where(part < 0, part + extent, part)), mask


def check_exact(
    m: Machine, array: Array, axis: int, parts: tuple, mask: Mask, line: int, op: str
) -> Mask:
    """The lanes whose index has wrapped (`numbers.overflow`); a hazard if there are any."""
    part = parts[axis]
    lanes = both(mask, np.asarray(part) != exact(part))
    if lanes is not False:
        lane = m.lanes.first(lanes)
        wrong = _asked_for(m, array, parts, lane)
        meant = _asked_for(m, array, (*parts[:axis], exact(part), *parts[axis + 1 :]), lane)
        text = f"thread {{thread}} means {meant} and gets {wrong}"
        where = f"line {part.line}" if part.line != line else "this line"
        text += f", because the index wraps in {where}, where it is put into {part.kind}"
        m.findings.hazard("index-overflow", line, lanes, text, element=wrong, op=op)
    return lanes


def _asked_for(m: Machine, array: Array, parts: tuple, lane: tuple[int, int]) -> Element:
    """The element that a lane asks for by the indices `parts`."""
    index = (None if isinstance(p, slice) else int(m.lanes.spread(p)[lane]) for p in parts)
    return Element(array.name, array.space, tuple(index))
