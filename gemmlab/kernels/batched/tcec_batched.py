"""*tcec_split* for many products of one shape, with scaled parts: what `gemmlab.matmul` launches.

The parts of all matrices of A lie below each other in one stack, and so do those of B: one tensor
map is enough, and the number of a tile says which product it is of. Where a tile of A or B goes
beyond its matrix it holds rows of the next one, and these count for elements outside of C alone,
because k is filled with zeros. `back_a` and `back_b` undo the scales of rows and columns
(`scaling`) where C is stored.
"""

from collections.abc import Callable

from numpy import float16, float32, uint32, uint64

from gemmlab import Device
from gemmlab.instructions import (
    fence_mbarrier_init,
    fence_tensor_map,
    mbarrier_init,
    mbarrier_wait,
    setmaxnreg_dec,
    setmaxnreg_inc,
    shared_view,
)
from gemmlab.instructions.warpgroup import ROWS, WARPGROUP
from gemmlab.kernels.kernel import Dim, on_device, resident
from gemmlab.kernels.tcec.shared.split_operands import PIECE, copying_parts, rings
from gemmlab.kernels.tcec.shared.warpgroup_tiles import multiplying_tiles
from gemmlab.kernels.tensor_core.shared import tma_tiles, warp_mma
from gemmlab.kernels.tensor_core.shared.rasterisation import corners
from gemmlab.kernels.tensor_core.shared.tma_tiles import DEPTH, WORD, copying, shape
from gemmlab.kernels.tensor_core.warp_specialised import FEW, MANY, threads
from gemmlab.simt import cuda
from gemmlab.tiling import WARP, Tiling


def build(tiling: Tiling, layout: str, paired: bool) -> Callable:
    """The kernel (C, k, the maps of the parts of A and B, their rows a matrix, back_a, back_b).

    layout : which operands are stored transposed, see `Gemm.layout`
    paired : rows of C (batch, m, n) are contiguous and have an even number of elements
    """
    BM, BN, _ = tiling.block
    STAGES = tiling.stages
    CONSUMERS = BM // ROWS
    PRODUCER = CONSUMERS * WARPGROUP  # the first thread behind the consumers
    OF_AH, OF_AL, OF_BH, OF_BL, TILES = rings(tiling)
    HELD = BN // 2  # elements of C that a thread of a consumer has
    A_ALONG, B_ALONG = tma_tiles.along_k(layout)
    A_SHAPE, B_SHAPE = (STAGES, *shape(BM, A_ALONG)), (STAGES, *shape(BN, B_ALONG))
    corner, (stage_of, parity_of) = corners(tiling), tma_tiles.turning(STAGES)
    copy = copying_parts(tiling, copying(BM, A_ALONG), copying(BN, B_ALONG))
    multiply_tile, store = multiplying_tiles(tiling, layout), storing(BN, paired)

    def tcec_batched(C, k, to_Ah, to_Al, to_Bh, to_Bl, a_rows, b_rows, back_a, back_b):
        Ah, Al = shared_view(A_SHAPE, float16, OF_AH), shared_view(A_SHAPE, float16, OF_AL)
        Bh, Bl = shared_view(B_SHAPE, float16, OF_BH), shared_view(B_SHAPE, float16, OF_BL)
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
                    # Where its matrices begin in the stacks, across k or along it.
                    above_a, above_b = tile // each * a_rows, tile // each * b_rows
                    a_down, a_on = (above_a, 0) if A_ALONG else (0, above_a)
                    b_down, b_on = (above_b, 0) if B_ALONG else (0, above_b)
                    for p in range(0, k, DEPTH):
                        stage = stage_of(step)
                        # What the stage had a turn ago; in the first turn this passes at once.
                        mbarrier_wait(empty, stage, parity_of(step) ^ uint32(1))
                        copy(
                            Ah, Al, Bh, Bl, stage, to_Ah, to_Al, to_Bh, to_Bl,
                            row + a_down, col + b_down, p + a_on, p + b_on, full,
                        )  # fmt: skip
                        step += uint32(1)
        else:
            setmaxnreg_inc(MANY)
            main, part = cuda.local.array(HELD, float32), cuda.local.array(HELD, float32)
            cross = cuda.local.array(HELD, float32)
            i = thread // WARP * 16 + thread % WARP // 4  # of the tile, this thread's first element
            j = thread % 4 * 2
            for tile in range(cuda.blockIdx.x, batch * each, cuda.gridDim.x):
                row, col = corner(tile % each, m, n)
                step = multiply_tile(
                    main, part, cross, Ah, Al, Bh, Bl, full, empty, step, k, thread
                )
                number = tile // each
                store(C[number], row + i, col + j, back_a[number], back_b[number], main)

    return tcec_batched


def storing(columns: int, paired: bool) -> Callable:
    """Give the device function (C, row, col, back_a, back_b, acc) that stores a tile, unscaled."""
    _, write = warp_mma.two_of("float32", paired)

    @on_device
    def factor(back, line):
        return back[line] if line < back.shape[0] else float32(0)

    @on_device
    def nothing(x, row, col, y):
        pass

    def scaled(group):
        """A device function (acc, above and below, col, back_b) from a group of 8 columns on."""
        others = scaled(group + 1) if group + 1 < columns // 8 else nothing
        i, j = 4 * group, 8 * group

        @on_device
        def scale(acc, rows, col, back_b):
            left, right = factor(back_b, col + j), factor(back_b, col + j + 1)
            acc[i] *= rows[0] * left
            acc[i + 1] *= rows[0] * right
            acc[i + 2] *= rows[1] * left
            acc[i + 3] *= rows[1] * right
            others(acc, rows, col, back_b)

        return scale

    def stores(group):
        """A device function that stores (C, row, col, acc) from a group of 8 columns on."""
        others = stores(group + 1) if group + 1 < columns // 8 else nothing
        i, j = 4 * group, 8 * group

        @on_device
        def store(C, row, col, acc):
            write(C, row, col + j, acc[i], acc[i + 1])
            write(C, row + 8, col + j, acc[i + 2], acc[i + 3])
            others(C, row, col, acc)

        return store

    scale_all, store_all = scaled(0), stores(0)

    @on_device
    def store_tile(C, row, col, back_a, back_b, acc):
        # All factors are read before anything is stored: the compiler cannot know that they are not
        # in C, and a load behind each store would wait for memory anew.
        scale_all(acc, (factor(back_a, row), factor(back_a, row + 8)), col, back_b)
        store_all(C, row, col, acc)

    return store_tile


def stack(rows: int, columns: int, along: bool) -> tuple[int, int]:
    """Give the shape of a matrix in a stack of parts: rows for the TMA, and k filled with zeros."""
    return rows if along else -(-rows // DEPTH) * DEPTH, -(-columns // PIECE) * PIECE


def launch(tiling: Tiling, batch: int, m: int, n: int, device: Device) -> tuple[Dim, Dim]:
    """Return (grid, block): persistent blocks, for the tiles of all products."""
    bm, bn, _ = tiling.block
    tiles = batch * -(-m // bm) * -(-n // bn)
    return resident((tiles, 1), device), (threads(tiling), 1)
