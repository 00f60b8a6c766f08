"""Rung 1, naive: one thread computes one element of C.

The definition, written down: thread (x, y) of the grid walks along row x of A and column y of B.
Nothing is shared and nothing is kept, so each FMA costs two loads. Threads that are neighbours in
x, and so lanes of one warp, read *different rows* of A: their addresses lie a whole row apart, and
one load touches as many sectors as the warp has rows. Counter to watch: sectors per request.
"""

from collections.abc import Callable

from numpy import float32

from gemmlab import Gemm, Tiling
from gemmlab.kernels.kernel import Kernel, one_element_a_thread
from gemmlab.model import traffic
from gemmlab.simt import cuda


def build(tiling: Tiling) -> Callable:
    """Return the kernel as a plain Numba-CUDA function; the tiling only decides the launch."""

    def naive(alpha, A, B, beta, C):
        m, n = C.shape
        k = A.shape[1]
        i, j = cuda.grid(2)
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

    return naive


def configure(problem: Gemm, tiling: Tiling) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return (grid, block), both with x along the rows of C."""
    across, down = tiling.grid(problem)
    bm, bn, _ = tiling.block
    return (down, across), (bm, bn)


def work(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """Each of the k steps loads A[i, p], in a different row for each lane, and B[p, j]."""
    bm, bn, _ = tiling.block
    return traffic.unstaged(problem, tiling, traffic.plane(bm, bn).turned())


naive = Kernel(
    name="naive",
    idea="one thread per element of C",
    default=Tiling(block=(16, 16, 1)),
    build=build,
    configure=configure,
    work=work,
    check=one_element_a_thread,
)
