"""Split-K on Hopper: blocks that stay take parts of k, tile by tile, by `wgmma` and the TMA.

One change from *warp_specialised*, as *mma_split_k* makes it of *mma_pipelined*: what a block
takes, one after the other, is a tile of C and a part of k. So there are as many of these *units* as
the GPU has SMs, where C has few tiles. Their sums go to a workspace in float32, and a second launch
adds them up, in a fixed order, and updates C. The ring runs on from unit to unit: while consumers
store a part, the producer fills stages for the next. All tiles take a part of k before any takes
the next one, so that blocks which run at one time share rows of A and columns of B. Counter to
watch: the sectors of the workspace, 2·split·m·n·4 bytes of them.
"""

from collections.abc import Callable
from dataclasses import replace

from numpy import float16, float32, int32, uint16, uint32, uint64

from gemmlab import Device
from gemmlab.instructions import (
    WGMMA,
    WGMMA_BF16,
    WGMMA_WAIT,
    fence_mbarrier_init,
    fence_proxy_async,
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
from gemmlab.instructions.tensor_copies import ROW
from gemmlab.instructions.warpgroup import ROWS, WARPGROUP
from gemmlab.kernels.kernel import FLOAT, Dim, Launch, Workspace, on_device
from gemmlab.kernels.split_k.shared import split_heuristics, workspace_matrices, workspace_tiles
from gemmlab.kernels.tensor_core.shared import accumulators, shared_layouts, tma_tiles
from gemmlab.kernels.tensor_core.shared.tma_tiles import WORD, shape
from gemmlab.kernels.tensor_core.warp_specialised import (
    FEW,
    MANY,
    ring_work,
    threads,
    warp_specialised,
)
from gemmlab.model import traffic
from gemmlab.problem import Gemm
from gemmlab.simt import cuda
from gemmlab.tiling import WARP, Tiling

# Registers of a thread that carries tiles, and of one that multiplies, as FEW and MANY.
CARRYING = 120, 192


def build(
    tiling: Tiling, layout: str = "nt", aligned: bool = True, paired: bool = True,
    dtype: str = "float16", out_dtype: str = "float32",
) -> Callable:  # fmt: skip
    """Return the function that multiplies, of (alpha, map of A, map of B, k, beta, C, W).

    layout, aligned, paired, dtype, out_dtype : as in *warp_specialised*
    """
    BM, BN, BK = tiling.block
    STAGES = tiling.stages
    CONSUMERS = BM // ROWS
    PRODUCER = CONSUMERS * WARPGROUP  # the first thread behind the consumers
    A_BYTES, B_BYTES = BM * ROW, BN * ROW
    TILES = STAGES * (A_BYTES + B_BYTES)
    HELD = BN // 2  # sums that a thread of a consumer accumulates
    A_ALONG, B_ALONG = tma_tiles.along_k(layout)
    A_SHAPE, B_SHAPE = (STAGES, *shape(BM, A_ALONG)), (STAGES, *shape(BN, B_ALONG))
    ELEMENT = float16 if dtype == "float16" else uint16
    wgmma = (WGMMA if dtype == "float16" else WGMMA_BF16)[BN, layout]
    wgmma_wait, multiply = WGMMA_WAIT[BN], tma_tiles.multiplying(wgmma, layout)
    stage_of, parity_of = tma_tiles.turning(STAGES)
    copy_a, copy_b = tma_tiles.copying(BM, A_ALONG), tma_tiles.copying(BN, B_ALONG)
    carry_a = tma_tiles.carrying(BM, A_ALONG, WARPGROUP, PRODUCER, False, dtype)
    carry_b = tma_tiles.carrying(BN, B_ALONG, WARPGROUP, PRODUCER, False, dtype)
    BRINGERS = 1 if aligned else WARPGROUP
    OF_PRODUCER, OF_CONSUMERS = (FEW, MANY) if aligned else CARRYING
    store = accumulators.updating(BN, "float32", paired=True)

    @on_device
    def copy(As, Bs, stage, A, B, row, col, p, full):
        """Let the TMA copy the tiles of a stage; `full` counts their bytes."""
        mbarrier_arrive_expect(full, stage, A_BYTES + B_BYTES)
        copy_a(As, stage, A, row, p, full)
        copy_b(Bs, stage, B, col, p, full)

    @on_device
    def carry(As, Bs, stage, A, B, row, col, p, full):
        """Carry this thread's part of them; `full` counts the threads."""
        carry_a(As, stage, A, row, p)
        carry_b(Bs, stage, B, col, p)
        fence_proxy_async()
        mbarrier_arrive(full, stage)

    bring = copy if aligned else carry

    # Divisions are of 32 bits: a unit begins with four, and those of 64 take twice as long.
    @on_device
    def share(unit, tiles, across, parts, k):
        """The place of a unit: where its tile begins in C, its part, and that part's ends in k."""
        tile, part = uint32(uint32(unit) % tiles), uint32(uint32(unit) // tiles)
        row, col = int32(tile // across * BM), int32(tile % across * BN)
        steps = uint32((k + BK - 1) // BK)
        begin, end = uint32(part * steps) // parts * BK, uint32((part + 1) * steps) // parts * BK
        return row, col, int32(part), int32(begin), int32(end)

    def wgmma_split_k(alpha, A, B, k, beta, C, W):
        As = shared_view(A_SHAPE, ELEMENT, 0)
        Bs = shared_view(B_SHAPE, ELEMENT, STAGES * A_BYTES)
        full = shared_view((STAGES,), uint64, TILES)
        empty = shared_view((STAGES,), uint64, TILES + STAGES * WORD)
        across = uint32((C.shape[1] + BN - 1) // BN)
        tiles = uint32((C.shape[0] + BM - 1) // BM * across)
        parts = uint32(W.shape[0])
        units = int32(tiles * parts)
        thread = cuda.threadIdx.x
        step = uint32(0)  # along k, over all units of this block

        if thread == 0:
            for stage in range(STAGES):
                mbarrier_init(full, stage, BRINGERS)
                mbarrier_init(empty, stage, CONSUMERS)
            fence_mbarrier_init()
        cuda.syncthreads()

        if thread >= PRODUCER:
            setmaxnreg_dec(OF_PRODUCER)
            if thread < PRODUCER + BRINGERS:
                if aligned:
                    fence_tensor_map(A)
                    fence_tensor_map(B)
                for unit in range(cuda.blockIdx.x, units, cuda.gridDim.x):
                    row, col, _, begin, end = share(unit, tiles, across, parts, k)
                    for p in range(begin, end, BK):
                        stage = stage_of(step)
                        # What the stage had a turn ago; in the first turn this passes at once.
                        mbarrier_wait(empty, stage, parity_of(step) ^ uint32(1))
                        bring(As, Bs, stage, A, B, row, col, p, full)
                        step += uint32(1)
        else:
            setmaxnreg_inc(OF_CONSUMERS)
            acc = cuda.local.array(HELD, float32)
            group = thread // WARPGROUP  # of 64 rows of the tile
            i = thread // WARP * 16 + thread % WARP // 4  # of the tile, this thread's first element
            j = thread % 4 * 2
            leads = thread % WARPGROUP == 0
            for unit in range(cuda.blockIdx.x, units, cuda.gridDim.x):
                row, col, part, begin, end = share(unit, tiles, across, parts, k)
                for p in range(begin, end, BK):
                    stage = stage_of(step)
                    mbarrier_wait(full, stage, parity_of(step))
                    wgmma_fence()
                    multiply(acc, As, Bs, stage, group, p > begin)
                    wgmma_commit()
                    # This product goes on while the one before is complete: its stage is read.
                    wgmma_wait(1, acc)
                    if leads and p > begin:
                        mbarrier_arrive(empty, stage_of(step - uint32(1)))
                    step += uint32(1)
                wgmma_wait(0, acc)
                if leads:
                    mbarrier_arrive(empty, stage_of(step - uint32(1)))
                store(W[part], row + i, col + j, float32(1), acc, float32(0))

    return wgmma_split_k


def build_sum(
    tiling: Tiling, layout: str = "nt", aligned: bool = True, paired: bool = True,
    dtype: str = "float16", out_dtype: str = "float32",
) -> Callable:  # fmt: skip
    """Return the function that adds up the parts and updates C."""
    add = workspace_matrices.adding(out_dtype, paired)

    def add_parts(alpha, A, B, k, beta, C, W):
        add(C, W, alpha, beta)

    return add_parts


def parts_of(problem: Gemm, tiling: Tiling) -> int:
    """Parts of k: `split`, but none without a step."""
    return min(tiling.split, tiling.steps(problem))


def units_of(problem: Gemm, tiling: Tiling) -> int:
    """Parts of all tiles."""
    across, down = tiling.grid(problem)
    return across * down * parts_of(problem, tiling)


def configure(problem: Gemm, tiling: Tiling) -> tuple[Dim, Dim]:
    """Return (grid, block): as many blocks as units, in one row."""
    return (units_of(problem, tiling), 1), (threads(tiling), 1)


def configure_sum(problem: Gemm, tiling: Tiling) -> tuple[Dim, Dim]:
    """Return (grid, block) of `build_sum`."""
    return workspace_matrices.adders(problem, parts_of(problem, tiling))


def workspace(problem: Gemm, tiling: Tiling) -> tuple[Workspace, ...]:
    """Return the parts' sums."""
    return (workspace_matrices.matrices(problem, tiling, parts_of(problem, tiling)),)


def work(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """Return the work of *warp_specialised*, whose blocks take units, and that of the sums."""
    (bm, bn, _), units = tiling.block, units_of(problem, tiling)
    pairs, tiles = accumulators.pairs_of_sums(tiling), ([(0, bm, units)], [(0, bn, 1)])
    stores = traffic.global_access(
        "store", FLOAT, pairs, pairs.row * bn + pairs.col, *tiles, wide=2
    )
    multiplied = ring_work(problem, tiling, stores)
    sums = workspace_matrices.added(problem, parts_of(problem, tiling))
    return traffic.together(multiplied, sums)


def suggest(problem: Gemm, device: Device) -> Tiling:
    """Suggest the widest tile that no other outdoes, with the split that `predict` and the model of
    sums choose for it.
    """
    return split_heuristics.fastest(problem, device, wgmma_split_k, split_heuristics.filled)


DEFAULT = Tiling(block=(128, 256, tma_tiles.DEPTH), stages=4)
TILINGS = (
    DEFAULT,
    Tiling(block=(128, 128, tma_tiles.DEPTH), stages=6),
    Tiling(block=(128, 64, tma_tiles.DEPTH), stages=8),
)

wgmma_split_k = replace(
    warp_specialised,
    name="wgmma_split_k",
    idea="parts of k for warpgroups on all SMs, added by a second launch",
    default=DEFAULT,
    build=build,
    configure=configure,
    work=work,
    tilings=TILINGS,
    after=(
        Launch(
            build_sum,
            configure_sum,
            variant=shared_layouts.variant,
            compile=workspace_tiles.for_adders,
        ),
    ),
    workspace=workspace,
    splits=True,
    suggest=suggest,
)
