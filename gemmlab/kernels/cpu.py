"""The same product on this machine's processor: naive → blocked → numpy.

*cpu_naive* is the three loops of the definition, in the order in which they are written. For each
element of C the inner loop walks down a column of B, and so touches a new cache line at every step.
Rows of C are shared out over the cores.

*cpu_blocked* has the same loops, reordered and cut into tiles that stay in cache. The inner loop
now walks along rows of B and C, which the processor loads a cache line at a time and multiplies
several elements at once. A tile of B is used for every row of a block before the next tile is
fetched. The GPU's ladder begins with the same two ideas.

*cpu_numpy* is the reference: NumPy's product, which calls an optimised BLAS.
"""

from collections.abc import Callable

import numpy as np

from gemmlab import Tiling
from gemmlab.kernels.kernel import ON_CPUS, Kernel


def build_naive(tiling: Tiling | None) -> Callable:
    """Return the kernel as a plain function for `numba.njit`."""
    from numba import prange

    def cpu_naive(alpha, A, B, beta, C):
        m, n = C.shape
        k = A.shape[1]
        for i in prange(m):
            for j in range(n):
                acc = A[i, 0] * B[0, j]
                for p in range(1, k):
                    acc += A[i, p] * B[p, j]
                if beta == 0:
                    C[i, j] = alpha * acc
                else:
                    C[i, j] = alpha * acc + beta * C[i, j]

    return cpu_naive


cpu_naive = Kernel(
    name="cpu_naive",
    idea="three loops, as defined",
    default=None,
    build=build_naive,
    arithmetic=ON_CPUS,
    machine="cpu",
)


def build_blocked(tiling: Tiling) -> Callable:
    """Return the kernel as a plain function for `numba.njit`, with its tile frozen into it."""
    from numba import prange

    BM, BN, BK = tiling.block

    def cpu_blocked(alpha, A, B, beta, C):
        m, n = C.shape
        k = A.shape[1]
        for block in prange((m + BM - 1) // BM):
            rows = range(block * BM, min((block + 1) * BM, m))
            for i in rows:
                for j in range(n):
                    C[i, j] = beta * C[i, j] if beta != 0 else 0
            for j0 in range(0, n, BN):
                for p0 in range(0, k, BK):
                    for i in rows:
                        for p in range(p0, min(p0 + BK, k)):
                            a = alpha * A[i, p]
                            b = B[p, j0 : j0 + BN]
                            c = C[i, j0 : j0 + BN]
                            for j in range(b.size):
                                c[j] += a * b[j]

    return cpu_blocked


cpu_blocked = Kernel(
    name="cpu_blocked",
    idea="tiles that stay in cache, inner loop along rows",
    default=Tiling(block=(32, 512, 64)),
    build=build_blocked,
    arithmetic=ON_CPUS,
    machine="cpu",
)


def build_numpy(tiling: Tiling | None) -> Callable:
    """Return a function of (alpha, A, B, beta, C), as the kernels are."""

    def cpu_numpy(alpha, A, B, beta, C):
        if beta == 0:
            np.matmul(A, B, out=C)
            C *= alpha
        else:
            C *= beta
            C += alpha * (A @ B)

    return cpu_numpy


cpu_numpy = Kernel(
    name="cpu_numpy",
    idea="NumPy's BLAS",
    default=None,
    build=build_numpy,
    arithmetic=ON_CPUS,
    machine="cpu",
    library=True,
)
