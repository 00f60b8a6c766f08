"""Arrays of the host in simulated global memory, in which they overlap as they do on the host."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from gemmlab.instructions.tensor_copies import TensorMap
from gemmlab.simt.memory.array import Array, Record, Records
from gemmlab.simt.numbers.values import like, number
from gemmlab.simt.races.memories import GlobalShadow


class Argument:
    """An array of the host and what it is to the kernel.

    host : the array; name : of the parameter; start, end : the bytes that it spans, by address
    unwritten : which of its elements nobody has ever written; None where all have been
    array : in simulated memory

    Raises ValueError for a type that no kernel takes, and for strides that are negative or not
    whole elements.
    """

    array: Array

    def __init__(self, host: np.ndarray, name: str) -> None:
        if host.dtype.kind not in "biufc":
            raise ValueError(f"{name} has dtype {host.dtype}; use booleans, integers or floats")
        if not host.dtype.isnative or host.dtype.char in "gG":  # as Numba says it
            raise ValueError(
                f"{name} has dtype {host.dtype.str}, which no GPU computes with "
                f"(Unsupported array dtype: {host.dtype}); convert it with "
                f"{name}.astype(np.{'complex128' if host.dtype.kind == 'c' else 'float64'})"
                if host.dtype.isnative
                else f"{name} has dtype {host.dtype.str}, whose bytes are in the order of other "
                f"machines (Unsupported array dtype: {host.dtype}); convert it with "
                f"{name}.astype({name}.dtype.newbyteorder('='))"
            )
        if any(s < 0 or s % host.itemsize for s in host.strides):
            raise ValueError(f"{name} has strides {host.strides} B; use positive whole elements")
        self.host, self.name = np.asarray(host), name
        self.strides = tuple(s // host.itemsize for s in host.strides)
        span = 1 + sum((d - 1) * s for d, s in zip(host.shape, self.strides, strict=True))
        self.span = span if host.size else 0
        self.start = host.__array_interface__["data"][0]
        self.end = self.start + self.span * host.itemsize
        unwritten = getattr(host, "unwritten", None)
        self.unwritten = unwritten if unwritten is not None and unwritten.any() else None

    origin: np.ndarray | None = None  # where the array is a copy of a field that is not aligned
    record: np.void | None = None  # of which the array has a field, by its name

    def over(self, rows: np.ndarray, offset: int = 0) -> np.ndarray:
        """Return the elements of the array, as a view of what holds those that it spans."""
        strides = tuple(s * rows.itemsize for s in self.strides)
        return np.lib.stride_tricks.as_strided(rows[offset:], self.host.shape, strides)

    def put(self, buffer: np.ndarray, offset: int, shadow: GlobalShadow | None) -> None:
        """Let the kernel see the array in this memory, from an element on."""
        shape = tuple(np.int64(d) for d in self.host.shape)
        at = np.int64(offset)
        self.array = Array("global", buffer, shape, self.strides, at, self.name, shadow)
        self.array.writeable = self.host.flags.writeable

    def copy_back(self, whole: bool = True) -> None:
        """Give the host what the kernel has stored, if it has.

        whole : whether all blocks have run; else what is missing counts as written
        """
        if not self.array.written or not self.host.flags.writeable:
            return
        offset, shadow = int(self.array.offset), self.array.shadow
        self.host[...] = self.over(self.array.buffer, offset)
        if self.origin is not None:
            self.origin[...] = self.host
        if self.record is not None:
            self.record[self.name.rpartition(".")[2]] = self.host[()]
        if self.unwritten is not None and not whole:
            self.unwritten[...] = False
        elif self.unwritten is not None:
            parts = self.host.itemsize // shadow.unit if shadow.unit else 1
            rows = shadow.unwritten.reshape(-1, parts).any(axis=1)
            self.unwritten[...] = self.over(rows, offset)


def arrays_in(name: str, value: Any) -> Iterator[Argument]:
    """The arrays in an argument: itself, of a tensor map, of records, of a tuple."""
    if isinstance(value, TensorMap):
        yield from arrays_in(name, value.array)
    if isinstance(value, np.ndarray):
        if value.dtype.names:
            yield from _fields(name, value)
        else:
            yield Argument(value, name)
    elif isinstance(value, np.void) and value.dtype.names:
        for one in _fields(name, np.array(value)):
            one.record = _holder(value, one.name[len(name) + 1 :])
            yield one
    elif isinstance(value, tuple):
        for i, item in enumerate(value):
            yield from arrays_in(f"{name}[{i}]", item)


def _holder(record: np.void, path: str) -> np.void:
    """Return the record in a record that has the last field of a path."""
    for field in path.split(".")[:-1]:
        record = record[field]
    return record


def _fields(name: str, records: np.ndarray) -> Iterator[Argument]:
    """The arrays of the fields of records; where fields are not aligned, copies of them."""
    for field in known_fields(records.dtype):
        values, whole = records[field], f"{name}.{field}"
        if values.dtype.names:
            yield from _fields(whole, values)
        elif _aligned(records.dtype):
            yield Argument(values, whole)
        else:
            one = Argument(np.ascontiguousarray(values).reshape(values.shape), whole)
            one.origin = values
            yield one


def known_fields(dtype: np.dtype) -> list[str]:
    """Return the fields that kernels can use: numbers, arrays of these and records."""
    kinds = {name: of[0].base for name, of in (dtype.fields or {}).items()}
    return [n for n in dtype.names or () if kinds[n].kind in "biufc" or kinds[n].names]


def _aligned(dtype: np.dtype) -> bool:
    """Say whether each number in a record lies where an array of its type could have it."""
    sizes = [(kind.base, offset) for kind, offset, *_ in dtype.fields.values()]
    return all(
        _aligned(kind) if kind.names else
        kind.kind not in "biufc" or not (offset % kind.itemsize or dtype.itemsize % kind.itemsize)
        for kind, offset in sizes
    )  # fmt: skip


def _records(name: str, dtype: np.dtype, ndim: int, arrays: dict[str, Array]) -> Records:
    """Return records of so many dimensions, of which the arrays of the fields are in memory."""
    fields: dict[str, Any] = {}
    for field in known_fields(dtype):
        kind, whole = dtype.fields[field][0], f"{name}.{field}"
        inner = (
            _records(whole, kind.base, ndim + len(kind.shape), arrays) if kind.base.names else None
        )
        fields[field] = arrays[whole] if inner is None else inner
    return Records(name, fields, ndim)


def as_seen(name: str, value: Any, arrays: dict[str, Array]) -> Any:
    """Return an argument as the kernel sees it; `arrays` are those in memory, by name."""
    if isinstance(value, np.ndarray):
        if value.dtype.names:
            return _records(name, value.dtype, value.ndim, arrays)
        return arrays[name]
    if isinstance(value, np.void) and value.dtype.names:
        return Record(_records(name, value.dtype, 0, arrays), ())
    if isinstance(value, TensorMap):
        return replace(value, array=arrays[name])
    if isinstance(value, tuple):
        return like(value, (as_seen(f"{name}[{i}]", v, arrays) for i, v in enumerate(value)))
    try:
        return number(value)
    except TypeError:
        raise TypeError(
            f"argument {name}={value!r} is a {type(value).__name__}; kernels take NumPy arrays, "
            "numbers, records, and tuples of these"
        ) from None


def put_in_memory(
    arguments: list[Argument], stored: set[str], shadow: Callable[[int], GlobalShadow]
) -> None:
    """Put the arrays in simulated memory; those that overlap get memory that they share.

    It is a copy where the kernel may store to any of the parameters, so that the host's stays as it
    was if the launch fails, and who touches it is tracked by what `shadow` makes for so many
    elements; elsewhere it is the host's own.

    stored : names of the parameters that the kernel may store to
    """
    for group in _overlapping(arguments):
        watched = any(a.name in stored or a.unwritten is not None for a in group)
        if not watched:
            for a in group:
                a.put(_flat(a), 0, None)
        elif len(group) == 1:
            (a,) = group
            buffer = np.zeros(a.span, a.host.dtype)
            a.over(buffer)[...] = a.host
            a.put(buffer, 0, _by_parts(shadow, a))
        else:
            _share(group, shadow)
        for a in group:
            if a.unwritten is not None:
                _mark_unwritten(a)


def _by_parts(shadow: Callable[[int], GlobalShadow], a: Argument) -> GlobalShadow:
    """Track an array; of complex numbers the parts, which a kernel may see as arrays."""
    if a.host.dtype.kind != "c":
        return shadow(a.span)
    tracked = shadow(2 * a.span)
    tracked.unit = a.host.itemsize // 2
    return tracked


def _flat(a: Argument) -> np.ndarray:
    """Return the elements that an array spans, in the host's own memory."""
    return np.lib.stride_tricks.as_strided(a.host, (a.span,), (a.host.itemsize,), writeable=False)


