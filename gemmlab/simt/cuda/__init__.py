"""`numba.cuda` without a GPU: the same names, for kernels that are simulated when launched.

    names          what means something in kernels
    signatures     types of arguments that a kernel is declared for
    overloads      forms of a kernel by types, and what Numba makes of them
    kernels        jit, kernels and device functions, launches and who watches them
    arrays         memory of the device and of the host
    compiling      what Numba makes of kernels
    cudadrv        what programs know of the driver
    devices        the GPU that is simulated, its streams, events and times
    vectorizers    reduce, vectorize: kernels made of a function
    gufuncs        guvectorize
    choice         which `cuda` a program gets that asks gemmlab for one

Numba knows the names, too: it compiles a kernel that is written with them as if it were written
with its own, so that one source serves both.
"""

from types import SimpleNamespace
from typing import Any

from gemmlab.here import numbas
from gemmlab.simt.cuda import (
    arrays,
    compiling,
    cudadrv,
    devices,
    gufuncs,
    kernels,
    vectorizers,
)
from gemmlab.simt.cuda.arrays import *
from gemmlab.simt.cuda.compiling import *
from gemmlab.simt.cuda.devices import *
from gemmlab.simt.cuda.gufuncs import *
from gemmlab.simt.cuda.kernels import *
from gemmlab.simt.cuda.names import NAMES
from gemmlab.simt.cuda.vectorizers import *
from gemmlab.simt.numbers import types
from gemmlab.simt.syntax.names import numba_namespace

globals().update(NAMES)

HAS_NUMBA = numbas.has_numba()
CONFIG = SimpleNamespace(ENABLE_CUDASIM=0, CUDA_LOW_OCCUPANCY_WARNINGS=0)
CudaSupportError = cudadrv.CudaSupportError
runtime = cudadrv.PARTS["runtime"].runtime

# Each module lists in its own __all__ what programs call.
__all__ = [
    "types",
    *arrays.__all__,
    *compiling.__all__,
    *devices.__all__,
    *gufuncs.__all__,
    *kernels.__all__,
    *vectorizers.__all__,
]

# Code of other languages, which a program may have as an object; a kernel that links it is refused.
LINKED = (
    *("Archive", "CUSource", "Cubin", "Fatbin", "LTOIR", "LinkableCode", "Object", "PTXSource"),
)

REFUSED = {  # names of `numba.cuda` that have no meaning here -> what to do instead
    "open_ipc_array": "the simulated GPU is of this process alone",
}


def __getattr__(name: str) -> Any:
    """Give the type by which Numba knows this module in a kernel; a reason for what is missing."""
    if name == "_numba_type_":
        return numba_namespace()
    if name == "devicearray":
        return cudadrv.PARTS[name]
    if name in LINKED and numbas.installed():
        return getattr(numbas.part("cudadrv.linkable_code"), name)
    if name == "config":  # of Numba, where it is installed
        return numbas.part("core.config") if numbas.installed() else CONFIG
    why = f": {REFUSED[name]}" if name in REFUSED else ""
    raise AttributeError(f"cuda.{name} is not a part of the simulated GPU{why}")
