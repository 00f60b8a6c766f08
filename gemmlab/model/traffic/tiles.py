"""Rungs whose blocks copy a tile of A and of B to shared memory, then multiply them.

Shared loads are counted as the source has them, one for each element or group of four. The compiler
unrolls the steps of a tile and may merge loads of neighbours into wider ones, as it does with those
of A in *tiled* and *register tiled*: a GPU's requests and wavefronts are then fewer than these.
"""

from __future__ import annotations

from gemmlab.model.traffic.access import Lanes, in_turn, plane, shared_access
from gemmlab.model.traffic.pieces import (
    FOUR,
    HELD,
    PAD,
    TILE_DTYPE,
    by_fours,
    copied,
    staged,
    update_c,
    update_fours,
)
from gemmlab.model.traffic.work import Work
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling


def tiled(problem: Gemm, tiling: Tiling) -> Work:
    """Rung *tiled*: each block copies a tile of A and of B to shared memory, then multiplies them.

    A global element is loaded once by each block that needs it: n/bn times for A, m/bm for B.
    """
    tile, steps = tiling.block[0], tiling.steps(problem)
    threads = plane(tile, tile)
    store = shared_access("store", HELD, threads, tile)  # As[y, x], and the same of Bs
    load_a = shared_access("load", HELD, threads.row_alone().repeated([0], range(tile)), tile)
    load_b = shared_access("load", HELD, threads.col_alone().repeated(range(tile), [0]), tile)
    return staged(
        problem,
        tiling,
        copies=copied(problem, tiling, threads, threads),
        shared=[(2 * steps, store), (steps, load_a), (steps, load_b)],
        update=update_c(problem, tiling, threads),
        barriers=2 * steps,
        shared_bytes=tiling.shared_bytes(TILE_DTYPE),
        round_trips=steps,
    )


def register_tiled(problem: Gemm, tiling: Tiling) -> Work:
    """Rung *register tiled*: a thread's tm rows and tn columns, the block of threads apart.

    Copies go as in *tiled*, in memory's order. For each p a thread loads tm words of As and tn of
    Bs, which feed tm·tn FMAs.
    """
    (bm, bn, bk), (tm, tn) = tiling.block, tiling.thread
    down, across = bm // tm, bn // tn
    rows, cols = range(0, bm, down), range(0, bn, across)
    steps = tiling.steps(problem)
    a, b = in_turn(tiling.threads, bm, bk), in_turn(tiling.threads, bk, bn)
    threads = plane(across, down)
    of_a = threads.row_alone().repeated(rows, range(bk))
    of_b = threads.col_alone().repeated(range(bk), cols)
    shared = (
        shared_access("store", HELD, a, bk),
        shared_access("store", HELD, b, bn),
        shared_access("load", HELD, of_a, bk),
        shared_access("load", HELD, of_b, bn),
    )
    return staged(
        problem,
        tiling,
        copies=copied(problem, tiling, a, b),
        shared=[(steps, each) for each in shared],
        update=update_c(problem, tiling, threads.repeated(rows, cols)),
        barriers=2 * steps,
        shared_bytes=tiling.shared_bytes(TILE_DTYPE),
        round_trips=steps,
    )


def vectorised(problem: Gemm, tiling: Tiling) -> Work:
    """Rung *vectorised*: groups of four neighbours, in one access where rows are aligned.

    A group of A is stored down a column of its transposed and padded tile, word by word; one of B
    in one access. For each p a thread loads tm/4 groups of As and tn/4 of Bs.
    """
    (bm, bn, bk), (tm, tn) = tiling.block, tiling.thread
    down, across = FOUR * bm // tm, FOUR * bn // tn  # elements from a thread's group to its next
    steps = tiling.steps(problem)
    aligned = problem.k % FOUR == 0 and problem.n % FOUR == 0
    a, b = in_turn(tiling.threads, bm, bk, FOUR), in_turn(tiling.threads, bk, bn, FOUR)
    (copy_a, wide), (copy_b, _) = by_fours(a, aligned), by_fours(b, aligned)
    corner = plane(bn // tn, bm // tm)
    corner = Lanes(FOUR * corner.row, FOUR * corner.col, corner.valid)
    of_a = corner.row_alone().turned().repeated(range(bk), range(0, bm, down))
    of_b = corner.col_alone().repeated(range(bk), range(0, bn, across))
    shared = (
        shared_access("store", HELD, a.turned().repeated(range(FOUR), [0]), bm + PAD),
        shared_access("store", HELD, b, bn, FOUR),
        shared_access("load", HELD, of_a, bm + PAD, FOUR),
        shared_access("load", HELD, of_b, bn, FOUR),
    )
    return staged(
        problem,
        tiling,
        copies=copied(problem, tiling, copy_a, copy_b, wide, wide),
        shared=[(steps, each) for each in shared],
        update=update_fours(problem, tiling, corner, (down, across), aligned),
        barriers=2 * steps,
        shared_bytes=HELD * bk * (bm + PAD + bn),
        round_trips=steps,
    )
