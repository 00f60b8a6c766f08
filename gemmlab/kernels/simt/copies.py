"""Copies of tiles of A and B to shared memory, for every layout: at once, or only begun.

Each row of a tile belongs to one value of k. Where the rows of the stored operand run along k, its
tile is transposed on the way. With `cp.async` (compute capability 8.0) a copy only begins, and the
thread goes on; without, the thread carries the tile through registers. The walk of the copies
stands here twice, as device functions and as the lanes that make them, with the same constants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from numpy import float32

from gemmlab import cuda
from gemmlab.instructions import cp_async_4, cp_async_16, cp_async_commit, cp_async_wait, store_v4
from gemmlab.kernels.kernel import FLOAT, on_device
from gemmlab.kernels.simt import fours
from gemmlab.kernels.simt.fours import FOUR, reading, tile_shapes
from gemmlab.model import traffic
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling

RUN = 8  # neighbours along k that a group of lanes copies to be transposed: 32 bytes, one sector


def copying_one(asynchronous: bool) -> Callable:
    """(tile, q, x, X, i, j): X[i, j] to tile[q, x], zero outside of X."""

    @on_device
    def copy_one(tile, q, x, X, i, j):
        inside = i < X.shape[0] and j < X.shape[1]
        if asynchronous:
            cp_async_4(tile, q, x, X, i, j, inside)
        else:
            tile[q, x] = X[i, j] if inside else float32(0)

    return copy_one


def straight(tiling: Tiling, width: int, aligned: bool, asynchronous: bool) -> Callable:
    """(tile, q, X, x, p): X[p …, x …] to rows q … of a tile, `width` long, by groups of four."""
    BK = tiling.block[2]
    ACROSS = tiling.threads // BK  # threads that copy one row
    copy_one, read_four = copying_one(asynchronous), reading(aligned)

    @on_device
    def copy_four(tile, q, x, X, i, j):
        if not asynchronous:
            store_v4(tile, q, x, read_four(X, i, j))
        elif aligned:
            cp_async_16(tile, q, x, X, i, j, i < X.shape[0] and j < X.shape[1])
        else:
            for e in range(4):
                copy_one(tile, q, x + e, X, i, j + e)

    @on_device
    def copy(tile, q, X, x, p):
        s, i = cuda.threadIdx.x // ACROSS, cuda.threadIdx.x % ACROSS * 4
        for far in range(0, width, 4 * ACROSS):
            copy_four(tile, q + s, i + far, X, p + s, x + i + far)

    return copy


def transposing(tiling: Tiling, width: int, asynchronous: bool) -> Callable:
    """(tile, q, X, x, p): X[x …, p …] to columns of a tile, RUN neighbours along p at a time."""
    BK, DOWN = tiling.block[2], tiling.threads // RUN
    copy_one = copying_one(asynchronous)

    @on_device
    def copy(tile, q, X, x, p):
        i, s = cuda.threadIdx.x // RUN, cuda.threadIdx.x % RUN
        for far in range(0, width, DOWN):
            for along in range(0, BK, RUN):
                copy_one(tile, q + s + along, i + far, X, x + i + far, p + s + along)

    return copy


def copying(
    tiling: Tiling, layout: str, aligned: bool, asynchronous: bool = False
) -> tuple[Callable, Callable]:
    """Device functions copy_tiles(As, Bs, q, A, row, B, col, p) and wait().

    The first copies the tiles that begin at row `row` of A, column `col` of B and p of k to the
    rows of As and Bs from q on. Where `asynchronous`, it only begins to, as one batch, and `wait`
    lets all batches but the last `stages` - 2 arrive.
    """
    BM, BN, _ = tiling.block
    PENDING = max(0, tiling.stages - 2)
    copy_a = (
        transposing(tiling, BM, asynchronous)
        if layout[0] == "n"
        else straight(tiling, BM, aligned, asynchronous)
    )
    copy_b = (
        straight(tiling, BN, aligned, asynchronous)
        if layout[1] == "n"
        else transposing(tiling, BN, asynchronous)
    )

    @on_device
    def copy_tiles(As, Bs, q, A, row, B, col, p):
        copy_a(As, q, A, row, p)
        copy_b(Bs, q, B, col, p)
        if asynchronous:
            cp_async_commit()

    @on_device
    def wait():
        if asynchronous:
            cp_async_wait(PENDING)

    return copy_tiles, wait


def copyable(tiling: Tiling) -> bool:
    """Whether the threads of a block copy its tiles without a remainder."""
    bm, bn, bk = tiling.block
    if bk % RUN or tiling.threads % bk:
        return False
    return not any(
        width % (FOUR * tiling.threads // bk) or width % (tiling.threads // RUN)
        for width in (bm, bn)
    )


# ------------------------------------------------------------------------------------- their counts


def aligned_by_fours(problem: Gemm) -> bool:
    """Whether all rows that are copied by fours, and those of C, begin at multiples of 16 bytes."""
    by_fours = [problem.n] + [problem.m] * (problem.layout[0] == "t")
    return all(length % FOUR == 0 for length in by_fours)


def copied(
    problem: Gemm, tiling: Tiling, asynchronous: bool = False
) -> tuple[Counter[str], tuple[Counter[str], Counter[str]]]:
    """What `copying` loads over the whole grid, and stores to As and to Bs of a block each step.

    An asynchronous copy is counted as the load and the store that it makes. Nsight Compute has
    names of their own for both, with `ldgsts` in them, so that its plain counts of global loads
    and shared stores lack them.
    """
    bm, bn, _ = tiling.block
    left, right = problem.layout
    (_, words_a), (_, words_b) = tile_shapes(tiling, problem.layout)
    loads_whole = aligned_by_fours(problem)  # groups of four in one access
    stores_whole = loads_whole or not asynchronous
    load_a, wide_a = _accesses(tiling, bm, left == "n", loads_whole)
    load_b, wide_b = _accesses(tiling, bn, right == "t", loads_whole)
    store_a, held_a = _accesses(tiling, bm, left == "n", stores_whole)
    store_b, held_b = _accesses(tiling, bn, right == "t", stores_whole)
    stores = (
        traffic.shared_access(
            "store", FLOAT, store_a.turned() if left == "n" else store_a, words_a, held_a
        ),
        traffic.shared_access(
            "store", FLOAT, store_b.turned() if right == "t" else store_b, words_b, held_b
        ),
    )
    return traffic.copied(problem, tiling, load_a, load_b, wide_a, wide_b), stores


def _accesses(
    tiling: Tiling, width: int, transposed: bool, whole: bool
) -> tuple[traffic.Lanes, int]:
    """Where threads copy a tile, as it lies in global memory, and the elements of each access.

    whole : groups of four move in one access, where they are not transposed
    """
    bk, threads = tiling.block[2], traffic.plane(tiling.threads, 1)
    if transposed:
        lanes = traffic.Lanes(threads.col // RUN, threads.col % RUN, threads.valid)
        return lanes.repeated(range(0, width, tiling.threads // RUN), range(0, bk, RUN)), 1
    across = tiling.threads // bk
    lanes = traffic.Lanes(threads.col // across, FOUR * (threads.col % across), threads.valid)
    return fours.moved(lanes.repeated([0], range(0, width, FOUR * across)), whole)
