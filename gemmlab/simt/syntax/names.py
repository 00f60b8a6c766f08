"""The names of `cuda` that mean something in a kernel, whichever `cuda` they come from."""

import sys
from functools import cache
from types import ModuleType
from typing import Any

from gemmlab.here import numbas
from gemmlab.instructions import typed
from gemmlab.simt.numbers import half, libdevice, vectors

# What a kernel may use of `cuda`, by dotted path; `machine.scope` gives each its meaning.
INTRINSICS = (
    *("threadIdx", "blockIdx", "blockDim", "gridDim", "grid", "gridsize", "laneid", "warpsize"),
    *("syncthreads", "syncthreads_count", "syncthreads_and", "syncthreads_or", "syncwarp"),
    *("threadfence", "threadfence_block", "threadfence_system", "nanosleep"),
    *("shfl_sync", "shfl_up_sync", "shfl_down_sync", "shfl_xor_sync"),
    *("all_sync", "any_sync", "eq_sync", "ballot_sync", "match_any_sync", "match_all_sync"),
    *("activemask", "lanemask_lt"),
    *("selp", "fma", "popc", "brev", "clz", "ffs", "cbrt"),
    *("shared.array", "local.array", "const.array_like"),
    *("atomic.add", "atomic.sub", "atomic.max", "atomic.min", "atomic.nanmax", "atomic.nanmin"),
    *("atomic.and_", "atomic.or_", "atomic.xor", "atomic.inc", "atomic.dec", "atomic.exch"),
    *("atomic.cas", "atomic.compare_and_swap"),
    "cg.this_grid",
    *("ldca", "ldcg", "ldcs", "ldlu", "ldcv", "stcg", "stcs", "stwb", "stwt"),
)
FAMILIES = (  # functions of numbers alone, and vector types
    *(f"libdevice.{name}" for name in libdevice.TABLE),
    *(f"fp16.{name}" for name in half.TABLE),
    *vectors.BY_NAME,
)
NAMESPACES = ("shared", "local", "const", "atomic", "cg", "libdevice", "fp16")


class Intrinsic:
    """A name that has a meaning only inside a kernel."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"cuda.{self.path}"

    @property
    def _numba_type_(self) -> Any:
        """The type by which the compiler that asks knows its own name of this path."""
        _, context = numbas.typing(typed.mlir_asks())
        found = numba_namespace()
        for part in self.path.split("."):
            found = context.resolve_getattr(found, part)
        return found

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
    """A namespace of `cuda`, such as `cuda.shared` and `cuda.atomic`."""

    def __init__(self, name: str) -> None:
        self._name = name
        for path in (*INTRINSICS, *FAMILIES):
            if path.startswith(f"{name}."):
                setattr(self, path.partition(".")[2], Intrinsic(path))

    @property
    def _numba_type_(self) -> Any:
        return numba_namespace(self._name)


def numba_namespace(name: str | None = None) -> Any:
    """The type of a compiler's `cuda`, or of a namespace in it.

    The compiler asks a value for it as `_numba_type_` when it compiles a kernel that names the
    value: so a kernel that is written with the stand-in compiles as if written with its `cuda`.
    """
    cuda, _ = numbas.typing(typed.mlir_asks())
    return cuda.types.Module(cuda if name is None else getattr(cuda, name))


def stand_in_names() -> dict[str, Any]:
    """Return the names of `cuda` that mean something in a kernel, for the stand-in to have."""
    plain = {path: Intrinsic(path) for path in (*INTRINSICS, *FAMILIES) if "." not in path}
    return plain | {name: Namespace(name) for name in NAMESPACES}


def intrinsic_path(value: object) -> str | None:
    """Return the dotted path of a `cuda` name, from wherever it came, or None."""
    if isinstance(value, Intrinsic):
        return value.path
    return next((path for cuda in _compilers() if (path := _paths(cuda).get(id(value)))), None)


def _compilers() -> list[ModuleType]:
    """Return the `cuda` of each compiler that is loaded."""
    found = map(sys.modules.get, ("numba.cuda", f"{typed.MLIR}.cuda"))
    return [cuda for cuda in found if cuda is not None]


@cache
def _paths(cuda: ModuleType) -> dict[int, str]:
    """Return the paths of a compiler's own names, by the identity of what they name."""
    paths = {}
    for path in (*INTRINSICS, *FAMILIES):
        found: Any = cuda
        for part in path.split("."):
            found = getattr(found, part, None)
        if found is not None and not isinstance(found, int):
            paths[id(found)] = path
    return paths


def is_cuda(value: object) -> bool:
    """Say whether `value` is a compiler's `cuda`, the stand-in, or a namespace of theirs."""
    if isinstance(value, Namespace):
        return True
    known = [sys.modules.get("gemmlab.simt.cuda"), *(cuda := _compilers())]
    known += [getattr(one, name, None) for one in cuda for name in NAMESPACES]
    return value is not None and any(value is k for k in known)
