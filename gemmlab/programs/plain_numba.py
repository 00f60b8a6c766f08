"""The module `numba` for programs that import it where it is not installed.

It has the names that programs with kernels use beside `numba.cuda`: number types, and `jit` and
`njit`, which leave a function as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from gemmlab.simt import cuda
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
