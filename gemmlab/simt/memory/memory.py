"""The memory of a batch of blocks: loads and stores of a kernel, and the arrays that it makes.

Shared arrays are one for each block, local arrays one for each thread.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gemmlab.device import Device
from gemmlab.simt.memory import access
from gemmlab.simt.memory.array import Array, Choice, Record, Records, chosen, row_major
from gemmlab.simt.memory.batch import MemoryBatch
from gemmlab.simt.numbers.garbage import garbage
from gemmlab.simt.numbers.lanes import IdentityCache, Mask, both, either
from gemmlab.simt.numbers.values import NUMBER, NoNumber, as_dtype, number, shown
from gemmlab.simt.races.memories import SharedShadow
from gemmlab.simt.syntax.source import unsupported


class Memory:
    """The arrays of a batch of blocks, and caches for accesses that loops repeat.

    global_arrays : the arguments that are arrays; compare : how lanes compare two values
    shared : shared arrays, by the place in the source that makes them, shape and type
    static_bytes : of the shared arrays whose size the source states
    dynamic : the shadow of dynamic shared memory
    again : transactions of accesses
    together : stores of the branches of an `if` that are counted as one, by its place
    watchers : called with each access that is not counted, before it is made
    located : elements by array and index; extents : least and greatest value of an index
    """

    def __init__(self, m: MemoryBatch, global_arrays: list[Array], compare: Callable) -> None:
        self.m, self.global_arrays, self.compare = m, global_arrays, compare
        self.shared: dict[tuple, Array] = {}
        self.watchers: list[Callable] = []
        self.static_bytes = 0
        self.dynamic: SharedShadow | None = None
        self.together: dict[tuple, list[tuple[int, Array, Any, Mask]]] = {}
        self.located, self.again = IdentityCache(256), IdentityCache(256)
        self.extents: dict[int, tuple[np.ndarray, int, int]] = {}

    def load(self, array: Any, index: Any, line: int) -> Any:
        """Return the element `array[index]` of each lane, counted and checked."""
        if isinstance(array, Array):
            return access.load(self.m, array, index, line)
        if isinstance(array, tuple):
            return self._item(array, index)
        if isinstance(array, Choice):
            return self._load_chosen(array, index, line)
        if isinstance(array, Record):
            if isinstance(index, (int, np.integer)):  # a field by its place
                index = [*array.records.fields][int(index)]
            return self.load(array.field(index), array.index, line)
        if isinstance(array, Records):
            return self._load_records(array, index, line)
        if isinstance(array, NoNumber):
            array.refuse()
        raise TypeError(f"{shown(array)} is no array, and has no elements")

    def load_again(self, array: Any, index: Any, line: int) -> Any:
        """Return an element that the thread has in a register: checked, but not counted."""
        if not isinstance(array, Array):
            return self.load(array, index, line)
        return access.load(self.m, array, index, line, counted=False)

    def _load_chosen(self, array: Choice, index: Any, line: int) -> Any:
        """Return the element of each lane's own array; a view where dimensions are left open."""
        result: Any = None
        for option, lanes in array.in_turn(self.m):
            value = access.load(self.m, option, index, line)
            if result is None:
                result = value
            elif isinstance(value, Array):
                result = chosen(lanes, result, value)
            else:
                result = np.where(lanes, value, result)
        return array.dtype.type(0) if result is None else result

    def _load_records(self, array: Records, index: Any, line: int) -> Any:
        """Return a record, a field of all records, or a view of some of them."""
        if isinstance(index, str):
            return array.field(index)
        parts = index if isinstance(index, tuple) else (index,)
        if len(parts) == array.ndim and not any(isinstance(part, slice) for part in parts):
            return Record(array, index)
        views = {name: self.load(field, index, line) for name, field in array.fields.items()}
        left = array.ndim - sum(not isinstance(part, slice) for part in parts)
        return Records(array.name, views, left)

    def store(self, array: Any, index: Any, value: Any, line: int) -> None:
        """Set `array[index]` in each active lane, counted and checked."""
        if isinstance(array, Record):
            field = array.field(index)
            if isinstance(value, Array) and isinstance(field, Array):  # an array in a record
                return access.store_many(self.m, field, array.index, value, line)
            return self.store(field, array.index, value, line)
        if isinstance(array, Records):
            return self._store_record(array, index, value, line)
        if isinstance(index, str):
            source, what = self.m.calls.source, f"an assignment to .{index}"
            raise unsupported(source, line, what, "assign to a name or an element")
        if not isinstance(array, (Array, Choice)):
            raise TypeError(f"{shown(array)} has no elements to be assigned")
        if not isinstance(value, NUMBER):
            if isinstance(value, tuple) and isinstance(array, Array):
                return access.store_many(self.m, array, index, value, line)
            value = _stored(value)
        if isinstance(array, Array):
            access.store(self.m, array, index, value, line)
            return
        for option, _ in array.in_turn(self.m):
            access.store(self.m, option, index, value, line)

    def _store_record(self, array: Records, index: Any, value: Any, line: int) -> None:
        """Copy a whole record to an element of an array of records."""
        if isinstance(value, tuple) and len(value) == len(array.fields):
            for field, part in zip(array.fields.values(), value, strict=True):
                self.store(field, index, part, line)
            return
        if not isinstance(value, Record):
            first = next(iter(array.fields))
            raise TypeError(f"assign to one field at a time, as in {array.name}[i].{first}")
        for name, field in array.fields.items():
            inner = isinstance(field, Records)
            part = Record(value.field(name), value.index) if inner else self.load(value, name, line)
            if isinstance(part, Array):
                access.store_many(self.m, field, index, part, line)
            else:
                self.store(field, index, part, line)

    def store_together(self, array: Any, index: Any, value: Any, line: int, place: tuple) -> None:
        """Store in a branch of an `if`: with the store of the other branch, it counts as one."""
        if not isinstance(array, Array) or not isinstance(value, NUMBER):
            return self.store(array, index, value, line)
        at, mask = access.store(self.m, array, index, value, line, counted=False)
        if mask is not False:
            self.together.setdefault(place, []).append((line, array, at, mask))

    def count_together(self, place: tuple) -> None:
        """Count the stores of both branches of the `if` at `place` as one."""
        branches = self.together.pop(place, [])
        if branches:
            (line, array, at, mask), *others = branches
            for _, _, there, lanes in others:
                at, mask = np.where(self.m.lanes.full(mask), at, there), either(mask, lanes)
            access.count_store(self.m, array, at, mask, line)

    def _item(self, items: tuple, index: Any) -> Any:
        """Return the item of a tuple of each active lane; a negative index counts from its end."""
        count, lanes = len(items), self.m.lanes
        if np.ndim(index) == 0 and -count <= index < count:
            return items[int(index)]
        bad = np.less(index, -count) | np.greater_equal(index, count)
        outside = both(self.m.masks[-1], bad)
        if outside is not False:
            wrong = lanes.spread(index)[lanes.first(outside)]
            raise IndexError(f"there is no item {wrong} in a tuple of {count}")
        if len({np.asarray(item).dtype for item in items}) > 1:
            raise TypeError("lanes pick from a tuple whose items differ in type")
        return np.choose(index % count, items)

    def contains(self, value: Any, items: Any, line: int) -> Any:
        """`value in items`, of a tuple, or of an array, of which lanes look until they find it."""
        if not isinstance(items, (tuple, Array)):
            raise TypeError(f"`in` takes a tuple or an array, not {shown(items)}; write a loop")
        found: Any = np.bool_(False)
        if isinstance(items, tuple):
            for item in items:
                found = found | self.compare("Eq", value, item, line)
            return found
        masks = self.m.masks
        for i in range(int(np.max(items.shape[0]))):
            masks.append(both(masks[-1], np.less(i, items.shape[0]) & ~found))
            if masks[-1] is not False:
                same = self.compare("Eq", value, self.load(items, np.int64(i), line), line)
                found = found | (same & self.m.lanes.full(masks[-1]))
            masks.pop()
        return found

    def extent(self, index: Any) -> tuple[int, int]:
        """Return the least and the greatest value of an index; kept for the last few arrays."""
        if np.ndim(index) == 0:
            return int(index), int(index)
        known = self.extents.get(id(index))
        if known is None:  # keeping the array keeps its id from being used again
            if len(self.extents) >= 32:
                self.extents.clear()
            known = self.extents[id(index)] = (index, int(index.min()), int(index.max()))
        return known[1], known[2]


