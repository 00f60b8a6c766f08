"""The functions of `gemmlab.instructions` in kernels that Numba-CUDA compiles, and tensor maps.

For each kind a Numba type that says which arguments a call takes, and the LLVM code of the call.
All that needs Numba or llvmlite is in this folder; another compiler would get a folder beside it.
"""

import ctypes
from typing import Any

import numpy as np
from cuda.bindings import driver
from numba import cuda
from numba.cuda import types

from gemmlab.instructions.fragments import LayoutFunction
from gemmlab.instructions.instruction import KernelFunction
from gemmlab.instructions.memory import SharedView
from gemmlab.instructions.numba_cuda import calls, views

MAP = 128  # bytes of a tensor map


def numba_type(function: KernelFunction) -> types.Function:
    """The Numba type of a function that kernels call."""
    if isinstance(function, SharedView):
        return views.view_type()
    if isinstance(function, LayoutFunction):
        return views.layout_type(function)
    return calls.numba_type(function)


def encoded(array: Any, rows: int, columns: int) -> Any:
    """The map of a matrix on the GPU for boxes of rows × columns, as 128 bytes on the GPU."""
    address = array.__cuda_array_interface__["data"][0]
    held = described(address, array.shape, array.strides[0], array.dtype.name, rows, columns)
    return cuda.to_device(np.frombuffer(held, np.uint8).copy())


def described(
    address: int, shape: tuple[int, int], pitch: int, dtype: str, rows: int, columns: int
) -> bytes:
    """Return the map of a matrix at an address of the GPU; pitch : from one row to the next [B]."""
    height, width = shape
    status, found = driver.cuTensorMapEncodeTiled(
        getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{dtype.upper()}"),
        2,
        address,
        [driver.cuuint64_t(width), driver.cuuint64_t(height)],
        [driver.cuuint64_t(pitch)],
        [driver.cuuint32_t(columns), driver.cuuint32_t(rows)],
        [driver.cuuint32_t(1)] * 2,
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    if status != driver.CUresult.CUDA_SUCCESS:
        raise ValueError(f"the driver makes no tensor map of {shape} ({status.name})")
    return ctypes.string_at(found.getPtr(), MAP)
