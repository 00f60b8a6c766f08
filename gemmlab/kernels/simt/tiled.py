"""Rung 3, tiled: a block shares tiles of A and B.

The threads of a block compute a tile of C together. They step along k: copy one tile of A and one
of B to shared memory, wait for each other, multiply the tiles, wait again. Each element that a
block needs is read from global memory once, instead of once by each thread that uses it. Counter to
watch: global load requests, down by the tile's side.
"""

from collections.abc import Callable

from numpy import float32

from gemmlab import Gemm, Tiling
from gemmlab.kernels.kernel import FLOAT, Kernel, along_columns
from gemmlab.model import traffic
from gemmlab.simt import cuda


def build(tiling: Tiling) -> Callable:
    """Return the kernel as a plain Numba-CUDA function, with the tile's side frozen into it."""
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


def shared_bytes(problem: Gemm, tiling: Tiling) -> int:
    """As and Bs, T×T float32 each [B]."""
    return 2 * FLOAT * tiling.block[0] ** 2


def work(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """A global element is loaded once by each block that needs it: n/bn times for A, m/bm for B."""
    tile, steps = tiling.block[0], tiling.steps(problem)
    threads = traffic.plane(tile, tile)
    each_p = range(tile)
    store = traffic.shared_access("store", FLOAT, threads, tile)  # As[y, x], and the same of Bs
    load_a = threads.row_alone().repeated([0], each_p)  # As[y, p]
    load_b = threads.col_alone().repeated(each_p, [0])  # Bs[p, x]
    return traffic.staged(
        problem,
        tiling,
        copies=traffic.copied(problem, tiling, threads, threads),
        shared=[
            (2 * steps, store),
            (steps, traffic.shared_access("load", FLOAT, load_a, tile)),
            (steps, traffic.shared_access("load", FLOAT, load_b, tile)),
        ],
        update=traffic.update_c(problem, tiling, threads),
        barriers=2 * steps,
        round_trips=steps,
    )


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
    configure=along_columns,
    work=work,
    check=check,
    shared_bytes=shared_bytes,
    tilings=(Tiling.square(8), Tiling.square(16), Tiling.square(32)),
)
