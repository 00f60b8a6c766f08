"""Copies of the Tensor Memory Accelerator, and the mbarriers that know when they are complete.

A copy moves a box of a matrix to shared memory or back; there it lies in the 128-byte swizzle, in
which `wgmma` reads it. An mbarrier counts arrivals and expected bytes, phase after phase, and
threads wait for a phase.
Source: PTX ISA 9.0, "Swizzling modes" of tensors: bits 4 to 6 of an address are XORed with bits 7
to 9.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gemmlab.instructions.instruction import Instruction
from gemmlab.instructions.tensor_copies import ROW, STEP, TensorMap
from gemmlab.simt.builtins.batch import BuiltinBatch
from gemmlab.simt.builtins.under_way import UNIT, Operation, memory_of, parts_of
from gemmlab.simt.memory import access, tracking
from gemmlab.simt.memory.array import Array
from gemmlab.simt.memory.indices import Place, find
from gemmlab.simt.races.hazards import Element

PATTERN = 1024  # bytes, after which the swizzle repeats


def swizzled(first: Any, i: Any, j: Any, itemsize: int) -> Any:
    """Return the element at row i and column j of a tile with rows of 128 bytes, from `first` on.

    >>> [int(swizzled(0, 1, j, 2)) for j in (0, 8, 63)]
    [72, 64, 119]
    """
    byte = (first + i * (ROW // itemsize) + j) * itemsize
    return (byte ^ (byte >> 7 & 7) << 4) // itemsize


@dataclass
class Barrier:
    """An mbarrier: `pending` of `count` arrivals and `bytes` are missing in the present phase.

    phase : how many are complete; source : its column in `UnderWay.known`
    fenced : whether asynchronous copies see it; thread : who has initialised it
    gathered : what those know who have arrived; told : the same when the last phase was complete
    """

    element: Element
    count: int
    source: int
    thread: int
    gathered: np.ndarray
    told: np.ndarray
    pending: int = 0
    bytes: int = 0
    phase: int = 0
    fenced: bool = False

    def __post_init__(self) -> None:
        self.pending = self.count

    def arrive(self, known: np.ndarray) -> None:
        """A thread arrives, with what it knows."""
        self.gathered = _greater(self.gathered, known)
        self.pending -= 1
        self.look()

    def look(self) -> None:
        """Begin the next phase if this one is complete."""
        if self.pending == 0 and self.bytes == 0:
            self.phase, self.pending, self.told = self.phase + 1, self.count, self.gathered

    def passed(self, parity: int) -> bool:
        """Whether the last phase of this parity is complete: the present one is of the other."""
        return self.phase % 2 != parity

    @property
    def until(self) -> str:
        """A sentence says what completes the present phase."""
        return f"phase {self.phase} of {self.element} is complete"

    @property
    def lacks(self) -> str:
        """The same sentence, with what the present phase lacks."""
        lacks = [f"{self.pending} of {self.count} arrivals"] * bool(self.pending)
        lacks += [f"{self.bytes} bytes"] * bool(self.bytes)
        return f"{self.until}, which lacks {' and '.join(lacks)}"


def _greater(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the greater of each number; the longer array has those that the other one lacks."""
    a, b = sorted((a, b), key=len)
    return np.maximum(np.pad(a, (0, len(b) - len(a))), b)


def init_barrier(m: BuiltinBatch, instruction: Instruction, bound: list, line: int) -> None:
    """`mbarrier_init`: the active lanes make mbarriers, each with its count of arrivals."""
    place = _place(m, instruction, bound, line)
    counts = m.lanes.spread(bound[1][1])[0]
    access.put(m, line, place.array, place.at, place.mask, np.uint64(0))
    nothing = np.zeros(0, np.int64)
    for key, element, threads in _each(m, place):
        source = m.under_way.source(("mbarrier", *key))
        count, thread = int(counts[threads[0]]), int(threads[0])
        m.under_way.barriers[key] = Barrier(element, count, source, thread, nothing, nothing)
        m.under_way.known[:, source] = 0


def arrive_at_barrier(m: BuiltinBatch, instruction: Instruction, bound: list, line: int) -> None:
    """`mbarrier_arrive` of the active threads; `mbarrier_arrive_expect` with bytes to come."""
    place = _place(m, instruction, bound, line)
    expected = m.lanes.spread(bound[1][1])[0] if len(bound) > 1 else None
    for barrier, threads in barriers(m, instruction, place, line):
        m.under_way.tell(threads)
        _check_phase(m, barrier, threads, line)
        for thread in threads:
            if expected is not None:
                barrier.bytes += int(expected[thread])
            barrier.arrive(m.under_way.known[thread])


