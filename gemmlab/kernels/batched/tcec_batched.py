"""*tcec_split* for many products of one shape, with scaled parts: what `gemmlab.matmul` launches.

The parts of all matrices of A lie below each other in one stack, and so do those of B: one tensor
map is enough, and the number of a tile says which product it is of. Where a tile of A or B goes
beyond its matrix it holds rows of the next one, and these count for elements outside of C alone,
because k is filled with zeros. `back_a` and `back_b` undo the scales of rows and columns
(`scaling`) where C is stored.

A block takes *units*, one after the other: a tile of C and a part of k. Where C has few tiles, k
has several parts, so that every SM has a unit; their sums go to planes of a workspace, which
`around` adds up. And a long sum is wrong by what each of its additions rounds: so no sum in
registers goes on for more than CHUNK of k. What comes after it is summed anew, and added to what
the thread has stored.
"""

from collections.abc import Callable

from numpy import float16, float32, int32, uint32, uint64

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
from gemmlab.kernels.batched.fewer_products import WHOLE, copying_halves, multiplying_fewer
from gemmlab.kernels.kernel import Dim, on_device, resident
from gemmlab.kernels.tcec.shared.split_operands import PIECE, copying_parts, rings
from gemmlab.kernels.tcec.shared.warpgroup_tiles import multiplying_tiles
from gemmlab.kernels.tensor_core.shared import tma_tiles, warp_mma
from gemmlab.kernels.tensor_core.shared.rasterisation import corners
from gemmlab.kernels.tensor_core.shared.tma_tiles import DEPTH, WORD, copying, shape
from gemmlab.kernels.tensor_core.warp_specialised import FEW, MANY, threads
from gemmlab.simt import cuda
from gemmlab.tiling import WARP, Tiling

# Of k, in one sum: 64 main products in FP32, and 16 such sums in a sum of 65536. Both chains round
# little then; a single one of 1024 rounds three times as much.
CHUNK = 4096


