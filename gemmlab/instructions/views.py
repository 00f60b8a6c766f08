"""Views of dynamic shared memory with a shape that is known when the kernel is compiled."""

from __future__ import annotations

from typing import Any

from gemmlab.instructions.instruction import Instruction, Literal
from gemmlab.instructions.kernel_function import KernelFunction

__all__ = ["shared_view"]

BASE_ALIGNMENT = 1024  # bytes: what the strictest user of shared memory, wgmma, asks for


class SharedView(KernelFunction):
    """`shared_view(shape, dtype, offset)`: an array over the block's dynamic shared memory.

    shape, dtype : constants, as `cuda.shared.array` takes them
    offset : where it begins [B], a multiple of the size of an element; the memory itself begins at
        a multiple of 1024

    Its strides are constants, so that an index with constant parts costs nothing. Views may
    overlap; how much memory there is, the launch says.
    """

    name = __name__ = "shared_view"

    def __call__(self, *args: object) -> Any:
        raise RuntimeError("shared_view has a meaning only inside a kernel")

    def __repr__(self) -> str:
        return "<shared_view>"


shared_view = SharedView()


def takes_constant(function: object) -> bool:
    """Whether the first argument must be known when the kernel is compiled."""
    if isinstance(function, Instruction):
        return any(isinstance(operand, Literal) for operand in function.operands[:1])
    return function is shared_view
