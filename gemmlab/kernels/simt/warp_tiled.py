"""Rung 6, warp tiled: a warp computes one compact tile of C.

One change: which elements of C a thread computes. In the rung below, a warp's 32 threads stand in
two rows of 16. Here they stand in a rectangle that is as square as may be, numbered two down, then
across: the eight threads that one wavefront of shared memory serves stand in two rows of four and
share words of both operands. A load of Bs then takes two wavefronts instead of four, and thread
tiles can grow. The copies take care of every layout of the operands. Counter to watch: shared load
wavefronts, half as many.
"""

from collections.abc import Callable, Mapping

from numpy import float32

from gemmlab import Tiling
from gemmlab.kernels.kernel import Kernel, check_fit, on_device, threads_in_a_row
from gemmlab.kernels.simt.shared import tile_copies, vector_access, warp_tiles
from gemmlab.kernels.simt.shared.vector_access import fragment_loads, tile_shapes, updating
from gemmlab.kernels.simt.shared.warp_tiles import COMPUTABLE, loading, multiplying
from gemmlab.model import traffic
from gemmlab.problem import LAYOUTS, Gemm
from gemmlab.simt import cuda


def build(tiling: Tiling, layout: str = "nn", aligned: bool = True) -> Callable:
    """Return the kernel as a plain Numba-CUDA function, with all tile sizes frozen into it.

    layout : which operands are stored transposed, see `Gemm.layout`
    aligned : the rows of A, B and C begin at multiples of 16 bytes
    """
    BM, BN, BK = tiling.block
    TM, TN = tiling.thread
    DOWN, ACROSS = warp_tiles.apart(tiling)  # from each of a thread's groups of four to its next
    K_AXIS = 1 if layout[0] == "n" else 0  # of A
    A_SHAPE, B_SHAPE = tile_shapes(tiling, layout)

    first = on_device(warp_tiles.first_element(tiling))
    begin_a, end_a = tile_copies.copying(tiling, BM, layout[0] == "n", aligned)
    begin_b, end_b = tile_copies.copying(tiling, BN, layout[1] == "t", aligned)
    PART_A, PART_B = tile_copies.elements_held(tiling, BM), tile_copies.elements_held(tiling, BN)
    load, multiply, update_tile = loading(tiling), multiplying(tiling), updating(aligned, TM, TN)

    def warp_tiled(alpha, A, B, beta, C):
        As = cuda.shared.array(A_SHAPE, float32, alignment=16)
        Bs = cuda.shared.array(B_SHAPE, float32, alignment=16)
        row = cuda.blockIdx.y * BM
        col = cuda.blockIdx.x * BN
        i, j = first(cuda.threadIdx.x)  # this thread's groups begin at As[p, i] and Bs[p, j]

        a = cuda.local.array(TM, float32)
        b = cuda.local.array(TN, float32)
        acc = cuda.local.array((TM, TN), float32)
        part_a = cuda.local.array(PART_A, float32)
        part_b = cuda.local.array(PART_B, float32)
        for r in range(TM):
            for c in range(TN):
                acc[r, c] = float32(0)

        for start in range(0, A.shape[K_AXIS], BK):
            begin_a(As, 0, A, row, start, part_a)
            begin_b(Bs, 0, B, col, start, part_b)
            end_a(As, 0, part_a)
            end_b(Bs, 0, part_b)
            cuda.syncthreads()
            for p in range(BK):
                load(As, Bs, p, i, j, a, b)
                multiply(a, b, acc)
            cuda.syncthreads()

        update_tile(C, row + i, col + j, DOWN, ACROSS, alpha, acc, beta)

    return warp_tiled


def variant(problem: Gemm, capability: tuple[int, int] | None) -> Mapping[str, object]:
    """Keyword arguments of `build` for a problem."""
    return {"layout": problem.layout, "aligned": tile_copies.aligned_by_fours(problem)}


def work(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """For each p a thread loads tm/4 groups of As and tn/4 of Bs, which feed tm·tn FMAs."""
    steps, bk = tiling.steps(problem), tiling.block[2]
    (_, words_a), (_, words_b) = tile_shapes(tiling, problem.layout)
    first, aligned = warp_tiles.first_elements(tiling), tile_copies.aligned_by_fours(problem)
    loads, stores = tile_copies.copied(problem, tiling)
    fragments = fragment_loads(tiling, (words_a, words_b), first, warp_tiles.apart(tiling))
    return traffic.staged(
        problem,
        tiling,
        copies=loads,
        shared=[(steps, each) for each in stores] + [(steps * bk, each) for each in fragments],
        update=vector_access.update_c(problem, tiling, first, warp_tiles.apart(tiling), aligned),
        barriers=2 * steps,
        round_trips=steps,
    )


def check(tiling: Tiling) -> None:
    """Raise ValueError for a tiling that warps and copies cannot be made of."""
    check_fit(
        warp_tiles.computable(tiling) and tile_copies.copyable(tiling) and tiling.stages == 1,
        tiling,
        f"the warp-tiled kernel, which needs {COMPUTABLE}, one stage, and {tile_copies.COPYABLE}",
        DEFAULT,
    )


DEFAULT = Tiling(block=(128, 128, 16), warp=(64, 64), thread=(16, 8))

warp_tiled = Kernel(
    name="warp_tiled",
    idea="a compact tile of C for each warp",
    default=DEFAULT,
    build=build,
    configure=threads_in_a_row,
    work=work,
    check=check,
    shared_bytes=vector_access.shared_bytes,
    variant=variant,
    tilings=(
        DEFAULT,
        Tiling(block=(128, 128, 16), warp=(64, 32), thread=(8, 8)),
        Tiling(block=(128, 64, 16), warp=(32, 32), thread=(8, 4)),
    ),
    layouts=LAYOUTS,
)