def _check_phase(m: BuiltinBatch, barrier: Barrier, threads: np.ndarray, line: int) -> None:
    """Note an arrival that may count for the phase before, of which it is not known to be over.

    Here each copy is there at once, so that the phase is over; on a GPU bytes may still be missing.
    Mostly something else goes wrong then, which says more: it is reported when the block ends.
    """
    early = threads[m.under_way.known[threads, barrier.source] < barrier.phase]
    if len(early):
        text = f"thread {{thread}} arrives at {barrier.element}, and does not know that its phase "
        text += f"{barrier.phase - 1} is complete: the arrival may count for that one"
        found = Operation("atomic", line, int(early[0]), text, "", barrier.element, m.calls.source)
        m.under_way.early.setdefault((m.calls.source, line), found)


def wait_for_phase(m: BuiltinBatch, instruction: Instruction, bound: list, line: int) -> None:
    """`mbarrier_wait`: let others run until the phase of this parity is complete."""
    place, parity = _place(m, instruction, bound, line), m.lanes.spread(bound[1][1])[0]
    for barrier, threads in barriers(m, instruction, place, line):
        for value in np.unique(parity[threads] & 1):
            waiting = threads[parity[threads] & 1 == value]
            lanes = np.isin(m.lanes.thread, waiting)
            passed = partial(barrier.passed, int(value))
            m.loops.await_(line, lanes, passed, lambda barrier=barrier: barrier.lacks)
            known = m.under_way.known
            told = np.pad(barrier.told, (0, known.shape[1] - len(barrier.told)))
            known[waiting] = np.maximum(known[waiting], told)
            m.under_way.learn(waiting, barrier.source, barrier.phase)


def barriers(
    m: BuiltinBatch, instruction: Instruction, place: Place, line: int
) -> Iterator[tuple[Barrier, np.ndarray]]:
    """The mbarriers that the active lanes name, and the threads that do."""
    if place.mask is False:
        return
    for key, element, threads in _each(m, place):
        barrier = m.under_way.barriers.get(key)
        if barrier is None:
            text = f"{instruction.name}: {element} is no mbarrier before mbarrier_init"
            lanes = np.isin(m.lanes.thread, threads)
            m.findings.hazard("uninitialised-read", line, lanes, text, element=element, op="atomic")
            continue
        at = np.full(len(threads), m.lanes.spread(place.at)[0, threads[0]])
        tracking.look_shared(m, line, "read", place.array, at, threads)
        yield barrier, threads


def _place(m: BuiltinBatch, instruction: Instruction, bound: list, line: int) -> Place:
    operand, (array, index) = bound[0]
    m.tally.tick(line, f"inst_{instruction.kind}")
    return find(m, instruction, operand, array, index, line)


def _each(m: BuiltinBatch, place: Place) -> Iterator[tuple[tuple[int, int], Element, np.ndarray]]:
    """Each mbarrier that lanes name: its memory and byte, its element, the threads."""
    array: Array = place.array
    elements, threads = m.lanes.of(place.at, place.mask)
    memory = memory_of(array)
    for at in np.unique(elements):
        key = id(memory), int(at) * array.itemsize
        yield key, array.element(at), threads[elements == at]


def fence_barriers(m: BuiltinBatch, instruction: Instruction, bound: list, line: int) -> None:
    """`fence_mbarrier_init`: copies see the mbarriers that the active threads have initialised."""
    m.tally.tick(line, f"inst_{instruction.kind}")
    _, threads = m.lanes.of(0, m.masks[-1])
    for barrier in m.under_way.barriers.values():
        barrier.fenced |= barrier.thread in threads


def fence_proxy(m: BuiltinBatch, instruction: Instruction, bound: list, line: int) -> None:
    """`fence_proxy_async`: copies and products see what the active threads have stored."""
    m.tally.tick(line, f"inst_{instruction.kind}")
    m.under_way.fence(m.lanes.of(0, m.masks[-1])[1])


def fence_map(m: BuiltinBatch, instruction: Instruction, bound: list, line: int) -> None:
    """`fence_tensor_map`: the active threads may use the map."""
    m.tally.tick(line, f"inst_{instruction.kind}")
    key = id(bound[0][1][0].array)
    m.under_way.mapped |= {(key, int(t)) for t in m.lanes.of(0, m.masks[-1])[1]}


