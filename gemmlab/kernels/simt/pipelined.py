"""Rung 7, pipelined: what a step needs is fetched during the steps before it, so nobody waits.

The same idea on two levels. Tiles of A and B are copied asynchronously, `stages` - 1 ahead of the
arithmetic, into a ring in shared memory, so that one barrier a tile is enough. And each thread
reads the fragments of the next step along k while it multiplies those of this one. Counter to
watch: barriers, half as many; and the time, for little else is left to fall.
"""

from collections.abc import Callable, Mapping

from numpy import float32

from gemmlab import Tiling
from gemmlab.instructions import cp_async_commit, cp_async_wait, shared_view
from gemmlab.kernels.kernel import FLOAT, Kernel, check_fit, on_device, threads_in_a_row
from gemmlab.kernels.simt.shared import tile_copies, vector_access, warp_tiles
from gemmlab.kernels.simt.shared.vector_access import fragment_loads, tile_shapes, updating
from gemmlab.kernels.simt.shared.warp_tiles import apart, loading, multiplying
from gemmlab.model import traffic
from gemmlab.problem import LAYOUTS, Gemm
from gemmlab.simt import cuda


def build(
    tiling: Tiling, layout: str = "nn", aligned: bool = True, asynchronous: bool = True
) -> Callable:
    """Return the kernel as a plain Numba-CUDA function, with all tile sizes frozen into it.

    layout : which operands are stored transposed, see `Gemm.layout`
    aligned : all rows that move by fours begin at multiples of 16 bytes
    asynchronous : the GPU has `cp.async`; else threads carry the tiles through registers
    """
    BM, BN, BK = tiling.block
    TM, TN = tiling.thread
    DOWN, ACROSS = apart(tiling)  # from each of a thread's groups of four to its next
    ROWS = tiling.stages * BK  # of the rings
    AHEAD = ROWS - BK  # rows between what is multiplied and what is copied
    K_AXIS = 1 if layout[0] == "n" else 0  # of A
    A_SHAPE, B_SHAPE = tile_shapes(tiling, layout)
    A_BYTES = FLOAT * A_SHAPE[0] * A_SHAPE[1]
    PART_A, PART_B = tile_copies.elements_held(tiling, BM), tile_copies.elements_held(tiling, BN)
    PENDING = tiling.stages - 2  # batches of copies that need not have arrived

    first = on_device(warp_tiles.first_element(tiling))
    begin_a, end_a = tile_copies.copying(tiling, BM, layout[0] == "n", aligned, asynchronous)
    begin_b, end_b = tile_copies.copying(tiling, BN, layout[1] == "t", aligned, asynchronous)
    load, multiply, update_tile = loading(tiling), multiplying(tiling), updating(aligned, TM, TN)

    @on_device
    def commit():
        """Make a batch of the copies that began."""
        if asynchronous:
            cp_async_commit()

    @on_device
    def wait():
        if asynchronous:
            cp_async_wait(PENDING)

    @on_device
    def no_steps(As, Bs, q, i, j, a, b, next_a, next_b, acc):
        pass

    def steps(count):
        """A device function of `count` steps along k from row q on, `count` even.

        Each step loads the fragments of the next row, then multiplies its own. Nesting writes them
        out: Numba unrolls short loops alone, and has no word such as `#pragma unroll`.
        """
        others = steps(count - 2) if count > 2 else no_steps

        @on_device
        def walk(As, Bs, q, i, j, a, b, next_a, next_b, acc):
            load(As, Bs, q + 1, i, j, next_a, next_b)
            multiply(a, b, acc)
            load(As, Bs, q + 2, i, j, a, b)
            multiply(next_a, next_b, acc)
            others(As, Bs, q + 2, i, j, a, b, next_a, next_b, acc)

        return walk

    two_steps, all_but_four = steps(2), steps(BK - 4)

    def pipelined(alpha, A, B, beta, C):
        As = shared_view(A_SHAPE, float32, 0)
        Bs = shared_view(B_SHAPE, float32, A_BYTES)
        k = A.shape[K_AXIS]
        row = cuda.blockIdx.y * BM
        col = cuda.blockIdx.x * BN
        i, j = first(cuda.threadIdx.x)  # this thread's groups begin at As[q, i] and Bs[q, j]

        a = cuda.local.array(TM, float32)
        b = cuda.local.array(TN, float32)
        next_a = cuda.local.array(TM, float32)
        next_b = cuda.local.array(TN, float32)
        part_a = cuda.local.array(PART_A, float32)
        part_b = cuda.local.array(PART_B, float32)
        acc = cuda.local.array((TM, TN), float32)
        for r in range(TM):
            for c in range(TN):
                acc[r, c] = float32(0)

        for q in range(0, AHEAD, BK):
            begin_a(As, q, A, row, q, part_a)
            begin_b(Bs, q, B, col, q, part_b)
            commit()
            end_a(As, q, part_a)
            end_b(Bs, q, part_b)
        wait()
        cuda.syncthreads()
        load(As, Bs, 0, i, j, a, b)

        p = 0  # of k: where this tile begins
        q = 0  # of the rings: the row that holds p
        while p < k:
            fill = q - BK if q > 0 else AHEAD  # the tile before, which nobody reads any more
            load(As, Bs, q + 1, i, j, next_a, next_b)
            multiply(a, b, acc)
            begin_a(As, fill, A, row, p + AHEAD, part_a)
            two_steps(As, Bs, q + 1, i, j, next_a, next_b, a, b, acc)
            begin_b(Bs, fill, B, col, p + AHEAD, part_b)
            commit()
            all_but_four(As, Bs, q + 3, i, j, next_a, next_b, a, b, acc)
            end_a(As, fill, part_a)
            end_b(Bs, fill, part_b)
            # One step is left, whose fragments are in registers: the tile may be given up.
            p += BK
            q = q + BK if q < AHEAD else 0
            wait()
            cuda.syncthreads()
            load(As, Bs, q, i, j, a, b)
            multiply(next_a, next_b, acc)

        update_tile(C, row + i, col + j, DOWN, ACROSS, alpha, acc, beta)

    return pipelined


