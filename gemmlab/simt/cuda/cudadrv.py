"""`numba.cuda.cudadrv`, as programs import it: the driver's errors, arrays and devices."""

from types import ModuleType
from typing import Any

import numpy as np

from gemmlab.simt.cuda import arrays, devices

__path__: list[str] = []  # a package, of which the parts are below


class CudaSupportError(RuntimeError):
    """No GPU can be used; never raised here, for programs that catch it."""


class CudaDriverError(Exception):
    """The driver failed; never raised here, for programs that catch it."""


class CudaAPIError(CudaDriverError):
    """The driver refused a call; never raised here, for programs that catch it."""

    def __init__(self, code: int = 0, msg: str = "") -> None:
        super().__init__(code, msg)
        self.code, self.msg = code, msg


class NvvmError(Exception):
    """The compiler refused code; never raised here, for programs that catch it."""


def is_contiguous(array: Any) -> bool:
    """Say whether the elements of an array lie without gaps, row by row or column by column."""
    return bool(array.flags.c_contiguous or array.flags.f_contiguous)


def auto_device(obj: Any, stream: Any = 0, copy: bool = True) -> tuple[Any, bool]:
    """Return an array of the GPU as it is, and others copied; and whether it was copied."""
    if arrays.is_cuda_array(obj):
        return arrays.as_cuda_array(obj), False
    return arrays.to_device(obj, stream, copy=copy), True


def array_core(array: Any) -> Any:
    """Return an array without the axes along which it repeats one element."""
    if not array.strides or not array.size:
        return array
    return array[tuple(0 if stride == 0 else slice(None) for stride in array.strides)]


def from_array_like(array: Any, stream: Any = 0, gpu_data: Any = None) -> Any:
    """Return an array of the GPU of another one's shape and type, which nobody has written."""
    return arrays.device_array(array.shape, array.dtype, strides=array.strides or None)


def require_cuda_ndarray(obj: Any) -> None:
    """ValueError for what is no array of a GPU."""
    if not isinstance(obj, arrays.DeviceArray):
        raise ValueError("require a cuda ndarray object")


def verify_cuda_ndarray_interface(obj: Any) -> None:
    """TypeError for what does not look like an array of a GPU."""
    require_cuda_ndarray(obj)
    for name in ("shape", "strides", "dtype", "size"):
        getattr(obj, name)


def is_cuda_ndarray(obj: Any) -> bool:
    """Say whether `obj` is an array of the simulated GPU."""
    return isinstance(obj, arrays.DeviceArray)


def host_memory_size(obj: Any) -> int:
    """Bytes of an array of the host."""
    return int(np.asarray(obj).nbytes)


def _part(name: str, **names: Any) -> ModuleType:
    module = ModuleType(f"numba.cuda.cudadrv.{name}", "A part of the simulated driver.")
    vars(module).update(names)
    return module


ERRORS = {
    "CudaSupportError": CudaSupportError,
    "CudaDriverError": CudaDriverError,
    "CudaAPIError": CudaAPIError,
    "NvvmError": NvvmError,
}
PARTS = {
    "driver": _part(
        "driver",
        **ERRORS,
        Device=devices.Device,
        Context=devices.Context,
        Stream=devices.Stream,
        Event=devices.Event,
        host_memory_size=host_memory_size,
        get_version=devices.driver_version,
        _have_nvjitlink=lambda: False,
        driver=_part("driver.driver", get_version=devices.driver_version, is_available=True,
                     get_device_count=lambda: 1, get_device=devices.select_device,
                     initialization_error=None),
    ),
    "error": _part("error", **ERRORS),
    "devices": devices,
    "devicearray": _part(
        "devicearray",
        DeviceNDArray=arrays.DeviceArray,
        MappedNDArray=arrays.SharedArray,
        is_cuda_ndarray=is_cuda_ndarray,
        is_contiguous=is_contiguous,
        array_core=array_core,
        from_array_like=from_array_like,
        auto_device=auto_device,
        require_cuda_ndarray=require_cuda_ndarray,
        verify_cuda_ndarray_interface=verify_cuda_ndarray_interface,
        errmsg_contiguous_buffer="Array contains non-contiguous buffer and cannot be transferred "
        "as a single memory region. Please ensure contiguous buffer with numpy "
        ".ascontiguousarray()",
    ),
    "runtime": _part("runtime", runtime=_part("runtime.runtime", **{
        "get_version": devices.runtime_version, "is_supported_version": lambda: True})),
}  # fmt: skip
globals().update(PARTS)
