"""The rung of warp tiles, whose copies run ahead of its arithmetic through a ring of tiles."""

from __future__ import annotations

import numpy as np

from gemmlab.model.traffic.access import Lanes, plane, shared_access
from gemmlab.model.traffic.pieces import FOUR, HELD, PAD, by_fours, copied, staged, update_fours
from gemmlab.model.traffic.work import Work
from gemmlab.problem import Gemm
from gemmlab.tiling import WARP, Tiling

RUN = 8  # neighbours along k that a group of lanes copies to be transposed


def warp_tiled(problem: Gemm, tiling: Tiling, asynchronous: bool = True) -> Work:
    """Rung *warp tiled*: the traffic of *vectorised* by other lanes, with half the barriers.

    An operand whose tile must be transposed is copied word by word, the other by groups of four.
    ⌈k/bk⌉ + stages - 1 tiles are copied, those beyond k as zeros that nothing is loaded for. A
    thread loads its fragments of each of the ⌈k/bk⌉·bk rows, and of one more that it does not use.
    Memory answers `stages` - 1 tiles in one round trip.

    An asynchronous copy is counted as the load and the store that it makes. Nsight Compute has
    names of their own for both, with `ldgsts` in them, so that its plain counts of global loads
    and shared stores lack them.
    asynchronous : whether the GPU has such copies; without, groups of four are stored whole
    """
    bm, bn, bk = tiling.block
    left, right = problem.layout
    aligned = problem.n % FOUR == 0 and (left == "n" or problem.m % FOUR == 0)
    steps, ahead = tiling.steps(problem), tiling.stages - 1
    length_a, length_b = bm + PAD * (left == "n"), bn + PAD * (right == "t")
    copy_a, wide_a = _copy(tiling, bm, left == "n", aligned)
    copy_b, wide_b = _copy(tiling, bn, right == "t", aligned)
    store_a, held_a = _copy(tiling, bm, left == "n", aligned or not asynchronous)
    store_b, held_b = _copy(tiling, bn, right == "t", aligned or not asynchronous)
    corner = _corners(tiling)
    down, across = (FOUR * lanes for lanes in tiling.warp_lanes)
    rows, cols = _apart(tiling, 0, down), _apart(tiling, 1, across)
    of_a = corner.row_alone().turned().repeated([0], rows)
    of_b = corner.col_alone().repeated([0], cols)
    stored_a = store_a.turned() if left == "n" else store_a
    stored_b = store_b.turned() if right == "t" else store_b
    shared = (
        (steps + ahead, shared_access("store", HELD, stored_a, length_a, held_a)),
        (steps + ahead, shared_access("store", HELD, stored_b, length_b, held_b)),
        (steps * bk + 1, shared_access("load", HELD, of_a, length_a, FOUR)),
        (steps * bk + 1, shared_access("load", HELD, of_b, length_b, FOUR)),
    )
    return staged(
        problem,
        tiling,
        copies=copied(problem, tiling, copy_a, copy_b, wide_a, wide_b),
        shared=shared,
        update=update_fours(problem, tiling, corner, (down, across), aligned),
        barriers=steps + 1,
        shared_bytes=HELD * tiling.stages * bk * (length_a + length_b),
        round_trips=-(-steps // ahead),
    )


def _copy(tiling: Tiling, width: int, transposed: bool, whole: bool) -> tuple[Lanes, int]:
    """Where threads copy a tile, as it lies in global memory, and the elements of each access.

    whole : groups of four move in one access, where they are not transposed
    """
    bk, threads = tiling.block[2], plane(tiling.threads, 1)
    if transposed:
        lanes = Lanes(threads.col // RUN, threads.col % RUN, threads.valid)
        far = range(0, width, tiling.threads // RUN)
        return lanes.repeated(far, range(0, bk, RUN)), 1
    in_a_row = tiling.threads // bk
    lanes = Lanes(threads.col // in_a_row, FOUR * (threads.col % in_a_row), threads.valid)
    return by_fours(lanes.repeated([0], range(0, width, FOUR * in_a_row)), whole)


def _corners(tiling: Tiling) -> Lanes:
    """The first element of C of each thread: lanes go two down, then across, then down again."""
    threads, (wm, wn) = plane(tiling.threads, 1), tiling.warp
    warp, lane = np.divmod(threads.col, WARP)
    lanes_n, warps_n = tiling.warp_lanes[1], tiling.block[1] // wn
    row = warp // warps_n * wm + (lane // (2 * lanes_n) * 2 + lane % 2) * FOUR
    return Lanes(row, warp % warps_n * wn + lane // 2 % lanes_n * FOUR, threads.valid)


def _apart(tiling: Tiling, along: int, distance: int) -> range:
    """Where a thread's groups of four begin along an axis, from its first on."""
    return range(0, tiling.thread[along] // FOUR * distance, distance)
