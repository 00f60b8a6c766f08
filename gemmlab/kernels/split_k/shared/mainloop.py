"""A block's tile of sums over a part of k: the loop of *pipelined*, for every kernel that splits k.

Parts begin and end between tiles along k. What is copied ahead ends with the part: beyond it,
zeros are stored and nothing is loaded.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from numpy import float32, int32

from gemmlab import Gemm, Tiling
from gemmlab.instructions import cp_async_commit, cp_async_wait, shared_view
from gemmlab.kernels.kernel import FLOAT, on_device
from gemmlab.kernels.simt.pipelined import variant
from gemmlab.kernels.simt.shared import tile_copies, vector_access, warp_tiles
from gemmlab.model import traffic
from gemmlab.simt import cuda

BEYOND = 1 << 30  # of k: no matrix has elements there


def summing(tiling: Tiling, layout: str, aligned: bool, asynchronous: bool) -> Callable:
    """Give the device function (A, B, row, col, i, j, begin, end, acc): acc ← Σ of A·B over p of k.

    The tile of C begins at C[row, col], the thread's groups at i and j in it, and p goes from
    `begin` to `end`, multiples of bk; an `end` beyond k stands for k.
    """
    BM, BN, BK = tiling.block
    TM, TN = tiling.thread
    ROWS = tiling.stages * BK  # of the rings
    AHEAD = ROWS - BK  # rows between what is multiplied and what is copied
    A_SHAPE, B_SHAPE = vector_access.tile_shapes(tiling, layout)
    A_BYTES = FLOAT * A_SHAPE[0] * A_SHAPE[1]
    PART_A, PART_B = tile_copies.elements_held(tiling, BM), tile_copies.elements_held(tiling, BN)
    PENDING = tiling.stages - 2  # batches of copies that need not have arrived

    begin_a, end_a = tile_copies.copying(tiling, BM, layout[0] == "n", aligned, asynchronous)
    begin_b, end_b = tile_copies.copying(tiling, BN, layout[1] == "t", aligned, asynchronous)
    load, multiply = warp_tiles.loading(tiling), warp_tiles.multiplying(tiling)

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
        """A device function of `count` steps along k from row q on, `count` even."""
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

    @on_device
    def sum_part(A, B, row, col, i, j, begin, end, acc):
        As = shared_view(A_SHAPE, float32, 0)
        Bs = shared_view(B_SHAPE, float32, A_BYTES)
        a = cuda.local.array(TM, float32)
        b = cuda.local.array(TN, float32)
        next_a = cuda.local.array(TM, float32)
        next_b = cuda.local.array(TN, float32)
        part_a = cuda.local.array(PART_A, float32)
        part_b = cuda.local.array(PART_B, float32)
        for r in range(TM):
            for c in range(TN):
                acc[r, c] = float32(0)

        p, stop = int32(begin), int32(end)  # of k: where the tile begins that is multiplied next
        for q in range(0, AHEAD, BK):
            later = p + q if p + q < stop else BEYOND
            begin_a(As, q, A, row, later, part_a)
            begin_b(Bs, q, B, col, later, part_b)
            commit()
            end_a(As, q, part_a)
            end_b(Bs, q, part_b)
        wait()
        cuda.syncthreads()
        load(As, Bs, 0, i, j, a, b)

        q = 0  # of the rings: the row that holds p
        while p < stop:
            fill = q - BK if q > 0 else AHEAD  # the tile before, which nobody reads any more
            later = p + AHEAD if p + AHEAD < stop else BEYOND
            load(As, Bs, q + 1, i, j, next_a, next_b)
            multiply(a, b, acc)
            begin_a(As, fill, A, row, later, part_a)
            two_steps(As, Bs, q + 1, i, j, next_a, next_b, a, b, acc)
            begin_b(Bs, fill, B, col, later, part_b)
            commit()
            all_but_four(As, Bs, q + 3, i, j, next_a, next_b, a, b, acc)
            end_a(As, fill, part_a)
            end_b(Bs, fill, part_b)
            # One step is left, whose fragments are in registers: the tile may be given up.
            p = int32(p + BK)
            q = q + BK if q < AHEAD else 0
            wait()
            cuda.syncthreads()
            load(As, Bs, q, i, j, a, b)
            multiply(next_a, next_b, acc)

    return sum_part


# ------------------------------------------------------------------------------------- their counts


def summed(
    problem: Gemm,
    tiling: Tiling,
    parts: int,
    longest: int,
    update: Counter[str],
    capability: tuple[int, int] | None,
    barriers: int = 0,
) -> traffic.Work:
    """Return the work of all tiles along k, in `parts` that each fill the rings anew.

    longest : steps of the longest part; update : what is done with the sums, over the whole grid
    barriers : further ones
    """
    frozen = variant(problem, capability)
    (across, down), bk = tiling.grid(problem), tiling.block[2]
    steps, ahead = across * down * tiling.steps(problem), tiling.stages - 1
    (_, words_a), (_, words_b) = vector_access.tile_shapes(tiling, problem.layout)
    loads, stores = tile_copies.copied(problem, tiling, frozen["asynchronous"])
    fragments = vector_access.fragment_loads(
        tiling, (words_a, words_b), warp_tiles.first_elements(tiling), warp_tiles.apart(tiling)
    )
    rows = steps * bk + parts
    work = traffic.staged(
        problem,
        tiling,
        copies=loads,
        shared=[(steps + ahead * parts, each) for each in stores]
        + [(rows, each) for each in fragments],
        update=update,
        barriers=steps + parts + barriers,
        round_trips=-(-longest // ahead),
        blocks=1,  # everything above is of the whole grid
    )
    return replace(work, chain=(work.chain[0], longest * bk))
