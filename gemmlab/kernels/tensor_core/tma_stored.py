"""Stores by the TMA: C leaves for memory while the next tile is multiplied.

In *warp_specialised* every thread stores pairs of C, 32 bytes of a row at a time, and multiplies
nothing meanwhile. Here each warp puts its rows of C into shared memory, a slab of 32 columns at a
time, and one thread of it lets the TMA store whole lines from there. The warp goes on: nobody waits
for memory, and what one consumer spends on its stores, the other one has the Tensor Cores for
itself. Counter to watch: global stores, none.

Where the TMA cannot copy rows of A, B or C, or C is not in FP32, this is *warp_specialised*.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from typing import Any

from numpy import float16, float32, uint16, uint32, uint64

from gemmlab import device
from gemmlab.formats import number_format
from gemmlab.instructions import (
    WGMMA,
    WGMMA_BF16,
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
    tensor_map,
    tma_wait_read,
    wgmma_commit,
    wgmma_fence,
)
from gemmlab.instructions.tensor_copies import ROW, STEP
from gemmlab.instructions.warpgroup import ROWS, WARPGROUP
from gemmlab.kernels.kernel import FLOAT, check_fit
from gemmlab.kernels.tensor_core.shared import accumulators, tma_tiles
from gemmlab.kernels.tensor_core.shared.accumulators import WARP_ROWS
from gemmlab.kernels.tensor_core.shared.rasterisation import corners
from gemmlab.kernels.tensor_core.shared.shared_layouts import variant as of_operands
from gemmlab.kernels.tensor_core.shared.tma_tiles import DEPTH, WORD, shape
from gemmlab.kernels.tensor_core.warp_specialised import (
    FEW,
    MANY,
    build as stored_by_threads,
    warp_specialised,
    work as work_by_threads,
)
from gemmlab.model import traffic
from gemmlab.problem import Gemm
from gemmlab.simt import cuda
from gemmlab.tiling import WARP, Tiling


def build(
    tiling: Tiling, layout: str = "nt", aligned: bool = True, paired: bool = True,
    dtype: str = "float16", out_dtype: str = "float32", boxed: bool = True,
) -> Callable:  # fmt: skip
    """Return the kernel, a function of (alpha, map of A, map of B, k, beta, map of C, C).

    layout, aligned, paired, dtype, out_dtype : as in *warp_specialised*
    boxed : the TMA copies rows of A, B and C, and C is in FP32
    """
    if not boxed:
        return stored_by_threads(tiling, layout, aligned, paired, dtype, out_dtype)
    BM, BN, BK = tiling.block
    STAGES = tiling.stages
    CONSUMERS = BM // ROWS
    PRODUCER = CONSUMERS * WARPGROUP  # the first thread behind the consumers
    A_BYTES, B_BYTES = BM * ROW, BN * ROW
    TILES = STAGES * (A_BYTES + B_BYTES)
    C_SHAPE = accumulators.slabs(tiling, room(tiling))
    BARRIERS = TILES + FLOAT * prod(C_SHAPE)
    HELD = BN // 2  # elements of C that a thread of a consumer accumulates
    A_ALONG, B_ALONG = tma_tiles.along_k(layout)
    A_SHAPE, B_SHAPE = (STAGES, *shape(BM, A_ALONG)), (STAGES, *shape(BN, B_ALONG))
    ELEMENT = float16 if dtype == "float16" else uint16
    wgmma = (WGMMA if dtype == "float16" else WGMMA_BF16)[BN, layout]
    wgmma_wait, multiply = WGMMA_WAIT[BN], tma_tiles.multiplying(wgmma, layout)
    corner, (stage_of, parity_of) = corners(tiling), tma_tiles.turning(STAGES)
    copy_a, copy_b = tma_tiles.copying(BM, A_ALONG), tma_tiles.copying(BN, B_ALONG)
    store = accumulators.storing(BN, C_SHAPE[1])

    def tma_stored(alpha, A, B, k, beta, D, C):
        As = shared_view(A_SHAPE, ELEMENT, 0)
        Bs = shared_view(B_SHAPE, ELEMENT, STAGES * A_BYTES)
        Cs = shared_view(C_SHAPE, float32, TILES)
        full = shared_view((STAGES,), uint64, BARRIERS)
        empty = shared_view((STAGES,), uint64, BARRIERS + STAGES * WORD)
        m, n = C.shape
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
                fence_tensor_map(A)
                fence_tensor_map(B)
                for tile in range(cuda.blockIdx.x, tiles, cuda.gridDim.x):
                    row, col = corner(tile, m, n)
                    for p in range(0, k, BK):
                        stage = stage_of(step)
                        # What the stage had a turn ago; in the first turn this passes at once.
                        mbarrier_wait(empty, stage, parity_of(step) ^ uint32(1))
                        mbarrier_arrive_expect(full, stage, A_BYTES + B_BYTES)
                        copy_a(As, stage, A, row, p, full)
                        copy_b(Bs, stage, B, col, p, full)
                        step += uint32(1)
        else:
            setmaxnreg_inc(MANY)
            acc = cuda.local.array(HELD, float32)
            group = thread // WARPGROUP  # of 64 rows of the tile
            i = thread // WARP * WARP_ROWS  # of the tile, this warp's first row
            leads = thread % WARPGROUP == 0
            if thread % WARP == 0:
                fence_tensor_map(D)
            for tile in range(cuda.blockIdx.x, tiles, cuda.gridDim.x):
                row, col = corner(tile, m, n)
                for p in range(0, k, BK):
                    stage = stage_of(step)
                    mbarrier_wait(full, stage, parity_of(step))
                    wgmma_fence()
                    multiply(acc, As, Bs, stage, group, p > 0)
                    wgmma_commit()
                    # This product goes on while the one before is complete: its stage is read.
                    wgmma_wait(1, acc)
                    if leads and p > 0:
                        mbarrier_arrive(empty, stage_of(step - uint32(1)))
                    step += uint32(1)
                wgmma_wait(0, acc)
                if leads:
                    mbarrier_arrive(empty, stage_of(step - uint32(1)))
                store(D, Cs, C, row + i, col, alpha, acc, beta)
            tma_wait_read(0)

    return tma_stored


def variant(problem: Gemm, capability: tuple[int, int] | None) -> Mapping[str, Any]:
    """Keyword arguments of `build` for a problem."""
    found = of_operands(problem, capability)
    in_boxes = problem.out_dtype == "float32" and problem.n * FLOAT % STEP == 0
    return {**found, "boxed": in_boxes and found["aligned"]}


def result(problem: Gemm, tiling: Tiling, C: Any) -> tuple:
    """Return the arguments in place of C: its tensor map, if the TMA stores it, and C itself."""
    boxed = variant(problem, None)["boxed"]
    return (tensor_map(C, WARP_ROWS), C) if boxed else (C,)


def work(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """Return the work of *warp_specialised*, with C's way through shared memory and the TMA."""
    found = work_by_threads(problem, tiling)
    if not variant(problem, None)["boxed"]:
        return found
    return through_slabs(found, problem, tiling, accumulators.slab_stores())


