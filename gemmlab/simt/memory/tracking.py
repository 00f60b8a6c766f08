"""Accesses checked for races with other threads, and for reads of memory that nobody wrote."""

from typing import Any, NamedTuple

import numpy as np

from gemmlab.simt.memory.array import Array
from gemmlab.simt.memory.batch import MemoryBatch
from gemmlab.simt.numbers.lanes import Mask, same_in_blocks
from gemmlab.simt.races.hazards import AtStake
from gemmlab.simt.races.shadow import Clash, Shadow


class Access(NamedTuple):
    """An access to elements of an array, by lanes that are told apart.

    op : "read", "write" or "atomic"; places : of the lanes; elements : in the buffer
    times : how many blocks each row stands for; units : parts of an element that are tracked
    value : what is written, where that is known; compares : whether an atomic writes conditionally
    """

    line: int
    op: str
    array: Array
    places: np.ndarray
    elements: np.ndarray
    times: int
    value: Any
    compares: bool
    units: int

    def parts(self, of_elements: np.ndarray) -> np.ndarray:
        """Repeat a number of each element for each of its parts."""
        return of_elements if self.units == 1 else np.repeat(of_elements, self.units)

    def whole(self, of_parts: np.ndarray) -> np.ndarray:
        """Mark the elements of which a part is marked."""
        return of_parts if self.units == 1 else of_parts.reshape(-1, self.units).any(axis=1)


def track_global(
    m: MemoryBatch, line: int, op: str, array: Array, at: Any, mask: Mask,
    value: Any = None, compares: bool = False,
) -> None:  # fmt: skip
    """Report a race: an access by another thread, and nothing orders the two.

    op : "read", "write" or "atomic"; value : what is written, where it is known
    compares : whether an atomic compares the element with what the thread expects

    Raises ValueError for a store to an array that is read-only on the host.
    """
    if op != "read" and not array.owner.writeable:
        raise ValueError(
            f"{array.name} is read-only on the host and cannot be stored to; pass a "
            f"copy: {m.calls.source.code(line)}"
        )
    first, places = int(m.lanes.blocks[0, 0]) * m.lanes.threads, m.lanes.places(mask)
    if len(places) == 1 and array.shadow.unit == 0:
        place = int(places[0])
        element, lane = int(m.lanes.at(at, place)), place + first
        now = m.waits.now(line, places, lane if m.report.releases.fences else None)
        if array.shadow.by_one(op, element, lane, now):
            if compares:
                array.shadow.compare(element, lane)
            return
    elements, places = m.lanes.of(at, mask)
    access = Access(line, op, array, places, elements, 1, value, compares, _units(array))
    _track(m, access, elements, places + first if first else places)


