"""Indices: the element of each lane in an array, and the lanes whose index is outside of it.

A wide access of 4, 8 or 16 bytes a lane by one instruction is located by its first element, and
counted as one.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gemmlab.instructions.instruction import Instruction, Memory
from gemmlab.model.transactions import WARP
from gemmlab.simt.memory.array import Array
from gemmlab.simt.memory.batch import MemoryBatch
from gemmlab.simt.memory.counting import count_access
from gemmlab.simt.numbers.lanes import Mask, both, same_in_blocks, without
from gemmlab.simt.numbers.overflow import Wrapped, exact
from gemmlab.simt.numbers.values import NUMBER, NoNumber, several, shown, widen
from gemmlab.simt.races.hazards import Element


def locate(m: MemoryBatch, array: Array, index: Any, line: int, op: str) -> tuple[Any, Mask]:
    """Return the element of each lane in the array's buffer, and the lanes whose index is valid.

    Lanes that are off get any element. A view instead, where `index` leaves dimensions open. An
    index outside the array is a hazard; negative ones count from the end, as in Numba.
    op : what is done with the element: "read", "write" or "atomic"
    """
    # Of one element for all lanes, as kernels ask for those of their local arrays.
    if type(array.offset) is np.int64:
        axes = len(array.shape)
        if axes == 1 and type(index) is np.int64:
            (extent,), (stride,) = array.shape, array.strides
            if type(extent) is np.int64 and 0 <= index < extent:
                return array.offset + (index if stride == 1 else index * stride), m.masks[-1]
        elif axes == 2 and type(index) is tuple and len(index) == 2:
            (i, j), (rows, columns), (down, along) = index, array.shape, array.strides
            whole = type(i) is type(j) is type(rows) is type(columns) is np.int64
            if whole and 0 <= i < rows and 0 <= j < columns:
                return array.offset + i * down + j * along, m.masks[-1]
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
    """Return the first index of a slice, the number of its elements, and the step between them."""
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
    """Return the bound of a slice, brought between two indices as Python does it."""
    value = widen(value)
    return np.clip(np.where(np.less(value, 0), value + extent, value), least, most)[()]


def _within(
    m: MemoryBatch, array: Array, axis: int, parts: tuple, mask: Mask, line: int, op: str
) -> tuple[Any, Mask]:
    """Return an index counted from 0, and the lanes whose index is inside."""
    part, extent = parts[axis], array.shape[axis]
    if isinstance(part, NoNumber):
        part.refuse()
    if not isinstance(part, (*NUMBER, int)):
        raise TypeError(f"{array.name} is indexed with {shown(part)}; use integers")
    if isinstance(part, bool) or getattr(part, "dtype", None) == np.bool_:
        raise TypeError(
            f"{array.name} is indexed with a truth value, which Numba does not compile (No "
            "implementation of function getitem found); use int(condition)"
        )
    if getattr(part, "dtype", np.dtype(np.int64)).kind not in "iu":
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
    m: MemoryBatch, array: Array, axis: int, parts: tuple, mask: Mask, line: int, op: str
) -> Mask:
    """Return the lanes whose index has wrapped (`numbers.overflow`); a hazard if there are any."""
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


def _asked_for(m: MemoryBatch, array: Array, parts: tuple, lane: tuple[int, int]) -> Element:
    index = (None if isinstance(p, slice) else int(m.lanes.spread(p)[lane]) for p in parts)
    return Element(array.name, array.space, tuple(index))


@dataclass
class Place:
    """A place in memory that lanes access: the first element of each, and the lanes that may."""

    operand: Memory
    array: Array
    at: Any
    mask: Mask

    @property
    def count(self) -> int:
        return self.operand.width(self.array.itemsize) // self.array.itemsize


class Wide(Array):
    """An array counted by accesses of several elements."""

    def __init__(self, array: Array, width: int, in_rows: bool) -> None:
        super().__init__(array.space, array.buffer, array.shape, array.strides, 0, array.name)
        self.width, self.in_rows = width, in_rows

    @property
    def dtype(self) -> np.dtype:
        """A type of the size of an access."""
        return np.dtype(f"V{self.width}")

    @property
    def itemsize(self) -> int:
        return self.width


def find(
    m: MemoryBatch,
    instruction: Instruction,
    operand: Memory,
    array: Array,
    index: list,
    line: int,
    mask: Mask = True,
    count: Any = None,
) -> Place:
    """Locate the elements; lanes for which they are outside or not aligned are hazards, left out.

    mask : the lanes, where not all active ones; count : elements of each, where not all
    """
    place = Place(operand, array, array.offset, m.masks[-1] if mask is True else mask)
    if operand.lanes < WARP:
        place.mask = both(place.mask, m.lanes.thread % WARP < operand.lanes)
    if place.mask is False:
        return place
    width = operand.width(array.itemsize)
    apart = place.count > 1 and int(np.max(array.strides[-1])) != 1
    if width not in (4, 8, 16) or apart:
        raise TypeError(
            f"{instruction.name} accesses 4, 8 or 16 neighbouring bytes, not "
            f"{place.count} elements of {array.dtype} of {array.name}"
        )
    for axis, part in enumerate(index):
        if type(part) is Wrapped:
            check_exact(m, array, axis, tuple(index), place.mask, line, operand.access)
            part = np.asarray(part)[()]
        part, last = widen(part), 0
        if axis == array.ndim - 1:
            last = (place.count if count is None else count) - 1
        bad = np.less(part, 0) | np.greater_equal(part + last, array.shape[axis])
        outside = both(place.mask, bad)
        if outside is not False:
            _report_outside(m, place, index, axis, part, last, outside, line)
            place.mask = both(place.mask, ~bad)
        place.at = place.at + part * array.strides[axis]
    _align(m, instruction, place, width, line)
    if place.mask is not None:
        place.at = np.where(place.mask, place.at, 0)
    return place


def _report_outside(
    m: MemoryBatch,
    place: Place,
    index: list,
    axis: int,
    part: Any,
    last: Any,
    outside: Mask,
    line: int,
) -> None:
    array, lane = place.array, m.lanes.first(outside)
    value, more, size = (int(m.lanes.spread(v)[lane]) for v in (part, last, array.shape[axis]))
    text = f"{value}…{value + more}" if more else f"{value}"
    where = ", ".join(text if a == axis else "…" for a in range(array.ndim))
    asked = tuple(int(m.lanes.spread(np.asarray(i))[lane]) for i in index)
    m.findings.hazard(
        "out-of-bounds", line, outside,
        f"{array.name}[{where}] is outside, its dimension {axis} has {size} elements",
        element=Element(array.name, array.space, asked), op=place.operand.access,
    )  # fmt: skip


def _align(m: MemoryBatch, instruction: Instruction, place: Place, width: int, line: int) -> None:
    array, op = place.array, place.operand.access
    base = array.owner.alignment or array.itemsize
    if base < width and array.space != "local":
        text = f"{instruction.name} needs addresses that are multiples of {width} B; {array.name} "
        text += f"begins at a multiple of {base} B: declare it with alignment={width}"
        element = array.element(m.lanes.spread(place.at)[m.lanes.first(place.mask)])
        m.findings.hazard("misaligned", line, place.mask, text, element=element, op=op)
        return
    odd = both(place.mask, np.not_equal(place.at * array.itemsize % width, 0))
    if odd is not False and array.space != "local":
        flat = int(m.lanes.spread(place.at)[m.lanes.first(odd)])
        text = f"thread {{thread}} accesses byte {flat * array.itemsize} of {array.name}; "
        text += f"{instruction.name} needs a multiple of {width}"
        m.findings.hazard("misaligned", line, odd, text, element=array.element(flat), op=op)
        place.mask = both(place.mask, np.equal(place.at * array.itemsize % width, 0))


def count_wide(m: MemoryBatch, place: Place, line: int, in_rows: bool = False) -> None:
    """Count the access as one of its whole width; `in_rows`, as `ldmatrix` makes it."""
    if place.mask is not False:
        wide = Wide(place.array, place.operand.width(place.array.itemsize), in_rows)
        op = "load" if place.operand.access == "read" else "store"
        count_access(m, line, op, wide, place.at // place.count, place.mask)