def load(m: BuiltinBatch, instruction: Instruction, bound: list, line: int) -> None:
    """`tma_load`: each active thread begins a copy."""
    m.tally.tick(line, f"inst_{instruction.kind}")
    (to, (array, index)), (_, (found, row, column)), (operand, (words, i)) = bound
    place = find(m, instruction, to, array, index, line)
    at_barrier = find(m, instruction, operand, words, i, line)
    _check_types(instruction, array, found.array)
    if place.mask is False:
        return
    first, rows, columns = (m.lanes.spread(x)[0] for x in (place.at, row, column))
    for barrier, threads in barriers(m, instruction, at_barrier, line):
        for thread in threads[m.lanes.full(place.mask)[0, threads]]:
            _check_map(m, found, int(thread), line)
            _check_barrier(m, barrier, int(thread), line)
            box = int(first[thread]), int(rows[thread]), int(columns[thread])
            _check_start(m, found, box[2], int(thread), line, "read")
            _copy(m, array, found, barrier, box, int(thread), line)


def store(m: BuiltinBatch, instruction: Instruction, bound: list, line: int) -> None:
    """`tma_store`: each active thread begins a copy from shared memory."""
    m.tally.tick(line, f"inst_{instruction.kind}")
    (_, (found, row, column)), (source, (array, index)) = bound
    place = find(m, instruction, source, array, index, line)
    _check_types(instruction, array, found.array)
    if place.mask is False:
        return
    first, rows, columns = (m.lanes.spread(x)[0] for x in (place.at, row, column))
    for thread in m.lanes.of(0, place.mask)[1]:
        _check_map(m, found, int(thread), line)
        box = int(first[thread]), int(rows[thread]), int(columns[thread])
        _check_start(m, found, box[2], int(thread), line, "write")
        _store(m, instruction, array, found, box, int(thread), line)


def commit(m: BuiltinBatch, instruction: Instruction, bound: list, line: int) -> None:
    """`tma_commit`: the active threads' stores since the last one are a group."""
    m.tally.tick(line, f"inst_{instruction.kind}")
    m.under_way.stored[m.lanes.of(0, m.masks[-1])[1]] += 1


def wait_read(m: BuiltinBatch, instruction: Instruction, bound: list, line: int) -> None:
    """`tma_wait_read`: all but the last groups of the active threads have been read."""
    m.tally.tick(line, f"inst_{instruction.kind}")
    for thread in m.lanes.of(0, m.masks[-1])[1]:
        source = m.under_way.source(("stores", int(thread)))
        read = int(m.under_way.stored[thread]) - int(bound[0][1])
        m.under_way.learn(np.array([thread]), source, read)


def _check_types(instruction: Instruction, to: Array, source: Array) -> None:
    if to.dtype != source.dtype:
        text = f"{instruction.name} copies between arrays of one type, not "
        raise TypeError(f"{text}from {source.dtype} to {to.dtype}")


def _check_map(m: BuiltinBatch, found: TensorMap, thread: int, line: int) -> None:
    if (id(found.array), thread) not in m.under_way.mapped:
        text = f"thread {{thread}} copies by the map of {found.array.name}, which lies in global "
        text += "memory: fence_tensor_map(map) has to come first, in this thread"
        m.findings.hazard("missing-fence", line, m.lanes.thread == thread, text)


def _check_start(
    m: BuiltinBatch, found: TensorMap, column: int, thread: int, line: int, op: str
) -> None:
    itemsize = found.array.itemsize
    if column * itemsize % STEP:
        text = f"thread {{thread}} copies {'from' if op == 'read' else 'to'} column {column} of "
        text += f"{found.array.name}; the TMA begins at multiples of {STEP} B, {STEP // itemsize} "
        text += "columns, even where a box lies beyond the matrix"
        m.findings.hazard("misaligned", line, m.lanes.thread == thread, text, op=op)


def _check_barrier(m: BuiltinBatch, barrier: Barrier, thread: int, line: int) -> None:
    if not barrier.fenced:
        text = f"copies may not see {barrier.element}: fence_mbarrier_init() has to follow "
        text += "mbarrier_init, in the same thread"
        lanes = m.lanes.thread == thread
        m.findings.hazard("missing-fence", line, lanes, text, element=barrier.element)


