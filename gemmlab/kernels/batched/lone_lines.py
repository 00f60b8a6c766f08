"""Rows and columns of C that no scale brings into the range of FP16: FP32 units sum them.

An infinity or a NaN in a row of A makes that row of C what IEEE arithmetic says, and leaves the
others alone. Blocks look whether there is such a line in their tile; there seldom is one.
"""

from collections.abc import Callable

from numpy import float32, int32

from gemmlab.kernels.kernel import Dim
from gemmlab.simt import cuda

SIDE = 256  # of a block's tile of C
THREADS = 2 * SIDE


def build(scaled: bool) -> Callable:
    """The kernel (A, B, C, back_a, back_b), for A (batch, m, k), B (batch, k, n), C (batch, m, n).

    back_a, back_b : what undoes the scales of rows of A and of columns of B, 0 for lone lines
    scaled : C is of the scaled operands, which is undone, too
    """

    def sum_lone_lines(A, B, C, back_a, back_b):
        matrix, (_, m, n), k = cuda.blockIdx.z, C.shape, A.shape[2]
        across, line = (n + SIDE - 1) // SIDE, cuda.threadIdx.x % SIDE
        top, left = cuda.blockIdx.x // across * SIDE, cuda.blockIdx.x % across * SIDE
        row, col = top + line, left + line
        if cuda.threadIdx.x < SIDE:
            lone = row < m and back_a[matrix, row] == 0
        else:
            lone = col < n and back_b[matrix, col] == 0
        if cuda.syncthreads_or(int32(lone)) != 0 or scaled:
            for i in range(top + cuda.threadIdx.x // SIDE, min(top + SIDE, m), 2):
                if col < n:
                    back = back_a[matrix, i] * back_b[matrix, col]
                    if back == 0:
                        total = float32(0)
                        for p in range(k):
                            total += A[matrix, i, p] * B[matrix, p, col]
                        C[matrix, i, col] = total
                    elif scaled:
                        C[matrix, i, col] *= back

    return sum_lone_lines


def launch(batch: int, m: int, n: int) -> tuple[Dim, Dim]:
    """Return (grid, block): tiles of C, and matrices."""
    return (-(-n // SIDE) * -(-m // SIDE), 1, batch), (THREADS, 1)
