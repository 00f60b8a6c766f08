"""Copies of tiles of A and B to shared memory, for every layout, in two halves: begin and end.

A row of a tile in shared memory belongs to one value of k. An operand whose stored rows run along k
is therefore transposed on its way. Between `begin` and `end` a thread may do other work, while
memory answers: through registers, `begin` loads groups of four neighbours and `end` stores them;
with `cp.async` (compute capability 8.0), `begin` starts the whole copy and nothing is left to end.
"""

from collections import Counter
from collections.abc import Callable

from numpy import int32, uint32

from gemmlab import Gemm, Tiling
from gemmlab.instructions import cp_async_4, cp_async_16, store_v4
from gemmlab.kernels.kernel import FLOAT, on_device
from gemmlab.kernels.simt.shared import vector_access
from gemmlab.kernels.simt.shared.vector_access import FOUR, reading, tile_shapes
from gemmlab.model import traffic
from gemmlab.simt import cuda

RUN = 8  # neighbours along k that cp.async copies to be transposed: 32 bytes, one sector


def copying(
    tiling: Tiling, width: int, transposing: bool, aligned: bool, asynchronous: bool = False
) -> tuple[Callable, Callable]:
    """Device functions begin(tile, q, X, x, p, part) and end(tile, q, part) for one operand.

    They copy the tile of X from x and from p of k on to the rows of `tile` from q on, with zeros
    for what is outside of X. `width` is the tile's other side than bk, `part` an array of
    `elements_held` that keeps what a thread has loaded in between.
    """
    if not asynchronous:
        return through_registers(tiling, width, transposing, aligned)
    return (turning(tiling, width) if transposing else straight(tiling, width, aligned)), no_end


