"""The functions of `gemmlab.instructions` in kernels that numba-cuda-mlir compiles.

Each is one of that compiler's intrinsics: a function that says which types a call has, and writes
its operations. All that needs numba-cuda-mlir is in this folder.
"""

from typing import Any

from numba_cuda_mlir.numba_cuda import types
from numba_cuda_mlir.numba_cuda.extending import _Intrinsic
from numba_cuda_mlir.numba_cuda.typing.templates import make_intrinsic_template

from gemmlab.instructions.fragments import LayoutFunction
from gemmlab.instructions.instruction import KernelFunction
from gemmlab.instructions.memory import SharedView
from gemmlab.instructions.numba_cuda_mlir import calls, views


def numba_type(function: KernelFunction) -> Any:
    """The type of a function that kernels call."""
    name, definition = function.__name__, _definition(function)
    intrinsic = _Intrinsic(name, definition, prefer_literal=True)
    template = make_intrinsic_template(intrinsic, definition, name, prefer_literal=True)
    return types.Function(template)


def _definition(function: KernelFunction) -> Any:
    if isinstance(function, SharedView):
        return views.shared_view
    if isinstance(function, LayoutFunction):
        return views.layout(function)
    return calls.definition(function)
