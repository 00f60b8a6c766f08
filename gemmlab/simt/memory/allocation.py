"""Arrays that a kernel makes: shared by a block, or of each thread's own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gemmlab.device import Device
from gemmlab.simt.memory.array import Array, Records, row_major
from gemmlab.simt.memory.batch import MemoryBatch
from gemmlab.simt.numbers.values import as_dtype
from gemmlab.simt.races.shared_shadow import SharedShadow

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
    """The format of the elements of an array that a kernel makes."""
    if dtype is None:
        raise TypeError(f"tell the type of the elements, as in cuda.{name}.array(16, float32)")
    found = as_dtype(dtype)
    for field, (kind, offset, *_) in (found.fields or {}).items():
        if kind.kind not in "biufc":
            raise TypeError(f"the field {field!r} in {name} memory is {kind}; use single numbers")
        if offset % kind.itemsize or found.itemsize % kind.itemsize:
            raise TypeError(
                f"the field {field!r} of {kind} lies {offset} B into records of {found.itemsize} B "
                "and is not aligned; use np.dtype(..., align=True)"
            )
    return found


def shared_array(
    m: MemoryBatch, shape: Any, dtype: Any = None, alignment: Any = None
) -> Array | Records:
    """The shared array of a block that this place in the source makes: the same at every call."""
    dtype = _format("shared", dtype)
    sizes = shape if isinstance(shape, tuple) else (shape,)
    if sizes == (0,):
        return _dynamic_array(m, dtype, alignment)
    key = (m.calls.place, sizes, dtype)
    if key not in m.memory.shared:
        memory = np.zeros((len(m.lanes.blocks), int(np.prod(sizes)) * dtype.itemsize), np.uint8)
        m.memory.shared[key] = _in_shared(m, memory, sizes, dtype, alignment)
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
    """An array of numbers or of records in these bytes of each block."""
    fields = dtype.fields or {"": (dtype, 0)}
    # Who touched it is known by parts that all fields have.
    unit = math.gcd(*(kind.itemsize for kind, *_ in fields.values()))
    shadow = SharedShadow(memory.shape[1] // unit, m.lanes.threads, m.report.releases)
    shadow.unit = unit if dtype.names else 0
    shape, arrays = tuple(np.int64(s) for s in sizes), {}
    for field, (kind, offset, *_) in fields.items():
        strides = tuple(s * (dtype.itemsize // kind.itemsize) for s in row_major(shape))
        first = np.int64(offset // kind.itemsize)
        array = Array("shared", memory.view(kind), shape, strides, first, shadow=shadow)
        array.alignment = int(alignment or kind.itemsize)
        arrays[field] = array
    return Records("", arrays) if dtype.names else arrays[""]


def _dynamic_array(m: MemoryBatch, dtype: np.dtype, alignment: Any) -> Array:
    """The block's dynamic shared memory: one and the same memory, whatever its type.

    Who touched it is tracked by units of the smallest type that it is viewed as.
    """
    if dtype.names:
        raise TypeError("dynamic shared memory is not simulated as records; use an array of each")
    key = ("dynamic", dtype)
    if key not in m.memory.shared:
        if ("dynamic", None) not in m.memory.shared:
            whole_words = -(-m.launch.shared_bytes // 16) * 16
            memory = np.zeros((len(m.lanes.blocks), whole_words), np.uint8)
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


def local_array(m: MemoryBatch, shape: Any, dtype: Any = None) -> Array | Records:
    """An array of each thread's own, not yet written."""
    dtype = _format("local", dtype)
    if dtype.names:
        return Records("", {f: local_array(m, shape, dtype.fields[f][0]) for f in dtype.names})
    sizes = shape if isinstance(shape, tuple) else (shape,)
    size = int(np.prod(sizes))
    buffer = np.zeros((size, len(m.lanes.blocks), m.lanes.threads), dtype)
    array = Array("local", buffer, tuple(np.int64(s) for s in sizes))
    array.shadow = np.zeros((size, 1, 1), bool)  # which elements have been written
    return array


def constant_array(_: MemoryBatch, array: Any) -> Array:
    """`cuda.const.array_like`: a constant array as it is."""
    if not isinstance(array, Array) or array.space != "constant":
        raise TypeError("cuda.const.array_like takes an array of an enclosing scope")
    return array
