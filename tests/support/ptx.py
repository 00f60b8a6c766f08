"""Compile a kernel to PTX, with no GPU; tests that do are marked `ptxas`."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from gemmlab.compiled.sass.compiling import to_ptx
from gemmlab.here.compilers import NUMBA, chosen


def types() -> ModuleType:
    """The types of the compiler that is here."""
    if chosen() == NUMBA:
        from numba.cuda import types
    else:
        from numba_cuda_mlir import types
    return types


def typing_error() -> type[Exception]:
    """What the compiler that is here raises of types."""
    if chosen() == NUMBA:
        from numba.core.errors import TypingError
    else:
        from numba_cuda_mlir.numba_cuda.core.errors import TypingError
    return TypingError


def ptx(kernel: Callable, signature: tuple, cc: tuple[int, int], **options: Any) -> str:
    """The PTX of a kernel, by the compiler that is here."""
    return to_ptx()(kernel, signature, cc, **options)


def compiled(kernel: Callable, *arguments: tuple[str, int], cc: tuple[int, int] = (8, 0)) -> str:
    """The PTX of a kernel; arguments are (dtype, dimensions), 0 of them for a number."""
    signature = []
    for dtype, ndim in arguments:
        kind = getattr(types(), dtype)
        signature.append(types().Array(kind, ndim, "C") if ndim else kind)
    return ptx(kernel, tuple(signature), cc)
