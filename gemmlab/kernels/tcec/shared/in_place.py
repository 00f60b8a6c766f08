"""Tiles of A and B in FP32 in shared memory, and how their halves take their places.

A row of a tile has 64 elements, as in `tma_tiles`, and lies in two boxes of 32: tiles[stage, box,
block, row], 128 bytes each and in the 128-byte swizzle. A row of high halves takes 128 bytes, and
so does one of low halves. So B is split in place: its first boxes become the tile of high parts,
its second ones that of low parts, just as `wgmma` reads them. A is split on its way to registers,
because each of its elements goes to one thread alone.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from numpy import int32, uint32

from gemmlab import Gemm
from gemmlab.instructions import load_v2, load_v4, store_v4, tma_load
from gemmlab.instructions.tensor_copies import ROW
from gemmlab.instructions.warpgroup import ROWS, WARPGROUP
from gemmlab.kernels.kernel import FLOAT, on_device
from gemmlab.kernels.simt.shared.vector_access import FOUR, ZEROS, reading
from gemmlab.kernels.tcec.shared.product_sums import PRODUCTS, are_aligned, flops
from gemmlab.kernels.tcec.shared.splitting import split_two
from gemmlab.kernels.tensor_core.shared.accumulators import update_c
from gemmlab.kernels.tensor_core.shared.tma_tiles import BLOCK, DEPTH, along_k, shape as of_halves
from gemmlab.model import traffic
from gemmlab.simt import cuda
from gemmlab.tiling import WARP, Tiling

BOXES = 2  # of a row, and its parts: high and low
BOX = ROW // FLOAT  # elements of a row in a box
ACROSS = BOX // FOUR  # threads that share a row
DOWN = WARPGROUP // ACROSS  # rows that a warpgroup moves at a time


def shape(size: int, along: bool) -> tuple[int, int, int, int]:
    """Return a tile of `size` rows of A or columns of B, in FP32."""
    blocks, rows, _ = of_halves(size, along)
    return BOXES, blocks, rows, BOX


def split_shape(size: int, along: bool) -> tuple[int, int, int, int]:
    """Give a tile of `size` rows or columns in high and low halves, in the room of that in FP32."""
    return BOXES, *of_halves(size, along)


def in_turns(size: int) -> tuple[int, int, int, int]:
    """Return a tile in FP32 as it is split: each turn has sixteen rows of both boxes."""
    return BOXES, size // DOWN, DOWN, BOX


def copying(size: int, along: bool) -> Callable:
    """The device function that begins to copy a box of a tile, from `first` and from p of k on."""
    BLOCKS = size // BLOCK

    @on_device
    def copy_rows(tiles, stage, box, matrix, first, p, full):
        tma_load(tiles, stage, box, 0, 0, 0, matrix, first, p + box * BOX, full, stage)

    @on_device
    def copy_blocks(tiles, stage, box, matrix, first, p, full):
        for block in range(BLOCKS):
            start = first + block * BLOCK + box * BOX
            tma_load(tiles, stage, box, block, 0, 0, matrix, p, start, full, stage)

    return copy_rows if along else copy_blocks


def copying_by_threads(size: int, along: bool, first: int) -> Callable:
    """The device function by which a warpgroup, from thread `first` on, copies a tile instead.

    Rows of X may begin anywhere: each element is looked at by itself.
    """
    _, BLOCKS, ROWS, _ = shape(size, along)
    read_four = reading(False)

    @on_device
    def copy(tiles, stage, X, start, p):
        thread = uint32(cuda.threadIdx.x) - uint32(first)
        top, four = thread // uint32(ACROSS), thread % uint32(ACROSS)
        # In the swizzle, the same in all rows of this thread.
        to = uint32((four ^ top % uint32(8)) * uint32(FOUR))
        for turn in range(int32(BOXES * BLOCKS * ROWS // DOWN)):
            line = uint32(top + uint32(turn) * uint32(DOWN))
            box, block = line // uint32(BLOCKS * ROWS), line // uint32(ROWS) % uint32(BLOCKS)
            row = int32(line % uint32(ROWS))
            ahead = int32(block * uint32(BLOCK) + box * uint32(BOX) + four * uint32(FOUR))
            i, j = (start + row, p + ahead) if along else (p + row, start + ahead)
            store_v4(tiles, stage, box, block, row, to, read_four(X, i, j))

    return copy


def splitting(size: int, first: int) -> Callable:
    """Return the device function (tiles, words, stage) by which a warpgroup splits a tile in place.

    tiles : [stage, box, turn, row, element]; words : the same memory, as pairs of halves

    In a turn a thread splits eight neighbours in a box of a row, and loads those of the next turn,
    because shared memory is busy and answers late. A warp has both boxes of four rows: it has
    loaded all of a row before it stores any of it.
    """
    turns = size // DOWN

    @on_device
    def nothing(tiles, words, stage, box, row, at, to, now, then):
        pass

    def splits(turn):
        """A device function that splits from a turn on; now is what this turn splits."""
        others = splits(turn + 1) if turn + 1 < turns else nothing
        fetch = fetching_turn(turn + 2, turns)

        @on_device
        def split(tiles, words, stage, box, row, at, to, now, then):
            later = fetch(tiles, stage, box, row, at)
            cuda.syncwarp()
            high, low = split_eight(now)
            store_v4(words, stage, 0, turn, row, to, high)
            store_v4(words, stage, 1, turn, row, to, low)
            others(tiles, words, stage, box, row, at, to, then, later)

        return split

    fetch_first, fetch_second = fetching_turn(0, turns), fetching_turn(1, turns)
    split_all = splits(0)

    @on_device
    def split(tiles, words, stage):
        thread = cuda.threadIdx.x - first
        row, box, eight = row_of(thread), thread // 8 % 2, thread % 4
        swizzle = row % 8 * FOUR
        at, to = eight * 2 * FOUR ^ swizzle, (box * 4 + eight) * FOUR ^ swizzle
        now = fetch_first(tiles, stage, box, row, at)
        then = fetch_second(tiles, stage, box, row, at)
        split_all(tiles, words, stage, box, row, at, to, now, then)

    return split


def fetching_turn(turn: int, turns: int) -> Callable:
    """Return the device function (tiles, stage, box, row, at) -> what a thread splits in a turn."""
    if turn >= turns:
        return no_fetch

    @on_device
    def fetch(tiles, stage, box, row, at):
        return (
            load_v4(tiles, stage, box, turn, row, at),
            load_v4(tiles, stage, box, turn, row, at ^ FOUR),
        )

    return fetch


@on_device
def no_fetch(tiles, stage, box, row, at):
    """Have no further turn."""
    return ZEROS, ZEROS


@on_device
def row_of(thread):
    """The row of sixteen that a thread splits a part of: half a row for each of four threads.

    Eight threads that access 16 bytes each have rows r and r ^ 5. What they load lies in other
    places because one of the rows is odd, and what they store, because one is above the fourth.
    """
    r = thread // 16 % 4 + thread // 64 * 8
    return r ^ thread // 4 % 2 * 5


@on_device
def split_eight(v):
    """High parts of two quads in four words, and low parts."""
    h0, l0 = split_two(v[0][0], v[0][1])
    h1, l1 = split_two(v[0][2], v[0][3])
    h2, l2 = split_two(v[1][0], v[1][1])
    h3, l3 = split_two(v[1][2], v[1][3])
    return (h0, h1, h2, h3), (l0, l1, l2, l3)


@on_device
def fragment_row():
    """The row of eight, in a fragment, that this lane has: lanes below 16 have the even ones.

    Rows of A may stand in any order, if those of C stand in the same; in this one, half a warp
    finds its pairs in all banks.
    """
    g = uint32(cuda.threadIdx.x) % uint32(WARP) // uint32(4)
    return g % uint32(4) * uint32(2) + g // uint32(4)


def fetching(along: bool) -> Callable:
    """Return the device function (As, stage, row, q) -> the pairs of a fragment of 16 rows of A.

    row : of the tile, the first of this lane's two, unsigned; q : of k, where the fragment begins
    """

    @on_device
    def pairs_of_rows(As, stage, row, q):
        t = uint32(cuda.threadIdx.x) % uint32(4)
        box, j = q // BOX, (uint32(q % BOX) + t * uint32(2)) ^ row % uint32(8) * uint32(4)
        below, ahead = row + uint32(8), j ^ uint32(8)
        return (
            load_v2(As, stage, box, 0, row, j), load_v2(As, stage, box, 0, below, j),
            load_v2(As, stage, box, 0, row, ahead), load_v2(As, stage, box, 0, below, ahead),
        )  # fmt: skip

    @on_device
    def pair_of_column(As, stage, box, block, k, j):
        """The elements at column j of rows k, which is even, and k + 1."""
        swizzle = k % uint32(8) * uint32(4)
        return (
            As[stage, box, block, k, j ^ swizzle],
            As[stage, box, block, k + uint32(1), j ^ swizzle ^ uint32(4)],
        )

    @on_device
    def pairs_of_columns(As, stage, row, q):
        k = uint32(q) + uint32(cuda.threadIdx.x) % uint32(4) * uint32(2)
        block, box = row // uint32(BLOCK), row % uint32(BLOCK) // uint32(BOX)
        j = row % uint32(BOX)
        below, ahead = j + uint32(8), k + uint32(8)
        return (
            pair_of_column(As, stage, box, block, k, j),
            pair_of_column(As, stage, box, block, k, below),
            pair_of_column(As, stage, box, block, ahead, j),
            pair_of_column(As, stage, box, block, ahead, below),
        )

    return pairs_of_rows if along else pairs_of_columns


@on_device
def halved(v):
    """High parts of four pairs, and low parts: two fragments for `wgmma`."""
    h0, l0 = split_two(v[0][0], v[0][1])
    h1, l1 = split_two(v[1][0], v[1][1])
    h2, l2 = split_two(v[2][0], v[2][1])
    h3, l3 = split_two(v[3][0], v[3][1])
    return (h0, h1, h2, h3), (l0, l1, l2, l3)


def work_of(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """Return the work of persistent blocks.

    Each step of 64 along k brings tiles in FP32; B is loaded and stored once more, A loaded, and
    each consumer reads all of B for each of three products.
    """
    (bm, bn, _), (across, down) = tiling.block, tiling.grid(problem)
    by_depth = replace(tiling, block=(bm, bn, DEPTH))
    steps = by_depth.steps(problem)
    bringing = brought(problem, by_depth)
    copied = bringing.pop("tensor_copy_bytes", 0)
    found = traffic.staged(
        problem, by_depth, bringing, [(steps, each) for each in moved_in_shared(problem, tiling)],
        update_c(problem, tiling), barriers=0, round_trips=1, flops=flops(problem, by_depth),
    )  # fmt: skip
    read = across * down * steps * PRODUCTS * bm // ROWS * bn
    return replace(
        found,
        counters=found.counters + Counter(tensor_copy_bytes=copied),
        l1_wavefronts=found.l1_wavefronts + read + copied // ROW,
        chain=(1, 0),
        block_counters=Counter(barriers=1),
    )


def brought(problem: Gemm, tiling: Tiling) -> Counter[str]:
    """Count how all tiles come: bytes that the TMA copies, or the loads of `copying_by_threads`.

    tiling : with steps of 64 along k
    """
    if are_aligned(problem):
        (bm, bn, _), (across, down) = tiling.block, tiling.grid(problem)
        copies = across * down * tiling.steps(problem)
        return Counter(tensor_copy_bytes=copies * BOXES * (bm + bn) * ROW)
    lanes = []
    for size, along in zip(tiling.block, along_k(problem.layout), strict=False):
        _, blocks, rows, _ = shape(size, along)
        one = traffic.in_turn(WARPGROUP, rows, BOX, FOUR)
        every = one.repeated([0], range(0, blocks * BLOCK, BOX))
        lanes.append(every.repeated([0], range(FOUR)))
    return traffic.copied(problem, tiling, *lanes)


def moved_in_shared(problem: Gemm, tiling: Tiling) -> list[Counter[str]]:
    """A block's loads and stores in a step of 64 along k, all of them without bank conflicts."""
    (bm, bn, _), (along, _) = tiling.block, along_k(problem.layout)
    of_a = whole_lines("load", bm, 2 if along else 1)
    of_b = whole_lines("load", bn, FOUR), whole_lines("store", bn, FOUR)
    by_threads = [] if are_aligned(problem) else [whole_lines("store", bm + bn, FOUR)]
    return [of_a, *of_b, *by_threads]


def whole_lines(op: str, rows: int, wide: int) -> Counter[str]:
    """Accesses of so many words a lane to both boxes of rows: a wavefront for each."""
    lines = BOXES * rows
    return Counter({
        f"shared_{op}_requests": lines * BOX // (WARP * wide),
        f"shared_{op}_wavefronts": lines,
    })  # fmt: skip
