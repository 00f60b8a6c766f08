"""The host's side: the compiler whose kernels run on the GPU that is here, and tensor maps on it.

Numba-CUDA launches where it is installed, because recorded times are its; numba-cuda-mlir where it
is alone. What the two have in different words is asked here.
"""

import ctypes
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from gemmlab.device import Device
from gemmlab.here import compilers
from gemmlab.here.driver import answered, numba_cuda
from gemmlab.instructions import typed

MAP = 128  # bytes of a tensor map


def cuda() -> ModuleType:
    """Return the `cuda` that compiles and launches on the GPU that is here."""
    if compilers.chosen() == compilers.NUMBA:
        return numba_cuda()
    from gemmlab.instructions import numba_cuda_mlir

    return numba_cuda_mlir.for_launches()


def package() -> str:
    """Return the name of the package of that compiler, with underscores."""
    return compilers.chosen().replace("-", "_")


def is_mlirs(made: Any) -> bool:
    """Say whether numba-cuda-mlir made what a kernel was compiled to, or dispatches it."""
    return type(made).__module__.startswith(typed.MLIR)


class Loaded(NamedTuple):
    """A compiled kernel is loaded on the current GPU.

    local_bytes : of a thread; static_shared_bytes : of a block
    function : as the driver launches it
    allow : lets a block have so many bytes of dynamic shared memory; the driver's answer
    resident : (threads, dynamic shared memory) -> blocks that an SM holds
    """

    registers: int
    local_bytes: int
    static_shared_bytes: int
    function: Any
    allow: Callable[[int], Any]
    resident: Callable[[int, int], int]


def loaded(compiled: Any) -> Loaded:
    """Load what either compiler's `compile` returns, and ask what it takes."""
    from cuda.bindings import driver

    most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    if is_mlirs(compiled):
        compiled._ensure_kernel_attrs()
        function = compiled._codelibrary.get_cufunc().handle

        def resident(threads: int, shared: int) -> int:
            ask = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor
            return answered(ask(function, threads, shared))

        def allow(size: int) -> Any:
            return driver.cuFuncSetAttribute(function, most, size)[0]

    else:
        compiled.bind()
        held = compiled.library.get_cufunc()
        function = driver.CUfunction(int(held.handle))
        resident = held.kernel.occupancy.max_active_blocks_per_multiprocessor

        def allow(size: int) -> Any:
            return driver.cuKernelSetAttribute(most, size, held.handle, held.device.id)[0]

    return Loaded(
        compiled.regs_per_thread, compiled.local_mem_per_thread, compiled.shared_mem_per_block,
        function, allow, resident,
    )  # fmt: skip


def allow_shared(loaded: Loaded, device: Device, most: int) -> None:
    """Let a compiled kernel be launched with `most` bytes of dynamic shared memory, not 48 KiB.

    Source: CUDA Driver API, cuKernelSetAttribute.
    """
    status = loaded.allow(most)
    if status:
        raise ValueError(
            f"{device.title} does not give a block {most} B of dynamic shared memory "
            f"({status.name}), although {device.shared_bytes_per_block} B a block are its limit"
        )


def in_clusters(
    dispatcher: Any, compiled: Any, grid: tuple, block: Any, shared: int, cluster: int
) -> Callable:
    """Return the function that launches a compiled kernel in clusters, neighbours in x."""
    if is_mlirs(compiled):
        return dispatcher.configure(grid, block, 0, shared, (cluster, 1, 1))
    from gemmlab.instructions import numba_cuda

    return numba_cuda.in_clusters(compiled, grid, block, shared, cluster)


def encoded(array: Any, rows: int, columns: int) -> Any:
    """The map of a matrix on the GPU for boxes of rows × columns, as 128 bytes on the GPU."""
    address = array.__cuda_array_interface__["data"][0]
    held = described(address, array.shape, array.strides[0], array.dtype.name, rows, columns)
    return cuda().to_device(np.frombuffer(held, np.uint8).copy())


def described(
    address: int, shape: tuple[int, int], pitch: int, dtype: str, rows: int, columns: int
) -> bytes:
    """Return the map of a matrix at an address of the GPU; pitch : from one row to the next [B]."""
    from cuda.bindings import driver

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