def through_registers(
    tiling: Tiling, width: int, transposing: bool, aligned: bool
) -> tuple[Callable, Callable]:
    """`copying` by groups of four, which threads take in the order of memory."""
    HEIGHT, LENGTH = stored_tile(tiling, width, transposing)
    ACROSS = LENGTH // 4  # threads that share a row
    DOWN = tiling.threads // ACROSS  # rows that are copied at a time
    read_four = reading(aligned)

    @on_device
    def begin(tile, q, X, x, p, part):
        down, along = cuda.threadIdx.x // ACROSS, cuda.threadIdx.x % ACROSS * 4
        i, j = (x, p) if transposing else (p, x)
        for n in range(HEIGHT // DOWN):
            v = read_four(X, i + down + n * DOWN, j + along)
            part[4 * n], part[4 * n + 1], part[4 * n + 2], part[4 * n + 3] = v

    @on_device
    def end(tile, q, part):
        down, along = cuda.threadIdx.x // ACROSS, cuda.threadIdx.x % ACROSS * 4
        for n in range(HEIGHT // DOWN):
            if transposing:  # the group goes down a column
                for e in range(4):
                    tile[uint32(q + along + e), uint32(down + n * DOWN)] = part[4 * n + e]
            else:
                v = part[4 * n], part[4 * n + 1], part[4 * n + 2], part[4 * n + 3]
                store_v4(tile, q + down + n * DOWN, along, v)

    return begin, end


def straight(tiling: Tiling, width: int, aligned: bool) -> Callable:
    """`begin` of `copying` with cp.async by groups of four: those of a thread are in one row."""
    ACROSS = tiling.threads // tiling.block[2]  # threads that share a row

    @on_device
    def begin(tile, q, X, x, p, part):
        s, along = cuda.threadIdx.x // ACROSS, cuda.threadIdx.x % ACROSS * 4
        for far in range(0, width, 4 * ACROSS):
            i, j = p + s, x + along + far
            if aligned:  # a group is inside or outside as a whole
                cp_async_16(tile, q + s, along + far, X, i, j, inside(X, i, j))
            else:
                for e in range(4):
                    cp_async_4(tile, q + s, along + far + e, X, i, j + e, inside(X, i, j + e))

    return begin


def turning(tiling: Tiling, width: int) -> Callable:
    """`begin` of `copying` with cp.async by elements: RUN threads copy neighbours along k."""
    BK, DOWN = tiling.block[2], tiling.threads // RUN

    @on_device
    def begin(tile, q, X, x, p, part):
        down, along = cuda.threadIdx.x // RUN, cuda.threadIdx.x % RUN
        for far in range(0, width, DOWN):
            for further in range(0, BK, RUN):
                i, j = x + down + far, p + along + further
                cp_async_4(tile, q + along + further, down + far, X, i, j, inside(X, i, j))

    return begin


@on_device
def no_end(tile, q, part):
    """`end` of `copying` with cp.async: nothing is left to do."""


@on_device
def inside(X, i, j):
    """Whether X[i, j] exists; compared in 32 bits, which hold every size of a matrix."""
    return int32(i) < int32(X.shape[0]) and int32(j) < int32(X.shape[1])


def stored_tile(tiling: Tiling, width: int, transposing: bool) -> tuple[int, int]:
    """Rows and columns of a tile as its operand is stored; `width` is its other side than bk."""
    bk = tiling.block[2]
    return (width, bk) if transposing else (bk, width)


def elements_held(tiling: Tiling, width: int) -> int:
    """Elements of a tile that each thread copies."""
    return width * tiling.block[2] // tiling.threads


def aligned_by_fours(problem: Gemm, asynchronous: bool = False) -> bool:
    """Whether all rows that move by fours begin at multiples of 16 bytes: those of A, B and C, but
    not of an operand that cp.async transposes.
    """
    left, right = problem.layout
    by_fours = left == "t" or not asynchronous, right == "n" or not asynchronous, True
    shapes = zip(problem.shapes, by_fours, strict=True)
    return all(columns % FOUR == 0 for (_, columns), counts in shapes if counts)


COPYABLE = "blocks that its threads copy without a remainder"


def copyable(tiling: Tiling) -> bool:
    """Whether the threads of a block copy its tiles without a remainder, whatever the layout."""
    bm, bn, bk = tiling.block
    tiles = [stored_tile(tiling, width, way) for width in (bm, bn) for way in (True, False)]
    return (
        bk % RUN == 0
        and tiling.threads % bk == 0
        and all(width % (tiling.threads // RUN) == 0 for width in (bm, bn))
        and all(
            length % FOUR == 0
            and tiling.threads % (length // FOUR) == 0
            and height % (FOUR * tiling.threads // length) == 0
            for height, length in tiles
        )
    )


# ------------------------------------------------------------------------------------- their counts


def copied(
    problem: Gemm, tiling: Tiling, asynchronous: bool = False
) -> tuple[Counter[str], tuple[Counter[str], Counter[str]]]:
    """The copies' loads over the whole grid, and a block's stores to As and to Bs in each step.

    An asynchronous copy is counted as the load and the store that it makes. Nsight Compute has
    names of their own for both, with `ldgsts` in them, so that its plain counts of global loads
    and shared stores lack them.
    """
    (left, right), (bm, bn, _) = problem.layout, tiling.block
    (_, words_a), (_, words_b) = tile_shapes(tiling, problem.layout)
    (load_a, wide_a), store_a = _accesses(problem, tiling, bm, left == "n", asynchronous)
    (load_b, wide_b), store_b = _accesses(problem, tiling, bn, right == "t", asynchronous)
    stores = (
        traffic.shared_access("store", FLOAT, store_a[0], words_a, store_a[1]),
        traffic.shared_access("store", FLOAT, store_b[0], words_b, store_b[1]),
    )
    return traffic.copied(problem, tiling, load_a, load_b, wide_a, wide_b), stores


def _accesses(
    problem: Gemm, tiling: Tiling, width: int, transposing: bool, asynchronous: bool
) -> tuple[tuple[traffic.Lanes, int], tuple[traffic.Lanes, int]]:
    """Loads from a stored tile, and stores to shared memory: (lanes, elements a lane) of each."""
    bk, threads = tiling.block[2], traffic.plane(tiling.threads, 1)
    aligned = aligned_by_fours(problem, asynchronous)
    if not asynchronous:
        groups = traffic.in_turn(tiling.threads, *stored_tile(tiling, width, transposing), FOUR)
        down_a_column = groups.turned().repeated(range(FOUR), [0])
        return vector_access.moved(groups, aligned), (down_a_column, 1) if transposing else (
            groups,
            FOUR,
        )
    if transposing:
        run = traffic.Lanes(threads.col // RUN, threads.col % RUN, threads.valid)
        each = run.repeated(range(0, width, tiling.threads // RUN), range(0, bk, RUN))
        return (each, 1), (each.turned(), 1)
    across = tiling.threads // bk
    row = traffic.Lanes(threads.col // across, FOUR * (threads.col % across), threads.valid)
    moved = vector_access.moved(row.repeated([0], range(0, width, FOUR * across)), aligned)
    return moved, moved