def track_shared(
    m: MemoryBatch, line: int, op: str, array: Array, at: Any, mask: Mask,
    value: Any = None, compares: bool = False,
) -> None:  # fmt: skip
    """Report a race with another thread of the block, or a read of an unwritten element.

    The arguments are those of `track_global`.
    """
    shadow, blocks = array.shadow, m.lanes.blocks
    alike = m.waits.alike and np.ndim(m.waits.epoch) == 0
    may_release = op == "atomic" and m.report.releases.last_block >= int(blocks[0, 0])
    if may_release or not alike or not same_in_blocks(np.asarray(at), mask):
        shadow.widen(len(blocks))
    if shadow.rows > 1:
        elements, places = m.lanes.of(at, mask)
        row, thread = np.divmod(places, m.lanes.threads)
        cells = elements + row * array.buffer.shape[1]
    else:
        elements, places = _in_one_row(m, at, mask)
        cells, thread = elements, places
    times = len(blocks) // shadow.rows
    access = Access(line, op, array, places, elements, times, value, compares, _units(array))
    _track(m, access, cells, thread)
    if may_release:
        first, threads = int(blocks[0, 0]), m.lanes.threads
        flags, epochs = cells + first * array.buffer.shape[1], m.waits.epochs(places // threads)
        lanes, syncs = places + first * threads, m.waits.of_warps(places)
        m.report.releases.update(id(shadow), flags, lanes, threads, epochs, syncs)


def look_shared(
    m: MemoryBatch, line: int, op: str, array: Array, elements: np.ndarray, thread: Any
) -> None:
    """Check an asynchronous touch of shared memory, by one thread or by a thread for each element.

    Later touches are not compared with this one: until it is complete, `UnderWay` does that.
    """
    places = np.broadcast_to(thread, elements.shape)
    access = Access(line, op, array, places, elements, 1, None, False, _units(array))
    _track(m, access, elements, places, noted=False)


def track_boxes(
    m: MemoryBatch, line: int, op: str, array: Array, elements: np.ndarray, thread: int
) -> None:
    """Report races of a touch of many elements of global memory for one thread."""
    places = np.full(len(elements), thread)
    access = Access(line, op, array, places, elements, 1, None, False, _units(array))
    _track(m, access, elements, places + int(m.lanes.blocks[0, 0]) * m.lanes.threads)


def _track(
    m: MemoryBatch, access: Access, cells: np.ndarray, lanes: np.ndarray, noted: bool = True
) -> None:
    """Check an access by `lanes`, as the shadow numbers them, to `cells` of all of its blocks."""
    shadow: Shadow = access.array.shadow
    if access.units > 1:
        cells = (cells[:, None] * access.units + np.arange(access.units)).ravel()
        lanes = access.parts(lanes)
    unset = None if access.op == "write" else shadow.unset(cells)
    if unset is not None:
        unset = access.whole(unset)
        i, count = int(unset.argmax()), access.times * int(unset.sum())
        place = access.array.element(access.elements[i])
        m.findings.unwritten(access.line, _lane(m, access, i), place, access.op, count)
    places = access.parts(access.places)
    fences = m.report.releases.fences
    numbers = places + int(m.lanes.blocks[0, 0]) * m.lanes.threads if fences else None
    now = m.waits.now(access.line, places, numbers)
    if noted:
        clashes = getattr(shadow, access.op)(cells, lanes, now)
    else:
        clashes = shadow.look(access.op, cells, lanes, now)
    if access.compares:
        shadow.compare(cells, lanes)
    for clash in clashes:
        if _report(m, access, clash):
            return


def _report(m: MemoryBatch, access: Access, clash: Clash) -> bool:
    """Report a clash as a hazard; False where it is only a note, or is still undecided."""
    if clash.ops == ("write", "write"):
        differ = _differ(m, access, clash)
        if not differ.any():
            m.findings.same_value(access.line, *_involved(m, access, clash))
            return False
        clash = clash._replace(lanes=differ)
    who, other, place, count = _involved(m, access, clash)
    values = _at_stake(m, access, clash)
    first_read = {("read", "atomic"): access.line, ("atomic", "read"): clash.line}.get(clash.ops)
    if first_read is None:
        m.findings.race(access.line, clash, who, other, place, count, values)
        return True
    shadow: Shadow = access.array.shadow
    m.findings.race(
        access.line, clash, who, other, place, count, values, unless=(shadow, first_read)
    )
    return False


def _involved(m: MemoryBatch, access: Access, clash: Clash) -> tuple:
    """Return the lane at fault and the other one, the element, and how many lanes are at fault."""
    i = clash.lane // access.units
    block, thread = _lane(m, access, i)
    if access.array.space == "global":
        other = divmod(clash.other, m.lanes.threads)
    else:
        other = block, clash.other
    place = access.array.element(access.elements[i])
    count = access.times * int(access.whole(clash.lanes).sum())
    return (block, thread), other, place, count


def _differ(m: MemoryBatch, access: Access, clash: Clash) -> np.ndarray:
    """The lanes of a clash of two writes that write another value than is, or will be, there."""
    if access.value is None or access.units > 1:
        return clash.lanes
    which = np.flatnonzero(clash.lanes)
    row, thread = np.divmod(access.places[which], m.lanes.threads)
    elements = access.elements[which]
    values, buffer = m.lanes.spread(access.value), access.array.buffer
    if access.times > 1:  # the row stands for all blocks
        row = m.lanes.row
    mine = values[row, thread]
    if clash.at_once:
        others = clash.visits.lanes(clash.touches[which])
        if access.array.space == "global":
            row, others = np.divmod(others, m.lanes.threads)
            row = row - m.lanes.blocks[0, 0]
        theirs = values[row, others]
    else:
        theirs = buffer[elements] if access.array.space == "global" else buffer[row, elements]
    differ = (mine != theirs) & ((mine == mine) | (theirs == theirs))
    result = np.zeros_like(clash.lanes)
    result[which] = differ.any(axis=0) if differ.ndim > 1 else differ
    return result


def _at_stake(m: MemoryBatch, access: Access, clash: Clash) -> AtStake:
    """The values of a race: the one in memory, and what the lane at fault and the other one write.

    The other one writes in this access, or, as far as this access knows, not at all.
    """
    i, other = clash.lane // access.units, clash.other
    row, thread = divmod(int(access.places[i]), m.lanes.threads)
    element, in_global = access.elements[i], access.array.space == "global"
    held = str(access.array.buffer[(element,) if in_global else (row, element)])
    if access.value is None:
        return AtStake(held, "", "", clash.at_once)
    values, size = m.lanes.spread(access.value), m.lanes.threads
    place = other - int(m.lanes.blocks[0, 0]) * size if in_global else row * size + other
    its = np.flatnonzero((access.places == place) & (access.elements == element))
    writes = str(values[divmod(place, size)]) if len(its) else ""
    return AtStake(held, str(values[row, thread]), writes, clash.at_once)


def _lane(m: MemoryBatch, access: Access, i: int) -> tuple[int, int]:
    row, thread = divmod(int(access.places[i]), m.lanes.threads)
    return int(m.lanes.blocks[row, 0]), thread


def _units(array: Array) -> int:
    """Return the number of parts of an element that are tracked."""
    return array.itemsize // array.shadow.unit if array.shadow.unit else 1


def _in_one_row(m: MemoryBatch, at: Any, mask: Mask) -> tuple[np.ndarray, np.ndarray]:
    """Return the elements and the threads of the active lanes, where every block does the same."""
    known = m.memory.again.get((_in_one_row, at, mask))
    if known is None:
        threads = m.lanes.threads
        elements, thread = np.broadcast_to(at, (1, threads))[0], m.lanes.thread[0]
        if mask is not None:
            on = np.broadcast_to(mask, (1, threads))[0]
            elements, thread = elements[on], thread[on]
        known = elements, thread
        m.memory.again.put((_in_one_row, at, mask), known)
    return known
