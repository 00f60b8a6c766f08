"""Tensor maps: matrices in global memory as the Tensor Memory Accelerator (TMA) copies them.

Source: CUDA Driver API, cuTensorMapEncodeTiled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["TensorMap", "tensor_map"]

ROW = 128  # bytes of a row of a box: those of the swizzle
MOST = 256  # rows of a box
STEP = 16  # bytes, of which rows of the matrix are multiples


@dataclass(frozen=True, eq=False)
class TensorMap:
    """A matrix, row-major, cut into boxes of `rows` rows of 128 bytes: an argument of a kernel.

    A box lies in shared memory row after row, in the 128-byte swizzle: row r has its eight pieces
    of 16 bytes in the order p ^ (r % 8). What a box has beyond the matrix is zero.
    """

    array: Any
    rows: int


def tensor_map(array: Any, rows: int) -> Any:
    """The map of a matrix for boxes of so many rows, where the matrix is: on the GPU, or here.

    array : (m, n) with contiguous rows, of NumPy or in a GPU's memory; it must outlive the map

    Raises ValueError for arrays that TMA cannot copy.

    >>> import numpy as np
    >>> tensor_map(np.zeros((128, 24), np.float16), 64).rows
    64
    >>> tensor_map(np.zeros((128, 20), np.float16), 64)
    Traceback (most recent call last):
    ValueError: rows of 40 B cannot be copied by TMA; use a multiple of 16 B
    """
    itemsize = array.dtype.itemsize
    if array.ndim != 2 or array.strides[1] != itemsize:
        raise ValueError(f"an array of shape {array.shape} and strides {array.strides} B cannot be "
                         "copied by TMA; use a matrix with contiguous rows")  # fmt: skip
    if array.strides[0] % STEP:
        raise ValueError(
            f"rows of {array.strides[0]} B cannot be copied by TMA; use a multiple of {STEP} B"
        )
    if not 1 <= rows <= MOST:
        raise ValueError(f"rows={rows}; a box has 1 to {MOST}")
    if not hasattr(array, "__cuda_array_interface__"):
        return TensorMap(array, rows)
    return _numba().encoded(array, rows, ROW // itemsize)


def map_bytes(address: int, shape: tuple[int, int], dtype: str, rows: int) -> bytes:
    """The 128 bytes of the map of a matrix at an address of the GPU, whose rows have no gaps."""
    itemsize = np.dtype(dtype).itemsize
    columns = ROW // itemsize
    return _numba().described(address, shape, shape[1] * itemsize, dtype, rows, columns)


def _numba() -> Any:
    from gemmlab.instructions.numba_cuda import tensor_maps

    return tensor_maps
