"""Where the lanes of an instruction access memory: found, checked, and counted as one access."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gemmlab.instructions.instruction import Instruction, Memory
from gemmlab.model.transactions import WARP
from gemmlab.simt import memory_access
from gemmlab.simt.masks import Mask, both
from gemmlab.simt.memory import Array
from gemmlab.simt.overflow import Wrapped
from gemmlab.simt.tracking import spread
from gemmlab.simt.values import widen

if TYPE_CHECKING:
    from gemmlab.simt.machine import Machine


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
    """Find the elements; hazards for lanes whose are outside or not aligned, which take no part.

    mask, count : the lanes, and how many elements of each, where not all that are active and all
    """
    place = Place(operand, array, array.offset, m.masks[-1] if mask is True else mask)
    if operand.lanes < WARP:
        place.mask = both(place.mask, m.thread % WARP < operand.lanes)
    if place.mask is False:
        return place
    width = operand.width(array.itemsize)
    apart = place.count > 1 and int(np.max(array.strides[-1])) != 1
    if width not in (4, 8, 16) or apart:
        raise TypeError(
            f"line {line}: {instruction.name} accesses 4, 8 or 16 neighbouring bytes, not "
            f"{place.count} elements of {array.dtype} of {array.name}"
        )
    for axis, part in enumerate(index):
        if type(part) is Wrapped:
            memory_access.check_exact(m, array, axis, tuple(index), place.mask, line)
            part = np.asarray(part)[()]
        part, last = widen(part), 0
        if axis == array.ndim - 1:
            last = (place.count if count is None else count) - 1
        bad = np.less(part, 0) | np.greater_equal(part + last, array.shape[axis])
        outside = both(place.mask, bad)
        if outside is not False:
            _report_outside(m, array, axis, part, last, outside, line)
            place.mask = both(place.mask, ~bad)
        place.at = place.at + part * array.strides[axis]
    _align(m, instruction, place, width, line)
    if place.mask is not None:
        place.at = np.where(place.mask, place.at, 0)
    return place


def _report_outside(
    m: Machine, array: Array, axis: int, part: Any, last: Any, outside: Mask, line: int
) -> None:
    row, thread = (int(v) for v in np.argwhere(m.full(outside))[0])
    value = int(spread(m, part)[row, thread])
    more = int(spread(m, last)[row, thread])
    text = f"{value}…{value + more}" if more else f"{value}"
    where = ", ".join(text if a == axis else "…" for a in range(array.ndim))
    size = int(spread(m, array.shape[axis])[row, thread])
    m.hazard(
        "out-of-bounds", line, outside, None,
        f"{array.name}[{where}] is outside, its dimension {axis} has {size} elements",
    )  # fmt: skip


def _align(m: Machine, instruction: Instruction, place: Place, width: int, line: int) -> None:
    array = place.array
    base = array.owner.alignment or array.itemsize
    if base < width and array.space != "local":
        m.hazard(
            "misaligned", line, place.mask, None,
            f"{instruction.name} needs addresses that are multiples of {width} B; {array.name} "
            f"begins at a multiple of {base} B: declare it with alignment={width}",
        )  # fmt: skip
        return
    odd = both(place.mask, np.not_equal(place.at * array.itemsize % width, 0))
    if odd is not False and array.space != "local":
        row, thread = (int(v) for v in np.argwhere(m.full(odd))[0])
        byte = int(spread(m, place.at)[row, thread]) * array.itemsize
        m.hazard(
            "misaligned", line, odd, None,
            f"thread {{thread}} accesses byte {byte} of {array.name}; {instruction.name} needs a "
            f"multiple of {width}",
        )  # fmt: skip
        place.mask = both(place.mask, np.equal(place.at * array.itemsize % width, 0))


def tally(m: Machine, place: Place, line: int, in_rows: bool = False) -> None:
    """Count the access as one of its whole width; `in_rows`, as `ldmatrix` makes it."""
    if place.mask is not False:
        wide = Wide(place.array, place.operand.width(place.array.itemsize), in_rows)
        op = "load" if place.operand.access == "read" else "store"
        memory_access.count_access(m, line, op, wide, place.at // place.count, place.mask)
