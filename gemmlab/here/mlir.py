"""numba-cuda-mlir itself, which compiles for a GPU that need not be here.

Release 0.6.0 asks the GPU of this machine for its compute capability even where it is told for
which one to compile. It is answered here.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any

from gemmlab.device import Capability

PACKAGE = "numba_cuda_mlir"


def installed() -> bool:
    """Say whether numba-cuda-mlir is installed."""
    with suppress(ValueError):  # of a stand-in that has its name
        return find_spec(PACKAGE) is not None
    return False


Replaced = tuple[ModuleType, str, Any]  # of a module, a name, and what it is meanwhile


def ptx(
    function: Callable, signature: tuple, capability: Capability, mends: Sequence[Replaced],
    **options: Any,
) -> str:  # fmt: skip
    """Compile a kernel to PTX for a compute capability; neither such a GPU nor CUDA need be here.

    signature : numba-cuda-mlir's types; options : those of its `cuda.compile_ptx`
    mends : what it gets wrong
    """
    with standing_in(capability, mends) as cuda:
        return cuda.compile_ptx(function, signature, **options)[0]


@contextmanager
def standing_in(capability: Capability, mends: Sequence[Replaced] = ()) -> Iterator[ModuleType]:
    """Give the compiler's `cuda` in the body, where it finds a GPU of a compute capability.

    It needs neither NVRTC, which would say no more than a version, nor nvJitLink, because ptxas
    assembles what it makes.
    """
    from numba_cuda_mlir import cuda, linker, tools
    from numba_cuda_mlir.numba_cuda import cuda_paths
    from numba_cuda_mlir.numba_cuda.core.compiler_lock import global_compiler_lock

    replaced = (
        (tools, "_cached_cc", tuple(capability)),
        (tools, "get_cuda_runtime_version", lambda: TOOLKIT),
        (cuda_paths, "_get_nvrtc_path", lambda: SimpleNamespace(by="not looked for", info=None)),
        (linker.Linker, "complete", lambda self: SimpleNamespace(code=b"")),
        *mends,
    )
    with global_compiler_lock:
        before = [getattr(owner, name) for owner, name, _ in replaced]
        try:
            for owner, name, value in replaced:
                setattr(owner, name, value)
            yield cuda
        finally:
            for (owner, name, _), value in zip(replaced, before, strict=True):
                setattr(owner, name, value)


TOOLKIT = 13, 0  # for whose ptxas PTX is made, as requirements pin it
