"""The names that kernels are written with: `numba.cuda` where it is installed, else a stand-in.

Both give the same kernel source a meaning: `numba.cuda` compiles it for a GPU, and the simulator
runs it whichever of the two it was written with.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from gemmlab.driver import numba_cuda

# What a kernel may use of `cuda`, by dotted path; `simt.machine` gives each its meaning.
INTRINSICS = (
    "threadIdx",
    "blockIdx",
    "blockDim",
    "gridDim",
    "grid",
    "gridsize",
    "laneid",
    "warpsize",
    "syncthreads",
    "syncthreads_count",
    "syncthreads_and",
    "syncthreads_or",
    "syncwarp",
    "threadfence",
    "threadfence_block",
    "threadfence_system",
    "nanosleep",
    "shfl_sync",
    "shfl_up_sync",
    "shfl_down_sync",
    "shfl_xor_sync",
    "all_sync",
    "any_sync",
    "eq_sync",
    "ballot_sync",
    "match_any_sync",
    "match_all_sync",
    "activemask",
    "lanemask_lt",
    "selp",
    "fma",
    "popc",
    "brev",
    "clz",
    "ffs",
    "cbrt",
    "shared.array",
    "local.array",
    "const.array_like",
    "atomic.add",
    "atomic.sub",
    "atomic.max",
    "atomic.min",
    "atomic.nanmax",
    "atomic.nanmin",
    "atomic.and_",
    "atomic.or_",
    "atomic.xor",
    "atomic.inc",
    "atomic.dec",
    "atomic.exch",
    "atomic.cas",
    "atomic.compare_and_swap",
)
NAMESPACES = ("shared", "local", "const", "atomic")


class Intrinsic:
    """A name that has a meaning only inside a kernel."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"cuda.{self.path}"

    def _misused(self, *args: object, **kwargs: object) -> Any:
        raise RuntimeError(
            f"cuda.{self.path} has a meaning only inside a kernel; "
            "run the kernel with gemmlab.simulate(kernel, grid, block, *arguments)"
        )

    __call__ = __index__ = __int__ = __float__ = _misused

    def __getattr__(self, name: str) -> Any:
        if name in ("x", "y", "z"):
            self._misused()
        raise AttributeError(f"cuda.{self.path} has no attribute {name!r}")


class Namespace:
    """`cuda.shared`, `cuda.local`, `cuda.const` and `cuda.atomic`."""

    def __init__(self, name: str) -> None:
        for path in INTRINSICS:
            if path.startswith(f"{name}."):
                setattr(self, path.partition(".")[2], Intrinsic(path))


class SimulatedKernel:
    """A kernel defined with the stand-in: launched as on a GPU, it runs on the simulator."""

    def __init__(self, py_func: Callable) -> None:
        self.py_func = py_func
        self.__name__ = py_func.__name__
        self.__doc__ = py_func.__doc__

    def __getitem__(self, launch: tuple) -> Callable:
        grid, block, *rest = launch
        shared_bytes = rest[1] if len(rest) > 1 else 0

        def run(*args: object) -> Any:
            from gemmlab.simt import simulate

            return simulate(self.py_func, grid, block, *args, shared_bytes=shared_bytes)

        return run

    def __call__(self, *args: object) -> Any:
        raise TypeError(f"launch it as {self.__name__}[grid, block](...)")


class StandIn:
    """The names of `numba.cuda` that kernels use, for machines without it."""

    def __init__(self) -> None:
        for name in NAMESPACES:
            setattr(self, name, Namespace(name))
        for path in INTRINSICS:
            if "." not in path:
                setattr(self, path, Intrinsic(path))

    @staticmethod
    def jit(function: Callable | None = None, **options: object) -> Any:
        """Mark a kernel; a device function (`device=True`) is left as it is."""
        wrap = (lambda f: f) if options.get("device") else SimulatedKernel
        return wrap(function) if callable(function) else wrap

    @staticmethod
    def is_available() -> bool:
        """False: there is no GPU behind the stand-in."""
        return False


def _real() -> Any:
    """The module `numba.cuda`, or None where it is missing or cannot be loaded."""
    try:
        cuda = numba_cuda()
        return cuda if callable(cuda.jit) else None
    except Exception:  # a broken CUDA install can fail in any way; `gemmlab doctor` says how
        return None


stand_in = StandIn()
cuda = _real() or stand_in


def intrinsic_path(value: object) -> str | None:
    """The dotted path of a `cuda` name, from whichever of the two it came, or None."""
    if isinstance(value, Intrinsic):
        return value.path
    numba_cuda = sys.modules.get("numba.cuda")
    for path in INTRINSICS if numba_cuda else ():
        found: Any = numba_cuda
        for part in path.split("."):
            found = getattr(found, part, None)
        if found is value and found is not None and not isinstance(found, int):
            return path
    return None


def is_cuda(value: object) -> bool:
    """Whether `value` is `numba.cuda`, the stand-in, or a namespace of theirs."""
    numba_cuda = sys.modules.get("numba.cuda")
    owners = [stand_in] if numba_cuda is None else [stand_in, numba_cuda]
    known = [*owners, *(getattr(o, name, None) for o in owners for name in NAMESPACES)]
    return value is not None and any(value is k for k in known)
