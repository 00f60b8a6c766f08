"""Coverage: a grid that ends before an array does leaves elements that no thread stores.

Most elements that are not stored are none of this: the edge of a stencil, the other half of a
triangle, what a histogram did not meet. So it is said only where what is stored ends exactly where
the grid ends, and the rest of the array is not even read.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gemmlab.model.transactions import WARP
from gemmlab.simt.numbers.lanes import Launch, position
from gemmlab.simt.races.hazards import Note
from gemmlab.simt.races.memories import GlobalShadow
from gemmlab.simt.report.report import Report

if TYPE_CHECKING:
    from gemmlab.simt.memory.arguments import Argument

KIND = "grid-too-small"
GRID = "the grid ends at"
BLOCK = "the index leaves out cuda.blockIdx, and ends where a block does, at"
FEWEST = 4  # threads along an axis: of fewer, an end that is theirs too may be chance


def note_unstored(report: Report, launch: Launch, argument: Argument) -> None:
    """Note that a launch leaves elements of an array because its grid ends before the array."""
    shadow = argument.array.shadow
    if not isinstance(shadow, GlobalShadow) or shadow.unit or shadow.size != argument.span:
        return
    if not shadow.written or shadow.forgot or shadow.reaches_the_end() or shadow.has("atomic"):
        return
    stored = argument.over(shadow.touched("write"))
    short = [axis for axis in range(stored.ndim) if not _near_the_end(stored, axis)]
    if not short or report.hazards:  # soon known, and true of most
        return
    read = argument.over(shadow.touched("read"))
    found = ((axis, _end(_along(stored, axis), _along(read, axis), launch)) for axis in short)
    ends = [(axis, *end) for axis, end in found if end]
    if ends:
        writes = argument.over(shadow.last("write"))
        last = writes & shadow.visits.low
        several = bool((last[writes >= 0] >= shadow.threads).any())  # blocks have stored
        ends = [
            (axis, stop, whose)
            for axis, stop, whose in ends
            if (several or whose == GRID) and _in_order(writes, axis, shadow.visits.low)
        ]
    if ends:
        report.note(_note(report, launch, argument, writes, ends))


def _near_the_end(touches: np.ndarray, axis: int) -> bool:
    """Say whether one of the last two indices along an axis was touched anywhere."""
    place: list[slice] = [slice(None)] * touches.ndim
    place[axis] = slice(-2, None)
    return bool((touches[tuple(place)] >= 0).any())


def _along(touches: np.ndarray, axis: int) -> np.ndarray:
    """Mark the indices along an axis at which anything was touched."""
    others = tuple(a for a in range(touches.ndim) if a != axis)
    return (touches >= 0).any(axis=others)


def _in_order(writes: np.ndarray, axis: int, lanes: int) -> bool:
    """Say whether threads store along an axis in their own order, as no hash or list has them.

    lanes : the bits of a touch that name its lane
    """
    last = list(np.unravel_index(np.flatnonzero(writes >= 0)[-1], writes.shape))
    last[axis] = slice(None)
    line = writes[tuple(last)]
    return bool((np.diff(line[line >= 0] & lanes) >= 0).all())


def _end(stored: np.ndarray, read: np.ndarray, launch: Launch) -> tuple[int, str] | None:
    """Return where the stores along an axis end, if the grid or a block ends there, and which.

    stored, read : which indices along the axis are
    The first few may be left out, as the edge of a stencil is, which then reads as many beyond.
    """
    at = np.flatnonzero(stored)
    if len(at) == 0:
        return None
    start, stop = int(at[0]), int(at[-1]) + 1
    edge = max(1, start)
    if len(stored) - stop <= edge or read[stop + edge :].any() or len(at) < stop - start:
        return None
    sizes = [blocks * threads for blocks, threads in zip(launch.grid, launch.block, strict=True)]
    for threads in (*sizes, math.prod(sizes)):
        if threads >= FEWEST and threads in (stop, stop - start):
            return stop, GRID
        if threads >= WARP and start == 0 and stop % threads == 0:  # several for each thread
            return stop, GRID
    for blocks, threads in zip(launch.grid, launch.block, strict=True):
        if blocks > 1 and threads >= FEWEST and threads in (stop, stop - start):
            return stop, BLOCK
    return None


def _note(
    report: Report, launch: Launch, argument: Argument, writes: np.ndarray,
    ends: list[tuple[int, int, str]],
) -> Note:  # fmt: skip
    """Put it into words, at the line of the last store."""
    shadow, size = argument.array.shadow, argument.host.size
    stored = np.flatnonzero(writes >= 0)
    touch = int(writes.flat[stored[-1]])
    line = int(shadow.visits.moments(np.array([touch]))[0][0])
    block, thread = divmod(touch & shadow.visits.low, shadow.threads)
    told: dict[str, list[str]] = {}
    for axis, stop, whose in ends:
        along = f" along axis {axis}" if writes.ndim > 1 else ""
        told.setdefault(whose, []).append(f"{stop:,} of {argument.host.shape[axis]:,}{along}")
    where = ", and ".join(f"{whose} {', and '.join(stops)}" for whose, stops in told.items())
    text = (
        f"{size - len(stored):,} of {size:,} elements of {argument.name} are never stored: {where}"
    )
    source = next(
        (s for s in report.sources.values() if 0 <= line - s.first_line < len(s.lines)),
        report.source,
    )
    places = position(block, launch.grid), position(thread, launch.block)
    return Note(line, source.code(line), *places, text, KIND, source.file)
