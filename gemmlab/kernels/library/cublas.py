"""The reference rung: cuBLAS in FP32 without Tensor Cores, called through CuPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from gemmlab.kernels.kernel import Kernel
from gemmlab.problem import Gemm
from gemmlab.product import LAYOUTS
from gemmlab.tiling import Tiling


def build(tiling: Tiling | None, layout: str = "nn") -> Callable:
    """A function of (alpha, A, B, beta, C) with arrays on the GPU; ImportError without CuPy.

    layout : which operands are stored transposed, see `Gemm.layout`
    """
    import cupy
    from cupy_backends.cuda.libs import cublas as lib

    def cublas(alpha, A, B, beta, C):
        # cuBLAS stores columns first: its Cᵀ = BᵀAᵀ is our C = AB, row by row.
        handle = cupy.cuda.device.get_cublas_handle()
        (m, n), k = C.shape, A.shape[layout[0] == "n"]
        scalars = np.array([alpha, beta], np.float32)
        pointers = scalars.ctypes.data, scalars.ctypes.data + scalars.itemsize
        a, b, c = (x.__cuda_array_interface__["data"][0] for x in (A, B, C))
        of_a, of_b = (lib.CUBLAS_OP_T if way == "t" else lib.CUBLAS_OP_N for way in layout)
        lda, ldb = A.shape[1], B.shape[1]  # how far apart rows begin
        lib.sgemm(handle, of_b, of_a, n, m, k, pointers[0], b, ldb, a, lda, pointers[1], c, n)

    return cublas


def variant(problem: Gemm, capability: tuple[int, int] | None) -> Mapping[str, str]:
    """Keyword arguments of `build`: the layout of the operands."""
    return {"layout": problem.layout}


cublas = Kernel(
    name="cublas",
    idea="NVIDIA's library, the yardstick",
    default=None,
    build=build,
    variant=variant,
    layouts=LAYOUTS,
    library=True,
)