def _stored(value: Any) -> Any:
    """A number that Python has, such as `x.ndim`, as one of NumPy; an error for what is none."""
    if isinstance(value, NoNumber):
        value.refuse()
    if not isinstance(value, (bool, int, float, complex)):
        loop = "; write a loop over elements" if isinstance(value, (Array, Choice)) else ""
        none = "; what has no `return` gives None" if value is None else ""
        raise TypeError(f"{shown(value)} is not a number, and cannot be stored{none}{loop}")
    return number(value)


# Shared arrays of a fixed size may take 48 KB a block together: CUDA C++ Programming Guide,
# Compute Capabilities (more must be allocated dynamically, by opting in).
STATIC_SHARED_BYTES = 48 * 1024
# With dynamic memory, what no GPU exceeds: compute capabilities 9.0 and 10.0, same table.
SHARED_BYTES = 227 * 1024


def check_shared(static: int, dynamic: int, gpu: Device | None) -> None:
    """ValueError for more shared memory [B] than `gpu`, or any GPU, has for a block."""
    most = (gpu and gpu.shared_bytes_per_block) or SHARED_BYTES
    if static + dynamic > most:
        arrays = f"{static} B of shared arrays and " if static else ""
        raise ValueError(
            f"{arrays}shared_bytes={dynamic} are too much for "
            f"{gpu.title if gpu else 'any GPU'}; a block may use {most} B"
        )


