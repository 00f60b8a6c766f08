"""Stream-K on Tensor Cores: all steps of all tiles in one row, cut into shares of equal length.

One change from *mma_split_k*, and the one that *stream_k* makes of *split_k*: where k is cut. Each
block takes its share of the row, wherever tiles begin and end in it. A tile that lies in one share
goes to C at once, in C's format. Of a tile that several blocks share each stores its sums in FP32
in the workspace, and a second launch, the fix-up, adds them in the order of the blocks. It looks at
those tiles alone in which shares begin: most tiles of a large C need no sum. Counter to watch:
sectors of the workspace, at most two tiles a block, however many tiles C has.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy import float32, int32

from gemmlab import Device, Tiling
from gemmlab.instructions import cp_async_wait
from gemmlab.kernels.kernel import Dim, Launch, on_device
from gemmlab.kernels.split_k.mma_split_k import mma_split_k
from gemmlab.kernels.split_k.shared import workspace_tiles
from gemmlab.kernels.split_k.shared.mainloop_mma import stored, summed, summing
from gemmlab.kernels.split_k.shared.split_heuristics import fastest
from gemmlab.kernels.split_k.shared.workspace_tiles import adders, updated
from gemmlab.kernels.split_k.stream_k import blocks_of, counted, launch, shared, shares, workspace
from gemmlab.kernels.tensor_core.shared import shared_layouts, warp_mma
from gemmlab.kernels.tensor_core.shared.warp_mma import corner, updating
from gemmlab.model import traffic
from gemmlab.problem import Gemm
from gemmlab.simt import cuda


@on_device
def block_of(step, blocks, total):
    """The block that has this one of all steps in its share."""
    return ((step + 1) * blocks - 1) // total


def build(
    tiling: Tiling, layout: str = "nn", aligned: bool = True, paired: bool = True,
    dtype: str = "float16", out_dtype: str = "float32",
) -> Callable:  # fmt: skip
    """The function that multiplies, with all tile sizes frozen into it; see *mma_pipelined*."""
    BM, BN, BK = tiling.block
    K_AXIS = 1 if layout[0] == "n" else 0  # of A
    SUMS = warp_mma.fragment_shapes(tiling)[2]
    warp_corner, sum_part = on_device(corner(tiling)), summing(tiling, layout, aligned, dtype)
    store, update = updating(tiling, "float32", paired=True), updating(tiling, out_dtype, paired)

    def mma_stream_k(alpha, A, B, beta, C, W):
        block, blocks = cuda.blockIdx.x, cuda.gridDim.x
        steps = (A.shape[K_AXIS] + BK - 1) // BK
        across = (C.shape[1] + BN - 1) // BN
        total = (C.shape[0] + BM - 1) // BM * across * steps
        at, end = int32(block * total // blocks), int32((block + 1) * total // blocks)
        i, j = warp_corner(cuda.threadIdx.x)
        acc = cuda.local.array(SUMS, float32)
        while at < end:
            tile, step = at // steps, int32(at % steps)
            last = int32(min(steps, step + end - at))
            row, col = int32(tile // across * BM), int32(tile % across * BN)
            sum_part(A, B, row, col, i, j, step * BK, last * BK, acc)
            if last - step == steps:
                update(C, row + i, col + j, alpha, acc, beta)
            else:  # the parts of a tile lie one after the other, and no two in one place
                place = block_of(tile * steps, blocks, total) + block
                store(W, int32(place * BM) + i, j, float32(1), acc, float32(0))
            at = int32(at + last - step)
            cp_async_wait(0)
            cuda.syncthreads()  # the rings are empty, and nobody reads them

    return mma_stream_k


def build_fix_up(
    tiling: Tiling, layout: str = "nn", aligned: bool = True, paired: bool = True,
    dtype: str = "float16", out_dtype: str = "float32",
) -> Callable:  # fmt: skip
    """Return the function that adds up the parts of each tile that several blocks share.

    It looks at the tiles in which shares begin, of which there are no more than blocks; or at all
    tiles, where these are fewer.
    """
    BM, BN, BK = tiling.block
    K_AXIS = 1 if layout[0] == "n" else 0  # of A
    GROUPS = workspace_tiles.groups(tiling)
    add = workspace_tiles.adding_pairs(tiling, out_dtype, paired)

    def fix_up(alpha, A, B, beta, C, W):
        blocks = W.shape[0] // (2 * BM)
        steps = (A.shape[K_AXIS] + BK - 1) // BK
        across, down = (C.shape[1] + BN - 1) // BN, (C.shape[0] + BM - 1) // BM
        total, looked_at = down * across * steps, cuda.gridDim.x // GROUPS
        tile = cuda.blockIdx.x // GROUPS * total // looked_at // steps
        first = block_of(tile * steps, blocks, total)
        last = block_of((tile + 1) * steps - 1, blocks, total)
        if last > first:
            add(C, W, tile, 2 * first, first + last + 1, alpha, beta)

    return fix_up


def launch_fix_up(problem: Gemm, tiling: Tiling) -> tuple[Dim, Dim]:
    """Return (grid, block) of `build_fix_up`."""
    (_, rows), block = adders(problem, tiling, int(shares(problem, tiling)[0].max()))
    looked_at = min(math.prod(tiling.grid(problem)), blocks_of(problem, tiling))
    return (looked_at * workspace_tiles.groups(tiling), rows), block


def work(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """Give the traffic of *mma_pipelined*, whose rings are filled once for each part of a tile."""
    wide = 2 if shared_layouts.variant(problem, None)["paired"] else 1
    parts, longest = counted(problem, tiling)
    shared, whole = np.where(parts > 1, parts, 0), np.flatnonzero(parts == 1)
    lanes = warp_mma.pairs_of_sums(tiling).repeated([0], range(0, 2, wide))
    update = stored(tiling, int(shared.sum())) + updated(problem, tiling, whole, lanes, wide)
    every = int(parts.sum())
    product = summed(problem, tiling, every, longest, update, barriers=every)
    warps = min(workspace_tiles.WARPS, int(parts.max()))
    return traffic.together(
        product, workspace_tiles.added(problem, tiling, shared, warps, True, wide)
    )


def suggest(problem: Gemm, device: Device) -> Tiling:
    """Suggest the largest tile that no other outdoes, with blocks that keep processors busy."""
    return fastest(problem, device, mma_stream_k, shared)


mma_stream_k = replace(
    mma_split_k,
    name="mma_stream_k",
    idea="equal shares of all steps on Tensor Cores, wherever tiles end",
    build=build,
    configure=launch,
    work=work,
    after=(
        Launch(
            build_fix_up,
            launch_fix_up,
            variant=shared_layouts.variant,
            compile=workspace_tiles.for_adders,
        ),
    ),
    workspace=workspace,
    suggest=suggest,
)
