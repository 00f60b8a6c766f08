"""Rung 6, warp tiled: a warp computes one compact tile of C.

One change: which elements of C a thread computes. In the rung below, a warp's 32 threads stand in
two rows of 16, and read 2 groups of As and 16 of Bs; here they stand in a rectangle, as square as
may be, so that they read fewer words, each sent to more lanes, and have room for larger thread
tiles. Counter to watch: shared load wavefronts.
"""

from __future__ import annotations

from collections.abc import Callable

from numpy import float32, uint32

from gemmlab import cuda
from gemmlab.instructions import load_v4
from gemmlab.kernels.kernel import Kernel, on_device, threads_in_a_row
from gemmlab.kernels.simt import fours
from gemmlab.kernels.simt.fours import tile_shapes, updating
from gemmlab.kernels.simt.vectorised import copied, copying, variant
from gemmlab.kernels.simt.warp_tiles import apart, first_element, first_elements
from gemmlab.model import traffic
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling


def build(tiling: Tiling, aligned: bool = True) -> Callable:
    """The kernel as a plain Numba-CUDA function, with all tile sizes frozen into it.

    aligned : the rows of A, B and C begin at multiples of 16 bytes, as 128-bit accesses ask
    """
    BM, BN, BK = tiling.block
    TM, TN = tiling.thread
    DOWN, ACROSS = apart(tiling)  # from each of a thread's groups of four to its next
    A_SHAPE, B_SHAPE = tile_shapes(tiling)

    first = on_device(first_element(tiling))
    copy_tiles, update_tile = copying(tiling, aligned), updating(aligned, TM, TN)

    def warp_tiled(alpha, A, B, beta, C):
        As = cuda.shared.array(A_SHAPE, float32, alignment=16)
        Bs = cuda.shared.array(B_SHAPE, float32, alignment=16)
        t = uint32(cuda.threadIdx.x)
        row = uint32(cuda.blockIdx.y) * BM
        col = uint32(cuda.blockIdx.x) * BN
        i, j = first(t)

        a = cuda.local.array(TM, float32)
        b = cuda.local.array(TN, float32)
        acc = cuda.local.array((TM, TN), float32)
        for r in range(TM):
            for c in range(TN):
                acc[r, c] = float32(0)

        for start in range(0, A.shape[1], BK):
            copy_tiles(As, Bs, t, A, row, B, col, start)
            cuda.syncthreads()
            for p in range(BK):
                for r in range(0, TM, 4):
                    a[r], a[r + 1], a[r + 2], a[r + 3] = load_v4(As, p, i + r // 4 * DOWN)
                for c in range(0, TN, 4):
                    b[c], b[c + 1], b[c + 2], b[c + 3] = load_v4(Bs, p, j + c // 4 * ACROSS)
                for r in range(TM):
                    for c in range(TN):
                        acc[r, c] += a[r] * b[c]
            cuda.syncthreads()

        update_tile(C, row + i, col + j, DOWN, ACROSS, alpha, acc, beta)

    return warp_tiled


def work(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """The copies of *vectorised*; for each p a thread loads its groups of As and of Bs."""
    aligned, steps, bk = (
        variant(problem, None)["aligned"], tiling.steps(problem), tiling.block[2]
    )  # fmt: skip
    (_, words_a), (_, words_b) = tile_shapes(tiling)
    first = first_elements(tiling)
    copies, stores = copied(problem, tiling, aligned)
    loads = fours.fragment_loads(tiling, (words_a, words_b), first, apart(tiling))
    return traffic.staged(
        problem,
        tiling,
        copies=copies,
        shared=[(steps, each) for each in stores] + [(steps * bk, each) for each in loads],
        update=fours.update_c(problem, tiling, first, apart(tiling), aligned),
        barriers=2 * steps,
        round_trips=steps,
    )


def check(tiling: Tiling) -> None:
    """Raise ValueError for a tiling that warps two threads high, or groups, cannot be made of."""
    sizes = (*tiling.thread, tiling.block[2])
    if (
        tiling.warp is None
        or tiling.warp_lanes[0] % 2
        or tiling.stages != 1
        or any(size % 4 for size in sizes)
    ):
        raise ValueError(
            f"tiling {tiling} does not fit the warp-tiled kernel, which needs warp tiles two or "
            "more threads high, thread tiles and steps along k that are multiples of 4, and one "
            f"stage, such as {DEFAULT!r}"
        )


DEFAULT = Tiling(block=(128, 128, 8), warp=(64, 32), thread=(8, 8))

warp_tiled = Kernel(
    name="warp_tiled",
    idea="a compact tile of C for each warp",
    default=DEFAULT,
    build=build,
    launch=threads_in_a_row,
    work=work,
    check=check,
    shared_bytes=fours.shared_bytes,
    variant=variant,
    tilings=(
        DEFAULT,
        Tiling(block=(128, 128, 8), warp=(64, 64), thread=(16, 8)),
        Tiling(block=(128, 64, 8), warp=(32, 32), thread=(8, 4)),
        Tiling(block=(64, 64, 8), warp=(32, 16), thread=(4, 4)),
    ),
)
