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
    ends = [
        (axis, stop)
        for axis in short
        if (stop := _end_of_grid(_along(stored, axis), _along(read, axis), launch)) is not None
    ]
    if ends:
        writes = argument.over(shadow.last("write"))
        ends = [end for end in ends if _in_order(writes, end[0], shadow.visits.low)]
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


def _end_of_grid(stored: np.ndarray, read: np.ndarray, launch: Launch) -> int | None:
    """Return where the stores along an axis end, if the grid ends there; None else.

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
        if threads >= FEWEST and (stop == threads or stop - start == threads):
            return stop
        if threads >= WARP and start == 0 and stop % threads == 0:  # several for each thread
            return stop
    return None


def _note(
    report: Report, launch: Launch, argument: Argument, writes: np.ndarray,
    ends: list[tuple[int, int]],
) -> Note:  # fmt: skip
    """Put it into words, at the line of the last store."""
    shadow, size = argument.array.shadow, argument.host.size
    stored = np.flatnonzero(writes >= 0)
    touch = int(writes.flat[stored[-1]])
    line = int(shadow.visits.moments(np.array([touch]))[0][0])
    block, thread = divmod(touch & shadow.visits.low, shadow.threads)
    where = ", and ".join(
        f"{stop:,} of {argument.host.shape[axis]:,}{f' along axis {axis}' * (writes.ndim > 1)}"
        for axis, stop in ends
    )
    text = (
        f"{size - len(stored):,} of {size:,} elements of {argument.name} are never stored: the "
        f"grid ends at {where}"
    )
    source = next(
        (s for s in report.sources.values() if 0 <= line - s.first_line < len(s.lines)),
        report.source,
    )
    places = position(block, launch.grid), position(thread, launch.block)
    return Note(line, source.code(line), *places, text, KIND, source.file)
