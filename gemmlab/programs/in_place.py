"""The simulated GPU under the name `numba.cuda`, for all that this process imports.

Where Numba is not installed, a module `numba` stands in for it. It has the names that programs with
kernels use beside `numba.cuda`: number types, and `jit` and `njit`, which leave a function as is.
"""

import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from gemmlab.simt import cuda
from gemmlab.simt.cuda import arrays, devices, kernels, random
from gemmlab.simt.numbers import types


def jit(function: Any = None, *signatures: Any, **options: Any) -> Any:
    """A function as it is: plain Python, whatever the options ask for."""
    return _plain(function) if callable(function) else _plain


def _plain(function: Callable) -> Callable:
    function.py_func = function  # type: ignore[attr-defined]
    return function


def vectorize(ftylist_or_function: Any = (), target: str = "cpu", **options: Any) -> Any:
    """A function of arrays: NumPy's `vectorize` in plain Python, or a kernel for "cuda"."""
    if target == "cuda":
        return cuda.vectorize(ftylist_or_function, **options)
    if callable(ftylist_or_function):
        return np.vectorize(ftylist_or_function)
    return np.vectorize


class NumbaError(Exception):
    """An error of Numba's, for programs that catch them."""


class NumbaWarning(Warning):
    """A warning of Numba's, for programs that filter them."""


ERRORS = {
    **dict.fromkeys(("NumbaError", "TypingError", "LoweringError"), NumbaError),
    **dict.fromkeys(
        ("NumbaWarning", "NumbaPerformanceWarning", "NumbaDeprecationWarning",
         "NumbaPendingDeprecationWarning"),
        NumbaWarning,
    ),
}  # fmt: skip


def modules() -> dict[str, ModuleType]:
    """The module `numba` and its parts, by name."""
    numba, core = _module("numba", __path__=[]), _module("numba.core", __path__=[])
    errors = _module("numba.core.errors", **ERRORS)
    config = SimpleNamespace(ENABLE_CUDASIM=0, CUDA_LOW_OCCUPANCY_WARNINGS=0)
    vars(numba).update(
        types.TYPES,
        __version__="0 (gemmlab)",
        types=types,
        core=core,
        errors=errors,
        config=config,
        jit=jit,
        njit=jit,
        vectorize=vectorize,
        guvectorize=cuda.guvectorize,
        prange=range,
        literal_unroll=lambda values: values,
        get_num_threads=lambda: 1,
        set_num_threads=lambda count: None,
    )
    vars(core).update(errors=errors, config=config, types=types)
    extending = _module("numba.extending", register_jitable=jit)
    numba.extending = extending  # type: ignore[attr-defined]
    made: Sequence[ModuleType] = (numba, core, errors, extending)
    return {module.__name__: module for module in made} | {"numba.types": types}


def _module(name: str, **names: Any) -> ModuleType:
    module = ModuleType(name, "A stand-in, because Numba is not installed.")
    vars(module).update(names)
    return module


CUDA = "numba.cuda"


class CudaSupportError(RuntimeError):
    """No GPU can be used; never raised here, for programs that catch it."""


class CudaAPIError(RuntimeError):
    """The driver refused a call; never raised here, for programs that catch it."""


class Refusal(MetaPathFinder):
    """Refuses the parts of `numba.cuda` that have no simulated counterpart."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> None:
        """ModuleNotFoundError for a part of `numba.cuda`; other modules are for other finders."""
        if name.startswith(f"{CUDA}."):
            known = ", ".join(sorted(parts()))
            raise ModuleNotFoundError(
                f"{name} is not a part of the simulated GPU, which has {known}", name=name
            )


def parts() -> dict[str, ModuleType]:
    """`numba.cuda` and those of its parts that programs import, by name."""
    driver = ModuleType(f"{CUDA}.cudadrv.driver")
    vars(driver).update(CudaAPIError=CudaAPIError, CudaSupportError=CudaSupportError)
    devicearray = ModuleType(f"{CUDA}.cudadrv.devicearray")
    vars(devicearray).update(DeviceNDArray=arrays.DeviceArray, is_cuda_ndarray=arrays.is_cuda_array)
    cudadrv = ModuleType(f"{CUDA}.cudadrv")
    vars(cudadrv).update(
        __path__=[], driver=driver, devicearray=devicearray, devices=devices, error=driver
    )
    found = {
        CUDA: cuda,
        f"{CUDA}.types": cuda.types,
        f"{CUDA}.cudadrv": cudadrv,
        f"{CUDA}.cudadrv.driver": driver,
        f"{CUDA}.cudadrv.error": driver,
        f"{CUDA}.cudadrv.devices": devices,
        f"{CUDA}.cudadrv.devicearray": devicearray,
        f"{CUDA}.api": arrays,
        f"{CUDA}.decorators": kernels,
        f"{CUDA}.random": random,
    }
    return found


@contextmanager
def in_place_of_numba() -> Iterator[bool]:
    """Have `numba.cuda` be the simulated GPU in the body; whether Numba itself is installed."""
    before = {name: module for name, module in sys.modules.items() if _is_numbas(name)}
    try:
        numba: Any = importlib.import_module("numba")
        installed = True
    except ImportError:
        sys.modules.update(modules())
        numba, installed = sys.modules["numba"], False
    for name in [name for name in sys.modules if name == CUDA or name.startswith(f"{CUDA}.")]:
        del sys.modules[name]
    sys.modules.update(parts())
    refusal, vectorize = Refusal(), numba.vectorize
    sys.meta_path.insert(0, refusal)
    numba.cuda, numba.vectorize = cuda, _vectorize(vectorize)
    try:
        yield installed
    finally:
        sys.meta_path.remove(refusal)
        numba.vectorize = vectorize
        del numba.cuda
        for name in [name for name in sys.modules if _is_numbas(name)]:
            if name not in before and (not installed or name.startswith(CUDA)):
                del sys.modules[name]
        sys.modules.update(before)
        if CUDA in before:
            numba.cuda = before[CUDA]


def _is_numbas(name: str) -> bool:
    return name == "numba" or name.startswith("numba.")


def _vectorize(of_numba: Any) -> Any:
    """Numba's `vectorize`, but for the GPU, which is simulated."""

    def vectorize(*args: Any, **options: Any) -> Any:
        if options.get("target") == "cuda":
            return cuda.vectorize(*args, **options)
        return of_numba(*args, **options)

    return vectorize
