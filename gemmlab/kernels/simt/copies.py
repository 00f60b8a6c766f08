"""Copies of tiles of A and B to shared memory, for every layout, in two halves: begin and end.

A row of a tile in shared memory belongs to one value of k. `begin` reads a thread's groups of four
neighbours into registers and `end` stores them, so that other work fits in between while memory
answers. An operand whose rows run along k is transposed by the way: each group goes down a column.
Any other can go without registers where the GPU has `cp.async` (compute capability 8.0): `begin`
then starts the copy, `commit` makes a batch of what was started, and `wait` waits for a batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from numpy import uint32

from gemmlab import cuda
from gemmlab.instructions import cp_async_4, cp_async_16, cp_async_commit, cp_async_wait, store_v4
from gemmlab.kernels.kernel import FLOAT, on_device
from gemmlab.kernels.simt import fours
from gemmlab.kernels.simt.fours import FOUR, reading, tile_shapes
from gemmlab.model import traffic
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling


def stored_tile(tiling: Tiling, width: int, transposing: bool) -> tuple[int, int]:
    """Rows and columns of an operand's tile as it is stored; `width` of its two sides is not k."""
    bk = tiling.block[2]
    return (width, bk) if transposing else (bk, width)


def held(tiling: Tiling, width: int) -> int:
    """Elements that each thread copies of a tile."""
    return width * tiling.block[2] // tiling.threads


def copying(
    tiling: Tiling, width: int, transposing: bool, aligned: bool, asynchronous: bool = False
) -> tuple[Callable, Callable]:
    """Device functions begin(tile, q, X, x, p, part) and end(tile, q, part) for one operand.

    They copy the tile of X from x and from p of k on to the rows of `tile` from q on, with zeros
    for what is outside of X. Threads take groups of four in the order of memory; `part` is what a
    thread holds in between.
    """
    HEIGHT, LENGTH = stored_tile(tiling, width, transposing)
    ACROSS = LENGTH // 4  # threads that share a row
    DOWN = tiling.threads // ACROSS  # rows that are copied at a time
    AT_ONCE = asynchronous and not transposing
    read_four = reading(aligned)

    @on_device
    def start_four(tile, q, x, X, i, j):
        """Copy four neighbours with cp.async: rows are inside or outside as a whole if aligned."""
        if aligned:
            cp_async_16(tile, q, x, X, i, j, i < X.shape[0] and j < X.shape[1])
        else:
            for e in range(4):
                inside = i < X.shape[0] and j + e < X.shape[1]
                cp_async_4(tile, q, x + e, X, i, j + e, inside)

    @on_device
    def begin(tile, q, X, x, p, part):
        down, along = cuda.threadIdx.x // ACROSS, cuda.threadIdx.x % ACROSS * 4
        for n in range(HEIGHT // DOWN):
            if AT_ONCE:
                s = down + n * DOWN
                start_four(tile, q + s, along, X, p + s, x + along)
            else:
                i, j = (x, p) if transposing else (p, x)
                v = read_four(X, i + down + n * DOWN, j + along)
                part[4 * n], part[4 * n + 1], part[4 * n + 2], part[4 * n + 3] = v

    @on_device
    def end(tile, q, part):
        down, along = cuda.threadIdx.x // ACROSS, cuda.threadIdx.x % ACROSS * 4
        for n in range(HEIGHT // DOWN):
            if transposing:
                for e in range(4):
                    tile[uint32(q + along + e), uint32(down + n * DOWN)] = part[4 * n + e]
            elif not AT_ONCE:
                v = part[4 * n], part[4 * n + 1], part[4 * n + 2], part[4 * n + 3]
                store_v4(tile, q + down + n * DOWN, along, v)

    return begin, end


def batching(asynchronous: bool, pending: int) -> tuple[Callable, Callable]:
    """Device functions commit() and wait(), which lets all batches but the last `pending` arrive."""

    @on_device
    def commit():
        if asynchronous:
            cp_async_commit()

    @on_device
    def wait():
        if asynchronous:
            cp_async_wait(pending)

    return commit, wait


def copyable(tiling: Tiling) -> bool:
    """Whether the threads of a block copy its tiles without a remainder, whatever the layout."""
    bm, bn, bk = tiling.block
    return all(
        length % FOUR == 0
        and tiling.threads % (length // FOUR) == 0
        and height % (tiling.threads // (length // FOUR)) == 0
        for width in (bm, bn)
        for height, length in ((width, bk), (bk, width))
    )


def aligned_by_fours(problem: Gemm) -> bool:
    """Whether the rows of A, B and C all begin at multiples of 16 bytes."""
    return all(columns % FOUR == 0 for _, columns in problem.shapes)


# ------------------------------------------------------------------------------------- their counts


def copied(
    problem: Gemm, tiling: Tiling, asynchronous: bool = False
) -> tuple[Counter[str], tuple[Counter[str], Counter[str]]]:
    """What the copies load over the whole grid, and store to As and to Bs of a block each step.

    An asynchronous copy is counted as the load and the store that it makes. Nsight Compute has
    names of their own for both, with `ldgsts` in them, so that its plain counts of global loads
    and shared stores lack them.
    """
    bm, bn, _ = tiling.block
    transposing = problem.layout[0] == "n", problem.layout[1] == "t"
    aligned, loads, stores = aligned_by_fours(problem), [], []
    for width, turned, (_, words) in zip(
        (bm, bn), transposing, tile_shapes(tiling, problem.layout), strict=True
    ):
        groups = traffic.in_turn(tiling.threads, *stored_tile(tiling, width, turned), FOUR)
        loads.append(fours.moved(groups, aligned))
        if turned:
            store, wide = groups.turned().repeated(range(FOUR), [0]), 1
        else:
            store, wide = fours.moved(groups, aligned or not asynchronous)
        stores.append(traffic.shared_access("store", FLOAT, store, words, wide))
    (of_a, wide_a), (of_b, wide_b) = loads
    return traffic.copied(problem, tiling, of_a, of_b, wide_a, wide_b), (stores[0], stores[1])
