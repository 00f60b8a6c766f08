"""*tcec_split* for many products of one shape, with scaled parts: what `gemmlab.matmul` launches.

The parts of all matrices of A lie below each other in one stack, and so do those of B: one tensor
map is enough, and the number of a tile says which product it is of. Where a tile of A or B goes
beyond its matrix it holds rows of the next one, and these count for elements outside of C alone,
because k is filled with zeros. `back_a` and `back_b` undo the scales of rows and columns
(`scaling`) where C is stored.
"""

from __future__ import annotations

from collections.abc import Callable

from numpy import float16, float32, uint32, uint64

from gemmlab.instructions import (
    WGMMA,
    WGMMA_WAIT,
    fence_mbarrier_init,
    fence_tensor_map,
    mbarrier_arrive,
    mbarrier_arrive_expect,
    mbarrier_init,
    mbarrier_wait,
    setmaxnreg_dec,
    setmaxnreg_inc,
    shared_view,
    wgmma_commit,
    wgmma_fence,
)
from gemmlab.instructions.tensor_maps import ROW
from gemmlab.instructions.warpgroup import ROWS, WARPGROUP
from gemmlab.kernels.kernel import Dim, on_device
from gemmlab.kernels.tcec.halves import PARTS, PIECE
from gemmlab.kernels.tcec.held import adding, clearing, joining
from gemmlab.kernels.tcec.stage_products import stage_products
from gemmlab.kernels.tensor_core.bands import corners, staying
from gemmlab.kernels.tensor_core.boxes import DEPTH, WORD, along_k, copying, shape
from gemmlab.kernels.tensor_core.ring import multiplying_16, turning
from gemmlab.kernels.tensor_core.warp_specialised import FEW, MANY, threads
from gemmlab.kernels.tensor_core.warps import two_of
from gemmlab.simt import cuda
from gemmlab.tiling import WARP, Tiling


def build(tiling: Tiling, layout: str, paired: bool) -> Callable:
    """The kernel (C, k, the maps of the parts of A and B, their rows a matrix, back_a, back_b).

    layout : which operands are stored transposed, see `Gemm.layout`
    paired : rows of C (batch, m, n) are contiguous and have an even number of elements
    """
    BM, BN, BK = tiling.block
    STAGES = tiling.stages
    CONSUMERS = BM // ROWS
    PRODUCER = CONSUMERS * WARPGROUP  # the first thread behind the consumers
    A_BYTES, B_BYTES = BM * ROW, BN * ROW  # of one part, in a stage
    STAGE_BYTES = PARTS * (A_BYTES + B_BYTES)
    FROM_A_LOW, FROM_B = STAGES * A_BYTES, PARTS * STAGES * A_BYTES
    FROM_B_LOW, TILES = FROM_B + STAGES * B_BYTES, STAGES * STAGE_BYTES
    HELD = BN // 2  # elements of C that a thread of a consumer has
    A_ALONG, B_ALONG = along_k(layout)
    A_SHAPE, B_SHAPE = (STAGES, *shape(BM, A_ALONG)), (STAGES, *shape(BN, B_ALONG))
    wgmma, wgmma_wait = WGMMA[BN, layout], WGMMA_WAIT[BN]
    corner, (stage_of, parity_of) = corners(tiling), turning(STAGES)
    multiply, correct = stage_products(multiplying_16(wgmma, layout))
    copy_a, copy_b = copying_from(BM, A_ALONG), copying_from(BN, B_ALONG)
    clear, add, join = clearing(HELD), adding(HELD), joining(HELD)
    store = storing(BN, paired)

    def tcec_batched(C, k, to_Ah, to_Al, to_Bh, to_Bl, a_rows, b_rows, back_a, back_b):
        Ah, Al = shared_view(A_SHAPE, float16, 0), shared_view(A_SHAPE, float16, FROM_A_LOW)
        Bh, Bl = shared_view(B_SHAPE, float16, FROM_B), shared_view(B_SHAPE, float16, FROM_B_LOW)
        full = shared_view((STAGES,), uint64, TILES)
        empty = shared_view((STAGES,), uint64, TILES + STAGES * WORD)
        batch, m, n = C.shape
        each = (m + BM - 1) // BM * ((n + BN - 1) // BN)  # tiles of a product
        thread = cuda.threadIdx.x
        step = uint32(0)  # along k, over all tiles of this block

        if thread == 0:
            for stage in range(STAGES):
                mbarrier_init(full, stage, 1)
                mbarrier_init(empty, stage, CONSUMERS)
            fence_mbarrier_init()
        cuda.syncthreads()

        if thread >= PRODUCER:
            setmaxnreg_dec(FEW)
            if thread == PRODUCER:
                fence_tensor_map(to_Ah)
                fence_tensor_map(to_Al)
                fence_tensor_map(to_Bh)
                fence_tensor_map(to_Bl)
                for tile in range(cuda.blockIdx.x, batch * each, cuda.gridDim.x):
                    row, col = corner(tile % each, m, n)
                    a_top, b_top = tile // each * a_rows, tile // each * b_rows
                    for p in range(0, k, DEPTH):
                        stage = stage_of(step)
                        # What the stage had a turn ago; in the first turn this passes at once.
                        mbarrier_wait(empty, stage, parity_of(step) ^ uint32(1))
                        mbarrier_arrive_expect(full, stage, STAGE_BYTES)
                        copy_a(Ah, stage, to_Ah, a_top, row, p, full)
                        copy_b(Bh, stage, to_Bh, b_top, col, p, full)
                        copy_a(Al, stage, to_Al, a_top, row, p, full)
                        copy_b(Bl, stage, to_Bl, b_top, col, p, full)
                        step += uint32(1)
        else:
            setmaxnreg_inc(MANY)
            main, part = cuda.local.array(HELD, float32), cuda.local.array(HELD, float32)
            cross = cuda.local.array(HELD, float32)
            group = thread // WARPGROUP  # of 64 rows of the tile
            i = thread // WARP * 16 + thread % WARP // 4  # of the tile, this thread's first element
            j = thread % 4 * 2
            leads = thread % WARPGROUP == 0
            for tile in range(cuda.blockIdx.x, batch * each, cuda.gridDim.x):
                row, col = corner(tile % each, m, n)
                clear(main)
                for p in range(0, k, DEPTH):
                    stage = stage_of(step)
                    mbarrier_wait(full, stage, parity_of(step))
                    wgmma_fence()
                    multiply(part, Ah, Al, Bh, Bl, stage, group, p % BK > 0)
                    wgmma_commit()
                    correct(cross, Ah, Al, Bh, Bl, stage, group, p > 0)
                    wgmma_commit()
                    # Corrections go on, while what was begun before them is complete.
                    wgmma_wait(1, part)
                    if leads and p > 0:
                        mbarrier_arrive(empty, stage_of(step - uint32(1)))
                    if (p + DEPTH) % BK == 0 or p + DEPTH >= k:
                        add(main, part)
                    step += uint32(1)
                wgmma_wait(0, cross)
                if leads:
                    mbarrier_arrive(empty, stage_of(step - uint32(1)))
                join(main, cross)
                number = tile // each
                store(C[number], row + i, col + j, back_a[number], back_b[number], main)

    return tcec_batched


