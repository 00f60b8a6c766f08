"""FP32 products from Tensor Cores, for arrays of NumPy, CuPy, PyTorch and Numba.

    c = gemmlab.matmul(a, b)                # as a @ b, in the accuracy of FP32
    gemmlab.matmul_choice(a, b).kernel      # what multiplies

Operands are scaled by powers of two, row by row and column by column, so that FP16 can hold them
(`kernels.batched.scaling`); a row or a column with an infinity or a NaN, or beyond what a scale can
do, is summed by FP32 units. Nothing waits for the GPU: what is in the operands is looked at there.
PyTorch can go back through a product: the gradients of C = AB are products, too.
"""

import sys
from functools import cache
from types import ModuleType
from typing import Any

from gemmlab.multiplication.choosing import OF_TENSORS, Choice

__all__ = ["Choice", "fp32_from_fp16", "matmul", "matmul_choice", "split"]


def matmul(a: Any, b: Any, workspace_bytes: int | None = None, products: int = 3) -> Any:
    """Return A·B with errors like those of FP32 arithmetic, by Tensor Cores where that is faster.

    a, b : (m, k) and (k, n), or (batch, m, k) and (batch, k, n) float32: arrays of NumPy, CuPy or
        Numba's on a GPU, or tensors of PyTorch. Transposed views are multiplied as they are. Or b
        is what `split` made of such an array
    workspace_bytes : memory beside A, B and C that may be used [B]; the split takes as much as A
        and B. With less the work is done in panels, and the result has the same bits
    products : of halves, 3; or 2 or 1 for whoever can do with less, on GPUs that have `wgmma`. With
        2, elements of B are represented by 2^-11 of themselves or 2^-28 of the largest one of
        their column, as FP16 has them, with 1 those of A, too. It is said below for 3

    Returns an array of the same library on the same device, row by row; on a GPU it is queued on
    the library's current stream, also into a CUDA graph. Arrays of the host are copied to the GPU
    that is there, and NumPy multiplies where there is none. PyTorch can go back through it, and
    compile it. PyTorch and CuPy multiply by cuBLAS themselves where Tensor Cores are not known to
    be faster (`matmul_choice`), thin and small products above all; PyTorch only where it keeps to
    FP32, and always under its transforms, `vmap` and the like. Without `workspace_bytes`, 33 MiB at
    most are kept for each of eight of PyTorch's streams.

    No element is represented worse than by 2^-22 of itself or 2^-39 of the largest one of its row
    of A or column of B. Infinities and NaN give what IEEE arithmetic in FP32 gives.
    Raises TypeError for other arrays and formats, ValueError for shapes that do not fit together
    and for a workspace that is too small for any panel.

    >>> import numpy as np
    >>> matmul(np.ones((2, 3), np.float32), np.ones((3, 2), np.float32)).tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """
    of_tensors = OF_TENSORS.get(type(a))
    if of_tensors is not None:
        return of_tensors(a, b, workspace_bytes, products)
    torch = sys.modules.get("torch")
    if torch is not None and torch.compiler.is_compiling():
        return _calling().by_operator(a, b, workspace_bytes, products)
    return _calling().multiply(a, b, workspace_bytes, products)


def matmul_choice(a: Any, b: Any, workspace_bytes: int | None = None, products: int = 3) -> Choice:
    """Tell what `matmul` would do for these operands, and raise what it would raise."""
    return _calling().choose(a, b, workspace_bytes, products)


def split(b: Any) -> Any:
    """Return B with its halves in FP16, which `matmul` takes as B: split once, used many times.

    b : as for `matmul`, weights say. The halves take as many bytes as B, which is kept, too: it is
    what the library multiplies where that is faster, and what gradients are computed of. Whoever
    changes B afterwards splits it anew. Raises what `matmul` raises.
    """
    return _calling().split(b)


def fp32_from_fp16(products: int = 3) -> Any:
    """Return a context in which PyTorch's own FP32 products on a GPU are those of `matmul`.

    with gemmlab.fp32_from_fp16():
        loss = network(x)

    products : as for `matmul`
    It holds for `matmul`, `@`, `mm`, `bmm`, `addmm`, `linear`, and for `einsum` where that is one
    product; for float32 tensors on a GPU, where PyTorch itself keeps to FP32. All else, and what
    `matmul` would hand to PyTorch, is left as it is. Raises ModuleNotFoundError where PyTorch is
    not installed.
    """
    return _calling().fp32_from_fp16(products)


@cache
def _calling() -> ModuleType:
    """The module that does it, which `import gemmlab` does not need."""
    from gemmlab.multiplication import calling

    return calling
