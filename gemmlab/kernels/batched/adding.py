"""Planes of sums become C: each element is the sum of what the parts of k gave, in their order.

The order depends on nothing but the number of parts, so that the bits of C are the same every time.
"""

from collections.abc import Callable

from numpy import int32

from gemmlab.instructions import store_v4
from gemmlab.kernels.kernel import Dim
from gemmlab.kernels.simt.shared.vector_access import FOUR, reading
from gemmlab.simt import cuda
from gemmlab.tiling import WARP

ROWS = 8  # of a block, a warp each, which has 128 columns


def build(aligned: bool) -> Callable:
    """The kernel (planes, parts, C), for planes (batch·parts, m, n) and C (batch, m, n).

    aligned : rows of both begin at multiples of 16 bytes, and their elements are neighbours
    """
    read_four = reading(aligned)

    def add_parts(planes, parts, C):
        matrix, (_, m, n) = cuda.blockIdx.z, C.shape
        row = cuda.blockIdx.x * ROWS + cuda.threadIdx.y
        col = (cuda.blockIdx.y * WARP + cuda.threadIdx.x) * FOUR
        if row < m and col < n:
            first = matrix * parts
            t0, t1, t2, t3 = read_four(planes[first], row, col)
            for part in range(int32(1), int32(parts)):
                v = read_four(planes[first + part], row, col)
                t0 += v[0]
                t1 += v[1]
                t2 += v[2]
                t3 += v[3]
            if aligned:
                store_v4(C[matrix], row, col, (t0, t1, t2, t3))
            else:
                C[matrix, row, col] = t0
                if col + 1 < n:
                    C[matrix, row, col + 1] = t1
                if col + 2 < n:
                    C[matrix, row, col + 2] = t2
                if col + 3 < n:
                    C[matrix, row, col + 3] = t3

    return add_parts


def launch(batch: int, m: int, n: int) -> tuple[Dim, Dim]:
    """Return (grid, block): rows, columns, and matrices."""
    return (-(-m // ROWS), -(-n // (WARP * FOUR)), batch), (WARP, ROWS)
