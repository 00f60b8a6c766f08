"""What a warpgroup has accumulated by `wgmma`, and the update of C with it.

Of a 64×n tile a thread has two neighbours in each group of eight columns, in two rows that are
eight apart: acc[4j], acc[4j + 1] and below them acc[4j + 2], acc[4j + 3].
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy import float32

from gemmlab import Gemm
from gemmlab.instructions import (
    cvt_rn_bf16x2_f32,
    cvt_rn_f16x2_f32,
    fence_proxy_async,
    stmatrix_x4,
    store_v2,
    tma_commit,
    tma_store,
    tma_wait_read,
)
from gemmlab.instructions.tensor_copies import ROW
from gemmlab.kernels.kernel import on_device
from gemmlab.kernels.tensor_core.shared.warp_mma import two_of
from gemmlab.model import traffic
from gemmlab.simt import cuda
from gemmlab.tiling import WARP, Tiling

WARP_ROWS = 16  # of a tile of C, that a warp accumulates
SLAB = ROW // 4  # columns of C in FP32 that the TMA stores at once
HALF_SLAB = ROW // 2  # and of C in 16 bits


def updating(columns: int, out_dtype: str, paired: bool) -> Callable:
    """The device function (C, row, col, alpha, acc, beta) that updates C from acc[0]'s place on.

    paired : rows of C have an even number of elements, so that neighbours move together
    """
    read, write = two_of(out_dtype, paired)

    @on_device
    def update_pair(C, row, col, alpha, x, y, beta):
        old = (float32(0), float32(0)) if beta == 0 else read(C, row, col)
        write(C, row, col, alpha * x + beta * old[0], alpha * y + beta * old[1])

    @on_device
    def nothing(C, row, col, alpha, acc, beta):
        pass

    def updates(group):
        """A device function that updates C from a group of eight columns on.

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


