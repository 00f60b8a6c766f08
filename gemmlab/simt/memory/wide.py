"""Accesses of 4, 8 or 16 bytes a lane by one instruction: located, checked, counted as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gemmlab.instructions.instruction import Instruction, Memory
from gemmlab.model.transactions import WARP
from gemmlab.simt.memory.array import Array
from gemmlab.simt.memory.counting import count_access
from gemmlab.simt.memory.indices import check_exact
from gemmlab.simt.numbers.masks import Mask, both
from gemmlab.simt.numbers.overflow import Wrapped
from gemmlab.simt.numbers.values import widen
from gemmlab.simt.races.hazards import Element

if TYPE_CHECKING:
    from gemmlab.simt.machine.machine import Machine


@dataclass
class Place:
    """Where lanes access memory: the first element of each, and the lanes that may."""

    operand: Memory
    array: Array
    at: Any
    mask: Mask

    @property
    def count(self) -> int:
        """Elements that a lane accesses."""
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
        """Bytes of an access."""
        return self.width


def find(
    m: Machine,
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
    m: Machine, place: Place, index: list, axis: int, part: Any, last: Any, outside: Mask, line: int
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


def _align(m: Machine, instruction: Instruction, place: Place, width: int, line: int) -> None:
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


def count_wide(m: Machine, place: Place, line: int, in_rows: bool = False) -> None:
    """Count the access as one of its whole width; `in_rows`, as `ldmatrix` makes it."""
    if place.mask is not False:
        wide = Wide(place.array, place.operand.width(place.array.itemsize), in_rows)
        op = "load" if place.operand.access == "read" else "store"
        count_access(m, line, op, wide, place.at // place.count, place.mask)
