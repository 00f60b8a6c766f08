"""Tiles of A and B in a ring of stages: copied for `wgmma`, and multiplied by it, for every layout.

Rows of A or B, as they are stored, lie along k or across it. Along k, a tile is one box of the
matrix, with 64 elements of k in a row; across it, blocks of 64 rows or columns of C, a row for each
k. Either way rows have 128 bytes and are in the 128-byte swizzle. The TMA copies them, or threads
carry them there, piece by piece.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

from numpy import uint32

from gemmlab import Gemm, Tiling
from gemmlab.formats import number_format
from gemmlab.instructions import (
    cp_async_16,
    store_v8,
    tensor_map,
    tma_load,
    tma_load_multicast,
)
from gemmlab.instructions.tensor_copies import ROW, STEP
from gemmlab.instructions.warpgroup import COLUMNS, K
from gemmlab.kernels.kernel import on_device
from gemmlab.kernels.tensor_core.shared import shared_layouts
from gemmlab.kernels.tensor_core.shared.shared_layouts import PIECE, inside
from gemmlab.model import traffic
from gemmlab.simt import cuda

HALF = 2  # bytes of an element
WORD = 8  # bytes of an mbarrier
DEPTH = BLOCK = ROW // HALF  # elements of a row: of k, or of the rows or columns of C
WIDTHS = tuple(n for n in COLUMNS if n % BLOCK == 0)  # columns of C that a tile may have


def along_k(layout: str) -> tuple[bool, bool]:
    """Say whether rows of A and rows of B, as they are stored, lie along k."""
    return layout[0] == "n", layout[1] == "t"


def shape(size: int, along: bool) -> tuple[int, int, int]:
    """A tile of `size` rows of A or columns of B: [0, its row, k], or [block, k, its column]."""
    return (1, size, DEPTH) if along else (size // BLOCK, DEPTH, BLOCK)


def box_rows(tiling: Tiling, layout: str) -> tuple[int, int]:
    """Rows of the boxes of A and of B: of a whole tile, or one for each k of a block of 64."""
    (bm, bn, _), (a_along, b_along) = tiling.block, along_k(layout)
    return bm if a_along else DEPTH, bn if b_along else DEPTH


def copying(size: int, along: bool) -> Callable:
    """Return the device function that begins to copy a tile, from `first` and from p of k on."""
    COUNT = size // BLOCK

    @on_device
    def copy_rows(tiles, stage, matrix, first, p, full):
        tma_load(tiles, stage, 0, 0, 0, matrix, first, p, full, stage)

    @on_device
    def copy_blocks(tiles, stage, matrix, first, p, full):
        for block in range(COUNT):
            tma_load(tiles, stage, block, 0, 0, matrix, p, first + block * BLOCK, full, stage)

    return copy_rows if along else copy_blocks


def sending(size: int, along: bool, blocks: int) -> Callable:
    """Return the device function that begins to copy a block's part of a tile to all of a cluster.

    blocks : of the cluster, whose tile it is; each sends as much
    """
    PART = size // blocks
    COUNT = PART // BLOCK
    TO_ALL = uint32((1 << blocks) - 1)

    @on_device
    def send_rows(tiles, stage, matrix, first, p, full, rank):
        own = rank * PART
        tma_load_multicast(tiles, stage, 0, own, 0, matrix, first + own, p, full, stage, TO_ALL)

    @on_device
    def send_blocks(tiles, stage, matrix, first, p, full, rank):
        for block in range(COUNT):
            own = rank * COUNT + block
            first_of = first + own * BLOCK
            tma_load_multicast(tiles, stage, own, 0, 0, matrix, p, first_of, full, stage, TO_ALL)

    return send_rows if along else send_blocks


def carrying(
    size: int, along: bool, threads: int, first: int, aligned: bool, dtype: str
) -> Callable:
    """Give the device function by which threads carry a tile of X, from `start` and from p of k on.

    threads : how many, from number `first` of the block on; a multiple of 64
    aligned : rows of X begin at multiples of 16 bytes, and `cp.async` copies pieces; else threads
        load and store their elements
    """
    BLOCKS, ROWS, _ = shape(size, along)
    DOWN = threads // (BLOCK // PIECE)  # rows that are carried at a time
    read = shared_layouts.reading(aligned, dtype)

    @on_device
    def carry(tiles, stage, X, start, p):
        thread = cuda.threadIdx.x - first
        top, piece = thread // (BLOCK // PIECE), thread % (BLOCK // PIECE)
        to = (piece ^ top % 8) * PIECE  # in the swizzle, the same in all rows of this thread
        for block in range(BLOCKS):
            for down in range(0, ROWS, DOWN):
                row, ahead = top + down, block * BLOCK + piece * PIECE
                i, j = (start + row, p + ahead) if along else (p + row, start + ahead)
                if aligned:
                    cp_async_16(tiles, stage, block, row, to, X, i, j, inside(X, i, j))
                else:
                    store_v8(tiles, stage, block, row, to, read(X, i, j))

    return carry


def placing(along: bool) -> Callable:
    """Return the device function that says where in a tile a block of 64 begins, at q of k."""

    @on_device
    def in_rows(block, q):
        return 0, block * BLOCK, q

    @on_device
    def in_blocks(block, q):
        return block, q, 0

    return in_rows if along else in_blocks


def turning(stages: int) -> tuple[Callable, Callable]:
    """Device functions of the number of a step: its stage of the ring, and its turn's parity."""

    @on_device
    def stage_of(step):
        """The stage of the ring that a step uses."""
        return step % uint32(stages)

    @on_device
    def parity_of(step):
        """The parity of the phase of its barriers: 0 in the first turn of the ring, then 1, 0 …"""
        return step // uint32(stages) & uint32(1)

    return stage_of, parity_of


