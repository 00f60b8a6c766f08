"""The functions of `gemmlab.instructions` in kernels that Numba-CUDA compiles.

For each kind a Numba type that says which arguments a call takes, and the LLVM code of the call.
All that needs Numba or llvmlite is in this folder; another compiler would get a folder beside it.
"""

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
