"""A warp's tile of C: which elements each thread computes, and how it computes them.

The threads of a warp lie in its tile as a rectangle, two down, then across, then down again: so the
eight lanes that one wavefront serves read few words, each sent to several of them.
"""

from collections.abc import Callable

import numpy as np
from numpy import int32

from gemmlab.instructions import load_v4
from gemmlab.kernels.kernel import on_device
from gemmlab.kernels.simt.shared.vector_access import FOUR
from gemmlab.model import traffic
from gemmlab.tiling import WARP, Tiling


def first_element(tiling: Tiling) -> Callable:
    """Return the function (t) -> (i, j): place of thread t's first group in the block's tile."""
    WM, WN = tiling.warp
    WARPS_N = tiling.block[1] // WN
    LANES_N = tiling.warp_lanes[1]

    def first(t):
        warp, lane = t // WARP, t % WARP
        i = warp // WARPS_N * WM + (lane // (2 * LANES_N) * 2 + lane % 2) * 4
        j = warp % WARPS_N * WN + lane // 2 % LANES_N * 4
        return int32(i), int32(j)

    return first


def apart(tiling: Tiling) -> tuple[int, int]:
    """Rows and columns from each of a thread's groups to its next: its warp lies between them."""
    lanes_m, lanes_n = tiling.warp_lanes
    return FOUR * lanes_m, FOUR * lanes_n


def loading(tiling: Tiling) -> Callable:
    """Give the device function (As, Bs, q, i, j, a, b) that loads a thread's fragments of row q."""
    TM, TN = tiling.thread
    DOWN, ACROSS = apart(tiling)

    @on_device
    def load(As, Bs, q, i, j, a, b):
        for g in range(0, TM, 4):
            a[g], a[g + 1], a[g + 2], a[g + 3] = load_v4(As, q, i + g // 4 * DOWN)
        for g in range(0, TN, 4):
            b[g], b[g + 1], b[g + 2], b[g + 3] = load_v4(Bs, q, j + g // 4 * ACROSS)

    return load


def multiplying(tiling: Tiling) -> Callable:
    """Return the device function (a, b, acc) that adds a·bᵀ to acc.

    It goes to and fro along the rows: at a turn, b's element is still at hand.
    """
    TM, TN = tiling.thread

    @on_device
    def multiply(a, b, acc):
        for r in range(TM):
            for e in range(TN):
                c = e if r % 2 == 0 else TN - 1 - e
                acc[r, c] += a[r] * b[c]

    return multiply


COMPUTABLE = (
    "warp tiles two or more threads high, thread tiles of multiples of 4, steps of multiples of 8 "
    "along k"
)


def computable(tiling: Tiling) -> bool:
    """Say whether warp tiles are an even number of threads high, and thread tiles made of fours."""
    return (
        tiling.warp is not None
        and tiling.warp_lanes[0] % 2 == 0
        and not any(size % FOUR for size in tiling.thread)
    )


# ------------------------------------------------------------------------------------- their counts


def first_elements(tiling: Tiling) -> traffic.Lanes:
    """Return the place of each thread's first group in the block's tile."""
    threads = np.arange(tiling.threads).reshape(-1, WARP)
    row, col = first_element(tiling)(threads)
    return traffic.Lanes(row, col, np.ones_like(threads, bool))
