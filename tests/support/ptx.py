"""Compile a kernel to PTX, with no GPU; tests that do are marked `ptxas`."""

from collections.abc import Callable

from gemmlab.here.compilers import ptx


def compiled(kernel: Callable, *arguments: tuple[str, int], cc: tuple[int, int] = (8, 0)) -> str:
    """The PTX of a kernel; arguments are (dtype, dimensions), 0 of them for a number."""
    from numba.cuda import types

    signature = []
    for dtype, ndim in arguments:
        kind = getattr(types, dtype)
        signature.append(types.Array(kind, ndim, "C") if ndim else kind)
    return ptx(kernel, tuple(signature), cc)