def _copy(
    m: BuiltinBatch,
    array: Array,
    found: TensorMap,
    barrier: Barrier,
    box: tuple,
    thread: int,
    line: int,
) -> None:
    at, row, column = box
    elements = _box(m, array, found, at, thread, line, "write")
    if elements is not None:
        units = np.unique(elements * array.itemsize // UNIT)
        firsts, who = units * UNIT // array.itemsize, np.full(len(units), thread)
        under_way = m.under_way
        under_way.check(m, line, "copy", array, firsts, units, who)
        m.copies.check_all(m, line, "copy", array, elements, thread)
        tracking.look_shared(m, line, "write", array, elements, thread)
        inside, flat = _in_matrix(found, row, column)
        source = found.array
        if source.shadow is not None and inside.any():
            tracking.track_boxes(m, line, "read", source, flat[inside], thread)
        array.buffer[0, elements] = np.where(inside, source.buffer[flat], source.dtype.type(0))
        what = "copy", line, thread, barrier.until, "tma_load"
        operation = Operation(*what, array.element(at), m.calls.source)
        touch = m.findings.touch("copy", line, (int(m.lanes.blocks[0, 0]), thread))
        known = under_way.known[thread]
        under_way.loads.overwrite(m, memory_of(array), units, known, touch)
        held = under_way.held(array)
        held.copies[units] = under_way.begin(operation, barrier.source, barrier.phase + 1)
        held.stores[parts_of(elements, array.itemsize)] = -1
        m.tally.counters(line)["tensor_copy_bytes"] += found.rows * ROW
    barrier.bytes -= found.rows * ROW
    barrier.look()


def _store(
    m: BuiltinBatch, instruction: Instruction, array: Array, found: TensorMap, box: tuple,
    thread: int, line: int,
) -> None:  # fmt: skip
    at, row, column = box
    elements = _box(m, array, found, at, thread, line, "read")
    if elements is None:
        return
    units = np.unique(elements * array.itemsize // UNIT)
    firsts, who = units * UNIT // array.itemsize, np.full(len(units), thread)
    under_way = m.under_way
    under_way.check(m, line, "read", array, firsts, units, who)
    m.copies.check_all(m, line, "read", array, elements, thread)
    tracking.look_shared(m, line, "read", array, elements, thread)
    under_way.check_fenced(m, instruction, array, elements, np.array([thread]), line)
    inside, flat = _in_matrix(found, row, column)
    if inside.any():
        tracking.track_boxes(m, line, "write", found.array, flat[inside], thread)
    found.array.buffer[flat[inside]] = array.buffer[0, elements[inside]]
    source, batch = under_way.source(("stores", thread)), int(under_way.stored[thread])
    until = f"group {batch} of the stores of thread {thread} has been read"
    what = "read", line, thread, until, instruction.name
    operation = Operation(*what, array.element(at), m.calls.source)
    held = under_way.held(array)
    reads = held.reads.setdefault(("stores", thread), np.full(len(held.copies), -1))
    reads[units] = under_way.begin(operation, source, batch + 1)
    m.tally.counters(line)["tensor_store_bytes"] += found.rows * ROW


def _box(
    m: BuiltinBatch, array: Array, found: TensorMap, at: int, thread: int, line: int, op: str
) -> np.ndarray | None:
    """Return the elements of a box from `at` on, row by row; None where it does not fit."""
    columns, lanes = ROW // array.itemsize, m.lanes.thread == thread
    if at * array.itemsize % PATTERN:
        text = f"thread {{thread}} copies {'to' if op == 'write' else 'from'} byte "
        text += f"{at * array.itemsize} of {array.name}; a box in the 128-byte swizzle begins at a "
        text += f"multiple of {PATTERN}"
        m.findings.hazard("misaligned", line, lanes, text, element=array.element(at), op=op)
    if at + found.rows * columns > array.offset + int(np.prod(array.shape)):
        text = f"a box of {found.rows}×{columns} elements from {array.element(at)} on reaches "
        text += f"beyond {array.name}, which has {', '.join(map(str, array.shape))}"
        m.findings.hazard("out-of-bounds", line, lanes, text, element=array.element(at), op=op)
        return None
    i, j = np.arange(found.rows)[:, None], np.arange(columns)[None, :]
    return swizzled(at, i, j, array.itemsize).ravel()


def _in_matrix(found: TensorMap, row: int, column: int) -> tuple[np.ndarray, np.ndarray]:
    """For each element of a box: whether the matrix has it, and its place there, or 0."""
    matrix, columns = found.array, ROW // found.array.itemsize
    i, j = row + np.arange(found.rows)[:, None], column + np.arange(columns)[None, :]
    height, width = (int(size) for size in matrix.shape)
    inside = (i >= 0) & (i < height) & (j >= 0) & (j < width)
    flat = int(matrix.offset) + i * matrix.strides[0] + j * matrix.strides[1]
    return inside.ravel(), np.where(inside, flat, 0).ravel()
