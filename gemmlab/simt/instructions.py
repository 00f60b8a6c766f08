"""Instructions of `gemmlab.instructions` on the simulated GPU: move, count, check, compute.

An access of 8 or 16 bytes is one request, and counted as hardware serves it; the elements that it
moves are checked one by one. An asynchronous copy counts as the load and the store that it makes.
Nsight Compute has its stores in no counter of stores, and as sectors of a 16-byte copy the distinct
pairs of a line that it reads and a sector that it writes: the same where neighbouring lanes copy
neighbouring 16 bytes. (Measured on an H200: tests/test_wide_accesses.py.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gemmlab.instructions.instruction import (
    HELD_AS,
    Instruction,
    Literal,
    Memory,
    Registers,
    Tile,
    Valid,
)
from gemmlab.instructions.layout_functions import LayoutFunction
from gemmlab.instructions.views import BASE_ALIGNMENT, SharedView
from gemmlab.simt import allocation, memory_access
from gemmlab.simt.collective import collective
from gemmlab.simt.masks import both, without
from gemmlab.simt.memory import Array, row_major
from gemmlab.simt.places import Place, find, tally
from gemmlab.simt.source import UnsupportedError

if TYPE_CHECKING:
    from gemmlab.simt.machine import Machine

KINDS = (Instruction, SharedView, LayoutFunction)  # what a kernel may name


def executed(m: Machine, value: Instruction | SharedView | LayoutFunction) -> Callable:
    """What a kernel calls by a name of `gemmlab.instructions`."""
    if isinstance(value, SharedView):
        return partial(_view, m)
    return partial(_execute if isinstance(value, Instruction) else _of_layout, m, value)


def _of_layout(m: Machine, function: LayoutFunction, *args: Any) -> Any:
    m.tick(m.line, "inst_integer")
    return function(*args)


def _view(m: Machine, shape: Any, dtype: Any, offset: Any) -> Array:
    """`shared_view`: an array over dynamic shared memory."""
    whole = allocation.shared_array(m, (0,), dtype)
    sizes = tuple(np.int64(s) for s in (shape if isinstance(shape, tuple) else (shape,)))
    end = int(offset) + int(np.prod(sizes)) * whole.itemsize
    if int(offset) % whole.itemsize or end > m.shared_bytes:
        raise ValueError(
            f"line {m.line}: a view of bytes {int(offset)} to {end} does not fit into "
            f"shared_bytes={m.shared_bytes}, or does not begin at an element"
        )
    first = np.int64(int(offset) // whole.itemsize)
    view = Array("shared", whole.buffer, sizes, row_major(sizes), first, shadow=whole.shadow)
    view.alignment = BASE_ALIGNMENT
    return view


def _execute(m: Machine, instruction: Instruction, *args: Any) -> Any:
    line, kind = m.line, instruction.kind
    _check_capability(m, instruction, line)
    bound = list(_bind(instruction, args, line))
    if m.masks[-1] is False:
        return _nothing(instruction, bound)
    if instruction.meaning is not None:
        return collective(m, instruction, bound, line)
    if kind == "async_copy":
        return _copy(m, instruction, bound, line)
    if kind in ("async_commit", "async_wait"):
        m.tick(line, f"inst_{kind}")
        return m.copies.commit(m) if not bound else m.copies.wait(m, int(bound[0][1]), line)
    operand, (array, index) = bound[0]
    place = find(m, instruction, operand, array, index, line)
    m.tick(line, f"inst_{array.space}_{kind}")
    tally(m, place, line)
    if operand.access == "read":
        return _result(instruction, _read(m, place, line))
    return _write(m, place, bound[1][1], line)


def _check_capability(m: Machine, instruction: Instruction, line: int) -> None:
    gpu = m.gpu
    refusal = gpu and instruction.refusal(gpu.compute_capability)
    if refusal:
        source = m.frames[-1].source
        text = f"{refusal}: {gpu.title}\n  {source.file}, line {line}: {source.code(line)}"
        raise UnsupportedError(text)


def _bind(instruction: Instruction, args: tuple, line: int) -> Iterator:
    """The operands with their arguments: an array with its indices, or a value."""
    rest = list(args)
    for operand in instruction.operands:
        if isinstance(operand, Valid) and not rest:
            break
        if not rest:
            raise TypeError(
                f"line {line}: {instruction.name} takes more than {len(args)} arguments"
            )
        first = rest.pop(0)
        if isinstance(operand, (Memory, Tile)):
            if not isinstance(first, Array):
                raise TypeError(f"line {line}: {instruction.name}: {first!r} is not an array")
            space = operand.space if isinstance(operand, Memory) else "any"
            if space not in ("any", first.space):
                raise TypeError(
                    f"line {line}: {instruction.name} takes an array in {space} memory; "
                    f"{first.name} is in {first.space} memory"
                )
            index, rest = rest[: first.ndim], rest[first.ndim :]
            if len(index) < first.ndim:
                raise TypeError(f"line {line}: {first.name} takes {first.ndim} indices")
            yield operand, (first, index)
        elif isinstance(operand, Registers) and operand.count > 1:
            if not isinstance(first, tuple) or len(first) != operand.count:
                raise TypeError(
                    f"line {line}: {operand.name} of {instruction.name} is a tuple of "
                    f"{operand.count} {operand.dtype}"
                )
            yield operand, first
        elif isinstance(operand, Literal) and not 0 <= int(first) <= operand.most:
            raise ValueError(f"line {line}: {operand.name}={int(first)}; use 0 to {operand.most}")
        else:
            yield operand, first
    if rest:
        raise TypeError(f"line {line}: {instruction.name} takes {len(args) - len(rest)} arguments")


def _read(m: Machine, place: Place, line: int) -> tuple:
    if place.mask is False:
        return tuple(place.array.dtype.type(0) for _ in range(place.count))
    return tuple(
        memory_access.fetch(m, line, place.array, place.at + i, place.mask)
        for i in range(place.count)
    )


def _write(m: Machine, place: Place, values: tuple, line: int) -> None:
    if place.mask is not False:
        for i, value in enumerate(values):
            memory_access.put(m, line, place.array, place.at + i, place.mask, value)


def _nothing(instruction: Instruction, bound: list) -> Any:
    """A result of the right form for lanes that do not run."""
    result = instruction.result
    held = HELD_AS.get(result.dtype) if result else None
    dtype = np.dtype(held) if held else bound[0][1][0].dtype
    return _result(instruction, [dtype.type(0)] * (result.count if result else 0))


def _result(instruction: Instruction, values: Any) -> Any:
    result = instruction.result
    if result is None:
        return None
    return values[0] if result.count == 1 else tuple(values[: result.count])


def _copy(m: Machine, instruction: Instruction, bound: list, line: int) -> None:
    """Begin a copy of the elements that are valid, and of zeros for the others."""
    (into, to), (source, origin) = bound[0], bound[1]
    if to[0].dtype != origin[0].dtype:
        raise TypeError(
            f"line {line}: {instruction.name} copies between arrays of one type, not from "
            f"{origin[0].dtype} to {to[0].dtype}"
        )
    m.tick(line, "inst_async_copy")
    count = source.width(origin[0].itemsize) // origin[0].itemsize
    valid: Any = np.int64(count)
    if len(bound) > 2:
        valid = np.asarray(bound[2][1])
        valid = np.where(valid, count, 0) if valid.dtype.kind == "b" else np.clip(valid, 0, count)
    reading = both(m.masks[-1], np.greater(valid, 0))
    read = find(m, instruction, source, *origin, line, reading, valid)
    copying = without(m.masks[-1], without(reading, read.mask))
    write = find(m, instruction, into, *to, line, copying)
    tally(m, read, line)
    tally(m, write, line)
    zero, values = origin[0].dtype.type(0), []
    for i in range(count):
        lanes = both(read.mask, np.greater(valid, i))
        at = read.at + i if lanes is None else np.where(lanes, read.at + i, 0)
        value = zero if lanes is False else memory_access.fetch(m, line, read.array, at, lanes)
        values.append(value if lanes is None else np.where(lanes, value, zero))
    if write.mask is not False:
        m.copies.begin(m, line, write.array, write.at, write.mask, tuple(values))
