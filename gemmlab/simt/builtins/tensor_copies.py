"""Copies of the Tensor Memory Accelerator, which tell an mbarrier when they are complete.

A copy moves a box of a matrix to shared memory or back, or to several blocks of a cluster; there it
lies in the 128-byte swizzle, in which `wgmma` reads it. Stores to a block of the cluster tell an
mbarrier there in the same way.
Source: PTX ISA 9.0, "Swizzling modes" of tensors: bits 4 to 6 of an address are XORed with bits 7
to 9.
"""

from typing import Any

import numpy as np

from gemmlab.instructions.instruction import Instruction
from gemmlab.instructions.tensor_copies import ROW, STEP, TensorMap
from gemmlab.simt.builtins import mbarriers
from gemmlab.simt.builtins.batch import BuiltinBatch
from gemmlab.simt.builtins.mbarriers import Barrier
from gemmlab.simt.builtins.under_way import (
    UNIT,
    Operation,
    memory_of,
    parts_of,
)
from gemmlab.simt.memory import tracking
from gemmlab.simt.memory.array import Array
from gemmlab.simt.memory.indices import Place, find
from gemmlab.simt.memory.memory import shared_array

PATTERN = 1024  # bytes, after which the swizzle repeats


def swizzled(first: Any, i: Any, j: Any, itemsize: int) -> Any:
    """Return the element at row i and column j of a tile with rows of 128 bytes, from `first` on.

    >>> [int(swizzled(0, 1, j, 2)) for j in (0, 8, 63)]
    [72, 64, 119]
    """
    byte = (first + i * (ROW // itemsize) + j) * itemsize
    return (byte ^ (byte >> 7 & 7) << 4) // itemsize


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
    """`tma_load`: each active thread begins a copy; `tma_load_multicast`: to blocks of its cluster.

    The last operand of the latter has a bit for each of their ranks.
    """
    m.tally.tick(line, f"inst_{instruction.kind}")
    (to, (array, index)), (_, (found, row, column)), (operand, (words, i)), *last = bound
    place = find(m, instruction, to, array, index, line)
    at_barrier = find(m, instruction, operand, words, i, line)
    _check_types(instruction, array, found.array)
    if place.mask is False:
        return
    first, rows, columns = (m.lanes.spread(x)[0] for x in (place.at, row, column))
    for barrier, threads in mbarriers.named(m, instruction, at_barrier, line):
        for thread in threads[m.lanes.full(place.mask)[0, threads]]:
            _check_map(m, found, int(thread), line)
            _check_barrier(m, barrier, int(thread), line)
            box = int(first[thread]), int(rows[thread]), int(columns[thread])
            _check_start(m, found, box[2], int(thread), line, "read")
            if not last:
                _copy(m, m, array, found, barrier, box, int(thread), line)
                continue
            ranks, key = int(m.lanes.spread(last[0][1])[0, thread]), _byte(m, at_barrier, thread)
            for rank in (rank for rank in range(ranks.bit_length()) if ranks >> rank & 1):
                there = mbarriers.block_of(m, instruction, array, rank, int(thread), line)
                known = there and mbarriers.barrier_of(
                    m, there, key, barrier.element, int(thread), line
                )
                if known:
                    _copy(m, there, _as_there(there, array), found, known, box, int(thread), line)


def _byte(m: BuiltinBatch, place: Place, thread: int) -> int:
    return int(m.lanes.spread(place.at)[0, thread]) * place.array.itemsize


def _as_there(there: BuiltinBatch, array: Array) -> Array:
    """Return the same view of the dynamic shared memory of another block."""
    whole = shared_array(there, (0,), array.dtype)
    of = array.shape, array.strides, array.offset, array.name
    return Array("shared", whole.buffer, *of, shadow=whole.shadow)


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


def store_remotely(m: BuiltinBatch, instruction: Instruction, bound: list, line: int) -> None:
    """`store_async_v4`: each active thread begins a store in the block that it names by rank."""
    m.tally.tick(line, f"inst_{instruction.kind}")
    (to, (array, index)), (operand, (words, i)), (_, values), (_, ranks) = bound
    place = find(m, instruction, to, array, index, line)
    at_barrier = find(m, instruction, operand, words, i, line)
    if array.dtype != np.float32:
        text = f"{instruction.name} stores float32, not to an array of {array.dtype}"
        raise TypeError(text)
    if place.mask is False:
        return
    firsts, ranks, *values = (m.lanes.spread(x)[0] for x in (place.at, ranks, *values))
    for thread in map(int, m.lanes.of(0, place.mask)[1]):
        there = mbarriers.block_of(m, instruction, array, int(ranks[thread]), thread, line)
        if there is None:
            continue
        key = _byte(m, at_barrier, thread)
        element = words.element(key // words.itemsize)
        known = mbarriers.barrier_of(m, there, key, element, thread, line)
        if known:
            target, sums = _as_there(there, array), [v[thread] for v in values]
            _put(m, there, target, known, int(firsts[thread]), sums, (thread, instruction), line)


def _put(
    m: BuiltinBatch, there: BuiltinBatch, array: Array, barrier: Barrier, first: int,
    values: list, by: tuple[int, Instruction], line: int,
) -> None:  # fmt: skip
    """Store neighbouring elements in the shared memory of a block for a thread of this one."""
    thread, instruction = by
    elements = first + np.arange(len(values))
    _arrive(m, there, array, barrier, elements, (thread, instruction.name, first), line)
    array.buffer[0, elements] = values
    size = elements.size * array.itemsize
    m.tally.counters(line)["cluster_store_bytes"] += size
    if there is not m:
        barrier.hear(m.under_way.over(thread))
    barrier.bytes -= size
    barrier.look()


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
    m: BuiltinBatch, there: BuiltinBatch, array: Array, found: TensorMap, barrier: Barrier,
    box: tuple, thread: int, line: int,
) -> None:  # fmt: skip
    """Copy a box to the shared memory of a block, `there`, for a thread of this one."""
    at, row, column = box
    elements = _box(m, array, found, at, thread, line, "write")
    if elements is not None:
        _arrive(m, there, array, barrier, elements, (thread, "tma_load", at), line)
        inside, flat = _in_matrix(found, row, column)
        source = found.array
        if source.shadow is not None and inside.any():
            tracking.track_boxes(m, line, "read", source, flat[inside], thread)
        array.buffer[0, elements] = np.where(inside, source.buffer[flat], source.dtype.type(0))
        if there is m:  # what is sent to several blocks is read once
            m.tally.counters(line)["tensor_copy_bytes"] += found.rows * ROW
    if there is not m:
        barrier.hear(m.under_way.over(thread))
    barrier.bytes -= found.rows * ROW
    barrier.look()


def _arrive(
    m: BuiltinBatch, there: BuiltinBatch, array: Array, barrier: Barrier, elements: np.ndarray,
    by: tuple[int, str, int], line: int,
) -> None:  # fmt: skip
    """Check and note that elements of a block's shared memory are overwritten, until an mbarrier
    tells it.

    by : the thread of this block, what it executes, and the first element
    """
    thread, name, first = by
    block = int(m.lanes.blocks[0, 0])
    units = np.unique(elements * array.itemsize // UNIT)
    under_way = there.under_way
    me = under_way.rows(m.under_way, thread)
    firsts, who = units * UNIT // array.itemsize, np.full(len(units), me)
    under_way.check(m, line, "copy", array, firsts, units, who)
    there.copies.check_all(m, line, "copy", array, elements, thread)
    if there is m:
        tracking.look_shared(m, line, "write", array, elements, thread)
    else:
        _check_touches(m, there, array, elements, me, line)
    what = "copy", line, thread, barrier.until, name
    operation = Operation(*what, array.element(first), m.calls.source, block)
    touch = m.findings.touch("copy", line, (block, thread))
    under_way.loads.overwrite(there, memory_of(array), units, under_way.known[me], touch)
    held = under_way.held(array)
    held.copies[units] = under_way.begin(operation, barrier.source, barrier.phase + 1)
    held.stores[parts_of(elements, array.itemsize)] = -1


def _check_touches(
    m: BuiltinBatch, there: BuiltinBatch, array: Array, elements: np.ndarray, me: int, line: int
) -> None:
    """Report what threads of another block do to elements that a copy of this one overwrites.

    me : the row of the thread of this block in what that block keeps of who knows what
    """
    known = there.under_way.known[me, : there.lanes.threads]
    units = array.itemsize // array.shadow.unit
    parts = (elements[:, None] * units + np.arange(units)).ravel()
    late = array.shadow.sent(parts, known)
    if late is None:
        return
    i, other, at = late
    element, block = array.element(elements[i // units]), int(there.lanes.blocks[0, 0])
    text = f"thread {{thread}} overwrites {element} of block {m.lanes.block_name(block)}, which "
    text += f"thread {m.lanes.thread_name(other)} there touches in line {at}: it does not know "
    text += "that this is over"
    m.findings.hazard(
        "shared-race", line, m.lanes.thread == me % m.lanes.threads, text, element=element,
        op="copy", against=there.findings.touch("read", at, (block, other)),
    )  # fmt: skip


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
