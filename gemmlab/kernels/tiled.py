"""Rung 3, tiled: a block shares tiles of A and B.

The threads of a block compute a tile of C together. They step along k: copy one tile of A and one
of B to shared memory, wait for each other, multiply the tiles, wait again. Each element that a
block needs is read from global memory once, instead of once by each thread that uses it. Counter to
watch: global load requests, down by the tile's side.
"""

from __future__ import annotations

from collections.abc import Callable

from numpy import float32

from gemmlab import cuda
from gemmlab.kernels.kernel import Kernel, along_columns
from gemmlab.model import traffic
from gemmlab.tiling import Tiling


def build(tiling: Tiling) -> Callable:
    """The kernel as a plain Numba-CUDA function, with the tile's side frozen into it."""
    T = tiling.block[0]

    def tiled(alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        m, n = C.shape
        k = A.shape[1]
        x = cuda.threadIdx.x
        y = cuda.threadIdx.y
        row = cuda.blockIdx.y * T + y
        col = cuda.blockIdx.x * T + x

        acc = float32(0)
        for start in range(0, k, T):
            # Beyond the edges the tiles are filled with zeros, which add nothing.
            As[y, x] = A[row, start + x] if row < m and start + x < k else float32(0)
            Bs[y, x] = B[start + y, col] if start + y < k and col < n else float32(0)
            cuda.syncthreads()  # the tiles are complete
            for p in range(T):
                acc += As[y, p] * Bs[p, x]
            cuda.syncthreads()  # nobody reads them any more

        if row < m and col < n:
            if beta == 0:
                C[row, col] = alpha * acc
            else:
                C[row, col] = alpha * acc + beta * C[row, col]

    return tiled


def check(tiling: Tiling) -> None:
    """Raise ValueError unless the tiles of A, B and C are squares of the same side."""
    if len(set(tiling.block)) != 1 or tiling.thread != (1, 1) or tiling.stages != 1:
        raise ValueError(
            f"tiling {tiling} does not fit the tiled kernel, which needs one square tile with "
            "block=(t, t, t), thread=(1, 1) and stages=1, such as Tiling.square(16)"
        )


tiled = Kernel(
    name="tiled",
    idea="tiles of A and B in shared memory",
    default=Tiling.square(16),
    build=build,
    launch=along_columns,
    work=traffic.tiled,
    check=check,
    tilings=(Tiling.square(8), Tiling.square(16), Tiling.square(32)),
)
