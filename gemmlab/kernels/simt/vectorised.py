"""Rung 5, vectorised: four neighbours at a time, in a layout without bank conflicts.

Loads and stores move 128 bits a lane: a quarter of the instructions, the same bytes. For that, what
a thread needs must lie side by side. A's tile is therefore stored transposed, As[p, i], its rows
four words longer than the tile so that the transposing stores meet different banks; and a thread's
rows and columns come in groups of four neighbours. Counter to watch: shared load requests, down by
four; bank conflicts, none.
"""

from collections.abc import Callable, Mapping

from numpy import float32, uint32

from gemmlab import Gemm, Tiling
from gemmlab.instructions import load_v4, store_v4
from gemmlab.kernels.kernel import FLOAT, Kernel, threads_in_a_plane
from gemmlab.kernels.simt.shared import vector_access
from gemmlab.kernels.simt.shared.vector_access import FOUR, reading, tile_shapes, updating
from gemmlab.model import traffic
from gemmlab.simt import cuda


def build(tiling: Tiling, aligned: bool = True) -> Callable:
    """Return the kernel as a plain Numba-CUDA function, with all tile sizes frozen into it.

    aligned : the rows of A, B and C begin at multiples of 16 bytes, as 128-bit accesses ask
    """
    BM, BN, BK = tiling.block
    TM, TN = tiling.thread
    DOWN, ACROSS = BM // TM, BN // TN  # threads of a block
    THREADS = DOWN * ACROSS
    A_SHAPE, B_SHAPE = tile_shapes(tiling)
    A_FOURS, B_FOURS = BK // 4, BN // 4  # groups of four in a row of each tile

    read_four, update_tile = reading(aligned), updating(aligned, TM, TN)

    def vectorised(alpha, A, B, beta, C):
        As = cuda.shared.array(A_SHAPE, float32, alignment=16)
        Bs = cuda.shared.array(B_SHAPE, float32, alignment=16)
        x = uint32(cuda.threadIdx.x)
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

        for start in range(0, A.shape[1], BK):
            # Thread t copies groups t, t + THREADS, … of each tile, in the order of memory.
            e = t
            while e < BM * A_FOURS:
                i, p = e // A_FOURS, e % A_FOURS * 4
                v = read_four(A, row + i, start + p)
                As[p, i], As[p + 1, i], As[p + 2, i], As[p + 3, i] = v
                e += THREADS
            e = t
            while e < BK * B_FOURS:
                p, j = e // B_FOURS, e % B_FOURS * 4
                store_v4(Bs, p, j, read_four(B, start + p, col + j))
                e += THREADS
            cuda.syncthreads()

            for p in range(BK):
                for i in range(0, TM, 4):
                    a[i], a[i + 1], a[i + 2], a[i + 3] = load_v4(As, p, 4 * y + i * DOWN)
                for j in range(0, TN, 4):
                    b[j], b[j + 1], b[j + 2], b[j + 3] = load_v4(Bs, p, 4 * x + j * ACROSS)
                for i in range(TM):
                    for j in range(TN):
                        acc[i, j] += a[i] * b[j]
            cuda.syncthreads()

        update_tile(C, row + 4 * y, col + 4 * x, 4 * DOWN, 4 * ACROSS, alpha, acc, beta)

    return vectorised


def variant(problem: Gemm, capability: tuple[int, int] | None) -> Mapping[str, bool]:
    """Keyword arguments of `build`: whether rows of A (k long), B and C (n long) are aligned."""
    return {"aligned": problem.k % 4 == 0 and problem.n % 4 == 0}


def work(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """For each p a thread loads tm/4 groups of As and tn/4 of Bs, which feed tm·tn FMAs.

    A group of A is stored down a column of its transposed tile, word by word; one of B at once.
    """
    (bm, bn, bk), (tm, tn) = tiling.block, tiling.thread
    aligned, steps = variant(problem, None)["aligned"], tiling.steps(problem)
    (_, words_a), (_, words_b) = tile_shapes(tiling)
    a = traffic.in_turn(tiling.threads, bm, bk, FOUR)
    b = traffic.in_turn(tiling.threads, bk, bn, FOUR)
    (load_a, wide), (load_b, _) = vector_access.moved(a, aligned), vector_access.moved(b, aligned)
    stores = (
        traffic.shared_access("store", FLOAT, a.turned().repeated(range(FOUR), [0]), words_a),
        traffic.shared_access("store", FLOAT, b, words_b, FOUR),
    )
    threads = traffic.plane(bn // tn, bm // tm)
    first = traffic.Lanes(FOUR * threads.row, FOUR * threads.col, threads.valid)
    apart = FOUR * bm // tm, FOUR * bn // tn
    loads = vector_access.fragment_loads(tiling, (words_a, words_b), first, apart)
    return traffic.staged(
        problem,
        tiling,
        copies=traffic.copied(problem, tiling, load_a, load_b, wide, wide),
        shared=[(steps, each) for each in stores] + [(steps * bk, each) for each in loads],
        update=vector_access.update_c(problem, tiling, first, apart, aligned),
        barriers=2 * steps,
        round_trips=steps,
    )


def check(tiling: Tiling) -> None:
    """Raise ValueError for tiles that are not made of groups of four."""
    sizes = (*tiling.thread, tiling.block[2])
    if tiling.stages != 1 or tiling.warp is not None or any(size % 4 for size in sizes):
        raise ValueError(
            f"tiling {tiling} does not fit the vectorised kernel, which needs thread tiles and "
            "steps along k that are multiples of 4, one stage and no warp tiles, such as "
            "Tiling(block=(128, 128, 8), thread=(8, 8))"
        )


vectorised = Kernel(
    name="vectorised",
    idea="128 bits at a time, no bank conflicts",
    default=Tiling(block=(128, 128, 8), thread=(8, 8)),
    build=build,
    configure=threads_in_a_plane,
    work=work,
    check=check,
    shared_bytes=vector_access.shared_bytes,
    variant=variant,
    tilings=tuple(
        Tiling(block=(16 * tm, 16 * tn, 8), thread=(tm, tn)) for tm, tn in ((4, 4), (8, 4), (8, 8))
    ),
)
