"""`numba.cuda` without a GPU: the same names, for kernels that are simulated when launched.

    names          what means something in kernels
    kernels        jit, kernels and device functions, launches and who watches them
    arrays         memory of the device and of the host
    streams        streams, events, times
    devices        the GPU that is simulated
    vectorizers    reduce, vectorize: kernels made of a function
    choice         which `cuda` a program gets that asks gemmlab for one

Numba knows the names, too: it compiles a kernel that is written with them as if it were written
with its own, so that one source serves both.
"""

from typing import Any

from gemmlab.simt.cuda.arrays import (
    as_cuda_array,
    device_array,
    device_array_like,
    is_cuda_array,
    managed_array,
    mapped,
    mapped_array,
    mapped_array_like,
    pinned,
    pinned_array,
    pinned_array_like,
    to_device,
)
from gemmlab.simt.cuda.devices import (
    close,
    current_context,
    default_stream,
    defer_cleanup,
    detect,
    event,
    event_elapsed_time,
    external_stream,
    get_current_device,
    gpus,
    is_available,
    is_bfloat16_supported,
    is_float16_supported,
    is_supported_version,
    legacy_default_stream,
    list_devices,
    per_thread_default_stream,
    profile_start,
    profile_stop,
    profiling,
    require_context,
    select_device,
    stream,
    synchronize,
)
from gemmlab.simt.cuda.kernels import In, InOut, Out, declare_device, jit
from gemmlab.simt.cuda.names import NAMES
from gemmlab.simt.cuda.vectorizers import Reduce, guvectorize, reduce, vectorize
from gemmlab.simt.numbers import types
from gemmlab.simt.syntax.names import numba_namespace

globals().update(NAMES)

__all__ = [
    "In",
    "InOut",
    "Out",
    "Reduce",
    "as_cuda_array",
    "close",
    "current_context",
    "declare_device",
    "default_stream",
    "defer_cleanup",
    "detect",
    "device_array",
    "device_array_like",
    "event",
    "event_elapsed_time",
    "external_stream",
    "get_current_device",
    "gpus",
    "guvectorize",
    "is_available",
    "is_bfloat16_supported",
    "is_cuda_array",
    "is_float16_supported",
    "is_supported_version",
    "jit",
    "legacy_default_stream",
    "list_devices",
    "managed_array",
    "mapped",
    "mapped_array",
    "mapped_array_like",
    "per_thread_default_stream",
    "pinned",
    "pinned_array",
    "pinned_array_like",
    "profile_start",
    "profile_stop",
    "profiling",
    "reduce",
    "require_context",
    "select_device",
    "stream",
    "synchronize",
    "to_device",
    "types",
    "vectorize",
]

REFUSED = {  # names of `numba.cuda` that have no meaning here -> what to do instead
    **dict.fromkeys(
        ("compile", "compile_ptx", "compile_for_current_device", "compile_ptx_for_current_device"),
        "nothing is compiled on the simulated GPU; numba.cuda compiles without a GPU, too",
    ),
    "libdevice": "use the functions of Python's math module",
    "open_ipc_array": "the simulated GPU is of this process alone",
    "from_cuda_array_interface": "use to_device with an array of the host",
}


def __getattr__(name: str) -> Any:
    """Give the type by which Numba knows this module in a kernel; a reason for what is missing."""
    if name == "_numba_type_":
        return numba_namespace()
    why = f": {REFUSED[name]}" if name in REFUSED else ""
    raise AttributeError(f"cuda.{name} is not a part of the simulated GPU{why}")
