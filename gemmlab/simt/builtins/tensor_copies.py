"""Copies of boxes of a matrix to shared memory and back by the Tensor Memory Accelerator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gemmlab.instructions.instruction import Instruction
from gemmlab.instructions.tensor_copies import ROW, STEP, TensorMap
from gemmlab.simt.builtins.mbarriers import Barrier, barriers
from gemmlab.simt.builtins.swizzle import PATTERN, swizzled
from gemmlab.simt.builtins.under_way import UNIT, Operation, parts_of
from gemmlab.simt.memory.array import Array
from gemmlab.simt.memory.wide import find
from gemmlab.simt.races.tracking import look_shared, track_boxes

if TYPE_CHECKING:
    from gemmlab.simt.machine.machine import Machine


def fence_map(m: Machine, instruction: Instruction, bound: list, line: int) -> None:
    """`fence_tensor_map`: the active threads may use the map."""
    m.tally.tick(line, f"inst_{instruction.kind}")
    key = id(bound[0][1][0].array)
    m.under_way.mapped |= {(key, int(t)) for t in m.lanes.of(0, m.masks[-1])[1]}


def load(m: Machine, instruction: Instruction, bound: list, line: int) -> None:
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


def store(m: Machine, instruction: Instruction, bound: list, line: int) -> None:
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


def commit(m: Machine, instruction: Instruction, bound: list, line: int) -> None:
    """`tma_commit`: the active threads' stores since the last one are a group."""
    m.tally.tick(line, f"inst_{instruction.kind}")
    m.under_way.stored[m.lanes.of(0, m.masks[-1])[1]] += 1


def wait_read(m: Machine, instruction: Instruction, bound: list, line: int) -> None:
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


def _check_map(m: Machine, found: TensorMap, thread: int, line: int) -> None:
    if (id(found.array), thread) not in m.under_way.mapped:
        text = f"thread {{thread}} copies by the map of {found.array.name}, which lies in global "
        text += "memory: fence_tensor_map(map) has to come first, in this thread"
        m.findings.hazard("missing-fence", line, m.lanes.thread == thread, text)


def _check_start(
    m: Machine, found: TensorMap, column: int, thread: int, line: int, op: str
) -> None:
    itemsize = found.array.itemsize
    if column * itemsize % STEP:
        text = f"thread {{thread}} copies {'from' if op == 'read' else 'to'} column {column} of "
        text += f"{found.array.name}; the TMA begins at multiples of {STEP} B, {STEP // itemsize} "
        text += "columns, even where a box lies beyond the matrix"
        m.findings.hazard("misaligned", line, m.lanes.thread == thread, text, op=op)


def _check_barrier(m: Machine, barrier: Barrier, thread: int, line: int) -> None:
    if not barrier.fenced:
        text = f"copies may not see {barrier.element}: fence_mbarrier_init() has to follow "
        text += "mbarrier_init, in the same thread"
        lanes = m.lanes.thread == thread
        m.findings.hazard("missing-fence", line, lanes, text, element=barrier.element)


def _copy(
    m: Machine, array: Array, found: TensorMap, barrier: Barrier, box: tuple, thread: int, line: int
) -> None:
    at, row, column = box
    elements = _box(m, array, found, at, thread, line, "write")
    if elements is not None:
        units = np.unique(elements * array.itemsize // UNIT)
        firsts, who = units * UNIT // array.itemsize, np.full(len(units), thread)
        under_way = m.under_way
        under_way.check(m, line, "copy", array, firsts, units, who)
        m.copies.check_all(m, line, "copy", array, elements, thread)
        look_shared(m, line, "write", array, elements, thread)
        inside, flat = _in_matrix(found, row, column)
        source = found.array
        if source.shadow is not None and inside.any():
            track_boxes(m, line, "read", source, flat[inside], thread)
        array.buffer[0, elements] = np.where(inside, source.buffer[flat], source.dtype.type(0))
        operation = Operation("copy", line, thread, barrier.until)
        held = under_way.held(array)
        held.copies[units] = under_way.begin(operation, barrier.source, barrier.phase + 1)
        held.stores[parts_of(elements, array.itemsize)] = -1
        m.tally.counters(line)["tensor_copy_bytes"] += found.rows * ROW
    barrier.bytes -= found.rows * ROW
    barrier.look()


def _store(
    m: Machine, instruction: Instruction, array: Array, found: TensorMap, box: tuple, thread: int,
    line: int,
) -> None:  # fmt: skip
    at, row, column = box
    elements = _box(m, array, found, at, thread, line, "read")
    if elements is None:
        return
    units = np.unique(elements * array.itemsize // UNIT)
    firsts, who = units * UNIT // array.itemsize, np.full(len(units), thread)
    under_way, lanes = m.under_way, m.lanes.thread == thread
    under_way.check(m, line, "read", array, firsts, units, who)
    m.copies.check_all(m, line, "read", array, elements, thread)
    under_way.check_fenced(m, instruction, array, elements, lanes, line)
    look_shared(m, line, "read", array, elements, thread)
    inside, flat = _in_matrix(found, row, column)
    if inside.any():
        track_boxes(m, line, "write", found.array, flat[inside], thread)
    found.array.buffer[flat[inside]] = array.buffer[0, elements[inside]]
    source, batch = under_way.source(("stores", thread)), int(under_way.stored[thread])
    until = f"group {batch} of the stores of thread {thread} has been read"
    operation = Operation("read", line, thread, until, instruction.name)
    held = under_way.held(array)
    reads = held.reads.setdefault(("stores", thread), np.full(len(held.copies), -1))
    reads[units] = under_way.begin(operation, source, batch + 1)
    m.tally.counters(line)["tensor_store_bytes"] += found.rows * ROW


def _box(
    m: Machine, array: Array, found: TensorMap, at: int, thread: int, line: int, op: str
) -> np.ndarray | None:
    """The elements of a box from `at` on, row by row; None where it does not fit."""
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
    """Of each element of a box: whether the matrix has it, and where, or else 0."""
    matrix, columns = found.array, ROW // found.array.itemsize
    i, j = row + np.arange(found.rows)[:, None], column + np.arange(columns)[None, :]
    height, width = (int(size) for size in matrix.shape)
    inside = (i >= 0) & (i < height) & (j >= 0) & (j < width)
    flat = int(matrix.offset) + i * matrix.strides[0] + j * matrix.strides[1]
    return inside.ravel(), np.where(inside, flat, 0).ravel()
