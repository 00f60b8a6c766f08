"""Rung 5, tcec_fused: operands are split on their way, and nothing but C is written to memory.

The parts of *tcec_split* take as many bytes of memory as A and B, and a launch that writes them. An
element in FP32 has just the room of its two halves: so the TMA copies tiles in FP32, and who takes
them splits them. B has to be in shared memory, for `wgmma` reads it from nowhere else: there a
warpgroup splits it, in place. A goes to registers: each consumer has 64 rows of it for itself,
splits them as it loads them, and gives them to `wgmma` from there, which saves shared memory the
larger part of A's traffic. Counter to watch: global stores, those of C alone.

A tile of B has a longer way than one of A: it comes, it is split, it is multiplied. So its ring has
a stage more, and its copies are a step ahead. Four mbarriers say how stages stand: `full_a` and
`full_b`, when their bytes have come; `done`, when a tile of B is split; `empty`, when consumers
have read both tiles of a step. The splitter has no time for anything else: to wait for a stage and
to begin copies takes longer than it seems, and a thread of a fourth warpgroup does it. A consumer
loads and splits a fragment of A while Tensor Cores multiply the one before, and the sums of one
step are added while they correct its last products.

Source of the products: see `product_sums`; of the roles: see *warp_specialised*.
"""

from collections.abc import Callable, Mapping

from numpy import float16, float32, int32, uint32, uint64

