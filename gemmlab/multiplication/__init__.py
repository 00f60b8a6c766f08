"""FP32 products from Tensor Cores, for arrays of NumPy, CuPy, PyTorch and Numba.

    c = gemmlab.matmul(a, b)                # as a @ b, in the accuracy of FP32
    gemmlab.matmul_choice(a, b).kernel      # what multiplies

Operands are scaled by powers of two, row by row and column by column, so that FP16 can hold them
(`kernels.tcec.scaling`); a row or a column with an infinity or a NaN, or beyond what a scale can
do, is summed by FP32 units. Nothing waits for the GPU: what is in the operands is looked at there.
"""

from __future__ import annotations

import sys
from typing import Any

from gemmlab.arguments import whole_number
from gemmlab.multiplication import autograd
from gemmlab.multiplication.choosing import Choice

__all__ = ["Choice", "matmul", "matmul_choice"]


def matmul(a: Any, b: Any, workspace_bytes: int | None = None) -> Any:
    """A·B with errors like those of FP32 arithmetic, by Tensor Cores where there are any.

    a, b : (m, k) and (k, n), or (batch, m, k) and (batch, k, n) float32: arrays of NumPy, CuPy or
        Numba's on a GPU, or tensors of PyTorch. Transposed views are multiplied as they are
    workspace_bytes : memory beside A, B and C that may be used [B]; the split takes as much as A
        and B. With less the work is done in panels, and the result has the same bits

    Returns an array of the same library on the same device, row by row; on a GPU it is queued on
    the library's current stream. Arrays of the host are copied to the GPU that is there, and
    NumPy multiplies where there is none. PyTorch can go back through it.

    No element is represented worse than by 2^-22 of itself or 2^-39 of the largest one of its row
    of A or column of B. Infinities and NaN give what IEEE arithmetic in FP32 gives.
    Raises TypeError for other arrays and formats, ValueError for shapes that do not fit together
    and for a workspace that is too small for any panel.

    >>> import numpy as np
    >>> matmul(np.ones((2, 3), np.float32), np.ones((3, 2), np.float32)).tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """
    if autograd.is_recorded(a, b):
        return autograd.recorded(sys.modules["torch"], _multiplied, matmul)(a, b, workspace_bytes)
    return _multiplied(a, b, workspace_bytes)


def matmul_choice(a: Any, b: Any, workspace_bytes: int | None = None) -> Choice:
    """What `matmul` would do for these operands; it raises what `matmul` does."""
    from gemmlab.multiplication import calling

    return calling.choose(a, b, _budget(workspace_bytes))


def _multiplied(a: Any, b: Any, workspace_bytes: int | None) -> Any:
    from gemmlab.multiplication import calling

    return calling.multiply(a, b, _budget(workspace_bytes))


def _budget(workspace_bytes: int | None) -> int | None:
    """Checked, as whoever gives it means it."""
    if workspace_bytes is None:
        return None
    return whole_number("workspace_bytes", workspace_bytes)
