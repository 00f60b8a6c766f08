"""The functions of `gemmlab.instructions` in kernels that Numba-CUDA compiles.

For each kind a Numba type that says which arguments a call takes, and the LLVM code of the call.
All that needs Numba or llvmlite is in this folder; another compiler would get a folder beside it.
"""

from collections.abc import Callable
from typing import Any

from numba.cuda import types

from gemmlab.instructions.fragments import LayoutFunction
from gemmlab.instructions.instruction import KernelFunction
from gemmlab.instructions.memory import SharedView
from gemmlab.instructions.numba_cuda import calls, views


def numba_type(function: KernelFunction) -> types.Function:
    """The Numba type of a function that kernels call."""
    if isinstance(function, SharedView):
        return views.view_type()
    if isinstance(function, LayoutFunction):
        return views.layout_type(function)
    return calls.numba_type(function)


def in_clusters(compiled: Any, grid: tuple, block: Any, shared: int, cluster: int) -> Callable:
    """Return the function that launches a compiled kernel in clusters, neighbours in x.

    Numba's own launches have no clusters; this one is made of what they are made of.
    """
    from cuda.core import LaunchConfig, Stream, launch

    stream, kernel = Stream.from_handle(0), compiled.library.get_cufunc().kernel
    across, *others = grid
    config = LaunchConfig(
        grid=(across // cluster, *others), cluster=cluster, block=block, shmem_size=shared
    )

    def call(*arguments: Any) -> None:
        prepared: list[Any] = []
        back: list[Callable] = []
        for kind, value in zip(compiled.argument_types, arguments, strict=True):
            compiled._prepare_args(kind, value, stream, back, prepared)
        launch(stream, config, kernel, *prepared)
        for bring in back:
            bring()

    return call
