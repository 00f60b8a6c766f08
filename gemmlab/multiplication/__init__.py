"""FP32 products from Tensor Cores, for arrays of NumPy, CuPy, PyTorch and Numba.

    c = gemmlab.matmul(a, b)                # as a @ b, in the accuracy of FP32
    gemmlab.matmul_choice(a, b).kernel      # what multiplies

Operands are scaled by powers of two, row by row and column by column, so that FP16 can hold them
(`kernels.batched.scaling`); a row or a column with an infinity or a NaN, or beyond what a scale can
do, is summed by FP32 units. Nothing waits for the GPU: what is in the operands is looked at there.
PyTorch can go back through a product: the gradients of C = AB are products, too.
"""

import sys
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

from gemmlab.arguments import whole_number
from gemmlab.multiplication.choosing import Choice


def is_recorded(*tensors: Any) -> bool:
    """Whether PyTorch records what is done with these arrays, to go back through it."""
    torch = sys.modules.get("torch")
    return bool(
        torch
        and all(isinstance(x, torch.Tensor) for x in tensors)
        and torch.is_grad_enabled()
        and any(x.requires_grad for x in tensors)
    )


@cache
def recorded(torch: ModuleType, product: Callable, again: Callable) -> Callable:
    """Return the function (a, b, workspace_bytes) that computes C = AB and is recorded by PyTorch.

    product : computes C; again : computes gradients, dA = dC·Bᵀ and dB = Aᵀ·dC, of transposed
    views, and is recorded itself where PyTorch asks for gradients of gradients
    """

    class Product(torch.autograd.Function):
        """C = AB."""

        @staticmethod
        def forward(ctx: Any, a: Any, b: Any, workspace_bytes: int | None) -> Any:
            ctx.save_for_backward(a, b)
            ctx.workspace_bytes = workspace_bytes
            return product(a, b, workspace_bytes)

        @staticmethod
        def backward(ctx: Any, dc: Any) -> tuple[Any, Any, None]:
            (a, b), (for_a, for_b, _) = ctx.saved_tensors, ctx.needs_input_grad
            da = again(dc, b.transpose(-2, -1), ctx.workspace_bytes) if for_a else None
            db = again(a.transpose(-2, -1), dc, ctx.workspace_bytes) if for_b else None
            return da, db, None

    return Product.apply


__all__ = ["Choice", "matmul", "matmul_choice"]


def matmul(a: Any, b: Any, workspace_bytes: int | None = None) -> Any:
    """Return A·B with errors like those of FP32 arithmetic, by Tensor Cores where that is faster.

    a, b : (m, k) and (k, n), or (batch, m, k) and (batch, k, n) float32: arrays of NumPy, CuPy or
        Numba's on a GPU, or tensors of PyTorch. Transposed views are multiplied as they are
    workspace_bytes : memory beside A, B and C that may be used [B]; the split takes as much as A
        and B. With less the work is done in panels, and the result has the same bits

    Returns an array of the same library on the same device, row by row; on a GPU it is queued on
    the library's current stream. Arrays of the host are copied to the GPU that is there, and
    NumPy multiplies where there is none. PyTorch can go back through it. PyTorch and CuPy multiply
    by cuBLAS themselves where Tensor Cores are not known to be faster (`matmul_choice`), thin and
    small products above all; PyTorch only where it keeps to FP32.

    No element is represented worse than by 2^-22 of itself or 2^-39 of the largest one of its row
    of A or column of B. Infinities and NaN give what IEEE arithmetic in FP32 gives.
    Raises TypeError for other arrays and formats, ValueError for shapes that do not fit together
    and for a workspace that is too small for any panel.

    >>> import numpy as np
    >>> matmul(np.ones((2, 3), np.float32), np.ones((3, 2), np.float32)).tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """
    if is_recorded(a, b):
        return recorded(sys.modules["torch"], _multiplied, matmul)(a, b, workspace_bytes)
    return _multiplied(a, b, workspace_bytes)


def matmul_choice(a: Any, b: Any, workspace_bytes: int | None = None) -> Choice:
    """Tell what `matmul` would do for these operands, and raise what it would raise."""
    return _calling().choose(a, b, _budget(workspace_bytes))


def _multiplied(a: Any, b: Any, workspace_bytes: int | None) -> Any:
    return _calling().multiply(a, b, _budget(workspace_bytes))


@cache
def _calling() -> ModuleType:
    """The module that does it, which `import gemmlab` does not need."""
    from gemmlab.multiplication import calling

    return calling


def _budget(workspace_bytes: int | None) -> int | None:
    """Check the bytes of a workspace; None is no limit."""
    if workspace_bytes is None:
        return None
    return whole_number("workspace_bytes", workspace_bytes)
