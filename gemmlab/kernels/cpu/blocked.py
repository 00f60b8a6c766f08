"""On a CPU, blocked: the same loops, reordered and cut into tiles that stay in cache.

The inner loop now walks along rows of B and C, which the processor loads a cache line at a time and
multiplies several elements at once. A tile of B is used for every row of a block before the next
tile is fetched. The GPU's ladder begins with the same two ideas.
"""

from collections.abc import Callable

from gemmlab import Tiling
from gemmlab.kernels.kernel import ON_CPUS, Kernel


def build(tiling: Tiling) -> Callable:
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
    build=build,
    arithmetic=ON_CPUS,
    machine="cpu",
)
