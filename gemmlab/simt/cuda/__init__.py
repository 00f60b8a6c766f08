"""`numba.cuda` without a GPU: the same names, for kernels that are simulated when launched.

    names          what means something in kernels
    kernels        jit, kernels and device functions, launches and who watches them
    arrays         memory of the device and of the host
    devices        the GPU that is simulated, its streams, events and times
    vectorizers    reduce, vectorize: kernels made of a function
    choice         which `cuda` a program gets that asks gemmlab for one

Numba knows the names, too: it compiles a kernel that is written with them as if it were written
with its own, so that one source serves both.
"""

from typing import Any

from gemmlab.simt.cuda import arrays, devices, kernels, vectorizers
from gemmlab.simt.cuda.arrays import *
from gemmlab.simt.cuda.devices import *
from gemmlab.simt.cuda.kernels import *
from gemmlab.simt.cuda.names import NAMES
from gemmlab.simt.cuda.vectorizers import *
from gemmlab.simt.numbers import types
from gemmlab.simt.syntax.names import numba_namespace

globals().update(NAMES)

# Each module lists in its own __all__ what programs call.
__all__ = ["types", *arrays.__all__, *devices.__all__, *kernels.__all__, *vectorizers.__all__]

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