def multiplying_16(wgmma: Callable, layout: str) -> Callable:
    """Return the device function by which a warpgroup multiplies 16 along k of a stage.

    wgmma : the instruction, see `gemmlab.instructions.warpgroup`
    layout : which operands are stored transposed, see `Gemm.layout`
    """
    in_a, in_b = map(placing, along_k(layout))

    @on_device
    def multiply_add(acc, As, Bs, stage, group, q, more):
        """Add the product from q of k on to acc, or begin with it."""
        a, i, j = in_a(group, q)
        b, x, y = in_b(0, q)
        wgmma(acc, As, stage, a, i, j, Bs, stage, b, x, y, more)

    return multiply_add


def multiplying(wgmma: Callable, layout: str) -> Callable:
    """Return the device function by which a warpgroup multiplies a stage: 64 along k."""
    multiply_add = multiplying_16(wgmma, layout)

    @on_device
    def multiply(acc, As, Bs, stage, group, more):
        """Add the product of a stage to acc, or begin with it."""
        multiply_add(acc, As, Bs, stage, group, 0, more)
        multiply_add(acc, As, Bs, stage, group, K, True)
        multiply_add(acc, As, Bs, stage, group, 2 * K, True)
        multiply_add(acc, As, Bs, stage, group, 3 * K, True)

    return multiply


def tensor_maps(
    problem: Gemm, tiling: Tiling, A: Any, B: Any, blocks: int = 1
) -> tuple[Any, Any, int]:
    """Return the arguments in place of A and B: their tensor maps, and k.

    A and B stay as they are where the TMA cannot copy their rows.
    blocks : of a cluster, each of which copies as much of a tile of B
    """
    size = number_format(problem.dtype).bytes
    if any(columns * size % STEP for _, columns in problem.shapes[:2]):
        return A, B, problem.k
    of_a, of_b = box_rows(tiling, problem.layout)
    if along_k(problem.layout)[1]:
        of_b //= blocks
    return tensor_map(A, of_a), tensor_map(B, of_b), problem.k


def carried(
    problem: Gemm, tiling: Tiling, threads: int
) -> tuple[Counter[str], tuple[Counter[str], Counter[str]]]:
    """The loads of `carrying` over the whole grid, and a block's stores of a tile of A and of B.

    An asynchronous copy is counted as the load and the store that it makes.
    """
    loads, stores = [], []
    for size, along in zip(tiling.block, along_k(problem.layout), strict=False):
        blocks, rows, _ = shape(size, along)
        one = traffic.in_turn(threads, rows, BLOCK, PIECE)
        store = shared_layouts.moved("store", one, shared_layouts.swizzled(BLOCK))
        stores.append(Counter({name: n * blocks for name, n in store.items()}))
        loads.append(one.repeated([0], range(0, blocks * BLOCK, BLOCK)))
    wide = PIECE
    if not shared_layouts.are_aligned(problem):
        wide, loads = 1, [each.repeated([0], range(PIECE)) for each in loads]
    return traffic.copied(problem, tiling, *loads, wide, wide), (stores[0], stores[1])


def ring_bytes(tiling: Tiling) -> int:
    """Shared memory for the tiles of all stages, and two mbarriers for each [B]."""
    bm, bn, _ = tiling.block
    return tiling.stages * ((bm + bn) * ROW + 2 * WORD)
