"""Arrays that a kernel makes: shared by a block, or of each thread's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gemmlab.device import Device
from gemmlab.simt.memory import Array
from gemmlab.simt.updates import SharedShadow
from gemmlab.simt.values import as_dtype

if TYPE_CHECKING:
    from gemmlab.simt.machine import Machine

# Shared arrays of a fixed size may take 48 KB a block together: CUDA C++ Programming Guide,
# Compute Capabilities (more must be allocated dynamically, by opting in).
STATIC_SHARED_BYTES = 48 * 1024
# With dynamic memory, what no GPU exceeds: compute capabilities 9.0 and 10.0, same table.
SHARED_BYTES = 227 * 1024


def check_shared(static: int, dynamic: int, gpu: Device | None, place: str = "") -> None:
    """ValueError where a block's shared memory [B] is more than `gpu`, or any GPU, has for one."""
    most = (gpu and gpu.shared_bytes_per_block) or SHARED_BYTES
    if static + dynamic > most:
        arrays = f"{static} B of shared arrays and " if static else ""
        raise ValueError(
            f"{place}{arrays}shared_bytes={dynamic} are too much for "
            f"{gpu.title if gpu else 'any GPU'}; a block may use {most} B"
        )


def shared_array(m: Machine, shape: Any, dtype: Any, alignment: Any = None) -> Array:
    """The block's shared array of this place in the source; the same at every call."""
    sizes = shape if isinstance(shape, tuple) else (shape,)
    if sizes == (0,):
        return _dynamic_array(m, as_dtype(dtype), alignment)
    key = (m.place, sizes, as_dtype(dtype))
    if key not in m.shared:
        size = int(np.prod(sizes))
        buffer = np.zeros((len(m.blocks), size), as_dtype(dtype))
        whole = tuple(np.int64(s) for s in sizes)
        m.shared[key] = Array("shared", buffer, whole, shadow=_shadow(m, size))
        m.shared[key].alignment = int(alignment or buffer.itemsize)
        m.static_bytes += size * buffer.itemsize
        place = f"line {m.line}: {m.frames[-1].source.code(m.line)}\n  "
        if m.static_bytes > STATIC_SHARED_BYTES:  # as ptxas does
            raise ValueError(
                f"{place}shared arrays of {m.static_bytes} B a block are too "
                f"large; use at most {STATIC_SHARED_BYTES} B, or shape 0 with shared_bytes="
            )
        check_shared(m.static_bytes, m.shared_bytes, m.gpu, place)
    return m.shared[key]


def _shadow(m: Machine, size: int) -> SharedShadow:
    shadow = SharedShadow(size)
    if m.syncs is not None:
        shadow.order(m.syncs)
    return shadow


def _dynamic_array(m: Machine, dtype: np.dtype, alignment: Any) -> Array:
    """The block's dynamic shared memory: one and the same memory, whatever its type.

    Who touched it is tracked by units of the smallest type that it is viewed as.
    """
    key = ("dynamic", dtype)
    if key not in m.shared:
        if ("dynamic", None) not in m.shared:
            whole_words = -(-m.shared_bytes // 16) * 16
            memory = np.zeros((len(m.blocks), whole_words), np.uint8)
            m.shared["dynamic", None] = Array("shared", memory, (np.int64(whole_words),))
            shadow = _shadow(m, whole_words // dtype.itemsize)
            shadow.unit, m.dynamic = dtype.itemsize, shadow
        m.dynamic.refine(dtype.itemsize)
        size = m.shared_bytes // dtype.itemsize
        buffer = m.shared["dynamic", None].buffer.view(dtype)[:, :size]
        m.shared[key] = Array("shared", buffer, (np.int64(size),), shadow=m.dynamic)
        m.shared[key].alignment = int(alignment or dtype.itemsize)
    return m.shared[key]


def local_array(m: Machine, shape: Any, dtype: Any) -> Array:
    """An array of each thread's own, not yet written."""
    sizes = shape if isinstance(shape, tuple) else (shape,)
    size = int(np.prod(sizes))
    buffer = np.zeros((size, len(m.blocks), m.threads), as_dtype(dtype))
    array = Array("local", buffer, tuple(np.int64(s) for s in sizes))
    array.shadow = np.zeros((size, 1, 1), bool)  # which elements have been written
    return array


def constant_array(_: Machine, array: Any) -> Array:
    """`cuda.const.array_like`: a constant array as it is."""
    if not isinstance(array, Array) or array.space != "constant":
        raise TypeError("cuda.const.array_like takes an array of an enclosing scope")
    return array
