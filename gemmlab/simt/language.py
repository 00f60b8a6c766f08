"""The names that kernels are written with: `numba.cuda` where it is installed, else a stand-in.

Both give the same kernel source a meaning: `numba.cuda` compiles it for a GPU, and the simulator
runs it whichever of the two it was written with.
"""

from __future__ import annotations

import sys
from functools import cache
from types import ModuleType
from typing import Any

from gemmlab.driver import numba_cuda
from gemmlab.simt.host import HOST, SimulatedKernel

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
    "cg.this_grid",
)
NAMESPACES = ("shared", "local", "const", "atomic", "cg")


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
    """`cuda.shared`, `cuda.local`, `cuda.const`, `cuda.atomic` and `cuda.cg`."""

    def __init__(self, name: str) -> None:
        for path in INTRINSICS:
            if path.startswith(f"{name}."):
                setattr(self, path.partition(".")[2], Intrinsic(path))


class StandIn:
    """The names of `numba.cuda` that kernels and tutorials use, for machines without it."""

    def __init__(self) -> None:
        for name in NAMESPACES:
            setattr(self, name, Namespace(name))
        for path in INTRINSICS:
            if "." not in path:
                setattr(self, path, Intrinsic(path))
        vars(self).update(HOST)

    @staticmethod
    def jit(function: Any = None, **options: object) -> Any:
        """Mark a kernel; a device function (`device=True`) is left as it is.

        In the place of the function may be a signature, as in `jit("void(float32[:])")`; types
        are those of the arguments here, whatever it says.
        """
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
    return _paths(numba_cuda).get(id(value)) if numba_cuda else None


@cache
def _paths(numba_cuda: ModuleType) -> dict[int, str]:
    """The paths of Numba's own names, by the identity of what they name."""
    paths = {}
    for path in INTRINSICS:
        found: Any = numba_cuda
        for part in path.split("."):
            found = getattr(found, part, None)
        if found is not None and not isinstance(found, int):
            paths[id(found)] = path
    return paths


def is_cuda(value: object) -> bool:
    """Whether `value` is `numba.cuda`, the stand-in, or a namespace of theirs."""
    numba_cuda = sys.modules.get("numba.cuda")
    owners = [stand_in] if numba_cuda is None else [stand_in, numba_cuda]
    known = [*owners, *(getattr(o, name, None) for o in owners for name in NAMESPACES)]
    return value is not None and any(value is k for k in known)
