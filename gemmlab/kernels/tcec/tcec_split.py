"""Rung 4, tcec_split: operands are split beforehand, and Hopper's warpgroups multiply the parts.

`wgmma` reads both operands from shared memory, and the TMA copies what is in global memory as it
is: so the parts have to be there. A launch before writes them, at the speed of memory, and the
kernel is *warp_specialised* with four rings in place of two and three products in place of one.
The main product is summed in Tensor Cores for bk of k and then added in FP32, to nearest, while
the corrections of the same k are multiplied.

Source of the scheme: see *warp_specialised*; of the products: see `sums`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from numpy import float16, float32, uint32, uint64

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
    wgmma_commit,
    wgmma_fence,
)
from gemmlab.instructions.tensor_maps import ROW
from gemmlab.instructions.warpgroup import ROWS, WARPGROUP, K
from gemmlab.kernels.kernel import Kernel, on_device
from gemmlab.kernels.tcec.halves import PARTS, SPLIT, split_work, with_maps, workspace
from gemmlab.kernels.tcec.held import adding, clearing, joining
from gemmlab.kernels.tcec.sums import PRODUCTS, flops
from gemmlab.kernels.tensor_core.accumulators import update_c, updating
from gemmlab.kernels.tensor_core.bands import corners
from gemmlab.kernels.tensor_core.boxes import (
    DEPTH,
    WORD,
    along_k,
    copying,
    shape,
)
from gemmlab.kernels.tensor_core.ring import multiplying_16, turning
from gemmlab.kernels.tensor_core.warp_specialised import (
    FEW,
    MANY,
    compile_options,
    launch,
)
from gemmlab.model import traffic
from gemmlab.model.work import together
from gemmlab.problem import Gemm
from gemmlab.product import LAYOUTS
from gemmlab.simt import cuda
from gemmlab.tiling import WARP, Tiling


def build(tiling: Tiling, layout: str = "nn", paired: bool = True) -> Callable:
    """The kernel, a function of (alpha, A, B, beta, C, the parts of A and B, their tensor maps).

    layout : which operands are stored transposed, see `Gemm.layout`
    paired : rows of C have an even number of elements
    """
    BM, BN, BK = tiling.block
    STAGES = tiling.stages
    CONSUMERS = BM // ROWS
    PRODUCER = CONSUMERS * WARPGROUP  # the first thread behind the consumers
    A_BYTES, B_BYTES = BM * ROW, BN * ROW  # of one part, in a stage
    STAGE_BYTES = PARTS * (A_BYTES + B_BYTES)
    FROM_A_LOW, FROM_B = STAGES * A_BYTES, PARTS * STAGES * A_BYTES
    FROM_B_LOW, TILES = FROM_B + STAGES * B_BYTES, STAGES * STAGE_BYTES
    HELD = BN // 2  # elements of C that a thread of a consumer has
    A_ALONG, B_ALONG = along_k(layout)
    A_SHAPE, B_SHAPE = (STAGES, *shape(BM, A_ALONG)), (STAGES, *shape(BN, B_ALONG))
    wgmma, wgmma_wait = WGMMA[BN, layout], WGMMA_WAIT[BN]
    corner, (stage_of, parity_of) = corners(tiling), turning(STAGES)
    multiply_add = multiplying_16(wgmma, layout)
    copy_a, copy_b = copying(BM, A_ALONG), copying(BN, B_ALONG)
    clear, add, join = clearing(HELD), adding(HELD), joining(HELD)
    update = updating(BN, "float32", paired)

    @on_device
    def nothing(sums, Ah, Al, Bh, Bl, stage, group, more):
        pass

    def main_products(q):
        """A device function that adds the main products of a stage, from q of k on."""
        others = main_products(q + K) if q + K < DEPTH else nothing

        @on_device
        def multiply(part, Ah, Al, Bh, Bl, stage, group, more):
            multiply_add(part, Ah, Bh, stage, group, q, more)
            others(part, Ah, Al, Bh, Bl, stage, group, True)

        return multiply

    def corrections(q):
        """A device function that adds the products that correct them."""
        others = corrections(q + K) if q + K < DEPTH else nothing

        @on_device
        def multiply(cross, Ah, Al, Bh, Bl, stage, group, more):
            multiply_add(cross, Al, Bh, stage, group, q, more)
            multiply_add(cross, Ah, Bl, stage, group, q, True)
            others(cross, Ah, Al, Bh, Bl, stage, group, True)

        return multiply

    multiply, correct = main_products(0), corrections(0)

    def tcec_split(alpha, A, B, beta, C, A_high, A_low, B_high, B_low, to_Ah, to_Al, to_Bh, to_Bl):
        Ah, Al = shared_view(A_SHAPE, float16, 0), shared_view(A_SHAPE, float16, FROM_A_LOW)
        Bh, Bl = shared_view(B_SHAPE, float16, FROM_B), shared_view(B_SHAPE, float16, FROM_B_LOW)
        full = shared_view((STAGES,), uint64, TILES)
        empty = shared_view((STAGES,), uint64, TILES + STAGES * WORD)
        m, n = C.shape
        k = A.shape[1] if A_ALONG else A.shape[0]
        tiles = (m + BM - 1) // BM * ((n + BN - 1) // BN)
        thread = cuda.threadIdx.x
        step = uint32(0)  # along k, over all tiles of this block

        if thread == 0:
            for stage in range(STAGES):
                mbarrier_init(full, stage, 1)
                mbarrier_init(empty, stage, CONSUMERS)
            fence_mbarrier_init()
        cuda.syncthreads()

        if thread >= PRODUCER:
            setmaxnreg_dec(FEW)
            if thread == PRODUCER:
                fence_tensor_map(to_Ah)
                fence_tensor_map(to_Al)
                fence_tensor_map(to_Bh)
                fence_tensor_map(to_Bl)
                for tile in range(cuda.blockIdx.x, tiles, cuda.gridDim.x):
                    row, col = corner(tile, m, n)
                    for p in range(0, k, DEPTH):
                        stage = stage_of(step)
                        # What the stage had a turn ago; in the first turn this passes at once.
                        mbarrier_wait(empty, stage, parity_of(step) ^ uint32(1))
                        mbarrier_arrive_expect(full, stage, STAGE_BYTES)
                        copy_a(Ah, stage, to_Ah, row, p, full)
                        copy_b(Bh, stage, to_Bh, col, p, full)
                        copy_a(Al, stage, to_Al, row, p, full)
                        copy_b(Bl, stage, to_Bl, col, p, full)
                        step += uint32(1)
        else:
            setmaxnreg_inc(MANY)
            main, part = cuda.local.array(HELD, float32), cuda.local.array(HELD, float32)
            cross = cuda.local.array(HELD, float32)
            group = thread // WARPGROUP  # of 64 rows of the tile
            i = thread // WARP * 16 + thread % WARP // 4  # of the tile, this thread's first element
            j = thread % 4 * 2
            leads = thread % WARPGROUP == 0
            for tile in range(cuda.blockIdx.x, tiles, cuda.gridDim.x):
                row, col = corner(tile, m, n)
                clear(main)
                for p in range(0, k, DEPTH):
                    stage = stage_of(step)
                    mbarrier_wait(full, stage, parity_of(step))
                    wgmma_fence()
                    multiply(part, Ah, Al, Bh, Bl, stage, group, p % BK > 0)
                    wgmma_commit()
                    correct(cross, Ah, Al, Bh, Bl, stage, group, p > 0)
                    wgmma_commit()
                    # Corrections go on, while what was begun before them is complete.
                    wgmma_wait(1, part)
                    if leads and p > 0:
                        mbarrier_arrive(empty, stage_of(step - uint32(1)))
                    if (p + DEPTH) % BK == 0 or p + DEPTH >= k:
                        add(main, part)
                    step += uint32(1)
                wgmma_wait(0, cross)
                if leads:
                    mbarrier_arrive(empty, stage_of(step - uint32(1)))
                join(main, cross)
                update(C, row + i, col + j, alpha, main, beta)

    return tcec_split


def variant(problem: Gemm, capability: tuple[int, int] | None) -> Mapping[str, Any]:
    """Keyword arguments of `build`."""
    return {"layout": problem.layout, "paired": problem.n % 2 == 0}


def shared_bytes(problem: Gemm, tiling: Tiling) -> int:
    """Shared memory of a block [B]: both parts in all stages, and two mbarriers for each."""
    bm, bn, _ = tiling.block
    return tiling.stages * (PARTS * (bm + bn) * ROW + 2 * WORD)


def work(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """The split, and the work of all tiles of C, at the rate of Tensor Cores.

    Each step of 64 along k copies both parts, and each consumer reads its 64 rows of A and all of B
    for each of three products. No thread loads A or B.
    """
    (bm, bn, _), (across, down) = tiling.block, tiling.grid(problem)
    by_depth = replace(tiling, block=(bm, bn, DEPTH))
    steps = across * down * by_depth.steps(problem)
    found = traffic.staged(
        problem, by_depth, Counter(), [], update_c(problem, tiling),
        barriers=0, round_trips=1, flops=flops(problem, by_depth),
    )  # fmt: skip
    (blocks, _), _ = launch(problem, tiling)
    copies = Counter(barriers=blocks, tensor_copy_bytes=steps * PARTS * (bm + bn) * ROW)
    read = steps * (PRODUCTS * bm // ROWS * (ROWS + bn) + PARTS * (bm + bn))
    multiplied = replace(
        found,
        counters=found.counters + copies,
        l1_wavefronts=found.l1_wavefronts + read,
        chain=(1, 0),
    )
    return together(split_work(problem), multiplied)


def check(tiling: Tiling) -> None:
    """Raise ValueError for a tiling that two consumers and the rings cannot have."""
    bm, bn, bk = tiling.block
    if bm != 2 * ROWS or bn not in (64, 128) or bk % DEPTH or tiling.stages < 2:
        raise ValueError(
            f"tiling {tiling} does not fit tcec_split, which needs blocks of {2 * ROWS}×n×k with n "
            f"64 or 128 and k a multiple of {DEPTH}, and two stages or more, such as {DEFAULT!r}"
        )


DEFAULT = Tiling(block=(128, 128, DEPTH), stages=3)

tcec_split = Kernel(
    name="tcec_split",
    idea="operands split beforehand, three products by warpgroups",
    default=DEFAULT,
    build=build,
    launch=launch,
    work=work,
    check=check,
    shared_bytes=shared_bytes,
    dynamic=True,
    variant=variant,
    compile=compile_options,
    layouts=LAYOUTS,
    before=(SPLIT,),
    workspace=workspace,
    scratch=with_maps,
)