def through_slabs(
    found: traffic.Work, problem: Gemm, tiling: Tiling, stores: Counter[str]
) -> traffic.Work:
    """Return work whose C takes its way through slabs of shared memory and the TMA.

    found : the same work, in which threads store C; stores : those of a warp to a slab
    """
    by_threads = accumulators.update_c(replace(problem, beta=0), tiling)
    direct = by_threads.pop("l1_cycles")
    (bm, bn, _), (across, down) = tiling.block, tiling.grid(problem)
    size = across * down * bm * bn * number_format(problem.out_dtype).bytes
    put = Counter({name: n * (size // (WARP_ROWS * ROW)) for name, n in stores.items()})
    return replace(
        found,
        counters=found.counters - by_threads + put + Counter(tensor_store_bytes=size),
        l1_wavefronts=found.l1_wavefronts - direct + put["shared_store_wavefronts"] + size // ROW,
    )


def room(tiling: Tiling) -> int:
    """Shared memory of an SM that the ring and its mbarriers leave [B]."""
    return device("h200").shared_bytes_per_block - tma_tiles.ring_bytes(tiling)


def shared_bytes(problem: Gemm, tiling: Tiling) -> int:
    """Shared memory of a block [B]: the ring, and slabs of C."""
    return tma_tiles.ring_bytes(tiling) + FLOAT * prod(accumulators.slabs(tiling, room(tiling)))


def check(
    tiling: Tiling, kernel: str = "tma_stored", widths: tuple[int, ...] = tma_tiles.WIDTHS
) -> None:
    """Raise ValueError for a tiling that two consumers, the ring and the slabs cannot have."""
    bm, bn, bk = tiling.block
    fits = bm == 2 * ROWS and bn in widths and bk == DEPTH and tiling.stages >= 2
    check_fit(
        fits and room(tiling) >= bm * ROW,
        tiling,
        f"{kernel}, which needs blocks of {2 * ROWS}×n×{DEPTH} with n one of "
        f"{', '.join(map(str, widths))}, two stages or more, and {bm * ROW} B of shared "
        "memory besides",
        DEFAULT,
    )


DEFAULT = Tiling(block=(128, 256, DEPTH), stages=4)

tma_stored = replace(
    warp_specialised,
    name="tma_stored",
    idea="C is stored while the next tile is multiplied",
    default=DEFAULT,
    build=build,
    work=work,
    check=check,
    shared_bytes=shared_bytes,
    result=result,
    variant=variant,
    tilings=(
        DEFAULT,
        Tiling(block=(128, 256, DEPTH), stages=3),
        Tiling(block=(128, 128, DEPTH), stages=6),
        Tiling(block=(128, 64, DEPTH), stages=8),
    ),
)