def _overlapping(arguments: list[Argument]) -> list[list[Argument]]:
    """Return the arguments in groups, of which no two overlap."""
    groups: list[list[Argument]] = []
    end = 0
    for a in sorted(arguments, key=lambda a: a.start):
        if groups and a.start < end:
            groups[-1].append(a)
        else:
            groups.append([a])
        end = max(end, a.end)
    return groups


def _share(group: list[Argument], shadow: Callable[[int], GlobalShadow]) -> None:
    """Put arrays that overlap in one copy of what they span, tracked by parts that all have."""
    sizes = [a.host.itemsize // (1 + (a.host.dtype.kind == "c")) for a in group]
    start, unit = group[0].start, math.gcd(*sizes)
    whole = math.lcm(*(a.host.itemsize for a in group))
    length = -(-(max(a.end for a in group) - start) // whole) * whole
    memory = np.zeros(length, np.uint8)
    tracked = shadow(length // unit)
    tracked.unit = unit if any(unit != a.host.itemsize for a in group) else 0
    for a in group:
        offset, rest = divmod(a.start - start, a.host.itemsize)
        if rest:
            raise ValueError(
                f"{a.name} begins {rest} B after the start of an element of {group[0].name}, which "
                "it overlaps; pass arrays whose elements lie on each other, or a copy"
            )
        a.put(memory.view(a.host.dtype), offset, tracked)
        a.over(a.array.buffer, offset)[...] = a.host


def _mark_unwritten(a: Argument) -> None:
    shadow = a.array.shadow
    parts = a.host.itemsize // shadow.unit if shadow.unit else 1
    if shadow.unwritten is None:
        shadow.unwritten = np.zeros(shadow.size, bool)
    elements = np.zeros(len(a.array.buffer), bool)
    a.over(elements, int(a.array.offset))[...] = a.unwritten
    shadow.unwritten |= np.repeat(elements, parts)
