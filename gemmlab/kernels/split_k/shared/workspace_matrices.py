"""Partial sums of C in a workspace, one matrix for each part of k, added up by a second launch.

The matrices are C filled up to whole tiles, so that rows begin at lines of 128 bytes. Tiles play no
role when they are added: a block takes 128 columns of a row. Its warps take turns at the parts, and
the first warp adds what they have. So the order depends on nothing but the number of parts: the
bits of the result are the same every time. Where there are fewer parts than warps, a block takes
several rows.
"""

from collections.abc import Callable

import numpy as np
from numpy import float32

from gemmlab import Gemm
from gemmlab.instructions import load_v4, store_v4
from gemmlab.kernels.kernel import FLOAT, Dim, Workspace, on_device
from gemmlab.kernels.simt.shared.vector_access import FOUR, ZEROS
from gemmlab.kernels.split_k.shared.workspace_tiles import WARPS, WIDE, moving, times
from gemmlab.kernels.tensor_core.shared.shared_layouts import inside
from gemmlab.kernels.tensor_core.shared.warp_mma import two_of
from gemmlab.model import traffic
from gemmlab.simt import cuda
from gemmlab.tiling import WARP, Tiling


def matrices(problem: Gemm, tiling: Tiling, parts: int) -> Workspace:
    """Room for so many matrices of sums."""
    (bm, bn, _), (across, down) = tiling.block, tiling.grid(problem)
    return Workspace((parts, down * bm, across * bn), "float32")


def adding(out_dtype: str, paired: bool) -> Callable:
    """Return the device function (C, W, alpha, beta): C ← α·(sum of W[part]) + β·C, by `adders`.

    paired : rows of C have an even number of elements, so that neighbours move together
    """
    read, write = two_of(out_dtype, paired)

    @on_device
    def update_two(C, i, j, alpha, left, right, beta):
        old = (float32(0), float32(0)) if beta == 0 else read(C, i, j)
        write(C, i, j, alpha * left + beta * old[0], alpha * right + beta * old[1])

    @on_device
    def add(C, W, alpha, beta):
        of_warps = cuda.shared.array((WARPS, WIDE), float32, alignment=16)
        sums = cuda.local.array(FOUR, float32)
        x, y, warps = cuda.threadIdx.x * FOUR, cuda.threadIdx.y, cuda.blockDim.y
        first = cuda.threadIdx.z * warps  # of the warps that have this row
        i = cuda.blockIdx.y * cuda.blockDim.z + cuda.threadIdx.z
        j = cuda.blockIdx.x * WIDE + x
        is_inside = inside(C, i, j)

        for e in range(FOUR):
            sums[e] = float32(0)
        part = y
        while part < W.shape[0]:
            v = load_v4(W, part, i, j) if is_inside else ZEROS
            for e in range(FOUR):
                sums[e] += v[e]
            part += warps
        store_v4(of_warps, first + y, x, (sums[0], sums[1], sums[2], sums[3]))
        cuda.syncthreads()
        if y == 0 and is_inside:
            for other in range(1, warps):
                v = load_v4(of_warps, first + other, x)
                for e in range(FOUR):
                    sums[e] += v[e]
            update_two(C, i, j, alpha, sums[0], sums[1], beta)
            update_two(C, i, j + 2, alpha, sums[2], sums[3], beta)

    return add


def adders(problem: Gemm, parts: int) -> tuple[Dim, Dim]:
    """Give (grid, block) of the launch that adds up the parts: of a block (lanes, warps, rows)."""
    warps = min(WARPS, parts)
    rows = WARPS // warps
    return (-(-problem.n // WIDE), -(-problem.m // rows)), (WARP, warps, rows)


# ------------------------------------------------------------------------------------- their counts


def added(problem: Gemm, parts: int) -> traffic.Work:
    """Return the work of the launch that adds parts up, and updates C.

    Additions are not counted: four of them need 16 bytes of the workspace.
    """
    (across, down), (_, warps, rows) = adders(problem, parts)
    lane, wide = FOUR * np.arange(WARP)[None], 2 if problem.n % 2 == 0 else 1
    row = traffic.Lanes(np.zeros_like(lane), lane, np.ones_like(lane, bool))
    widths = [(0, min(WIDE, problem.n - j), 1) for j in range(0, problem.n, WIDE)]
    counters = traffic.global_access(
        "load", FLOAT, row, row.col, [(0, 1, parts * problem.m)], widths, wide=FOUR
    )
    counters += traffic.update_c(
        problem, Tiling(block=(1, WIDE, 1)), row.repeated([0], range(0, FOUR, wide)), wide
    )
    for _, width, _ in widths:
        read = row._replace(valid=lane < width)
        each = traffic.shared_access("load", FLOAT, read, WIDE, FOUR)
        counters += times(each, (warps - 1) * problem.m)
    stored = traffic.shared_access("store", FLOAT, row, WIDE, FOUR)
    counters += times(stored, warps * rows * across * down)
    counters["barriers"] = across * down
    return moving(counters)
