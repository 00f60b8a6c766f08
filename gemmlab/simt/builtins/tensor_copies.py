"""Copies of boxes of a matrix into shared memory by the Tensor Memory Accelerator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gemmlab.instructions.instruction import Instruction
from gemmlab.instructions.tensor_maps import ROW, TensorMap
from gemmlab.simt.builtins.mbarriers import Barrier, barriers
from gemmlab.simt.builtins.swizzle import PATTERN, swizzled
from gemmlab.simt.builtins.under_way import UNIT, Operation, parts_of
from gemmlab.simt.memory.array import Array
from gemmlab.simt.memory.wide import find
from gemmlab.simt.races.tracking import look_shared, track_reads

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
    if array.dtype != found.array.dtype:
        text = f"{instruction.name} copies between arrays of one type, not "
        raise TypeError(f"{text}from {found.array.dtype} to {array.dtype}")
    if place.mask is False:
        return
    first, rows, columns = (m.lanes.spread(x)[0] for x in (place.at, row, column))
    for barrier, threads in barriers(m, instruction, at_barrier, line):
        for thread in threads[m.lanes.full(place.mask)[0, threads]]:
            _check_fences(m, found, barrier, int(thread), line)
            box = int(first[thread]), int(rows[thread]), int(columns[thread])
            _copy(m, array, found, barrier, box, int(thread), line)


def _check_fences(m: Machine, found: TensorMap, barrier: Barrier, thread: int, line: int) -> None:
    lanes = m.lanes.thread == thread
    if (id(found.array), thread) not in m.under_way.mapped:
        text = f"thread {{thread}} copies by the map of {found.array.name}, which lies in global "
        text += "memory: fence_tensor_map(map) has to come first, in this thread"
        m.findings.hazard("missing-fence", line, lanes, text)
    if not barrier.fenced:
        text = f"copies may not see {barrier.element}: fence_mbarrier_init() has to follow "
        text += "mbarrier_init, in the same thread"
        m.findings.hazard("missing-fence", line, lanes, text, element=barrier.element)


def _copy(
    m: Machine, array: Array, found: TensorMap, barrier: Barrier, box: tuple, thread: int, line: int
) -> None:
    at, row, column = box
    columns = ROW // array.itemsize
    lanes = m.lanes.thread == thread
    if at * array.itemsize % PATTERN:
        text = f"thread {{thread}} copies to byte {at * array.itemsize} of {array.name}; a box in "
        text += f"the 128-byte swizzle begins at a multiple of {PATTERN}"
        m.findings.hazard("misaligned", line, lanes, text, element=array.element(at), op="write")
    i, j = np.arange(found.rows)[:, None], np.arange(columns)[None, :]
    end = array.offset + int(np.prod(array.shape))
    if at + found.rows * columns > end:
        text = f"a box of {found.rows}×{columns} elements from {array.element(at)} on reaches "
        text += f"beyond {array.name}, which has {', '.join(map(str, array.shape))}"
        m.findings.hazard("out-of-bounds", line, lanes, text, element=array.element(at), op="write")
        barrier.bytes -= found.rows * ROW
        barrier.look()
        return
    elements = swizzled(at, i, j, array.itemsize).ravel()
    units = np.unique(elements * array.itemsize // UNIT)
    firsts, who = units * UNIT // array.itemsize, np.full(len(units), thread)
    under_way = m.under_way
    under_way.check(m, line, "copy", array, firsts, units, who)
    m.copies.check_all(m, line, "copy", array, elements, thread)
    look_shared(m, line, "write", array, elements, thread)
    array.buffer[0, elements] = _values(m, found, row, column, columns, thread, line).ravel()
    operation = Operation("copy", line, thread, barrier.until)
    held = under_way.held(array)
    held.copies[units] = under_way.begin(operation, barrier.source, barrier.phase + 1)
    held.stores[parts_of(elements, array.itemsize)] = -1
    m.tally.counters(line)["tensor_copy_bytes"] += found.rows * ROW
    barrier.bytes -= found.rows * ROW
    barrier.look()


def _values(
    m: Machine, found: TensorMap, row: int, column: int, columns: int, thread: int, line: int
) -> np.ndarray:
    """The elements of a box, zeros where it is beyond the matrix."""
    source = found.array
    i, j = row + np.arange(found.rows)[:, None], column + np.arange(columns)[None, :]
    height, width = (int(size) for size in source.shape)
    inside = (i >= 0) & (i < height) & (j >= 0) & (j < width)
    flat = int(source.offset) + i * source.strides[0] + j * source.strides[1]
    if source.shadow is not None:
        track_reads(m, line, source, flat[inside], thread)
    return np.where(inside, source.buffer[np.where(inside, flat, 0)], source.dtype.type(0))