def variant(problem: Gemm, capability: tuple[int, int] | None) -> Mapping[str, object]:
    """Keyword arguments of `build` for a problem and a GPU."""
    asynchronous = capability is None or capability >= (8, 0)
    return {
        "layout": problem.layout,
        "aligned": tile_copies.aligned_by_fours(problem, asynchronous),
        "asynchronous": asynchronous,
    }


def work(problem: Gemm, tiling: Tiling, capability: tuple[int, int] | None = None) -> traffic.Work:
    """Return the traffic of *warp_tiled* by other lanes, with half the barriers.

    ⌈k/bk⌉ + stages - 1 tiles are copied, those beyond k as zeros that nothing is loaded for. A
    thread loads its fragments of each of the ⌈k/bk⌉·bk rows, and of one more that it does not use.
    Memory answers `stages` - 1 tiles in one round trip.
    """
    frozen = variant(problem, capability)
    steps, ahead = tiling.steps(problem), tiling.stages - 1
    (_, words_a), (_, words_b) = tile_shapes(tiling, problem.layout)
    first, rows = warp_tiles.first_elements(tiling), steps * tiling.block[2] + 1
    loads, stores = tile_copies.copied(problem, tiling, frozen["asynchronous"])
    fragments = fragment_loads(tiling, (words_a, words_b), first, apart(tiling))
    return traffic.staged(
        problem,
        tiling,
        copies=loads,
        shared=[(steps + ahead, each) for each in stores] + [(rows, each) for each in fragments],
        update=vector_access.update_c(problem, tiling, first, apart(tiling), frozen["aligned"]),
        barriers=steps + 1,
        round_trips=-(-steps // ahead),
    )


def check(tiling: Tiling) -> None:
    """Raise ValueError for a tiling that warps, copies and rings cannot be made of."""
    check_fit(
        warp_tiles.computable(tiling) and tile_copies.copyable(tiling) and tiling.stages >= 2,
        tiling,
        f"the pipelined kernel, which needs {warp_tiles.COMPUTABLE}, two stages or more, and "
        f"{tile_copies.COPYABLE}",
        DEFAULT,
    )


DEFAULT = Tiling(block=(128, 256, 16), warp=(64, 64), thread=(16, 8), stages=3)

pipelined = Kernel(
    name="pipelined",
    idea="copied and read ahead of the arithmetic",
    default=DEFAULT,
    build=build,
    configure=threads_in_a_row,
    work=work,
    check=check,
    shared_bytes=vector_access.shared_bytes,
    dynamic=True,
    variant=variant,
    tilings=(
        DEFAULT,
        Tiling(block=(128, 256, 8), warp=(64, 64), thread=(16, 8), stages=4),
        Tiling(block=(128, 128, 8), warp=(64, 32), thread=(8, 8), stages=3),
        Tiling(block=(64, 64, 16), warp=(32, 32), thread=(8, 4), stages=3),
    ),
    layouts=LAYOUTS,
)
