"""Which elements of C a thread computes where warps have tiles of their own: one map for all.

The threads of a warp lie in its tile as a rectangle, two down, then across, then down again: so the
eight lanes that one pass of shared memory serves read few words, each sent to several of them. The
functions take a thread's number inside a kernel, and an array of such numbers outside.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy import int32

from gemmlab.kernels.simt.fours import FOUR
from gemmlab.model import traffic
from gemmlab.tiling import WARP, Tiling


def first_element(tiling: Tiling) -> Callable:
    """T -> (i, j): row and column, in the block's tile, of the first group of thread t."""
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


def first_elements(tiling: Tiling) -> traffic.Lanes:
    """Where the first group of each thread of a block is."""
    threads = np.arange(tiling.threads).reshape(-1, WARP)
    row, col = first_element(tiling)(threads)
    return traffic.Lanes(row, col, np.ones_like(threads, bool))
