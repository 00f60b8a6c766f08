"""Instructions that compute on the registers of a warp, or move tiles: all warps at once.

Registers go in and come out as (blocks, warps, 32, count); so do the rows that lanes read or write
in memory, as 32-bit words. Which accesses WMMA makes for a tile is not documented: each element
of a lane is counted as one, which is an upper bound.
"""

from typing import Any

import numpy as np

from gemmlab.instructions.fragments import layout
from gemmlab.instructions.instruction import Instruction, Memory, Registers, Tile
from gemmlab.model.transactions import WARP
from gemmlab.numerics import TENSOR_CORES, tensor_core_of
from gemmlab.simt.builtins.batch import BuiltinBatch
from gemmlab.simt.builtins.under_way import UNIT, memory_of
from gemmlab.simt.memory import access, counting
from gemmlab.simt.memory.array import Array
from gemmlab.simt.memory.indices import Place, check_exact, count_wide, find
from gemmlab.simt.numbers.lanes import Mask, both
from gemmlab.simt.numbers.overflow import Wrapped
from gemmlab.simt.numbers.values import widen
from gemmlab.simt.races.hazards import Element

TILE = 16  # rows and columns of a tile
ROW = 16  # bytes, of which the addresses of its rows are multiples


def architecture(m: BuiltinBatch) -> str:
    """The architecture whose arithmetic and layouts the simulated GPU has; the newest for none."""
    if m.launch.gpu is None:
        return list(TENSOR_CORES)[-1]
    return tensor_core_of(m.launch.gpu.compute_capability).arch


def collective(m: BuiltinBatch, instruction: Instruction, bound: list, line: int) -> Any:
    """Execute an instruction that is declared with a meaning."""
    if instruction.collective:
        _check_warps(m, instruction, line)
    m.tally.tick(line, f"inst_{instruction.kind}")
    inputs, written, read = [], None, None
    for operand, value in bound:
        if isinstance(operand, Registers):
            inputs.append(_stacked(m, operand, value))
        elif operand.access == "write":
            written = operand, value
        elif isinstance(operand, Memory):
            read = find(m, instruction, operand, *value, line)
            inputs.append(_read_rows(m, read, line))
        else:
            inputs.append(_read_tile(m, instruction, operand, *value, line))
    result = instruction.meaning(*inputs, arch=architecture(m))
    if written is None:
        parts = [part.reshape(m.lanes.shape) for part in np.moveaxis(result, -1, 0)]
        if read is not None and m.under_way is not None and read.mask is not False:
            where, memory = (read.array, read.at, read.mask), memory_of(read.array)
            m.under_way.loads.begin(m, line, *where, memory, UNIT, tuple(parts))
        return parts[0] if instruction.result.count == 1 else tuple(parts)
    operand, value = written
    if isinstance(operand, Memory):
        return _write_rows(m, find(m, instruction, operand, *value, line), result, line)
    return _write_tile(m, instruction, operand, *value, result, line)


def _check_warps(m: BuiltinBatch, instruction: Instruction, line: int) -> None:
    on = m.lanes.in_warps(m.lanes.full(m.masks[-1]))
    part = on.any(axis=-1, keepdims=True) & ~on
    if part.any():
        row, warp, lane = (int(v) for v in np.argwhere(part)[0])
        at_fault = np.zeros(on.shape, bool)
        at_fault[row, warp, int(on[row, warp].argmax())] = True
        text = f"{instruction.name} needs all {WARP} lanes of the warp, "
        x, y, z = m.lanes.block
        missing = warp * WARP + lane
        if missing < x * y * z:
            text += "thread {other} does not get here"
        else:
            text += f"the last one of a block of {x * y * z} threads has {x * y * z % WARP}"
            missing = None
        lanes = at_fault.reshape(m.lanes.shape)
        m.findings.hazard("divergent-barrier", line, lanes, text, other=missing)


def _stacked(m: BuiltinBatch, operand: Registers, value: Any) -> np.ndarray:
    """Registers of all lanes, (blocks, warps, 32, count)."""
    values = value if operand.count > 1 else (value,)
    parts = [m.lanes.spread(np.asarray(v).astype(operand.carrier)) for v in values]
    return np.stack(parts, axis=-1).reshape(len(m.lanes.blocks), -1, WARP, operand.count)


# Rows of 16 bytes, one for each lane


def _read_rows(m: BuiltinBatch, place: Place, line: int) -> np.ndarray:
    elements = np.zeros((*m.lanes.shape, place.count), place.array.dtype)
    count_wide(m, place, line, in_rows=True)
    if place.mask is not False:
        on = m.lanes.full(place.mask)
        for i in range(place.count):
            value = access.fetch(m, line, place.array, place.at + i, place.mask)
            elements[on, i] = m.lanes.spread(value)[on]
    words = elements.view(np.uint32)
    return words.reshape(len(m.lanes.blocks), -1, WARP, words.shape[-1])


def _write_rows(m: BuiltinBatch, place: Place, rows: np.ndarray, line: int) -> None:
    elements = np.ascontiguousarray(rows.reshape(*m.lanes.shape, -1))
    elements = elements.view(place.array.dtype)
    count_wide(m, place, line, in_rows=True)
    if place.mask is not False:
        for i in range(place.count):
            value = elements[..., i]
            access.put(m, line, place.array, place.at + i, place.mask, value)


# Tiles, each lane with its elements of them