def build(tiling: Tiling, layout: str, paired: bool, products: int = WHOLE) -> Callable:
    """The kernel (C, k, parts, length, the maps of the halves of A and B, their rows a matrix,
    back_a, back_b).

    C (batch·parts, m, n), a plane for each part of k; length : of a part, a multiple of DEPTH
    layout : which operands are stored transposed, see `Gemm.layout`
    products : 3, or fewer, whose maps of low halves are not read
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
    copies, store = (copying(BM, A_ALONG), copying(BN, B_ALONG)), storing(BN, paired)
    if products == WHOLE:
        copy, multiply_tile = copying_parts(tiling, *copies), multiplying_tiles(tiling, layout)
    else:
        copy = copying_halves(tiling, *copies, products)
        multiply_tile = multiplying_fewer(tiling, layout, products)

    # Divisions are of 32 bits: a unit begins with three, and those of 64 take twice as long.
    @on_device
    def share(unit, tiles, parts, length, k):
        """Tell a unit's tile, plane and matrix, and where its part of k begins and ends."""
        plane = uint32(uint32(unit) // tiles)
        matrix = uint32(plane // parts)
        begin = int32(int32(plane - matrix * parts) * length)
        return (
            int32(unit - plane * tiles), int32(plane), int32(matrix), begin,
            min(int32(begin + length), k),
        )  # fmt: skip

    def tcec_batched(
        C, k, parts, length, to_Ah, to_Al, to_Bh, to_Bl, a_rows, b_rows, back_a, back_b
    ):
        Ah, Al = shared_view(A_SHAPE, float16, OF_AH), shared_view(A_SHAPE, float16, OF_AL)
        Bh, Bl = shared_view(B_SHAPE, float16, OF_BH), shared_view(B_SHAPE, float16, OF_BL)
        full = shared_view((STAGES,), uint64, TILES)
        empty = shared_view((STAGES,), uint64, TILES + STAGES * WORD)
        planes, m, n = C.shape
        tiles = uint32((m + BM - 1) // BM * ((n + BN - 1) // BN))  # of a plane
        units, parts, length, k = int32(planes * tiles), uint32(parts), int32(length), int32(k)
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
                for unit in range(cuda.blockIdx.x, units, cuda.gridDim.x):
                    tile, _, matrix, begin, end = share(unit, tiles, parts, length, k)
                    row, col = corner(tile, m, n)
                    # Where its matrices begin in the stacks, across k or along it.
                    above_a, above_b = matrix * a_rows, matrix * b_rows
                    a_down, a_on = (above_a, 0) if A_ALONG else (0, above_a)
                    b_down, b_on = (above_b, 0) if B_ALONG else (0, above_b)
                    for p in range(begin, end, DEPTH):
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
            # One loop over units and their chunks. In two of them the compiler would work out where
            # all elements of C are outside of the inner one, and has no registers to keep that.
            unit, done = int32(cuda.blockIdx.x), int32(0)
            while unit < units:
                tile, plane, matrix, begin, end = share(unit, tiles, parts, length, k)
                row, col = corner(tile, m, n)
                left = min(int32(end - begin - done), int32(CHUNK))
                step = multiply_tile(
                    main, part, cross, Ah, Al, Bh, Bl, full, empty, step, left, thread
                )
                store(C[plane], row + i, col + j, back_a[matrix], back_b[matrix], main, done > 0)
                done = int32(done + left)
                if begin + done >= end:
                    unit, done = int32(unit + cuda.gridDim.x), int32(0)

    return tcec_batched


def storing(columns: int, paired: bool) -> Callable:
    """Give the device function (C, row, col, back_a, back_b, acc, adds) that stores a tile, and
    undoes its scales.

    adds : to what the same thread has stored there. The L2 cache adds, and nobody waits for what
        was there; no other thread adds to it, so that the order is always the same
    """
    scale_all, add_all = scaling_groups(0, columns), adding_groups(0, columns)
    store_all = storing_groups(0, columns, warp_mma.two_of("float32", paired)[1])

    @on_device
    def store_tile(C, row, col, back_a, back_b, acc, adds):
        # All factors are read before anything is stored: the compiler cannot know that they are not
        # in C, and a load behind each store would wait for memory anew.
        scale_all(acc, (factor(back_a, row), factor(back_a, row + 8)), col, back_b)
        if adds:
            add_all(C, row, col, acc)
        else:
            store_all(C, row, col, acc)

    return store_tile


def scaling_groups(group: int, columns: int) -> Callable:
    """A device function (acc, above and below, col, back_b) from a group of 8 columns on."""
    others = scaling_groups(group + 1, columns) if group + 1 < columns // 8 else no_more
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


def adding_groups(group: int, columns: int) -> Callable:
    """A device function (C, row, col, acc) that adds to what is stored, from a group on."""
    others = adding_groups(group + 1, columns) if group + 1 < columns // 8 else no_more
    i, j = 4 * group, 8 * group

    @on_device
    def add(C, row, col, acc):
        add_one(C, row, col + j, acc[i])
        add_one(C, row, col + j + 1, acc[i + 1])
        add_one(C, row + 8, col + j, acc[i + 2])
        add_one(C, row + 8, col + j + 1, acc[i + 3])
        others(C, row, col, acc)

    return add


def storing_groups(group: int, columns: int, write: Callable) -> Callable:
    """A device function that stores (C, row, col, acc) from a group of 8 columns on."""
    others = storing_groups(group + 1, columns, write) if group + 1 < columns // 8 else no_more
    i, j = 4 * group, 8 * group

    @on_device
    def store(C, row, col, acc):
        write(C, row, col + j, acc[i], acc[i + 1])
        write(C, row + 8, col + j, acc[i + 2], acc[i + 3])
        others(C, row, col, acc)

    return store


@on_device
def factor(back, line):
    """Give what undoes the scale of a line; 0 outside of C."""
    return back[line] if line < back.shape[0] else float32(0)


@on_device
def add_one(C, row, col, x):
    """Add to an element of C, if it is one."""
    if row < C.shape[0] and col < C.shape[1]:
        cuda.atomic.add(C, (row, col), x)


@on_device
def no_more(x, row, col, y):
    """Have no further group."""


def stack(rows: int, columns: int, along: bool) -> tuple[int, int]:
    """Give the shape of a matrix in a stack of parts: rows for the TMA, and k filled with zeros."""
    return rows if along else -(-rows // DEPTH) * DEPTH, -(-columns // PIECE) * PIECE


def launch(tiling: Tiling, planes: int, m: int, n: int, device: Device) -> tuple[Dim, Dim]:
    """Return (grid, block): persistent blocks, for the tiles of all planes."""
    bm, bn, _ = tiling.block
    tiles = planes * -(-m // bm) * -(-n // bn)
    return resident((tiles, 1), device), (threads(tiling), 1)
