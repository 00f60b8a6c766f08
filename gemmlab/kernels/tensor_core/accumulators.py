"""What a warpgroup has accumulated by `wgmma`, and the update of C with it.

Of a 64×n tile a thread has two neighbours in each group of eight columns, in two rows that are
eight apart: acc[4j], acc[4j + 1] and below them acc[4j + 2], acc[4j + 3].
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gemmlab.instructions import load_v2, store_v2
from gemmlab.kernels.kernel import on_device
from gemmlab.model import traffic
from gemmlab.tiling import WARP, Tiling


def updating(columns: int, pairs: bool) -> Callable:
    """The device function (C, row, col, alpha, acc, beta) that updates C from acc[0]'s place on.

    pairs : rows of C begin at multiples of 8 bytes, so that two neighbours move at once
    """

    @on_device
    def update_one(C, row, col, alpha, x, beta):
        if row < C.shape[0] and col < C.shape[1]:
            C[row, col] = alpha * x if beta == 0 else alpha * x + beta * C[row, col]

    @on_device
    def update_both(C, row, col, alpha, x, y, beta):
        if row < C.shape[0] and col < C.shape[1]:
            if beta == 0:
                store_v2(C, row, col, (alpha * x, alpha * y))
            else:
                c, d = load_v2(C, row, col)
                store_v2(C, row, col, (alpha * x + beta * c, alpha * y + beta * d))

    @on_device
    def update_pair(C, row, col, alpha, x, y, beta):
        if pairs:
            update_both(C, row, col, alpha, x, y, beta)
        else:
            update_one(C, row, col, alpha, x, beta)
            update_one(C, row, col + 1, alpha, y, beta)

    @on_device
    def nothing(C, row, col, alpha, acc, beta):
        pass

    def updates(group):
        """The same from a group of eight columns on.

        Nesting writes out what a loop would index, so that acc stays in registers.
        """
        others = updates(group + 1) if group + 1 < columns // 8 else nothing
        i, j = 4 * group, 8 * group

        @on_device
        def update(C, row, col, alpha, acc, beta):
            update_pair(C, row, col + j, alpha, acc[i], acc[i + 1], beta)
            update_pair(C, row + 8, col + j, alpha, acc[i + 2], acc[i + 3], beta)
            others(C, row, col, alpha, acc, beta)

        return update

    return updates(0)


def places(tiling: Tiling, pairs: bool) -> traffic.Lanes:
    """The lanes that update a tile of C, at each access."""
    bm, bn, _ = tiling.block
    lane = np.arange(WARP)[None]
    warp = traffic.Lanes(lane // 4, lane % 4 * 2, np.ones((1, WARP), bool))
    each = 2 if pairs else 1
    return warp.repeated(range(0, bm, 8), [j + c for j in range(0, bn, 8) for c in (0, 1)[::each]])
