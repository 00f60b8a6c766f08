"""Parts of sums on Tensor Cores: added up as in `parts`, for a C of any format, two at a time."""

from __future__ import annotations

from collections.abc import Callable

from numpy import float32

from gemmlab.instructions import load_v4, store_v4
from gemmlab.kernels.kernel import on_device
from gemmlab.kernels.simt.shared.vector_access import FOUR, ZEROS
from gemmlab.kernels.split_k.shared.workspace_tiles import WARPS, WIDE, groups
from gemmlab.kernels.tensor_core.shared.warp_mma import two_of
from gemmlab.simt import cuda
from gemmlab.tiling import Tiling


def adding_pairs(tiling: Tiling, out_dtype: str, paired: bool) -> Callable:
    """The device function (C, W, tile, first, last, alpha, beta): C ← α·(sum of parts) + β·C.

    It is called by a block of the launch of `parts.adders`. The parts of C's tile number `tile` are
    slots `first` to `last` - 1 of the workspace.
    paired : whether pairs of C are moved at once
    """
    BM, BN, _ = tiling.block
    GROUPS = groups(tiling)
    read, write = two_of(out_dtype, paired)

    @on_device
    def update_two(C, i, j, alpha, left, right, beta):
        old = (float32(0), float32(0)) if beta == 0 else read(C, i, j)
        write(C, i, j, alpha * left + beta * old[0], alpha * right + beta * old[1])

    @on_device
    def add(C, W, tile, first, last, alpha, beta):
        of_warps = cuda.shared.array((WARPS, WIDE), float32, alignment=16)
        sums = cuda.local.array(FOUR, float32)
        x, y = cuda.threadIdx.x * FOUR, cuda.threadIdx.y
        across = (C.shape[1] + BN - 1) // BN
        r, c = cuda.blockIdx.y, cuda.blockIdx.x % GROUPS * WIDE + x  # in the tile
        i, j = tile // across * BM + r, tile % across * BN + c
        inside = c < BN and i < C.shape[0] and j < C.shape[1]

        for e in range(FOUR):
            sums[e] = float32(0)
        for part in range(first + y, last, cuda.blockDim.y):
            v = load_v4(W, part * BM + r, c) if inside else ZEROS
            for e in range(FOUR):
                sums[e] += v[e]
        store_v4(of_warps, y, x, (sums[0], sums[1], sums[2], sums[3]))
        cuda.syncthreads()
        if y == 0 and inside:
            for other in range(1, cuda.blockDim.y):
                v = load_v4(of_warps, other, x)
                for e in range(FOUR):
                    sums[e] += v[e]
            update_two(C, i, j, alpha, sums[0], sums[1], beta)
            update_two(C, i, j + 2, alpha, sums[2], sums[3], beta)

    return add