from gemmlab.instructions import (
    WGMMA_REGISTERS,
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
from gemmlab.instructions.warpgroup import ROWS, WARPGROUP, K
from gemmlab.kernels.kernel import Dim, Kernel, check_fit, on_device
from gemmlab.kernels.tcec.shared import in_place, product_sums
from gemmlab.kernels.tcec.shared.in_place import (
    BOXES,
    fetching,
    fragment_row,
    halved,
    splitting,
    work_of,
)
from gemmlab.kernels.tcec.shared.warpgroup_tiles import adding, clearing, joining
from gemmlab.kernels.tensor_core.shared.accumulators import updating
from gemmlab.kernels.tensor_core.shared.rasterisation import corners
from gemmlab.kernels.tensor_core.shared.tma_tiles import (
    DEPTH,
    WORD,
    along_k,
    placing,
    tensor_maps,
    turning,
)
from gemmlab.kernels.tensor_core.warp_specialised import (
    configure as configure_three,
    threads as threads_of_three,
)
from gemmlab.problem import LAYOUTS, Gemm
from gemmlab.simt import cuda
from gemmlab.tiling import WARP, Tiling

# A block has four warpgroups: two multiply tiles, one splits them, and one copies them.
# Registers of a thread that multiplies, splits or copies: 2·224 + 40 + 24 is four times the 128
# that all begin with.
MANY, FEW, FEWEST = 224, 40, 24


def threads(tiling: Tiling) -> int:
    """Threads of a block: as in *warp_specialised*, and a warpgroup more."""
    return threads_of_three(tiling) + WARPGROUP


def configure(problem: Gemm, tiling: Tiling) -> tuple[Dim, Dim]:
    """Return (grid, block): as many blocks as *warp_specialised* has."""
    grid, _ = configure_three(problem, tiling)
    return grid, (threads(tiling), 1)


def compile_options(tiling: Tiling) -> Mapping[str, object]:
    """Registers for one block of an SM, which `setmaxnreg` deals out anew."""
    return {"launch_bounds": (threads(tiling), 1)}


HIGH, LOW = 0, 1  # parts of B, where its two boxes were
BARRIERS = 2  # of a stage of A, and of one of B


def build(
    tiling: Tiling, layout: str = "nn", aligned: bool = True, paired: bool = True
) -> Callable:
    """Return the kernel, a function of (alpha, map of A, map of B, k, beta, C).

    layout, aligned, paired : as in *warp_specialised*
    """
    BM, BN, BK = tiling.block
    STAGES, EVERY = tiling.stages, BK // DEPTH
    CONSUMERS = BM // ROWS
    SPLITTER = CONSUMERS * WARPGROUP  # the first thread behind the consumers
    COPIER = SPLITTER + WARPGROUP
    A_BYTES, B_BYTES = BOXES * BM * ROW, BOXES * BN * ROW
    MORE = STAGES + 1  # stages of B
    OF_B, TILES = STAGES * A_BYTES, STAGES * A_BYTES + MORE * B_BYTES
    FULL_B, DONE, EMPTY = (TILES + n * WORD for n in (STAGES, STAGES + MORE, STAGES + 2 * MORE))
    SUMS = BN // 2  # elements of C that a thread of a consumer sums
    A_ALONG, B_ALONG = along_k(layout)
    A_SHAPE, B_SHAPE = (STAGES, *in_place.shape(BM, A_ALONG)), (MORE, *in_place.shape(BN, B_ALONG))
    TURNS = (MORE, *in_place.in_turns(BN))
    HALVES = (MORE, *in_place.split_shape(BN, B_ALONG))
    corner, (stage_of, parity_of) = corners(tiling), turning(STAGES)
    stage_of_b, parity_of_b = turning(MORE)
    COPIERS = 1 if aligned else WARPGROUP
    copying = copying_by_tma if aligned else copying_by_threads
    copy_a = copying_when_empty(tiling, copying(BM, A_ALONG, COPIER))
    copy_b, split = copying(BN, B_ALONG, COPIER), splitting_tiles(tiling, SPLITTER)
    fetch_a, multiply = fetching(A_ALONG), multiplying_parts(BN, layout)
    clear, add, join = clearing(SUMS), adding(SUMS), joining(SUMS)
    wgmma_wait, update = WGMMA_WAIT[BN], updating(BN, "float32", paired)

    def tcec_fused(alpha, A, B, k, beta, C):
        As, Bs = shared_view(A_SHAPE, float32, 0), shared_view(B_SHAPE, float32, OF_B)
        rows, words = shared_view(TURNS, float32, OF_B), shared_view(TURNS, uint32, OF_B)
        halves = shared_view(HALVES, float16, OF_B)
        full_a, full_b = shared_view((STAGES,), uint64, TILES), shared_view((MORE,), uint64, FULL_B)
        done, empty = shared_view((MORE,), uint64, DONE), shared_view((STAGES,), uint64, EMPTY)
        m, n = C.shape
        tiles = (m + BM - 1) // BM * ((n + BN - 1) // BN)
        steps = (k + DEPTH - 1) // DEPTH
        thread = cuda.threadIdx.x
        step = uint32(0)  # along k, over all tiles of this block

        if thread == 0:
            for stage in range(STAGES):
                mbarrier_init(full_a, stage, COPIERS)
                mbarrier_init(empty, stage, SPLITTER)
            for stage in range(MORE):
                mbarrier_init(full_b, stage, COPIERS)
                mbarrier_init(done, stage, WARPGROUP)
            fence_mbarrier_init()
        cuda.syncthreads()

        if thread >= COPIER:
            setmaxnreg_dec(FEWEST)
            if thread < COPIER + COPIERS:
                if aligned:
                    fence_tensor_map(A)
                    fence_tensor_map(B)
                row_before, before = int32(0), int32(0)  # where A's tile of the last step begins
                for tile in range(cuda.blockIdx.x, int32(tiles), cuda.gridDim.x):
                    row, col = corner(tile, m, n)
                    for s in range(int32(steps)):
                        if step > uint32(0):
                            last = uint32(step - uint32(1))
                            copy_a(As, last, A, row_before, before, full_a, empty)
                        # Where this tile goes, B's of the step was that A's copy waited for.
                        copy_b(Bs, stage_of_b(step), B, col, s * DEPTH, full_b)
                        row_before, before = int32(row), s * DEPTH
                        step = uint32(step + uint32(1))
                last = uint32(step - uint32(1))
                copy_a(As, last, A, row_before, before, full_a, empty)
        elif thread >= SPLITTER:
            setmaxnreg_dec(FEW)
            for _tile in range(cuda.blockIdx.x, int32(tiles), cuda.gridDim.x):
                for _s in range(int32(steps)):
                    split(rows, words, step, full_b, done)
                    step = uint32(step + uint32(1))
        else:
            setmaxnreg_inc(MANY)
            main, part = cuda.local.array(SUMS, float32), cuda.local.array(SUMS, float32)
            cross = cuda.local.array(SUMS, float32)
            # Of the tile, the row of A that this thread has, and its first element of C.
            i = uint32(thread) // uint32(WARP) * uint32(16) + fragment_row()
            j = int32(uint32(thread) % uint32(4)) * 2
            for tile in range(cuda.blockIdx.x, int32(tiles), cuda.gridDim.x):
                clear(main)
                for s in range(int32(steps)):
                    stage = stage_of(step)
                    mbarrier_wait(full_a, stage, parity_of(step))
                    pairs = fetch_a(As, stage, i, 0)
                    of_b = stage_of_b(step)
                    mbarrier_wait(done, of_b, parity_of_b(step))
                    multiply(part, cross, halves, of_b, 0, pairs, s % EVERY > 0, s > 0)
                    # Fragments are loaded while others are multiplied; those before are free then.
                    pairs = fetch_a(As, stage, i, K)
                    wgmma_wait(2, cross)
                    if s > 0:
                        mbarrier_arrive(empty, stage_of(uint32(step - uint32(1))))
                    multiply(part, cross, halves, of_b, K, pairs, True, True)
                    pairs = fetch_a(As, stage, i, 2 * K)
                    wgmma_wait(2, cross)
                    multiply(part, cross, halves, of_b, 2 * K, pairs, True, True)
                    pairs = fetch_a(As, stage, i, 3 * K)
                    wgmma_wait(2, cross)
                    multiply(part, cross, halves, of_b, 3 * K, pairs, True, True)
                    wgmma_wait(1, part)  # it is complete, and the last corrections go on
                    if (s + 1) % EVERY == 0 or s + 1 == steps:
                        add(main, part)
                    step = uint32(step + uint32(1))
                wgmma_wait(0, cross)
                mbarrier_arrive(empty, stage_of(uint32(step - uint32(1))))
                join(main, cross)
                row, col = corner(tile, m, n)
                update(C, row + i, col + j, alpha, main, beta)

    return tcec_fused


def copying_by_tma(size: int, along: bool, _first: int) -> Callable:
    """Return the device function by which the TMA copies a tile; `full` counts its bytes."""
    copy_box = in_place.copying(size, along)
    BYTES = BOXES * size * ROW

    @on_device
    def copy(tiles, stage, X, start, p, full):
        mbarrier_arrive_expect(full, stage, BYTES)
        for box in range(BOXES):
            copy_box(tiles, stage, box, X, start, p, full)

    return copy


def copying_by_threads(size: int, along: bool, first: int) -> Callable:
    """Return the device function by which a warpgroup copies a tile; `full` counts its threads."""
    copy_part = in_place.copying_by_threads(size, along, first)

    @on_device
    def copy(tiles, stage, X, start, p, full):
        copy_part(tiles, stage, X, start, p)
        mbarrier_arrive(full, stage)

    return copy


def copying_when_empty(tiling: Tiling, copy: Callable) -> Callable:
    """Return the device function that copies the tile of A of a step, when what its stage had a
    turn ago has been read.
    """
    stage_of, parity_of = turning(tiling.stages)

    @on_device
    def copy_a(As, step, A, row, p, full, empty):
        stage = stage_of(step)
        # In the first turn this passes at once.
        mbarrier_wait(empty, stage, parity_of(step) ^ uint32(1))
        copy(As, stage, A, row, p, full)

    return copy_a


def splitting_tiles(tiling: Tiling, first: int) -> Callable:
    """Return the device function by which a warpgroup, from thread `first` on, splits the tile of B
    of a step, once it has come.
    """
    stage_of_b, parity_of_b = turning(tiling.stages + 1)
    split_b = splitting(tiling.block[1], first)

    @on_device
    def split(rows, words, step, full, done):
        stage = stage_of_b(step)
        mbarrier_wait(full, stage, parity_of_b(step))
        split_b(rows, words, stage)
        fence_proxy_async()
        mbarrier_arrive(done, stage)

    return split


def multiplying_parts(columns: int, layout: str) -> Callable:
    """Return the device function that begins three products of 16 along k: one group for the main
    product, `part`, and one for those that correct it, `cross`.
    """
    wgmma, in_b = WGMMA_REGISTERS[columns, layout[1]], placing(along_k(layout)[1])

    @on_device
    def multiply(part, cross, Bs, stage, q, pairs, more, more_cross):
        high, low = halved(pairs)
        b, x, y = in_b(0, q)
        wgmma_fence()
        wgmma(part, high, Bs, stage, HIGH, b, x, y, more)
        wgmma_commit()
        wgmma(cross, low, Bs, stage, HIGH, b, x, y, more_cross)
        wgmma(cross, high, Bs, stage, LOW, b, x, y, True)
        wgmma_commit()

    return multiply


def shared_bytes(problem: Gemm, tiling: Tiling) -> int:
    """Shared memory of a block [B]: tiles in FP32 in all stages, and mbarriers for each."""
    bm, bn, _ = tiling.block
    tiles = tiling.stages * bm + (tiling.stages + 1) * bn
    return BOXES * tiles * ROW + BARRIERS * (2 * tiling.stages + 1) * WORD


def check(tiling: Tiling) -> None:
    """Raise ValueError for a tiling that two consumers and the ring cannot have."""
    bm, bn, bk = tiling.block
    check_fit(
        bm == 2 * ROWS and bn in (64, 128) and bk % DEPTH == 0 and tiling.stages >= 2,
        tiling,
        f"tcec_fused, which needs blocks of {2 * ROWS}×n×k with n 64 or 128 and k a multiple of "
        f"{DEPTH}, two stages or more",
        DEFAULT,
    )


def period(tiling: Tiling) -> int:
    """Steps after which both rings, and the parities of their barriers, stand as they did."""
    return 2 * tiling.stages * (tiling.stages + 1)


DEFAULT = Tiling(block=(128, 128, DEPTH), stages=3)

tcec_fused = Kernel(
    name="tcec_fused",
    idea="operands split on their way: B in shared memory, A in registers",
    default=DEFAULT,
    build=build,
    configure=configure,
    persistent=True,
    work=work_of,
    check=check,
    shared_bytes=shared_bytes,
    dynamic=True,
    operands=tensor_maps,
    variant=product_sums.variant,
    compile=compile_options,
    layouts=LAYOUTS,
    product_error=product_sums.product_error,
    period=period,
)
