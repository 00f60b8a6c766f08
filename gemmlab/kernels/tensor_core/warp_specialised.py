"""Warp specialisation: one warp copies, two warpgroups multiply, and they meet at mbarriers only.

A *producer* lets the TMA copy tiles of A and B into a ring of `stages` in shared memory. *Consumers*,
warpgroups of 64 rows each, multiply them by `wgmma`, straight from shared memory. Of each stage two
barriers say how it stands: `full`, once its bytes have come, and `empty`, once all consumers have
read it. Blocks are persistent: one for each SM, which takes tile after tile of C, so that the
producer is ahead with the next tile while this one is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from numpy import float16, uint32, uint64
from numpy import float32

from gemmlab.instructions import (
    WGMMA,
    WGMMA_WAIT,
    fence_mbarrier_init,
    fence_tensor_map,
    mbarrier_arrive,
    mbarrier_arrive_expect,
    mbarrier_init,
    mbarrier_wait,
    setmaxnreg_dec,
    setmaxnreg_inc,
    shared_view,
    store_v2,
    tma_load,
    wgmma_commit,
    wgmma_fence,
)
from gemmlab.instructions.warpgroup import ROWS, WARPGROUP, K
from gemmlab.kernels.kernel import on_device
from gemmlab.simt import cuda

HALF = 2
WORD = 8  # bytes of an mbarrier


def build(tiling, GROUP=8, store_all=True, cap=240):
    BM, BN, BK = tiling.block
    STAGES = tiling.stages
    CONSUMERS, REGISTERS = BM // ROWS, BN // 2
    PRODUCER = CONSUMERS * WARPGROUP  # the first thread of the warpgroup that copies
    A_BYTES, B_BYTES = BM * BK * HALF, BN * BK * HALF
    BARRIERS = STAGES * (A_BYTES + B_BYTES)
    wgmma, wgmma_wait = WGMMA[BN], WGMMA_WAIT[BN]

    @on_device
    def stage_of(step):
        return step % uint32(STAGES)

    @on_device
    def parity_of(step):
        return step // uint32(STAGES) & uint32(1)

    @on_device
    def corner(tile, down, across):
        """Row and column of C at which a tile begins: GROUP tiles high columns, one after the other."""
        band = tile // (GROUP * across)
        height = min(down - band * GROUP, GROUP)
        place = tile - band * GROUP * across
        return (band * GROUP + place % height) * BM, place // height * BN

    @on_device
    def update(C, row, col, alpha, x, y, beta):
        """Two neighbours in a row of C."""
        x *= alpha
        y *= alpha
        if beta != 0:
            x += beta * C[row, col]
            y += beta * C[row, col + 1]
        store_v2(C, row, col, (x, y))

    def storing(j):
        others = storing(j + 1) if j + 1 < BN // 8 else None

        @on_device
        def store(C, row, col, alpha, acc, beta):
            update(C, row, col + 8 * j, alpha, acc[4 * j], acc[4 * j + 1], beta)
            update(C, row + 8, col + 8 * j, alpha, acc[4 * j + 2], acc[4 * j + 3], beta)
            if others is not None:
                others(C, row, col, alpha, acc, beta)

        return store
    store = storing(0)

    def warp_specialised(alpha, A, B, k, beta, C):
        As = shared_view((STAGES, BM, BK), float16, 0)
        Bs = shared_view((STAGES, BN, BK), float16, STAGES * A_BYTES)
        full = shared_view((STAGES,), uint64, BARRIERS)
        empty = shared_view((STAGES,), uint64, BARRIERS + STAGES * WORD)
        thread = cuda.threadIdx.x
        m, n = C.shape
        down, across = (m + BM - 1) // BM, (n + BN - 1) // BN
        if thread == 0:
            for stage in range(STAGES):
                mbarrier_init(full, stage, 1)
                mbarrier_init(empty, stage, CONSUMERS)
            fence_mbarrier_init()
        cuda.syncthreads()

        step = uint32(0)
        if thread >= PRODUCER:
            setmaxnreg_dec(24)
            if thread == PRODUCER:
                fence_tensor_map(A)
                fence_tensor_map(B)
                for tile in range(cuda.blockIdx.x, down * across, cuda.gridDim.x):
                    row, col = corner(tile, down, across)
                    for p in range(0, k, BK):
                        stage = stage_of(step)
                        mbarrier_wait(empty, stage, parity_of(step) ^ uint32(1))
                        mbarrier_arrive_expect(full, stage, A_BYTES + B_BYTES)
                        tma_load(As, stage, 0, 0, A, row, p, full, stage)
                        tma_load(Bs, stage, 0, 0, B, col, p, full, stage)
                        step += uint32(1)
        else:
            setmaxnreg_inc(240)
            acc = cuda.local.array(REGISTERS, float32)
            top = thread // WARPGROUP * ROWS
            lane = thread % 32
            i = thread // 32 * 16 + lane // 4
            j = lane % 4 * 2
            for tile in range(cuda.blockIdx.x, down * across, cuda.gridDim.x):
                row, col = corner(tile, down, across)
                for p in range(0, k, BK):
                    stage = stage_of(step)
                    mbarrier_wait(full, stage, parity_of(step))
                    wgmma_fence()
                    wgmma(acc, As, stage, top, 0, Bs, stage, 0, 0, p > 0)
                    wgmma(acc, As, stage, top, K, Bs, stage, 0, K, True)
                    wgmma(acc, As, stage, top, 2 * K, Bs, stage, 0, 2 * K, True)
                    wgmma(acc, As, stage, top, 3 * K, Bs, stage, 0, 3 * K, True)
                    wgmma_commit()
                    wgmma_wait(1, acc)
                    if p > 0 and thread % WARPGROUP == 0:
                        mbarrier_arrive(empty, stage_of(step - uint32(1)))
                    step += uint32(1)
                wgmma_wait(0, acc)
                if thread % WARPGROUP == 0:
                    mbarrier_arrive(empty, stage_of(step - uint32(1)))
                if store_all:
                    store(C, row + i, col + j, alpha, acc, beta)
                else:
                    update(C, row + i, col + j, alpha, acc[0], acc[77], beta)

    return warp_specialised
