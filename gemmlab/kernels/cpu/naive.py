"""On a CPU, naive: the three loops of the definition, in the order in which they are written.

For each element of C the inner loop walks down a column of B, and so touches a new cache line at
every step. Rows of C are shared out over the cores.
"""

from collections.abc import Callable

from gemmlab import Tiling
from gemmlab.kernels.kernel import ON_CPUS, Kernel


def build(tiling: Tiling | None) -> Callable:
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
    build=build,
    arithmetic=ON_CPUS,
    machine="cpu",
)