def storing(columns: int, held: int) -> Callable:
    """The device function (map of C, Cs, C, row, col, alpha, acc, beta) by which a warp updates C.

    It brings its 16 rows from `row` on, SLAB columns at a time, to its part Cs[warp, slab, i, j] of
    shared memory, in the swizzle, from where the TMA stores them. Nobody waits for the stores: a
    slab is filled anew once it has been read. C is in FP32.

    held : slabs of a warp in shared memory, `slabs`
    """
    read, _ = two_of("float32", True)
    OTHERS = held - 1

    @on_device
    def put_pair(Cs, warp, slab, i, place, C, row, col, alpha, x, y, beta):
        old = (float32(0), float32(0)) if beta == 0 else read(C, row, col)
        new = alpha * x + beta * old[0], alpha * y + beta * old[1]
        store_v2(Cs, warp, slab % held, i, place, new)

    @on_device
    def nothing(Cs, warp, C, row, col, alpha, acc, beta):
        pass

    def puts(slab, group):
        """Fill a slab from a group of eight columns on."""
        others = nothing if (group + 1) * 8 % SLAB == 0 else puts(slab, group + 1)
        a, first, within = 4 * group, 8 * group, 8 * group % SLAB

        @on_device
        def put(Cs, warp, C, row, col, alpha, acc, beta):
            i, j = cuda.threadIdx.x % WARP // 4, cuda.threadIdx.x % 4 * 2
            place, r, c = j ^ i % 8 * 4 ^ within, row + i, col + first + j
            put_pair(Cs, warp, slab, i, place, C, r, c, alpha, acc[a], acc[a + 1], beta)
            r += 8
            put_pair(Cs, warp, slab, i + 8, place, C, r, c, alpha, acc[a + 2], acc[a + 3], beta)
            others(Cs, warp, C, row, col, alpha, acc, beta)

        return put

    @on_device
    def none(D, Cs, C, row, col, alpha, acc, beta):
        pass

    def stores(slab):
        """A device function that fills and stores the slabs from one on."""
        others = stores(slab + 1) if (slab + 1) * SLAB < columns else none
        fill = puts(slab, slab * SLAB // 8)

        @on_device
        def store(D, Cs, C, row, col, alpha, acc, beta):
            warp, leads = cuda.threadIdx.x // WARP, cuda.threadIdx.x % WARP == 0
            if leads:
                tma_wait_read(OTHERS)
            cuda.syncwarp()
            fill(Cs, warp, C, row, col, alpha, acc, beta)
            fence_proxy_async()
            cuda.syncwarp()
            if leads:
                tma_store(D, row, col + slab * SLAB, Cs, warp, slab % held, 0, 0)
                tma_commit()
            others(D, Cs, C, row, col, alpha, acc, beta)

        return store

    return stores(0)


def storing_halves(columns: int, held: int, out_dtype: str) -> Callable:
    """Return what `storing` does where C has 16 bits: `stmatrix` brings 16 columns at a time.

    A slab has 64 columns then, and as many bytes. Each lane points to one row of a matrix of 8×8:
    lanes 0 to 15 to the rows of the first eight columns, lanes 16 to 31 to those of the next.
    """
    read, _ = two_of(out_dtype, True)
    pack = cvt_rn_f16x2_f32 if out_dtype == "float16" else cvt_rn_bf16x2_f32
    OTHERS = held - 1

    @on_device
    def updated(C, row, col, alpha, x, y, beta):
        old = (float32(0), float32(0)) if beta == 0 else read(C, row, col)
        return pack(alpha * x + beta * old[0], alpha * y + beta * old[1])

    @on_device
    def nothing(Cs, warp, C, row, col, alpha, acc, beta):
        pass

    def puts(slab, pair):
        """Fill a slab from a pair of groups of eight columns on."""
        others = nothing if (pair + 1) * 16 % HALF_SLAB == 0 else puts(slab, pair + 1)
        a, first, piece = 8 * pair, 16 * pair, 16 * pair % HALF_SLAB // 8

        @on_device
        def put(Cs, warp, C, row, col, alpha, acc, beta):
            lane = cuda.threadIdx.x % WARP
            r, c = row + lane // 4, col + first + lane % 4 * 2
            words = (
                updated(C, r, c, alpha, acc[a], acc[a + 1], beta),
                updated(C, r + 8, c, alpha, acc[a + 2], acc[a + 3], beta),
                updated(C, r, c + 8, alpha, acc[a + 4], acc[a + 5], beta),
                updated(C, r + 8, c + 8, alpha, acc[a + 6], acc[a + 7], beta),
            )
            i = lane % 16
            j = (piece + lane // 16 ^ i % 8) * 8  # in the swizzle
            stmatrix_x4(Cs, warp, slab % held, i, j, words)
            others(Cs, warp, C, row, col, alpha, acc, beta)

        return put

    @on_device
    def none(D, Cs, C, row, col, alpha, acc, beta):
        pass

    def stores(slab):
        """A device function that fills and stores the slabs from one on."""
        others = stores(slab + 1) if (slab + 1) * HALF_SLAB < columns else none
        fill = puts(slab, slab * HALF_SLAB // 16)

        @on_device
        def store(D, Cs, C, row, col, alpha, acc, beta):
            warp, leads = cuda.threadIdx.x // WARP, cuda.threadIdx.x % WARP == 0
            if leads:
                tma_wait_read(OTHERS)
            cuda.syncwarp()
            fill(Cs, warp, C, row, col, alpha, acc, beta)
            fence_proxy_async()
            cuda.syncwarp()
            if leads:
                tma_store(D, row, col + slab * HALF_SLAB, Cs, warp, slab % held, 0, 0)
                tma_commit()
            others(D, Cs, C, row, col, alpha, acc, beta)

        return store

    return stores(0)


def half_slabs(tiling: Tiling, room: int) -> tuple[int, int, int, int]:
    """Return what `slabs` does where C has 16 bits: a slab has twice the columns."""
    halved = replace(tiling, block=(tiling.block[0], tiling.block[1] // 2, tiling.block[2]))
    warps, held, rows, columns = slabs(halved, room)
    return warps, held, rows, 2 * columns


def slabs(tiling: Tiling, room: int) -> tuple[int, int, int, int]:
    """Return the shape of the slabs of all warps of consumers, in `room` bytes of shared memory.

    A tile takes each slab of a warp equally often, so that the next one begins with the oldest.
    """
    warps, each = tiling.block[0] // WARP_ROWS, tiling.block[1] // SLAB
    most = room // (warps * WARP_ROWS * ROW)
    held = max(n for n in range(1, each + 1) if each % n == 0 and n <= most)
    return warps, held, WARP_ROWS, SLAB


def slab_stores() -> Counter[str]:
    """Return a warp's stores to a slab."""
    lane, group = np.arange(WARP), np.arange(0, SLAB, 8)[:, None, None]
    i, j = lane // 4 + np.array([[0], [8]]), group + lane % 4 * 2
    flat = (i * SLAB + (j ^ i % 8 * 4)).reshape(-1, WARP)
    lanes = traffic.Lanes(np.zeros_like(flat), flat, np.ones_like(flat, bool))
    return traffic.shared_access("store", 4, lanes, 0, 2)


def half_slab_stores() -> Counter[str]:
    """Return a warp's stores to a slab of 16-bit elements: each brings four matrices."""
    times = HALF_SLAB // 16
    return Counter(shared_store_requests=times, shared_store_wavefronts=4 * times)


def update_c(problem: Gemm, tiling: Tiling) -> Counter[str]:
    """Return the epilogue of `updating`, over the whole grid."""
    pairs = pairs_of_sums(tiling)
    if problem.n % 2 == 0:
        return traffic.update_c(problem, tiling, pairs, 2)
    return traffic.update_c(problem, tiling, pairs.repeated([0], range(2)))


def pairs_of_sums(tiling: Tiling) -> traffic.Lanes:
    """Give the pairs of neighbours in a block's tile of C that its lanes have, access by access."""
    bm, bn, _ = tiling.block
    lane = np.arange(WARP)[None]
    warp = traffic.Lanes(lane // 4, lane % 4 * 2, np.ones((1, WARP), bool))
    return warp.repeated(range(0, bm, 8), range(0, bn, 8))