def _tile_elements(
    m: BuiltinBatch, instruction: Instruction, tile: Tile, array: Array, index: list, line: int
) -> list[tuple[Any, Any]]:
    """Return the row and column in the array of each element that a lane holds."""
    form = layout(
        "wmma.m16n16k16", tile.operand, tile.format, arch=architecture(m), major=tile.major
    )
    for axis, part in enumerate(index):
        if type(part) is Wrapped:
            check_exact(m, array, axis, tuple(index), m.masks[-1], line, tile.access)
    corner = [widen(np.asarray(part)[()]) for part in index]
    _check_corner(m, instruction, tile, array, corner, line)
    lane = m.lanes.thread % WARP
    found = []
    for register in range(form.registers):
        i, j = form.element(lane, np.int64(register))
        i, j = (i, j) if tile.major == "row" else (j, i)
        found.append((corner[0] + i, corner[1] + j))
    return found


def _check_corner(
    m: BuiltinBatch, instruction: Instruction, tile: Tile, array: Array, corner: list, line: int
) -> None:
    """Report lanes of a warp that name different tiles, and tiles or rows not aligned to 16 bytes.

    PTX ISA 9.0, "Matrix Storage for WMMA", wants rows at multiples of a fragment's size, up to 32
    bytes; the CUDA C++ Programming Guide, load_matrix_sync, rows that are multiples of 16 apart. An
    H200 takes tiles at every multiple of 16.
    """
    on = m.lanes.in_warps(m.lanes.full(m.masks[-1]))
    for part in corner:
        if np.ndim(part):
            values = m.lanes.in_warps(part)
            first = np.take_along_axis(values, on.argmax(axis=-1)[..., None], axis=-1)
            other = (on & (values != first)).reshape(m.lanes.shape)
            if other.any():
                text = f"{instruction.name}: thread {{thread}} names another tile than the first "
                text += "lane of its warp; all name the same one"
                m.findings.hazard("divergent-barrier", line, other, text)
                return
    for part, size in zip(corner, array.shape, strict=True):
        if both(m.masks[-1], np.less(part, 0) | np.greater(part + TILE, size)) is not False:
            return  # what is out of bounds is reported for each element
    base, apart = array.owner.alignment or array.itemsize, array.strides[0] * array.itemsize
    at = array.offset + sum(c * s for c, s in zip(corner, array.strides, strict=True))
    text, odd = f"{instruction.name} needs tiles at multiples of {ROW} B", m.masks[-1]
    if base % ROW:
        text += f"; {array.name} begins at a multiple of {base} B: declare it with alignment={ROW}"
    elif np.any(apart % ROW):
        text += f" and rows as far apart; those of {array.name} are {int(np.max(apart))} B apart"
    else:
        odd = both(odd, np.not_equal(at * array.itemsize % ROW, 0))
        if odd is False:
            return
        byte = int(m.lanes.spread(at)[m.lanes.first(odd)]) * array.itemsize
        text += f"; this one begins at byte {byte} of {array.name}"
    element = array.element(m.lanes.spread(at)[m.lanes.first(odd)])
    m.findings.hazard("misaligned", line, odd, text, element=element, op=tile.access)


def _checked(
    m: BuiltinBatch, instruction: Instruction, tile: Tile, array: Array, at: tuple, line: int
) -> tuple[Any, Mask]:
    """Return the place of a tile's element in the buffer, and the lanes for which it is inside."""
    mask = m.masks[-1]
    for axis, part in enumerate(at):
        bad = np.less(part, 0) | np.greater_equal(part, array.shape[axis])
        outside = both(mask, bad)
        if outside is not False:
            lane = m.lanes.first(outside)
            size, i, j = (int(m.lanes.spread(v)[lane]) for v in (array.shape[axis], *at))
            element = Element(array.name, array.space, (i, j))
            text = f"a tile reaches beyond dimension {axis} of {array.name}, which has {size}: "
            text += f"{instruction.name} of {element}"
            m.findings.hazard("out-of-bounds", line, outside, text, element=element, op=tile.access)
            mask = both(mask, ~bad)
    where = array.offset + sum(p * s for p, s in zip(at, array.strides, strict=True))
    return (where if mask is None else np.where(mask, where, 0)), mask


def _read_tile(
    m: BuiltinBatch, instruction: Instruction, tile: Tile, array: Array, index: list, line: int
) -> np.ndarray:
    parts = []
    for at in _tile_elements(m, instruction, tile, array, index, line):
        where, mask = _checked(m, instruction, tile, array, at, line)
        value: Any = array.dtype.type(0)
        if mask is not False:
            counting.count_access(m, line, "load", array, where, mask)
            value = access.fetch(m, line, array, where, mask)
        parts.append(m.lanes.spread(value))
    return np.stack(parts, axis=-1).reshape(len(m.lanes.blocks), -1, WARP, len(parts))


def _write_tile(
    m: BuiltinBatch,
    instruction: Instruction,
    tile: Tile,
    array: Array,
    index: list,
    values: np.ndarray,
    line: int,
) -> None:
    values = values.reshape(*m.lanes.shape, -1)
    for register, at in enumerate(_tile_elements(m, instruction, tile, array, index, line)):
        where, mask = _checked(m, instruction, tile, array, at, line)
        if mask is not False:
            counting.count_access(m, line, "store", array, where, mask)
            access.put(m, line, array, where, mask, values[..., register])
