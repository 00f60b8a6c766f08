"""Warp specialisation on Hopper: one thread copies, warpgroups multiply; they meet at mbarriers.

The *producer* lets the TMA copy tiles of A and B into a ring in shared memory, `stages` deep. The
*consumers*, warpgroups with 64 rows each, multiply them by `wgmma`, straight from shared memory.
Two mbarriers say how each stage stands: `full`, when its bytes have come, and `empty`, when all
consumers have read it; nobody waits for anything else. Blocks are *persistent*: there is one for
each SM, and it takes tile after tile of C, so that the producer fills the ring for the next tile
while this one is stored. Registers go to who needs them: an accumulator takes 128 of each thread.
Where the TMA cannot copy rows, which have to begin at multiples of 16 bytes, all threads of the
producer's warpgroup carry the tiles.

Source of the scheme: CUTLASS, "Efficient GEMM in CUDA", warp-specialised persistent kernels.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from numpy import float16, float32, uint16, uint32, uint64

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
from gemmlab.kernels.kernel import Dim, Kernel, check_fit, on_device
from gemmlab.kernels.tensor_core.shared import tma_tiles, warp_mma
from gemmlab.kernels.tensor_core.shared.accumulators import update_c, updating
from gemmlab.kernels.tensor_core.shared.rasterisation import corners
from gemmlab.kernels.tensor_core.shared.shared_layouts import are_aligned, variant
from gemmlab.kernels.tensor_core.shared.tma_tiles import WORD, carried, shape
from gemmlab.model import traffic
from gemmlab.problem import LAYOUTS, Gemm
from gemmlab.simt import cuda
from gemmlab.tiling import WARP, Tiling

# Of a thread of 2 consumers and 1 producer: 2·224 + 56 is three times the 168 that all begin with.
MANY, FEW = 224, 56


def build(
    tiling: Tiling, layout: str = "nt", aligned: bool = True, paired: bool = True,
    dtype: str = "float16", out_dtype: str = "float32",
) -> Callable:  # fmt: skip
    """Return the kernel, a function of (alpha, map of A, map of B, k, beta, C).

    layout : which operands are stored transposed, see `Gemm.layout`
    aligned : all rows of A and B begin at multiples of 16 bytes; else threads carry the tiles, and
        A and B are given in place of their maps
    paired : rows of C have an even number of elements
    dtype, out_dtype : the formats of A and B, and of C
    """
    BM, BN, BK = tiling.block
    STAGES = tiling.stages
    CONSUMERS = BM // ROWS
    PRODUCER = CONSUMERS * WARPGROUP  # the first thread behind the consumers
    A_BYTES, B_BYTES = BM * ROW, BN * ROW
    TILES = STAGES * (A_BYTES + B_BYTES)
    HELD = BN // 2  # elements of C that a thread of a consumer accumulates
    A_ALONG, B_ALONG = tma_tiles.along_k(layout)
    A_SHAPE, B_SHAPE = (STAGES, *shape(BM, A_ALONG)), (STAGES, *shape(BN, B_ALONG))
    ELEMENT = float16 if dtype == "float16" else uint16
    wgmma = (WGMMA if dtype == "float16" else WGMMA_BF16)[BN, layout]
    wgmma_wait, multiply = WGMMA_WAIT[BN], tma_tiles.multiplying(wgmma, layout)
    corner, (stage_of, parity_of) = corners(tiling), tma_tiles.turning(STAGES)
    copy_a, copy_b = tma_tiles.copying(BM, A_ALONG), tma_tiles.copying(BN, B_ALONG)
    carry_a = tma_tiles.carrying(BM, A_ALONG, WARPGROUP, PRODUCER, False, dtype)
    carry_b = tma_tiles.carrying(BN, B_ALONG, WARPGROUP, PRODUCER, False, dtype)
    BRINGERS = 1 if aligned else WARPGROUP
    update = updating(BN, out_dtype, paired)

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

    def warp_specialised(alpha, A, B, k, beta, C):
        As = shared_view(A_SHAPE, ELEMENT, 0)
        Bs = shared_view(B_SHAPE, ELEMENT, STAGES * A_BYTES)
        full = shared_view((STAGES,), uint64, TILES)
        empty = shared_view((STAGES,), uint64, TILES + STAGES * WORD)
        m, n = C.shape
        tiles = (m + BM - 1) // BM * ((n + BN - 1) // BN)
        thread = cuda.threadIdx.x
        step = uint32(0)  # along k, over all tiles of this block

        if thread == 0:
            for stage in range(STAGES):
                mbarrier_init(full, stage, BRINGERS)
                mbarrier_init(empty, stage, CONSUMERS)
            fence_mbarrier_init()
        cuda.syncthreads()

        if thread >= PRODUCER:
            setmaxnreg_dec(FEW)
            if thread < PRODUCER + BRINGERS:
                if aligned:
                    fence_tensor_map(A)
                    fence_tensor_map(B)
                for tile in range(cuda.blockIdx.x, tiles, cuda.gridDim.x):
                    row, col = corner(tile, m, n)
                    for p in range(0, k, BK):
                        stage = stage_of(step)
                        # What the stage had a turn ago; in the first turn this passes at once.
                        mbarrier_wait(empty, stage, parity_of(step) ^ uint32(1))
                        bring(As, Bs, stage, A, B, row, col, p, full)
                        step += uint32(1)
        else:
            setmaxnreg_inc(MANY)
            acc = cuda.local.array(HELD, float32)
            group = thread // WARPGROUP  # of 64 rows of the tile
            i = thread // WARP * 16 + thread % WARP // 4  # of the tile, this thread's first element
            j = thread % 4 * 2
            leads = thread % WARPGROUP == 0
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
                update(C, row + i, col + j, alpha, acc, beta)

    return warp_specialised


def threads(tiling: Tiling) -> int:
    """Threads of a block: its consumers, 64 rows each, and the producer."""
    return (tiling.block[0] // ROWS + 1) * WARPGROUP


def configure(problem: Gemm, tiling: Tiling) -> tuple[Dim, Dim]:
    """Return (grid, block): as many blocks as tiles, in one row."""
    across, down = tiling.grid(problem)
    return (across * down, 1), (threads(tiling), 1)


def compile_options(tiling: Tiling) -> Mapping[str, object]:
    """Registers for one block of an SM, which `setmaxnreg` deals out anew."""
    return {"launch_bounds": (threads(tiling), 1)}


def work(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """Return the work of all tiles of C."""
    return ring_work(problem, tiling, update_c(problem, tiling))


def ring_work(problem: Gemm, tiling: Tiling, update: Counter[str]) -> traffic.Work:
    """Return the work of persistent blocks, at the rate of Tensor Cores.

    update : what they do with their sums, over the whole grid
    Each step copies (bm + bn)·128 bytes, and each consumer reads its 64 rows of A and all of B: so
    many wavefronts of 128 bytes. No thread loads A or B, but where it carries them. Memory's
    latency is waited for once, in the first tile: afterwards the producer is ahead.
    """
    (bm, bn, _), (across, down) = tiling.block, tiling.grid(problem)
    steps = tiling.steps(problem)
    loads, stores = Counter(), ()
    brought = Counter(tensor_copy_bytes=across * down * steps * (bm + bn) * ROW)
    if not are_aligned(problem):
        loads, stores = carried(problem, tiling, WARPGROUP)
        brought = Counter()
    found = traffic.staged(
        problem, tiling, loads, [(steps, each) for each in stores], update,
        barriers=0, round_trips=1, flops={problem.dtype: tiling.padded_flops(problem)},
    )  # fmt: skip
    read = across * down * steps * (bm // ROWS) * (ROWS + bn)
    return replace(
        found,
        counters=found.counters + brought,
        l1_wavefronts=found.l1_wavefronts + read + brought["tensor_copy_bytes"] // ROW,
        chain=(1, 0),
        block_counters=Counter(barriers=1),
    )


def shared_bytes(problem: Gemm, tiling: Tiling) -> int:
    """Shared memory of a block [B]: the ring."""
    return tma_tiles.ring_bytes(tiling)


def check(tiling: Tiling) -> None:
    """Raise ValueError for a tiling that two consumers and the ring cannot have."""
    bm, bn, bk = tiling.block
    check_fit(
        bm == 2 * ROWS and bn in tma_tiles.WIDTHS and bk == tma_tiles.DEPTH and tiling.stages >= 2,
        tiling,
        f"warp_specialised, which needs blocks of {2 * ROWS}×n×{tma_tiles.DEPTH} with n one of "
        f"{', '.join(map(str, tma_tiles.WIDTHS))}, and two stages or more",
        DEFAULT,
    )


DEFAULT = Tiling(block=(128, 256, tma_tiles.DEPTH), stages=4)

warp_specialised = Kernel(
    name="warp_specialised",
    idea="one thread copies, warpgroups multiply",
    default=DEFAULT,
    build=build,
    configure=configure,
    persistent=True,
    work=work,
    check=check,
    shared_bytes=shared_bytes,
    dynamic=True,
    operands=tma_tiles.tensor_maps,
    variant=variant,
    compile=compile_options,
    arithmetic=warp_mma.ARITHMETIC,
    layouts=LAYOUTS,
)
