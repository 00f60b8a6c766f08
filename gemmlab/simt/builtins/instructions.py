"""Instructions of `gemmlab.instructions` on the simulated GPU: move, count, check, compute.

An access of 8 or 16 bytes is one request, and counted as hardware serves it; the elements that it
moves are checked one by one. An asynchronous copy counts as the load and the store that it makes.
Nsight Compute has its stores in no counter of stores, and as sectors of a 16-byte copy the distinct
pairs of a line that it reads and a sector that it writes: the same where neighbouring lanes copy
neighbouring 16 bytes. (Measured on an H200: benchmarks/hardware/checks/wide_accesses.py.)
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from gemmlab.instructions.fragments import LayoutFunction
from gemmlab.instructions.instruction import (
    Accumulator,
    Box,
    Condition,
    Instruction,
    Literal,
    Matrix,
    Memory,
    Registers,
    Tile,
    Valid,
)
from gemmlab.instructions.memory import BASE_ALIGNMENT, SharedView
from gemmlab.instructions.tensor_copies import TensorMap
from gemmlab.instructions.warpgroup import WARPGROUP
from gemmlab.simt.builtins import barriers, mbarriers, tensor_copies, warpgroups
from gemmlab.simt.builtins.async_copies import Copy
from gemmlab.simt.builtins.batch import BuiltinBatch
from gemmlab.simt.builtins.collective import collective
from gemmlab.simt.memory.access import fetch, put
from gemmlab.simt.memory.array import Array, row_major
from gemmlab.simt.memory.indices import Place, count_wide, find
from gemmlab.simt.memory.memory import shared_array
from gemmlab.simt.numbers.lanes import both, without
from gemmlab.simt.numbers.values import shown
from gemmlab.simt.syntax.source import UnsupportedError

KINDS = (Instruction, SharedView, LayoutFunction)  # what a kernel may name


# What asynchronous instructions do: functions of the machine, the instruction, its operands with
# their arguments, and the line.
BY_NAME: dict[str, Callable] = {
    "cluster_sync": barriers.cluster_sync,
    "cluster_sync_relaxed": barriers.cluster_sync_relaxed,
    "mbarrier_init": mbarriers.init,
    "mbarrier_arrive": mbarriers.arrive,
    "mbarrier_arrive_expect": mbarriers.arrive,
    "mbarrier_wait": mbarriers.wait,
    "fence_mbarrier_init": mbarriers.fence,
    "fence_proxy_async": tensor_copies.fence_proxy,
    "mbarrier_arrive_remote": mbarriers.arrive_remotely,
    "tma_load": tensor_copies.load,
    "tma_load_multicast": tensor_copies.load,
    "store_async_v4": tensor_copies.store_remotely,
    "tma_store": tensor_copies.store,
    "tma_commit": tensor_copies.commit,
    "tma_wait_read": tensor_copies.wait_read,
    "fence_tensor_map": tensor_copies.fence_map,
    "wgmma_fence": warpgroups.fence,
    "wgmma_commit": warpgroups.commit,
}
OF_WARPGROUP: dict[str, Callable] = {
    "wgmma": warpgroups.multiply,
    "async_wait": warpgroups.wait,
    "setmaxnreg": warpgroups.move_registers,
}


def asynchronous_meaning(instruction: Instruction) -> Callable | None:
    """The function that executes an asynchronous instruction; None for any other instruction."""
    if instruction.name in BY_NAME:
        return BY_NAME[instruction.name]
    return OF_WARPGROUP[instruction.kind] if instruction.lanes == WARPGROUP else None


def executed(m: BuiltinBatch, value: Instruction | SharedView | LayoutFunction) -> Callable:
    """Return the function that a kernel calls by a name of `gemmlab.instructions`."""
    if isinstance(value, SharedView):
        return partial(_view, m)
    return partial(_execute if isinstance(value, Instruction) else _of_layout, m, value)


def kind_of(value: Any) -> str:
    """Return the kind of a number, as NumPy abbreviates it; "O" for what is no number."""
    if isinstance(value, bool):
        return "b"
    dtype = None if isinstance(value, Array) else getattr(value, "dtype", None)
    return "O" if dtype is None else dtype.kind


def _of_layout(m: BuiltinBatch, function: LayoutFunction, *args: Any, **kws: Any) -> Any:
    m.tally.tick(m.calls.line, "inst_integer")
    if kws:
        raise TypeError(f"{function.name} takes its arguments by position")
    return function(*args)


def _view(m: BuiltinBatch, *args: Any, **kws: Any) -> Array:
    if kws or len(args) != 3:
        raise TypeError("shared_view takes shape, dtype and offset, by position")
    shape, dtype, offset = args
    whole = shared_array(m, (0,), dtype)
    sizes = tuple(shape if isinstance(shape, tuple) else (shape,))
    if not all(kind_of(s) in "iu" and s >= 1 for s in sizes):
        given = ", ".join(map(str, sizes))
        text = f"shared_view: shape=({given}); use whole sizes of at least 1"
        raise ValueError(text)
    if kind_of(offset) not in "iu" or np.min(offset) != np.max(offset):
        text = f"shared_view: offset is {shown(offset)}; use one number of bytes"
        raise TypeError(text)
    sizes, start = tuple(np.int64(s) for s in sizes), int(np.min(offset))
    end = start + int(np.prod(sizes)) * whole.itemsize
    if start % whole.itemsize or start < 0 or end > m.launch.shared_bytes:
        raise ValueError(
            f"a view of bytes {start} to {end} does not fit into "
            f"shared_bytes={m.launch.shared_bytes}, or does not begin at an element"
        )
    first = np.int64(start // whole.itemsize)
    view = Array("shared", whole.buffer, sizes, row_major(sizes), first, shadow=whole.shadow)
    view.alignment = BASE_ALIGNMENT
    return view


def _execute(m: BuiltinBatch, instruction: Instruction, *args: Any, **kws: Any) -> Any:
    line, kind = m.calls.line, instruction.kind
    _check_capability(m, instruction, line)
    if kws:
        raise TypeError(f"{instruction.name} takes its operands by position")
    bound = list(_bind(m, instruction, args, line))
    if m.masks[-1] is False:
        return _nothing(instruction, bound)
    asynchronous = asynchronous_meaning(instruction)
    if asynchronous is not None:
        if m.under_way is None:
            m.loops.divide()  # warpgroups run by themselves, because they wait for each other
        return asynchronous(m, instruction, bound, line)
    if instruction.meaning is not None:
        return collective(m, instruction, bound, line)
    if kind == "async_copy":
        return _copy(m, instruction, bound, line)
    if kind in ("async_commit", "async_wait"):
        m.tally.tick(line, f"inst_{kind}")
        return m.copies.commit(m) if not bound else m.copies.wait(m, int(bound[0][1]), line)
    operand, (array, index) = bound[0]
    place = find(m, instruction, operand, array, index, line)
    m.tally.tick(line, f"inst_{array.space}_{kind}")
    count_wide(m, place, line)
    if operand.access == "read":
        return _result(instruction, _read(m, place, line))
    return _write(m, place, bound[1][1], line)


def _check_capability(m: BuiltinBatch, instruction: Instruction, line: int) -> None:
    gpu = m.launch.gpu
    refusal = gpu and instruction.refusal(gpu.compute_capability)
    if refusal:
        source = m.calls.source
        text = f"{refusal}: {gpu.title}\n  {source.file}, line {line}: {source.code(line)}"
        raise UnsupportedError(text)


def _bind(m: BuiltinBatch, instruction: Instruction, args: tuple, line: int) -> Iterator:
    """The operands with their arguments: an array with its indices, or a value."""
    rest, name = list(args), instruction.name
    for operand in instruction.operands:
        if isinstance(operand, Valid) and not rest:
            break
        if not rest:
            raise TypeError(f"{name} takes more than {len(args)} arguments")
        first = rest.pop(0)
        if isinstance(operand, Box):
            count = 2 if operand.placed else 0
            text = _unfit_map(operand, first, rest[:count], count)
            if text:
                raise TypeError(f"{name}: {text}")
            yield operand, (first, *rest[:count])
            rest = rest[count:]
        elif isinstance(operand, (Memory, Tile, Matrix)):
            if not isinstance(first, Array):
                text = f"{operand.name} of {name} is {shown(first)}, not an array"
                raise TypeError(text)
            index, rest = rest[: first.ndim], rest[first.ndim :]
            text = _unfit(name, operand, first, index)
            if text:
                raise TypeError(text)
            yield operand, (first, index)
        else:
            text = _unfit_value(operand, first)
            if text:
                raise TypeError(f"{name}: {text}")
            if isinstance(operand, Literal) and not 0 <= int(first) <= operand.most:
                text = f"{name}: {operand.name}={int(first)}; use 0 to {operand.most}"
                raise ValueError(text)
            yield operand, first
    if rest:
        text = f"{name} takes {len(args) - len(rest)} arguments, not {len(args)}"
        raise TypeError(text)


def _unfit(name: str, operand: Memory | Tile | Matrix, array: Array, index: list) -> str | None:
    """Why an instruction does not take this array, or these indices; None where it does."""
    if array.space == "constant" and getattr(operand, "access", "") == "write":
        return f"{name} writes, and {array.name or 'a constant array'} cannot be written"
    if isinstance(operand, Matrix) and array.space != "shared":
        return f"{name} takes an array in shared memory; {array.name} is in {array.space} memory"
    if isinstance(operand, Tile):
        if array.space not in ("global", "shared"):
            return f"{name} takes an array in global or shared memory; this is in {array.space}"
        if array.ndim != 2 or array.dtype != operand.dtype:
            given = f"{array.name}, {array.dtype} of {array.ndim} dimensions"
            return f"{name} takes a matrix of {operand.dtype}, not {given}"
    else:
        if isinstance(operand, Memory) and operand.space not in ("any", array.space):
            return (
                f"{name} takes an array in {operand.space} memory; {array.name} is in "
                f"{array.space} memory"
            )
        text = operand.refusal(array.dtype, array.dtype.kind, array.itemsize)
        if text:
            return f"{name} {text}"
    if len(index) < array.ndim:
        return f"{name}: {array.name} takes {array.ndim} indices, not {len(index)}"
    wrong = [part for part in index if kind_of(part) not in "iu"]
    return (
        f"{name}: an index of {array.name} is {shown(wrong[0])}, not an integer" if wrong else None
    )


def _unfit_map(operand: Box, value: Any, place: list, count: int) -> str | None:
    """Why this is no tensor map with a place; None where it is one."""
    if not isinstance(value, TensorMap):
        return f"{operand.name} is {shown(value)}; the host makes one by tensor_map(matrix, rows)"
    if len(place) < count or any(kind_of(part) not in "iu" for part in place):
        return f"{operand.name} takes a row and a column, whole numbers"
    return None


def _unfit_value(operand: Any, value: Any) -> str | None:
    """Why an operand that has no indices does not take this value; None where it does."""
    if isinstance(operand, Accumulator):
        local = isinstance(value, Array) and value.space == "local" and value.dtype == np.float32
        if local and value.size == operand.count:
            return None
        return f"{operand.name} is {shown(value)}; use a local array of {operand.count} float32"
    if isinstance(operand, Condition):
        return None if kind_of(value) in "biu" else f"{operand.name} is {shown(value)}"
    if isinstance(operand, Registers):
        parts = [value]
        if operand.count > 1:
            parts = value if isinstance(value, tuple) else []
        if len(parts) == operand.count and all(kind_of(p) in operand.kinds for p in parts):
            return None
        return operand.refusal(shown(value))
    if isinstance(operand, Literal):
        if kind_of(value) in "iu":
            return None
        return f"{operand.name} is {shown(value)}; use a whole number from 0 to {operand.most}"
    if kind_of(value) in "biu":
        return None
    return f"{operand.name} is {shown(value)}; use True or False, or a number of elements"


def _read(m: BuiltinBatch, place: Place, line: int) -> tuple:
    if place.mask is False:
        return tuple(place.array.dtype.type(0) for _ in range(place.count))
    return tuple(fetch(m, line, place.array, place.at + i, place.mask) for i in range(place.count))


def _write(m: BuiltinBatch, place: Place, values: tuple, line: int) -> None:
    if place.mask is not False:
        for i, value in enumerate(values):
            put(m, line, place.array, place.at + i, place.mask, value)


def _nothing(instruction: Instruction, bound: list) -> Any:
    """Return a result of the right form for lanes that do not run."""
    result = instruction.result
    if result is None:
        return None
    dtype = result.carrier or bound[0][1][0].dtype
    return _result(instruction, [dtype.type(0)] * result.count)


def _result(instruction: Instruction, values: Any) -> Any:
    result = instruction.result
    if result is None:
        return None
    return values[0] if result.count == 1 else tuple(values[: result.count])


def _copy(m: BuiltinBatch, instruction: Instruction, bound: list, line: int) -> None:
    """Begin a copy of the elements that are valid, and of zeros for the others."""
    (into, to), (source, origin) = bound[0], bound[1]
    if to[0].dtype != origin[0].dtype:
        types = f"from {origin[0].dtype} to {to[0].dtype}"
        text = f"{instruction.name} copies between arrays of one type, not {types}"
        raise TypeError(text)
    m.tally.tick(line, "inst_async_copy")
    count = source.width(origin[0].itemsize) // origin[0].itemsize
    valid: Any = np.int64(count)
    if len(bound) > 2:
        valid = np.asarray(bound[2][1])
        valid = np.where(valid, count, 0) if valid.dtype.kind == "b" else valid
        wrong = both(m.masks[-1], np.less(valid, 0) | np.greater(valid, count))
        if wrong is not False:
            given = int(m.lanes.spread(valid)[m.lanes.full(wrong)][0])
            text = f"{instruction.name} of {given} elements; valid is 0 to {count}"
            m.findings.hazard("out-of-bounds", line, wrong, text)
        valid = np.clip(valid, 0, count)
    reading = both(m.masks[-1], np.greater(valid, 0))
    read = find(m, instruction, source, *origin, line, reading, valid)
    copying = without(m.masks[-1], without(reading, read.mask))
    write = find(m, instruction, into, *to, line, copying)
    count_wide(m, read, line)
    count_wide(m, write, line)
    zero, values, reads = origin[0].dtype.type(0), [], []
    for i in range(count):
        lanes = both(read.mask, np.greater(valid, i))
        at = read.at + i if lanes is None else np.where(lanes, read.at + i, 0)
        value = zero if lanes is False else fetch(m, line, read.array, at, lanes)
        values.append(value if lanes is None else np.where(lanes, value, zero))
        reads.append(lanes)
    if write.mask is not False:
        to = write.array, write.at, write.mask
        source = read.array, read.at, tuple(reads)
        m.copies.begin(m, Copy(*to, tuple(values), m.copies.committed, line, *source))
