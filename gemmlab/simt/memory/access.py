"""Loads and stores: counted, checked, and then the data is moved."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from gemmlab.simt.memory.array import Array
from gemmlab.simt.memory.counting import count_access
from gemmlab.simt.memory.indices import locate
from gemmlab.simt.memory.moving import load_local, shared_values, store_local, store_shared
from gemmlab.simt.numbers.masks import Mask, both
from gemmlab.simt.numbers.overflow import Wrapped, convert, exact, wrapped
from gemmlab.simt.races.tracking import track_global, track_shared

if TYPE_CHECKING:
    from gemmlab.simt.machine.machine import Machine


SPACES = ("global", "shared", "local", "constant")
LOADS = {space: f"inst_{space}_load" for space in SPACES}
STORES = {space: f"inst_{space}_store" for space in SPACES}


def load(m: Machine, array: Array, index: Any, line: int, counted: bool = True) -> Any:
    """`array[index]` for each active lane, or a view where fewer indices than dimensions are given.

    Lanes that are off get an arbitrary value. A load that the compiler leaves out is not counted.
    """
    found, mask = locate(m, array, index, line, "read")
    if isinstance(found, Array):
        return found
    if mask is False:
        return array.dtype.type(0)
    if counted:
        m.tally.tick(line, LOADS[array.space])
        count_access(m, line, "load", array, found, mask)
    else:
        _show(m, line, "load", array, found, mask)
    value = fetch(m, line, array, found, mask)
    return value if array.owner.exact is None else _exact_too(m, array, found, value)


def fetch(m: Machine, line: int, array: Array, at: Any, mask: Mask) -> Any:
    """The elements `at` of the active lanes, checked but not counted."""
    if array.space == "local":
        if m.under_way is not None:
            m.under_way.check_registers(m, line, "read", array, at, mask)
        return load_local(m, line, array, at, mask)
    if array.space == "shared":
        m.copies.check(m, line, "read", array, at, mask)
        track_shared(m, line, "read", array, at, mask)
        return shared_values(m, array, at)
    if array.space == "global" and array.shadow is not None:
        track_global(m, line, "read", array, at, mask)
    return array.buffer[at] if type(at) is np.int64 else array.buffer.take(at)


def store(
    m: Machine, array: Array, index: Any, value: Any, line: int, counted: bool = True
) -> tuple[Any, Mask]:
    """`array[index] = value` for each active lane; returns the elements and their lanes.

    A slice gets the value in all of its elements, which are counted; it has no lanes to return.
    """
    found, mask = locate(m, array, index, line, "write")
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


def each_element(m: Machine, array: Array, mask: Mask) -> Iterator[tuple[tuple, Mask]]:
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


def _show(m: Machine, line: int, op: str, array: Array, at: Any, mask: Mask) -> None:
    """Show an access that is not counted to those who watch a loop."""
    if array.space in ("global", "shared"):
        for watch in m.memory.watchers:
            watch(m, line, op, array, at, mask)


def count_store(m: Machine, array: Array, at: Any, mask: Mask, line: int) -> None:
    """Count a store to the elements `at` by the lanes of `mask`."""
    m.tally.tick(line, STORES[array.space])
    count_access(m, line, "store", array, at, mask)


def put(m: Machine, line: int, array: Array, at: Any, mask: Mask, value: Any) -> None:
    """Set the elements `at` in the active lanes, checked but not counted."""
    value = convert(value, array.dtype, line)
    if type(value) is Wrapped or array.owner.exact is not None:
        _keep_exact(m, array, at, mask, value)
    if array.space == "global":
        track_global(m, line, "write", array, at, mask, value)
        if type(at) is np.int64 and isinstance(value, np.generic):
            array.buffer[at] = value
            return
        elements, places = m.lanes.of(at, mask)  # of lanes with one element, the last one's stays
        array.buffer[elements] = m.lanes.spread(value).ravel().take(places)
    elif array.space == "shared":
        m.copies.check(m, line, "write", array, at, mask)
        track_shared(m, line, "write", array, at, mask, value)
        store_shared(m, array, at, mask, value)
    else:
        if m.under_way is not None:
            m.under_way.check_registers(m, line, "write", array, at, mask)
        store_local(m, array, at, mask, value)


def _keep_exact(m: Machine, array: Array, at: Any, mask: Mask, value: Any) -> None:
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


def _exact_too(m: Machine, array: Array, at: Any, value: Any) -> Any:
    """A loaded `value`, with its exact value where the stored integer had wrapped."""
    at = m.lanes.spread(at)
    places = {"shared": (m.lanes.row, at), "local": (at, m.lanes.row, m.lanes.thread)}
    kept = array.owner.exact[places.get(array.space, (at,))]
    return wrapped(m.lanes.spread(value), kept, *array.owner.narrow)
