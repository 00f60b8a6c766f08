"""Loads and stores: counted, checked, and then the data is moved.

Where all blocks ask for the elements of a grid, with one distance from row to row and one from
column to column, as tiled kernels do, a strided view finds them several times as fast as indices.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from gemmlab.simt.memory import counting, indices, tracking
from gemmlab.simt.memory.array import Array
from gemmlab.simt.memory.batch import MemoryBatch
from gemmlab.simt.numbers.lanes import Mask, both
from gemmlab.simt.numbers.overflow import Wrapped, convert, exact, wrapped
from gemmlab.simt.numbers.values import shown


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
    """Return the elements `at` of the lanes of a block, (lanes,), as steps, where they are such.

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


def _steps(m: MemoryBatch, at: np.ndarray) -> Steps | None:
    """Return the steps of an index that is the same in all blocks, (1, threads); kept for loops."""
    if at.shape[-1] != m.lanes.threads:
        return None
    known = m.memory.again.get((steps, at))
    if known is None:
        known = (steps(at[0]),)
        m.memory.again.put((steps, at), known)
    return known[0]


def shared_values(m: MemoryBatch, array: Array, at: Any) -> Any:
    """Return the elements `at` of shared memory."""
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


def store_shared(m: MemoryBatch, array: Array, at: Any, mask: Mask, value: Any) -> None:
    """Set the elements `at` of shared memory in the lanes of `mask`."""
    found = _steps(m, at) if mask is None and np.ndim(at) > 0 and len(at) == 1 else None
    if found is not None and found.rows == 1 and found.along > 0:
        found.of(array.buffer)[:, 0] = value
        return
    cells, places = m.lanes.of(_cells(m, array, at), mask)
    array.buffer.reshape(-1)[cells] = m.lanes.spread(value).ravel().take(places)


def _cells(m: MemoryBatch, array: Array, at: Any) -> Any:
    """Return the elements `at` of each block's shared memory, in the buffer of all blocks."""
    return at + m.lanes.row * array.buffer.shape[1]


def load_local(m: MemoryBatch, line: int, array: Array, at: Any, mask: Mask) -> Any:
    """Return the elements `at` of each lane's own array; a hazard where it has not written them."""
    owner = array.owner  # which knows what has been written, by views too
    if np.ndim(at) == 0:
        written, value = owner.shadow[int(at)], array.buffer[int(at)].copy()
    else:
        cells = at * m.lanes.place.size + m.lanes.place
        value = array.buffer.reshape(-1).take(cells)
        whole = owner.shadow.shape == array.buffer.shape
        written = owner.shadow.reshape(-1).take(cells if whole else at)
    unset = False if written.all() else both(mask, ~written)
    if unset is not False:
        first = int(m.lanes.of(at, unset)[0][0])
        place = array.element(first)
        text = f"thread {{thread}} reads {place}, which it has not written"
        m.findings.hazard(
            "uninitialised-read", line, unset, text, element=place, op="read", in_doubt=True
        )
    return value


def store_local(m: MemoryBatch, array: Array, at: Any, mask: Mask, value: Any) -> None:
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


SPACES = ("global", "shared", "local", "constant")
LOADS = {space: f"inst_{space}_load" for space in SPACES}
STORES = {space: f"inst_{space}_store" for space in SPACES}


def load(m: MemoryBatch, array: Array, index: Any, line: int, counted: bool = True) -> Any:
    """`array[index]` for each active lane, or a view where fewer indices than dimensions are given.

    Lanes that are off get an arbitrary value. A load that the compiler leaves out is not counted.
    """
    found, mask = indices.locate(m, array, index, line, "read")
    if isinstance(found, Array):
        return found
    if mask is False:
        return array.dtype.type(0)
    if counted:
        m.tally.tick(line, LOADS[array.space])
        counting.count_access(m, line, "load", array, found, mask)
    else:
        _show(m, line, "load", array, found, mask)
    value = fetch(m, line, array, found, mask)
    return value if array.owner.exact is None else _exact_too(m, array, found, value)


def fetch(m: MemoryBatch, line: int, array: Array, at: Any, mask: Mask) -> Any:
    """Return the elements `at` of the active lanes, checked but not counted."""
    if array.space == "local":
        if m.under_way is not None:
            m.under_way.check_registers(m, line, "read", array, at, mask)
            if array.owner.coming:
                m.under_way.loads.use(m, array, at)
        return load_local(m, line, array, at, mask)
    if array.space == "shared":
        m.copies.check(m, line, "read", array, at, mask)
        tracking.track_shared(m, line, "read", array, at, mask)
        return shared_values(m, array, at)
    if array.space == "global" and array.shadow is not None:
        tracking.track_global(m, line, "read", array, at, mask)
    return array.buffer[at] if type(at) is np.int64 else array.buffer.take(at)


def store(
    m: MemoryBatch, array: Array, index: Any, value: Any, line: int, counted: bool = True
) -> tuple[Any, Mask]:
    """`array[index] = value` for each active lane; returns the elements and their lanes.

    A slice gets the value in all of its elements, which are counted; it has no lanes to return.
    """
    found, mask = indices.locate(m, array, index, line, "write")
    if isinstance(found, Array):
        for element, _ in each_element(m, found, mask):
            store(m, found, element, value, line)
        return found, False
    if mask is not False:
        if array.space == "constant":
            raise TypeError(f"{array.name or 'a constant array'} cannot be written")
        if counted:
            count_store(m, array, found, mask, line)
        else:
            _show(m, line, "store", array, found, mask)
        put(m, line, array, found, mask, value)
    return found, mask


