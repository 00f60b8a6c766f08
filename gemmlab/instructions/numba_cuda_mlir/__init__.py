"""The functions of `gemmlab.instructions` in kernels that numba-cuda-mlir compiles.

Each is one of that compiler's intrinsics: a function that says which types a call has, and writes
its operations. All that needs numba-cuda-mlir is in this folder.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType, SimpleNamespace
from typing import Any

from numba_cuda_mlir import cuda, linker, tools
from numba_cuda_mlir.numba_cuda import cuda_paths, types
from numba_cuda_mlir.numba_cuda.core import config
from numba_cuda_mlir.numba_cuda.core.compiler_lock import global_compiler_lock
from numba_cuda_mlir.numba_cuda.extending import _Intrinsic
from numba_cuda_mlir.numba_cuda.typing import typeof
from numba_cuda_mlir.numba_cuda.typing.templates import make_intrinsic_template

from gemmlab.here.compilers import assemble
from gemmlab.instructions.fragments import LayoutFunction
from gemmlab.instructions.instruction import KernelFunction
from gemmlab.instructions.memory import SharedView
from gemmlab.instructions.numba_cuda_mlir import arrays, calls

TOOLKIT = 13, 0  # for whose ptxas PTX is made, as requirements pin it
HOPPER = 9, 0
_format_arch, _complete = tools.format_arch, linker.Linker.complete


def numba_type(function: KernelFunction) -> Any:
    """The type of a function that kernels call."""
    name, definition = function.__name__, _definition(function)
    intrinsic = _Intrinsic(name, definition, prefer_literal=True)
    template = make_intrinsic_template(intrinsic, definition, name, prefer_literal=True)
    return types.Function(template)


def _definition(function: KernelFunction) -> Any:
    if isinstance(function, SharedView):
        return calls.shared_view
    if isinstance(function, LayoutFunction):
        return calls.layout(function)
    return calls.definition(function)


def ptx(function: Callable, signature: tuple, capability: tuple[int, int], **options: Any) -> str:
    """Compile a kernel to PTX for a compute capability; neither such a GPU nor CUDA need be here.

    signature : numba-cuda-mlir's types; options : those of its `cuda.compile_ptx`
    """
    with standing_in(capability) as cuda:
        text = cuda.compile_ptx(function, signature, **options)[0]
    return text.rstrip("\0")  # of a C string, from Blackwell on


def know_numbas_types() -> None:
    """Have the compiler take Numba's number types for its own: a program may import them."""
    try:
        from numba.core.types import Number
    except ImportError:
        return
    typeof.typeof_impl.register(Number)(
        lambda kind, context: typeof.typeof_impl(getattr(types, str(kind)), context)
    )


know_numbas_types()


@contextmanager
def standing_in(capability: tuple[int, int]) -> Iterator[ModuleType]:
    """Give the compiler's `cuda` in the body, where it finds a GPU of a compute capability.

    Release 0.6.0 asks the GPU of this machine even where it is told for which one to compile, and
    is answered here. It needs neither NVRTC, which would say no more than a version, nor nvJitLink,
    because ptxas assembles what it makes.
    """
    replaced = (
        (tools, "_cached_cc", tuple(capability)),
        (tools, "get_cuda_runtime_version", lambda: TOOLKIT),
        (cuda_paths, "_get_nvrtc_path", lambda: SimpleNamespace(by="not looked for", info=None)),
        (tools, "format_arch", _format_arch),
        (linker.Linker, "complete", lambda self: SimpleNamespace(code=b"")),
        *arrays.mends(),
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


@cache
def for_launches() -> ModuleType:
    """Mend the compiler for the rest of this process, and return its `cuda`, which then launches.

    On a Hopper it compiles for sm_90a, which has `wgmma`; release 0.6.0 knows the plain sm_90 alone
    unless each kernel says otherwise. And ptxas assembles a kernel that is linked to nothing: as
    one unit of several, which is what nvJitLink takes it for, it has each `wgmma` wait for the one
    before, and no `setmaxnreg`.
    """
    config.CUDA_LOW_OCCUPANCY_WARNINGS = False  # small grids are part of what the course shows
    mended = (tools, "format_arch", _newest), (linker.Linker, "complete", _completed)
    for owner, name, value in (*arrays.mends(), *mended):
        setattr(owner, name, value)
    return cuda


def _completed(own: Any) -> Any:
    """Return what a linker makes of its parts: something that has a cubin as its `code`."""
    parts = own._object_codes
    if len(parts) > 1 or own._pending_cu or own._debug or parts[0].code_type != "ptx":
        return _complete(own)
    text = parts[0].code.decode().rstrip("\0")
    return SimpleNamespace(code=assemble(text, own.arch, own.max_registers)[0])


def _newest(capability: tuple[int, ...]) -> str:
    return _format_arch(capability) + "a" * (tuple(capability) == HOPPER)