def copying_from(size: int, along: bool) -> Callable:
    """The device function that begins to copy a tile of the matrix whose rows begin at `top`."""
    copy = copying(size, along)

    @on_device
    def copy_from(tiles, stage, matrix, top, first, p, full):
        if along:
            copy(tiles, stage, matrix, top + first, p, full)
        else:
            copy(tiles, stage, matrix, first, top + p, full)

    return copy_from


def storing(columns: int, paired: bool) -> Callable:
    """The device function (C, row, col, back_a, back_b, acc) that stores a tile, unscaled."""
    _, write = two_of("float32", paired)

    @on_device
    def factor(back, line):
        return back[line] if line < back.shape[0] else float32(0)

    @on_device
    def nothing(C, row, col, above, below, back_b, acc):
        pass

    def stores(group):
        """The same from a group of eight columns on, with the factors of both rows."""
        others = stores(group + 1) if group + 1 < columns // 8 else nothing
        i, j = 4 * group, 8 * group

        @on_device
        def store(C, row, col, above, below, back_b, acc):
            left, right = factor(back_b, col + j), factor(back_b, col + j + 1)
            write(C, row, col + j, acc[i] * (above * left), acc[i + 1] * (above * right))
            write(C, row + 8, col + j, acc[i + 2] * (below * left), acc[i + 3] * (below * right))
            others(C, row, col, above, below, back_b, acc)

        return store

    store_all = stores(0)

    @on_device
    def store_tile(C, row, col, back_a, back_b, acc):
        store_all(C, row, col, factor(back_a, row), factor(back_a, row + 8), back_b, acc)

    return store_tile


def stack(rows: int, columns: int, along: bool) -> tuple[int, int]:
    """The shape of a matrix in a stack of parts: rows for the TMA, and k filled with zeros."""
    return rows if along else -(-rows // DEPTH) * DEPTH, -(-columns // PIECE) * PIECE


def boxes(tiling: Tiling, layout: str) -> tuple[int, int]:
    """Rows of the boxes of A and of B."""
    return tuple(
        size if along else DEPTH for size, along in zip(tiling.block, along_k(layout), strict=False)
    )


def launch(tiling: Tiling, batch: int, m: int, n: int) -> tuple[Dim, Dim]:
    """(grid, block): blocks that stay, for the tiles of all products."""
    bm, bn, _ = tiling.block
    return (staying(batch * -(-m // bm) * -(-n // bn)), 1), (threads(tiling), 1)