def store_many(m: MemoryBatch, array: Array, index: Any, values: Any, line: int) -> None:
    """Store a tuple, or the elements of an array, to the elements of a slice, as NumPy does.

    Raises TypeError for what is no slice, ValueError where the numbers of elements differ.
    """
    found, mask = indices.locate(m, array, index, line, "write")
    if not isinstance(found, Array):
        raise TypeError(
            f"{shown(values)} is not a number, and cannot be stored to one element; write a loop "
            "over elements"
        )
    source = values if isinstance(values, Array) else None
    shape = (len(values),) if source is None else source.shape
    given = [np.max(size) for size in shape]
    own = [np.max(size) for size in found.shape]
    fits = len(given) <= len(own) and all(
        a in (b, 1) for a, b in zip(given[::-1], own[::-1], strict=False)
    )
    if not fits or (source is None and (len(own) != 1 or given != own)):
        what = (
            f"a tuple of {len(values)}"
            if source is None
            else f"an array of shape {tuple(map(int, given))}"
        )
        raise ValueError(f"cannot assign slice of shape {tuple(map(int, own))} from {what}")
    for element, _ in each_element(m, found, mask):
        if source is None:
            value = values[int(element[0])]
        else:
            tail = element[len(element) - len(given) :]
            place = tuple(np.int64(0) if n == 1 else i for i, n in zip(tail, given, strict=True))
            value = load(m, source, place, line)
        store(m, found, element, value, line)


def each_element(m: MemoryBatch, array: Array, mask: Mask) -> Iterator[tuple[tuple, Mask]]:
    """The index of each element of an array, whose shape may differ between lanes.

    The mask of the lanes that have the element is the last one meanwhile.
    """
    for index in np.ndindex(*(int(np.max(size)) for size in array.shape)):
        inside = mask
        for place, size in zip(index, array.shape, strict=True):
            inside = both(inside, np.less(place, size)[()])
        if inside is not False:
            m.masks.append(inside)
            yield tuple(map(np.int64, index)), inside
            m.masks.pop()


def _show(m: MemoryBatch, line: int, op: str, array: Array, at: Any, mask: Mask) -> None:
    """Show an access that is not counted to those who watch a loop."""
    if array.space in ("global", "shared"):
        for watch in m.memory.watchers:
            watch(m, line, op, array, at, mask)


def count_store(m: MemoryBatch, array: Array, at: Any, mask: Mask, line: int) -> None:
    """Count a store to the elements `at` by the lanes of `mask`."""
    m.tally.tick(line, STORES[array.space])
    counting.count_access(m, line, "store", array, at, mask)


def put(m: MemoryBatch, line: int, array: Array, at: Any, mask: Mask, value: Any) -> None:
    """Set the elements `at` in the active lanes, checked but not counted."""
    value = convert(value, array.dtype, line)
    if type(value) is Wrapped or array.owner.exact is not None:
        _keep_exact(m, array, at, mask, value)
    if array.space == "global":
        tracking.track_global(m, line, "write", array, at, mask, value)
        if type(at) is np.int64 and isinstance(value, np.generic):
            array.buffer[at] = value
            return
        elements, places = m.lanes.of(at, mask)  # of lanes with one element, the last one's stays
        array.buffer[elements] = m.lanes.spread(value).ravel().take(places)
    elif array.space == "shared":
        m.copies.check(m, line, "write", array, at, mask)
        tracking.track_shared(m, line, "write", array, at, mask, value)
        store_shared(m, array, at, mask, value)
    else:
        if m.under_way is not None:
            m.under_way.check_registers(m, line, "write", array, at, mask)
            m.under_way.loads.put(array, at, value)
        store_local(m, array, at, mask, value)


def _keep_exact(m: MemoryBatch, array: Array, at: Any, mask: Mask, value: Any) -> None:
    """Keep the exact values of integers that wrapped, beside the elements that get them."""
    owner = array.owner
    if owner.exact is None:
        owner.exact = array.buffer.astype(np.int64)
    if type(value) is Wrapped:
        owner.narrow = value.kind, value.line
    on = m.lanes.full(mask)
    row, thread = np.nonzero(on)
    elements = m.lanes.spread(at)[on]
    places = {"shared": (row, elements), "local": (elements, row, thread)}
    owner.exact[places.get(array.space, (elements,))] = m.lanes.spread(exact(value))[on]


def _exact_too(m: MemoryBatch, array: Array, at: Any, value: Any) -> Any:
    """Return a loaded `value`, with its exact value where the stored integer had wrapped."""
    at = m.lanes.spread(at)
    places = {"shared": (m.lanes.row, at), "local": (at, m.lanes.row, m.lanes.thread)}
    kept = array.owner.exact[places.get(array.space, (at,))]
    return wrapped(m.lanes.spread(value), kept, *array.owner.narrow)
