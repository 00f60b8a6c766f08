"""Rung 4, register tiled: each thread computes a tile of C, held in registers.

One element of A that a thread has read now serves tn FMAs, one of B tm: tm + tn shared loads feed
tm·tn FMAs, instead of two loads for each. A thread's rows lie apart by the height of the block of
threads, its columns by the width, so that neighbouring threads still read neighbouring words.
Counter to watch: shared wavefronts, down by about the thread tile's side.
"""

from collections.abc import Callable

from numpy import float32, uint32

from gemmlab import Gemm, Tiling
from gemmlab.kernels.kernel import FLOAT, Kernel, threads_in_a_plane
from gemmlab.model import traffic
from gemmlab.simt import cuda


def build(tiling: Tiling) -> Callable:
    """Return the kernel as a plain Numba-CUDA function, with all tile sizes frozen into it."""
    BM, BN, BK = tiling.block
    TM, TN = tiling.thread
    DOWN, ACROSS = BM // TM, BN // TN  # threads of a block
    THREADS = DOWN * ACROSS
    # Turns that a copy takes, and whether all threads have something to do in each: known to the
    # compiler, which then writes the turns out.
    TURNS_A, WHOLE_A = -(-BM * BK // THREADS), BM * BK % THREADS == 0
    TURNS_B, WHOLE_B = -(-BK * BN // THREADS), BK * BN % THREADS == 0

    def register_tiled(alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        m, n = C.shape
        k = A.shape[1]
        x = uint32(cuda.threadIdx.x)  # unsigned: an index that may be negative costs more
        y = uint32(cuda.threadIdx.y)
        t = y * ACROSS + x
        row = uint32(cuda.blockIdx.y) * BM
        col = uint32(cuda.blockIdx.x) * BN

        a = cuda.local.array(TM, float32)
        b = cuda.local.array(TN, float32)
        acc = cuda.local.array((TM, TN), float32)
        for i in range(TM):
            for j in range(TN):
                acc[i, j] = float32(0)

        for start in range(0, k, BK):
            # Thread t copies elements t, t + THREADS, … of each tile, in the order of memory.
            for turn in range(TURNS_A):
                e = t + uint32(turn * THREADS)
                if WHOLE_A or e < BM * BK:
                    i, p = e // BK, e % BK
                    inside = row + i < m and start + p < k
                    As[i, p] = A[row + i, start + p] if inside else float32(0)
            for turn in range(TURNS_B):
                e = t + uint32(turn * THREADS)
                if WHOLE_B or e < BK * BN:
                    p, j = e // BN, e % BN
                    inside = start + p < k and col + j < n
                    Bs[p, j] = B[start + p, col + j] if inside else float32(0)
            cuda.syncthreads()

            for p in range(BK):
                for i in range(TM):
                    a[i] = As[y + i * DOWN, p]
                for j in range(TN):
                    b[j] = Bs[p, x + j * ACROSS]
                for i in range(TM):
                    for j in range(TN):
                        acc[i, j] += a[i] * b[j]
            cuda.syncthreads()

        for i in range(TM):
            for j in range(TN):
                r, c = row + y + i * DOWN, col + x + j * ACROSS
                if r < m and c < n:
                    if beta == 0:
                        C[r, c] = alpha * acc[i, j]
                    else:
                        C[r, c] = alpha * acc[i, j] + beta * C[r, c]

    return register_tiled


def shared_bytes(problem: Gemm, tiling: Tiling) -> int:
    """As, BM×BK, and Bs, BK×BN float32 [B]."""
    bm, bn, bk = tiling.block
    return FLOAT * (bm * bk + bk * bn)


def work(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """For each p a thread loads tm words of As and tn of Bs, which feed tm·tn FMAs."""
    (bm, bn, bk), (tm, tn) = tiling.block, tiling.thread
    down, across = bm // tm, bn // tn
    rows, cols = range(0, bm, down), range(0, bn, across)
    a, b = traffic.in_turn(tiling.threads, bm, bk), traffic.in_turn(tiling.threads, bk, bn)
    threads = traffic.plane(across, down)
    of_a = threads.row_alone().repeated(rows, range(bk))
    of_b = threads.col_alone().repeated(range(bk), cols)
    each_step = (
        traffic.shared_access("store", FLOAT, a, bk),
        traffic.shared_access("store", FLOAT, b, bn),
        traffic.shared_access("load", FLOAT, of_a, bk),
        traffic.shared_access("load", FLOAT, of_b, bn),
    )
    steps = tiling.steps(problem)
    return traffic.staged(
        problem,
        tiling,
        copies=traffic.copied(problem, tiling, a, b),
        shared=[(steps, each) for each in each_step],
        update=traffic.update_c(problem, tiling, threads.repeated(rows, cols)),
        barriers=2 * steps,
        round_trips=steps,
    )


def check(tiling: Tiling) -> None:
    """Raise ValueError for stages and warp tiles, which this kernel does not have."""
    if tiling.stages != 1 or tiling.warp is not None:
        raise ValueError(
            f"tiling {tiling} does not fit the register-tiled kernel, which has one stage and no "
            "warp tiles, such as Tiling(block=(128, 128, 8), thread=(8, 8))"
        )


register_tiled = Kernel(
    name="register_tiled",
    idea="a tile of C in each thread's registers",
    default=Tiling(block=(128, 128, 8), thread=(8, 8)),
    build=build,
    configure=threads_in_a_plane,
    work=work,
    check=check,
    shared_bytes=shared_bytes,
    tilings=tuple(
        Tiling(block=(16 * tm, 16 * tn, 8), thread=(tm, tn))
        for tm, tn in ((1, 1), (2, 2), (4, 4), (8, 4), (8, 8))
    ),
)