def _format(name: str, dtype: Any) -> np.dtype:
    """Return the format of the elements of an array that a kernel makes."""
    if dtype is None:
        raise TypeError(f"tell the type of the elements, as in cuda.{name}.array(16, float32)")
    found = as_dtype(dtype)
    for field, (whole, offset, *_) in (found.fields or {}).items():
        kind = whole.base
        if kind.kind not in "biufc":
            raise TypeError(f"the field {field!r} in {name} memory is {kind}; use single numbers")
        if offset % kind.itemsize or found.itemsize % kind.itemsize:
            raise TypeError(
                f"the field {field!r} of {kind} lies {offset} B into records of {found.itemsize} B "
                "and is not aligned; use np.dtype(..., align=True)"
            )
    return found


def check_alignment(alignment: Any) -> None:
    """ValueError for an alignment that arrays of a kernel cannot have, in Numba's words."""
    if alignment is None:
        return
    if isinstance(alignment, (bool, np.bool_)) or not isinstance(alignment, (int, np.integer)):
        raise ValueError("Alignment must be an integer")
    if alignment <= 0:
        raise ValueError("Alignment must be positive")
    if alignment & (alignment - 1):
        raise ValueError("Alignment must be a power of 2")


def shared_array(
    m: MemoryBatch, shape: Any, dtype: Any = None, alignment: Any = None
) -> Array | Records:
    """The shared array of a block that this place in the source makes: the same at every call."""
    check_alignment(alignment)
    dtype = _format("shared", dtype)
    sizes = shape if isinstance(shape, tuple) else (shape,)
    if sizes == (0,):
        return _dynamic_array(m, dtype, alignment)
    key = (m.calls.place, sizes, dtype)
    if key not in m.memory.shared:
        memory = np.zeros((len(m.lanes.blocks), int(np.prod(sizes)) * dtype.itemsize), np.uint8)
        m.memory.shared[key] = _in_shared(m, memory, sizes, dtype, alignment)
        _set_unwritten(m, m.memory.shared[key])
        m.memory.static_bytes += memory.shape[1]
        if m.memory.static_bytes > STATIC_SHARED_BYTES:  # as ptxas does
            raise ValueError(
                f"shared arrays of {m.memory.static_bytes} B a block are too "
                f"large; use at most {STATIC_SHARED_BYTES} B, or shape 0 with shared_bytes="
            )
        check_shared(m.memory.static_bytes, m.launch.shared_bytes, m.launch.gpu)
    return m.memory.shared[key]


