"""Rung 4, tcec_fused: operands are split while they are on their way, and nothing is stored.

The parts of *tcec_split* need as many bytes of memory as A and B, and a launch that writes them. An
element in FP32 takes as much room as its two halves, so both can wait until it is in the ring. The
TMA copies tiles in FP32. The warpgroup of the producer splits B where it lies; that has to be in
shared memory, for `wgmma` reads it from nowhere else. A goes to registers: a consumer has 64 rows
of it for itself, and splits them as it loads them. Three products follow, as in *tcec_split*.

Two mbarriers become three: `full`, when the bytes of a stage have come; `split`, when its tile of B
is in halves; `empty`, when all consumers have read it. The producer splits one step behind its
copies, and the consumers multiply one step behind that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from numpy import float16, float32, uint32, uint64

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
from gemmlab.instructions.tensor_maps import ROW
from gemmlab.instructions.warpgroup import ROWS, WARPGROUP, K
from gemmlab.kernels.kernel import Kernel, on_device
from gemmlab.kernels.tcec.held import adding, clearing, joining
from gemmlab.kernels.tcec.in_place import (
    BOXES,
    brought,
    carrying,
    copying,
    fragment_row,
    loading,
    moved_in_shared,
    shape,
    splitting,
    tensor_maps,
)
from gemmlab.kernels.tcec.sums import PRODUCTS, flops, variant
from gemmlab.kernels.tensor_core import boxes
from gemmlab.kernels.tensor_core.accumulators import update_c, updating
from gemmlab.kernels.tensor_core.bands import corners
from gemmlab.kernels.tensor_core.boxes import DEPTH, WORD, along_k, placing
from gemmlab.kernels.tensor_core.ring import turning
from gemmlab.kernels.tensor_core.warp_specialised import compile_options, launch
from gemmlab.model import traffic
from gemmlab.problem import Gemm
from gemmlab.product import LAYOUTS
from gemmlab.simt import cuda
from gemmlab.tiling import WARP, Tiling

# Of a thread of 2 consumers and 1 producer: 2·232 + 40 is three times the 168 that all begin with.
MANY, FEW = 232, 40
HIGH, LOW = 0, 1  # parts of B, where its two boxes were
BARRIERS = 3  # of a stage


def build(
    tiling: Tiling, layout: str = "nn", aligned: bool = True, paired: bool = True
) -> Callable:
    """The kernel, a function of (alpha, map of A, map of B, k, beta, C).

    layout : which operands are stored transposed, see `Gemm.layout`
    aligned : all rows of A and B begin at multiples of 16 bytes; else threads carry the tiles, and
        A and B are given in place of their maps
    paired : rows of C have an even number of elements
    """
    BM, BN, BK = tiling.block
    STAGES = tiling.stages
    CONSUMERS = BM // ROWS
    PRODUCER = CONSUMERS * WARPGROUP  # the first thread behind the consumers
    A_BYTES, B_BYTES = BOXES * BM * ROW, BOXES * BN * ROW
    TILES = STAGES * (A_BYTES + B_BYTES)
    HELD = BN // 2  # elements of C that a thread of a consumer has
    A_ALONG, B_ALONG = along_k(layout)
    A_SHAPE, B_SHAPE = (STAGES, *shape(BM, A_ALONG)), (STAGES, *shape(BN, B_ALONG))
    HALVES = (STAGES, BOXES, *boxes.shape(BN, B_ALONG))
    wgmma, wgmma_wait = WGMMA_REGISTERS[BN, layout[1]], WGMMA_WAIT[BN]
    corner, (stage_of, parity_of) = corners(tiling), turning(STAGES)
    copy_a, copy_b = copying(BM, A_ALONG), copying(BN, B_ALONG)
    carry_a, carry_b = carrying(BM, A_ALONG, PRODUCER), carrying(BN, B_ALONG, PRODUCER)
    split_b, load_a, in_b = splitting(BN, B_ALONG, PRODUCER), loading(A_ALONG), placing(B_ALONG)
    BRINGERS = 1 if aligned else WARPGROUP
    clear, add, join = clearing(HELD), adding(HELD), joining(HELD)
    update = updating(BN, "float32", paired)

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
        mbarrier_arrive(full, stage)

    bring = copy if aligned else carry

    @on_device
    def split(Bs, words, step, full, done):
        """Split the tile of B of a step, once it has come."""
        stage = stage_of(step)
        mbarrier_wait(full, stage, parity_of(step))
        split_b(Bs, words, stage)
        fence_proxy_async()
        mbarrier_arrive(done, stage)

    @on_device
    def nothing(part, cross, As, Bs, stage, row, more, more_cross):
        pass

    def products(q):
        """A device function that multiplies a stage, from q of k on."""
        others = products(q + K) if q + K < DEPTH else nothing

        @on_device
        def multiply(part, cross, As, Bs, stage, row, more, more_cross):
            high, low = load_a(As, stage, row, q)
            b, x, y = in_b(0, q)
            wgmma_fence()
            wgmma(part, high, Bs, stage, HIGH, b, x, y, more)
            wgmma_commit()
            wgmma(cross, low, Bs, stage, HIGH, b, x, y, more_cross)
            wgmma(cross, high, Bs, stage, LOW, b, x, y, True)
            wgmma_commit()
            others(part, cross, As, Bs, stage, row, True, True)

        return multiply

    multiply = products(0)

    def tcec_fused(alpha, A, B, k, beta, C):
        As, Bs = shared_view(A_SHAPE, float32, 0), shared_view(B_SHAPE, float32, STAGES * A_BYTES)
        words = shared_view(B_SHAPE, uint32, STAGES * A_BYTES)  # the place of Bs, as pairs
        halves = shared_view(HALVES, float16, STAGES * A_BYTES)
        full = shared_view((STAGES,), uint64, TILES)
        done = shared_view((STAGES,), uint64, TILES + STAGES * WORD)
        empty = shared_view((STAGES,), uint64, TILES + 2 * STAGES * WORD)
        m, n = C.shape
        tiles = (m + BM - 1) // BM * ((n + BN - 1) // BN)
        thread = cuda.threadIdx.x
        step = uint32(0)  # along k, over all tiles of this block

        if thread == 0:
            for stage in range(STAGES):
                mbarrier_init(full, stage, BRINGERS)
                mbarrier_init(done, stage, WARPGROUP)
                mbarrier_init(empty, stage, PRODUCER)
            fence_mbarrier_init()
        cuda.syncthreads()

        if thread >= PRODUCER:
            setmaxnreg_dec(FEW)
            if aligned and thread == PRODUCER:
                fence_tensor_map(A)
                fence_tensor_map(B)
            for tile in range(cuda.blockIdx.x, tiles, cuda.gridDim.x):
                row, col = corner(tile, m, n)
                for p in range(0, k, DEPTH):
                    if thread < PRODUCER + BRINGERS:
                        stage = stage_of(step)
                        # What it had a turn ago is split and read; the first turn passes at once.
                        before = parity_of(step) ^ uint32(1)
                        mbarrier_wait(done, stage, before)
                        mbarrier_wait(empty, stage, before)
                        bring(As, Bs, stage, A, B, row, col, p, full)
                    if step > uint32(0):
                        split(Bs, words, step - uint32(1), full, done)
                    step += uint32(1)
            split(Bs, words, step - uint32(1), full, done)
        else:
            setmaxnreg_inc(MANY)
            main, part = cuda.local.array(HELD, float32), cuda.local.array(HELD, float32)
            cross = cuda.local.array(HELD, float32)
            # Of the tile, this thread's first element of C, and the row of A that it has.
            i = uint32(thread) // uint32(WARP) * uint32(16) + fragment_row()
            j = thread % 4 * 2
            for tile in range(cuda.blockIdx.x, tiles, cuda.gridDim.x):
                row, col = corner(tile, m, n)
                clear(main)
                for p in range(0, k, DEPTH):
                    stage = stage_of(step)
                    mbarrier_wait(full, stage, parity_of(step))
                    mbarrier_wait(done, stage, parity_of(step))
                    multiply(part, cross, As, halves, stage, i, p % BK > 0, p > 0)
                    # The last corrections go on, while what was begun before them is complete.
                    wgmma_wait(1, part)
                    if (p + DEPTH) % BK == 0 or p + DEPTH >= k:
                        add(main, part)
                    wgmma_wait(0, cross)
                    mbarrier_arrive(empty, stage)  # each thread has loaded its own part of A
                    step += uint32(1)
                join(main, cross)
                update(C, row + i, col + j, alpha, main, beta)

    return tcec_fused


def shared_bytes(problem: Gemm, tiling: Tiling) -> int:
    """Shared memory of a block [B]: tiles in FP32 in all stages, and three mbarriers for each."""
    bm, bn, _ = tiling.block
    return tiling.stages * (BOXES * (bm + bn) * ROW + BARRIERS * WORD)


def work(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """The work of all tiles of C, at the rate of Tensor Cores.

    Each step of 64 along k brings tiles in FP32; B is loaded and stored once more, A loaded, and
    each consumer reads all of B for each of three products.
    """
    (bm, bn, _), (across, down) = tiling.block, tiling.grid(problem)
    by_depth = replace(tiling, block=(bm, bn, DEPTH))
    steps = by_depth.steps(problem)
    bringing = brought(problem, by_depth)
    copied = bringing.pop("tensor_copy_bytes", 0)
    found = traffic.staged(
        problem, by_depth, bringing, [(steps, each) for each in moved_in_shared(problem, tiling)],
        update_c(problem, tiling), barriers=0, round_trips=1, flops=flops(problem, by_depth),
    )  # fmt: skip
    (blocks, _), _ = launch(problem, tiling)
    read = across * down * steps * PRODUCTS * bm // ROWS * bn
    return replace(
        found,
        counters=found.counters + Counter(barriers=blocks, tensor_copy_bytes=copied),
        l1_wavefronts=found.l1_wavefronts + read + copied // ROW,
        chain=(1, 0),
    )


def check(tiling: Tiling) -> None:
    """Raise ValueError for a tiling that two consumers and the ring cannot have."""
    bm, bn, bk = tiling.block
    if bm != 2 * ROWS or bn not in (64, 128) or bk % DEPTH or tiling.stages < 2:
        raise ValueError(
            f"tiling {tiling} does not fit tcec_fused, which needs blocks of {2 * ROWS}×n×k with n "
            f"64 or 128 and k a multiple of {DEPTH}, and two stages or more, such as {DEFAULT!r}"
        )


DEFAULT = Tiling(block=(128, 128, DEPTH), stages=3)

tcec_fused = Kernel(
    name="tcec_fused",
    idea="operands split on their way: B in shared memory, A in registers",
    default=DEFAULT,
    build=build,
    launch=launch,
    work=work,
    check=check,
    shared_bytes=shared_bytes,
    dynamic=True,
    operands=tensor_maps,
    variant=variant,
    compile=compile_options,
    layouts=LAYOUTS,
)
