"""Rung 4, tcec_split: operands are split beforehand, and Hopper's warpgroups multiply the parts.

`wgmma` reads both operands from shared memory, and the TMA copies what is in global memory as it
is: so the parts have to be there. A launch before writes them, at the speed of memory, and the
kernel is *warp_specialised* with four rings in place of two and three products in place of one.
Main products are summed in Tensor Cores for bk of k only: the error of a short sum is what they
round toward zero there, that of a long one what FP32 rounds in k / bk additions.

Source of the scheme: see *warp_specialised*; of the products: see `warpgroup_tiles`.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from numpy import float16, float32, uint32, uint64

from gemmlab import Device
from gemmlab.instructions import (
    fence_mbarrier_init,
    fence_tensor_map,
    mbarrier_init,
    mbarrier_wait,
    setmaxnreg_dec,
    setmaxnreg_inc,
    shared_view,
)
from gemmlab.instructions.tensor_copies import ROW
from gemmlab.instructions.warpgroup import ROWS, WARPGROUP, K
from gemmlab.kernels.kernel import Kernel, check_fit
from gemmlab.kernels.tcec.shared import product_sums, split_operands
from gemmlab.kernels.tcec.shared.product_sums import PRODUCTS, flops
from gemmlab.kernels.tcec.shared.split_operands import PARTS, copying_parts, split_work
from gemmlab.kernels.tcec.shared.warpgroup_tiles import multiplying_tiles
from gemmlab.kernels.tensor_core.shared import tma_tiles
from gemmlab.kernels.tensor_core.shared.accumulators import update_c, updating
from gemmlab.kernels.tensor_core.shared.rasterisation import corners
from gemmlab.kernels.tensor_core.shared.tma_tiles import DEPTH, WORD, copying, shape
from gemmlab.kernels.tensor_core.warp_specialised import FEW, MANY, compile_options, configure
from gemmlab.model import traffic
from gemmlab.problem import LAYOUTS, Gemm
from gemmlab.simt import cuda
from gemmlab.tiling import WARP, Tiling


def build(tiling: Tiling, layout: str = "nn", paired: bool = True) -> Callable:
    """The kernel, a function of (alpha, A, B, beta, C, the parts of A and B, their tensor maps).

    layout, paired : as in *mma_shared*
    """
    BM, BN, _ = tiling.block
    STAGES = tiling.stages
    CONSUMERS = BM // ROWS
    PRODUCER = CONSUMERS * WARPGROUP  # the first thread behind the consumers
    OF_AH, OF_AL, OF_BH, OF_BL, TILES = split_operands.rings(tiling)
    HELD = BN // 2  # elements of C that a thread of a consumer has
    A_ALONG, B_ALONG = tma_tiles.along_k(layout)
    A_SHAPE, B_SHAPE = (STAGES, *shape(BM, A_ALONG)), (STAGES, *shape(BN, B_ALONG))
    corner, (stage_of, parity_of) = corners(tiling), tma_tiles.turning(STAGES)
    copy = copying_parts(tiling, copying(BM, A_ALONG), copying(BN, B_ALONG))
    multiply_tile, update = multiplying_tiles(tiling, layout), updating(BN, "float32", paired)

    def tcec_split(alpha, A, B, beta, C, A_high, A_low, B_high, B_low, to_Ah, to_Al, to_Bh, to_Bl):
        Ah, Al = shared_view(A_SHAPE, float16, OF_AH), shared_view(A_SHAPE, float16, OF_AL)
        Bh, Bl = shared_view(B_SHAPE, float16, OF_BH), shared_view(B_SHAPE, float16, OF_BL)
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
                        copy(
                            Ah, Al, Bh, Bl, stage,
                            to_Ah, to_Al, to_Bh, to_Bl, row, col, p, p, full,
                        )  # fmt: skip
                        step += uint32(1)
        else:
            setmaxnreg_inc(MANY)
            main, part = cuda.local.array(HELD, float32), cuda.local.array(HELD, float32)
            cross = cuda.local.array(HELD, float32)
            i = thread // WARP * 16 + thread % WARP // 4  # of the tile, this thread's first element
            j = thread % 4 * 2
            for tile in range(cuda.blockIdx.x, tiles, cuda.gridDim.x):
                row, col = corner(tile, m, n)
                step = multiply_tile(
                    main, part, cross, Ah, Al, Bh, Bl, full, empty, step, k, thread
                )
                update(C, row + i, col + j, alpha, main, beta)

    return tcec_split


def variant(problem: Gemm, capability: tuple[int, int] | None) -> Mapping[str, Any]:
    """Keyword arguments of `build`."""
    return {"layout": problem.layout, "paired": problem.n % 2 == 0}


def work(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """Return the split, and the work of all tiles of C, at the rate of Tensor Cores.

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
    copies = Counter(tensor_copy_bytes=steps * PARTS * (bm + bn) * ROW)
    read = steps * (PRODUCTS * bm // ROWS * (ROWS + bn) + PARTS * (bm + bn))
    multiplied = replace(
        found,
        counters=found.counters + copies,
        l1_wavefronts=found.l1_wavefronts + read,
        chain=(1, 0),
        block_counters=Counter(barriers=1),
    )
    return traffic.together(split_work(problem), multiplied)


def check(tiling: Tiling) -> None:
    """Raise ValueError for a tiling that two consumers and the rings cannot have."""
    bm, bn, bk = tiling.block
    whole = bk % DEPTH == 0 or bk in (K, 2 * K)
    check_fit(
        bm == 2 * ROWS and bn in (64, 128) and whole and tiling.stages >= 2,
        tiling,
        f"tcec_split, which needs blocks of {2 * ROWS}×n×k with n 64 or 128 and k {K}, {2 * K} or "
        f"a multiple of {DEPTH}, and two stages or more",
        DEFAULT,
    )


DEFAULT = Tiling(block=(128, 128, DEPTH), stages=3)


def suggest(problem: Gemm, device: Device) -> Tiling:
    """Suggest the default tiling, which adds half as much at a time of a short sum.

    There FP32 units, that add one product after the other, have rounded little, too.
    """
    return DEFAULT if problem.k > SHORT else replace(DEFAULT, block=(*DEFAULT.block[:2], 2 * K))


SHORT = 512  # of k

tcec_split = Kernel(
    name="tcec_split",
    idea="operands split beforehand, three products by warpgroups",
    default=DEFAULT,
    build=build,
    configure=configure,
    persistent=True,
    work=work,
    check=check,
    shared_bytes=split_operands.shared_bytes,
    dynamic=True,
    variant=variant,
    compile=compile_options,
    layouts=LAYOUTS,
    product_error=product_sums.product_error,
    before=(split_operands.SPLIT,),
    workspace=split_operands.workspace,
    scratch=split_operands.with_maps,
    suggest=suggest,
)
