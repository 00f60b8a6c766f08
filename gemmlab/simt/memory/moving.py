"""Moves data between lanes and the shared and local memory of a batch of blocks.

Where all blocks ask for the elements of a grid, with one distance from row to row and one from
column to column, as tiled kernels do, a strided view finds them several times as fast as indices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gemmlab.simt.memory.array import Array
from gemmlab.simt.numbers.masks import Mask, both

if TYPE_CHECKING:
    from gemmlab.simt.machine.machine import Machine


class Steps(NamedTuple):
    """The elements start + i·down + j·along of lane i·columns + j, i < rows and j < columns."""

    start: int
    rows: int
    columns: int
    down: int
    along: int

    def of(self, buffer: np.ndarray) -> np.ndarray:
        """These elements of each row of a contiguous buffer, (blocks, rows, columns), as a view."""
        size, blocks = buffer.itemsize, len(buffer)
        strides = buffer.strides[0], self.down * size, self.along * size
        shape = blocks, self.rows, self.columns
        return np.ndarray(shape, buffer.dtype, buffer, self.start * size, strides)


def steps(at: np.ndarray) -> Steps | None:
    """The elements `at` of the lanes of a block, (lanes,), as steps, where they are such.

    >>> steps(np.array([5, 5, 7, 7, 9, 9]))
    Steps(start=5, rows=3, columns=2, down=2, along=0)
    >>> steps(np.array([5, 6, 7, 8])), steps(np.array([5, 6, 8]))
    (Steps(start=5, rows=1, columns=4, down=0, along=1), None)
    """
    change = np.diff(at)
    breaks = np.flatnonzero(change != change[:1])
    columns = int(breaks[0]) + 1 if len(breaks) else len(at)
    if len(at) % columns:
        return None
    grid = at.reshape(-1, columns)
    start, along = int(at[0]), int(change[0]) if columns > 1 else 0
    down = int(grid[1, 0]) - start if len(grid) > 1 else 0
    found = Steps(start, *grid.shape, down, along)
    rows = start + down * np.arange(len(grid)).reshape(-1, 1)
    forward = along >= 0 and down >= 0  # and so within the buffer, as the last element is
    return found if forward and (grid == rows + along * np.arange(columns)).all() else None


def _steps(m: Machine, at: np.ndarray) -> Steps | None:
    """The steps of an index that is the same in all blocks, (1, threads); kept for loops."""
    if at.shape[-1] != m.lanes.threads:
        return None
    known = m.memory.again.get((steps, at))
    if known is None:
        known = (steps(at[0]),)
        m.memory.again.put((steps, at), known)
    return known[0]


def shared_values(m: Machine, array: Array, at: Any) -> Any:
    """The elements `at` of shared memory."""
    if np.ndim(at) == 0:
        return array.buffer[:, int(at), None].copy()
    if len(at) > 1:
        return array.buffer.reshape(-1).take(_cells(m, array, at))
    found = _steps(m, at)
    if found is None or found.columns < 8:  # NumPy copies row by row
        return array.buffer.take(at[0], axis=1)
    values, shape = found.of(array.buffer), (len(array.buffer), at.shape[1])
    if found.down == 0:
        return values[:, :1].repeat(found.rows, axis=1).reshape(shape)
    return values.copy().reshape(shape)


def store_shared(m: Machine, array: Array, at: Any, mask: Mask, value: Any) -> None:
    """Set the elements `at` of shared memory in the lanes of `mask`."""
    found = _steps(m, at) if mask is None and np.ndim(at) > 0 and len(at) == 1 else None
    if found is not None and found.rows == 1 and found.along > 0:
        found.of(array.buffer)[:, 0] = value
        return
    cells, places = m.lanes.of(_cells(m, array, at), mask)
    array.buffer.reshape(-1)[cells] = m.lanes.spread(value).ravel().take(places)


def _cells(m: Machine, array: Array, at: Any) -> Any:
    """The elements `at` of each block's shared memory, in the buffer of all blocks."""
    return at + m.lanes.row * array.buffer.shape[1]


def load_local(m: Machine, line: int, array: Array, at: Any, mask: Mask) -> Any:
    """The elements `at` of each lane's own array; a hazard where it has not written them."""
    owner = array.owner  # which knows what has been written, by views too
    if np.ndim(at) == 0:
        written, value = owner.shadow[int(at)], array.buffer[int(at)].copy()
    else:
        cells = at * m.lanes.place.size + m.lanes.place
        value = array.buffer.reshape(-1).take(cells)
        whole = owner.shadow.shape == array.buffer.shape
        written = owner.shadow.reshape(-1).take(cells if whole else at)
    unset = both(mask, ~written)
    if unset is not False:
        first = int(m.lanes.of(at, unset)[0][0])
        place = array.element(first)
        text = f"thread {{thread}} reads {place}, which it has not written"
        m.findings.hazard("uninitialised-read", line, unset, text, element=place, op="read")
    return value


def store_local(m: Machine, array: Array, at: Any, mask: Mask, value: Any) -> None:
    """Set the elements `at` of each lane's own array in the lanes of `mask`."""
    owner, everywhere = array.owner, mask is None
    if np.ndim(at) == 0 and (everywhere or owner.shadow[int(at)].all()):
        np.copyto(array.buffer[int(at)], value, where=True if everywhere else mask)
        owner.shadow[int(at)] = True
        return
    if owner.shadow.shape != array.buffer.shape:
        owner.shadow = np.broadcast_to(owner.shadow, array.buffer.shape).copy()
    cells, places = m.lanes.of(at * m.lanes.place.size + m.lanes.place, mask)
    array.buffer.reshape(-1)[cells] = m.lanes.spread(value).ravel().take(places)
    owner.shadow.reshape(-1)[cells] = True