def _in_shared(
    m: MemoryBatch, memory: np.ndarray, sizes: tuple, dtype: np.dtype, alignment: Any
) -> Array | Records:
    """Return an array of numbers or of records in these bytes of each block."""
    fields = dtype.fields or {"": (dtype, 0)}
    # Who touched it is known by parts that all fields have.
    unit = math.gcd(*(kind.base.itemsize for kind, *_ in fields.values()))
    shadow = SharedShadow(memory.shape[1] // unit, m.lanes.threads, m.report.releases)
    shadow.unit = unit if dtype.names else 0
    shape, arrays = tuple(np.int64(s) for s in sizes), {}
    for field, (whole, offset, *_) in fields.items():
        kind, inner = whole.base, tuple(np.int64(s) for s in whole.shape)
        strides = tuple(s * (dtype.itemsize // kind.itemsize) for s in row_major(shape))
        first = np.int64(offset // kind.itemsize)
        array = Array("shared", memory.view(kind), shape + inner, strides + row_major(inner), first,
                      shadow=shadow)  # fmt: skip
        array.alignment = int(alignment or kind.itemsize)
        arrays[field] = array
    return Records("", arrays, len(shape)) if dtype.names else arrays[""]


def _set_unwritten(m: MemoryBatch, made: Array | Records) -> None:
    """Let an array that nobody has written hold what the launch is tried with."""
    if m.launch.unwritten:
        for array in made.fields.values() if isinstance(made, Records) else [made]:
            array.buffer[...] = garbage(array.dtype, m.launch.unwritten)


def _dynamic_array(m: MemoryBatch, dtype: np.dtype, alignment: Any) -> Array:
    """Return the block's dynamic shared memory: one and the same memory, whatever its type.

    Who touched it is tracked by units of the smallest type that it is viewed as.
    """
    if dtype.names:
        raise TypeError("dynamic shared memory is not simulated as records; use an array of each")
    key = ("dynamic", dtype)
    if key not in m.memory.shared:
        if ("dynamic", None) not in m.memory.shared:
            whole_words = -(-m.launch.shared_bytes // 16) * 16
            memory = np.zeros((len(m.lanes.blocks), whole_words), np.uint8)
            if m.launch.unwritten:
                memory.view(dtype)[...] = garbage(dtype, m.launch.unwritten)
            m.memory.shared["dynamic", None] = Array("shared", memory, (np.int64(whole_words),))
            size = whole_words // dtype.itemsize
            shadow = SharedShadow(size, m.lanes.threads, m.report.releases)
            shadow.unit, m.memory.dynamic = dtype.itemsize, shadow
        m.memory.dynamic.refine(dtype.itemsize)
        size = m.launch.shared_bytes // dtype.itemsize
        buffer = m.memory.shared["dynamic", None].buffer.view(dtype)
        m.memory.shared[key] = Array("shared", buffer, (np.int64(size),), shadow=m.memory.dynamic)
        m.memory.shared[key].alignment = int(alignment or dtype.itemsize)
    return m.memory.shared[key]


def local_array(
    m: MemoryBatch, shape: Any, dtype: Any = None, alignment: Any = None
) -> Array | Records:
    """Return an array of each thread's own, not yet written."""
    check_alignment(alignment)
    dtype = _format("local", dtype)
    if dtype.names:
        outer = shape if isinstance(shape, tuple) else (shape,)
        kinds = {name: dtype.fields[name][0] for name in dtype.names}
        fields = {n: local_array(m, outer + k.shape, k.base) for n, k in kinds.items()}
        return Records("", fields, len(outer))
    sizes = shape if isinstance(shape, tuple) else (shape,)
    size = int(np.prod(sizes))
    buffer = np.zeros((size, len(m.lanes.blocks), m.lanes.threads), dtype)
    array = Array("local", buffer, tuple(np.int64(s) for s in sizes))
    array.shadow = np.zeros((size, 1, 1), bool)  # which elements have been written
    _set_unwritten(m, array)
    return array


def constant_array(_: MemoryBatch, array: Any) -> Array:
    """Return `cuda.const.array_like`: a constant array as it is."""
    first = next(iter(array.fields.values())) if isinstance(array, Records) else array
    if not isinstance(first, Array) or first.space != "constant":
        raise TypeError("cuda.const.array_like takes an array of an enclosing scope")
    return array
