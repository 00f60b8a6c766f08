"""A block's tile of sums over a part of k on Tensor Cores: the loop of *mma_pipelined* over it.

Parts begin and end between tiles along k. What is copied ahead ends with the part: beyond it,
zeros are stored and nothing is loaded.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from numpy import float16, int32, uint16, uint32

from gemmlab import Gemm, Tiling
from gemmlab.instructions import cp_async_commit, cp_async_wait, shared_view
from gemmlab.kernels.kernel import FLOAT, on_device
from gemmlab.kernels.split_k.shared.mainloop import BEYOND
from gemmlab.kernels.tensor_core.shared import shared_layouts, warp_mma
from gemmlab.kernels.tensor_core.shared.shared_layouts import copying
from gemmlab.kernels.tensor_core.shared.warp_mma import STEP
from gemmlab.model import traffic
from gemmlab.simt import cuda


def summing(tiling: Tiling, layout: str, aligned: bool, dtype: str) -> Callable:
    """Give the device function (A, B, row, col, i, j, begin, end, acc): acc ← Σ of A·B over p of k.

    The tile of C begins at C[row, col], the warp's at i and j in it, and p goes from `begin` to
    `end`, multiples of bk; an `end` beyond k stands for k.
    """
    BM, BN, BK = tiling.block
    WM, WN = tiling.warp
    STAGES, AHEAD = tiling.stages, tiling.stages - 1  # AHEAD: of what is multiplied, in tiles
    PENDING = AHEAD - 1  # batches of copies that need not have arrived
    ALONG_A, ALONG_B = layout[0] == "n", layout[1] == "t"  # rows of the stored tile run along k
    A_TILE, B_TILE = shared_layouts.tile_shapes(tiling, layout)
    A_SIZE, B_SIZE = BM * BK, BN * BK
    A_RING, B_RING = (STAGES * A_SIZE,), (STAGES * B_SIZE,)
    A_BYTES = shared_layouts.BYTES * STAGES * A_SIZE
    ELEMENT = float16 if dtype == "float16" else uint16
    A_WORDS, B_WORDS, _ = warp_mma.fragment_shapes(tiling)

    place_a, place_b = shared_layouts.swizzled(A_TILE[1]), shared_layouts.swizzled(B_TILE[1])
    first_a, copy_a = copying(tiling, A_TILE, place_a, aligned, dtype, asynchronous=True)
    first_b, copy_b = copying(tiling, B_TILE, place_b, aligned, dtype, asynchronous=True)
    start_a, load_a = warp_mma.loading(WM, A_TILE[1], ALONG_A, True, place_a)
    start_b, load_b = warp_mma.loading(WN, B_TILE[1], ALONG_B, False, place_b)
    clear, multiply = warp_mma.clearing(tiling), warp_mma.multiplying(tiling, dtype)

    @on_device
    def copy(As, Bs, to_a, to_b, slot, A, B, row, col, p, end):
        """Begin to copy the tiles from p of k on to a slot of the rings; zeros beyond the part."""
        p = int32(p) if p < end else int32(BEYOND)
        copy_a(As, to_a + slot * A_SIZE, A, row if ALONG_A else p, p if ALONG_A else row, 0)
        copy_b(Bs, to_b + slot * B_SIZE, B, col if ALONG_B else p, p if ALONG_B else col, 0)
        cp_async_commit()

    @on_device
    def sum_part(A, B, row, col, i, j, begin, end, acc):
        As = shared_view(A_RING, ELEMENT, 0)
        Bs = shared_view(B_RING, ELEMENT, A_BYTES)
        a = cuda.local.array(A_WORDS, uint32)
        b = cuda.local.array(B_WORDS, uint32)
        clear(acc)

        to_a, to_b = first_a(), first_b()  # where this thread copies to
        from_a, from_b = start_a(i), start_b(j)  # where this lane points
        for tile in range(AHEAD):
            copy(As, Bs, to_a, to_b, tile, A, B, row, col, begin + tile * BK, end)

        slot = 0  # of the rings: the one that is multiplied
        for p in range(begin, end, BK):
            cp_async_wait(PENDING)
            cuda.syncthreads()
            before = slot - 1 if slot > 0 else AHEAD  # the slot that was multiplied before
            copy(As, Bs, to_a, to_b, before, A, B, row, col, p + AHEAD * BK, end)
            for s in range(BK // STEP):
                load_a(As, from_a + slot * A_SIZE, s, a)
                load_b(Bs, from_b + slot * B_SIZE, s, b)
                multiply(a, b, acc)
            slot = slot + 1 if slot < AHEAD else 0

    return sum_part


# ------------------------------------------------------------------------------------- their counts


def summed(
    problem: Gemm, tiling: Tiling, parts: int, longest: int, update: Counter[str], barriers: int = 0
) -> traffic.Work:
    """Return the work of all tiles along k, in `parts` that each fill the rings anew.

    longest : steps of the longest part; update : what is done with the sums, over the whole grid
    barriers : further ones
    """
    (across, down), bk = tiling.grid(problem), tiling.block[2]
    steps, ahead = across * down * tiling.steps(problem), tiling.stages - 1
    loads, stores = shared_layouts.copied(problem, tiling, shared_layouts.swizzled)
    work = traffic.staged(
        problem,
        tiling,
        copies=loads,
        shared=[
            *((steps + ahead * parts, each) for each in stores),
            (steps * bk // STEP, warp_mma.fragment_loads(problem, tiling, shared_layouts.swizzled)),
        ],
        update=update,
        barriers=steps + barriers,
        round_trips=-(-longest // ahead),
        flops=warp_mma.flops(problem, tiling),
        blocks=1,  # everything above is of the whole grid
    )
    return replace(work, chain=(work.chain[0], longest * bk))


def stored(tiling: Tiling, tiles: int) -> Counter[str]:
    """Stores of so many tiles of sums to a workspace, by pairs."""
    (bm, bn, _), sums = tiling.block, warp_mma.pairs_of_sums(tiling)
    offset = sums.row * bn + sums.col
    return traffic.global_access(
        "store", FLOAT, sums, offset, [(0, bm, tiles)], [(0, bn, 1)], wide=2
    )
