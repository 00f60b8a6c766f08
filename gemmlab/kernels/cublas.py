"""The reference rung: cuBLAS in FP32 without Tensor Cores, called through CuPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gemmlab.kernels.kernel import Kernel
from gemmlab.tiling import Tiling


def build(tiling: Tiling | None) -> Callable:
    """A function of (alpha, A, B, beta, C) with arrays on the GPU; ImportError without CuPy."""
    import cupy
    from cupy_backends.cuda.libs import cublas as lib

    def cublas(alpha, A, B, beta, C):
        # cuBLAS stores columns first: its Cᵀ = BᵀAᵀ is our C = AB, row by row.
        handle = cupy.cuda.device.get_cublas_handle()
        (m, n), k = C.shape, A.shape[1]
        scalars = np.array([alpha, beta], np.float32)
        pointers = scalars.ctypes.data, scalars.ctypes.data + scalars.itemsize
        a, b, c = (x.__cuda_array_interface__["data"][0] for x in (A, B, C))
        N = lib.CUBLAS_OP_N
        lib.sgemm(handle, N, N, n, m, k, pointers[0], b, n, a, k, pointers[1], c, n)

    return cublas


cublas = Kernel(
    name="cublas",
    idea="NVIDIA's library, the yardstick",
    default=None,
    build=build,
    library=True,
)
