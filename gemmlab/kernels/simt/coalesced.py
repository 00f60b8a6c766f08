"""Rung 2, coalesced: neighbouring threads compute neighbouring columns.

One line differs from the naive kernel: x now runs along a row of C. The lanes of a warp share a few
rows of A and read B[p, j], B[p, j + 1], … side by side, so that each sector that is fetched is used
whole. The loads are as many as before, two for each FMA, but each is cheaper. Counter to watch:
sectors per request, down by more than four.
"""

from collections.abc import Callable

from numpy import float32

from gemmlab import Gemm, Tiling
from gemmlab.kernels.kernel import Kernel, along_columns, one_element_a_thread
from gemmlab.model import traffic
from gemmlab.simt import cuda


def build(tiling: Tiling) -> Callable:
    """Return the kernel as a plain Numba-CUDA function; the tiling only decides the launch."""

    def coalesced(alpha, A, B, beta, C):
        m, n = C.shape
        k = A.shape[1]
        j, i = cuda.grid(2)
        if i < m and j < n:
            acc = float32(0)
            p = 0
            while p < k:  # cheaper than range(k), which Numba counts in a second variable
                acc += A[i, p] * B[p, j]
                p += 1
            if beta == 0:
                C[i, j] = alpha * acc
            else:
                C[i, j] = alpha * acc + beta * C[i, j]

    return coalesced


def work(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """Return the loads of *naive*, by lanes that share rows of A and sectors of B."""
    bm, bn, _ = tiling.block
    return traffic.unstaged(problem, tiling, traffic.plane(bn, bm))


coalesced = Kernel(
    name="coalesced",
    idea="neighbouring threads, neighbouring columns",
    default=Tiling(block=(16, 16, 1)),
    build=build,
    configure=along_columns,
    work=work,
    check=one_element_a_thread,
)
