"""mma_tma: one thread lets the TMA copy tiles; warps only multiply them, by `mma.sync`.

In *mma_tuned* all warps copy by `cp.async`, and these copies compete with `ldmatrix` for the way to
shared memory. Here a *producer*, one thread, asks the Tensor Memory Accelerator for whole tiles,
which come past the warps. The others, the *consumers*, load fragments and multiply, nothing else.
Two mbarriers say how each stage of the ring stands: `full`, when its bytes have come, and `empty`,
when all consumers have its fragments in registers; no warp waits for another one otherwise. Blocks
are *persistent*: there is one for each SM, which takes tile after tile of C, so that the ring fills
for the next one while this one is stored. Counter to watch: `tensor_copy_bytes`, in place of all
loads of A and B.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from numpy import float16, float32, uint16, uint32, uint64

from gemmlab import Tiling
from gemmlab.instructions import (
    fence_mbarrier_init,
    fence_tensor_map,
    mbarrier_arrive,
    mbarrier_arrive_expect,
    mbarrier_init,
    mbarrier_wait,
    setmaxnreg_dec,
    setmaxnreg_inc,
    shared_view,
)
from gemmlab.instructions.tensor_copies import MOST, ROW
from gemmlab.instructions.warpgroup import WARPGROUP
from gemmlab.kernels.kernel import Dim, Kernel, check_fit, on_device
from gemmlab.kernels.tensor_core.shared import rasterisation, shared_layouts, tma_tiles, warp_mma
from gemmlab.kernels.tensor_core.shared.tma_tiles import BLOCK, DEPTH, WORD, carried, shape
from gemmlab.kernels.tensor_core.shared.warp_mma import flops, fragment_loads, update_c
from gemmlab.model import traffic
from gemmlab.problem import LAYOUTS, Gemm
from gemmlab.simt import cuda

STEPS = DEPTH // warp_mma.STEP  # along k, of a tile
CONSUMERS = 2 * WARPGROUP  # threads
# Registers of a thread of the two groups of consumers, and of the producer's, by whether it lets
# the TMA copy or carries: 2·240 + 24 and 2·224 + 56 are three times the 168 that all begin with.
REGISTERS = {True: (240, 24), False: (224, 56)}


def build(
    tiling: Tiling, layout: str = "nn", aligned: bool = True, paired: bool = True,
    dtype: str = "float16", out_dtype: str = "float32",
) -> Callable:  # fmt: skip
    """Return the kernel, a function of (alpha, map of A, map of B, k, beta, C).

    layout : which operands are stored transposed, see `Gemm.layout`
    aligned : all rows of A and B begin at multiples of 16 bytes; else the producer's warpgroup
        carries the tiles, and A and B are given in place of their maps
    paired : rows of C have an even number of elements
    dtype, out_dtype : the formats of A and B, and of C
    """
    BM, BN, BK = tiling.block
    WM, WN = tiling.warp
    STAGES, LAST = tiling.stages, tiling.stages - 1
    ALONG_A, ALONG_B = tma_tiles.along_k(layout)
    A_SIZE, B_SIZE = BM * BK, BN * BK
    A_BOXES, B_BOXES = (STAGES, *shape(BM, ALONG_A)), (STAGES, *shape(BN, ALONG_B))
    A_RING, B_RING = (STAGES * A_SIZE,), (STAGES * B_SIZE,)
    A_BYTES, B_BYTES = BM * ROW, BN * ROW
    TILES = STAGES * (A_BYTES + B_BYTES)
    ELEMENT = float16 if dtype == "float16" else uint16
    A_WORDS, B_WORDS, SUMS = warp_mma.fragment_shapes(tiling)
    TWO_A, TWO_B = (2, *A_WORDS), (2, *B_WORDS)  # of this step along k, and of the next

    place = shared_layouts.swizzled(DEPTH)  # as the TMA places what it copies
    copy_a, copy_b = tma_tiles.copying(BM, ALONG_A), tma_tiles.copying(BN, ALONG_B)
    carry_a = tma_tiles.carrying(BM, ALONG_A, WARPGROUP, CONSUMERS, False, dtype)
    carry_b = tma_tiles.carrying(BN, ALONG_B, WARPGROUP, CONSUMERS, False, dtype)
    BRINGERS = 1 if aligned else WARPGROUP
    MANY, FEW = REGISTERS[aligned]
    start_a, load_a = warp_mma.loading(WM, DEPTH, ALONG_A, True, place)
    start_b, load_b = warp_mma.loading(WN, DEPTH, ALONG_B, False, place)
    tile_corner, warp_corner = rasterisation.corners(tiling), on_device(warp_mma.corner(tiling))
    clear, multiply = warp_mma.clearing(tiling), warp_mma.multiplying(tiling, dtype)
    update = warp_mma.updating(tiling, out_dtype, paired)

    @on_device
    def after(stage, turn):
        """The stage of the ring that follows, and the parity of its turn."""
        return (stage + 1, turn) if stage < LAST else (0, turn ^ uint32(1))

    @on_device
    def copy(boxes_a, boxes_b, stage, A, B, row, col, p, full):
        """Let the TMA copy the tiles from p of k on to a stage; `full` counts their bytes."""
        mbarrier_arrive_expect(full, stage, A_BYTES + B_BYTES)
        copy_a(boxes_a, stage, A, row, p, full)
        copy_b(boxes_b, stage, B, col, p, full)

    @on_device
    def carry(boxes_a, boxes_b, stage, A, B, row, col, p, full):
        """Carry this thread's part of them; `full` counts the threads."""
        carry_a(boxes_a, stage, A, row, p)
        carry_b(boxes_b, stage, B, col, p)
        mbarrier_arrive(full, stage)

    bring = copy if aligned else carry

    @on_device
    def load(As, Bs, at_a, at_b, s, a, b):
        """Load the fragments of step s along k."""
        load_a(As, at_a, s, a)
        load_b(Bs, at_b, s, b)

    def mma_tma(alpha, A, B, k, beta, C):
        boxes_a = shared_view(A_BOXES, ELEMENT, 0)
        boxes_b = shared_view(B_BOXES, ELEMENT, STAGES * A_BYTES)
        As = shared_view(A_RING, ELEMENT, 0)  # the same, element after element
        Bs = shared_view(B_RING, ELEMENT, STAGES * A_BYTES)
        full = shared_view((STAGES,), uint64, TILES)
        empty = shared_view((STAGES,), uint64, TILES + STAGES * WORD)
        m, n = C.shape
        tiles = (m + BM - 1) // BM * ((n + BN - 1) // BN)
        first, further = cuda.blockIdx.x, cuda.gridDim.x
        thread = cuda.threadIdx.x

        if thread == 0:
            for stage in range(STAGES):
                mbarrier_init(full, stage, BRINGERS)
                mbarrier_init(empty, stage, CONSUMERS)
            fence_mbarrier_init()
        cuda.syncthreads()

        if thread >= CONSUMERS:
            setmaxnreg_dec(FEW)
            if thread < CONSUMERS + BRINGERS:
                if aligned:
                    fence_tensor_map(A)
                    fence_tensor_map(B)
                stage, turn = 0, uint32(1)  # in the first turn, waiting for `empty` ends at once
                for tile in range(first, tiles, further):
                    row, col = tile_corner(tile, m, n)
                    for p in range(0, k, BK):
                        mbarrier_wait(empty, stage, turn)
                        bring(boxes_a, boxes_b, stage, A, B, row, col, p, full)
                        stage, turn = after(stage, turn)
                # One tile more, of zeros: its first fragments are loaded, and never used.
                mbarrier_wait(empty, stage, turn)
                bring(boxes_a, boxes_b, stage, A, B, m, n, 0, full)
        else:
            setmaxnreg_inc(MANY)
            a = cuda.local.array(TWO_A, uint32)
            b = cuda.local.array(TWO_B, uint32)
            acc = cuda.local.array(SUMS, float32)
            # Where this lane points. Boxes lie one after the other, and a warp's tile is in one.
            i, j = warp_corner(thread)
            from_a = start_a(i % BLOCK) + i // BLOCK * BLOCK * DEPTH
            from_b = start_b(j % BLOCK) + j // BLOCK * BLOCK * DEPTH
            stage, turn = 0, uint32(0)
            at_a, at_b = from_a, from_b  # in this stage
            mbarrier_wait(full, stage, turn)
            load(As, Bs, at_a, at_b, 0, a[0], b[0])
            for tile in range(first, tiles, further):
                clear(acc)
                for _ in range(0, k, BK):
                    load(As, Bs, at_a, at_b, 1, a[1], b[1])
                    multiply(a[0], b[0], acc)
                    load(As, Bs, at_a, at_b, 2, a[0], b[0])
                    multiply(a[1], b[1], acc)
                    load(As, Bs, at_a, at_b, 3, a[1], b[1])
                    multiply(a[0], b[0], acc)
                    read = stage
                    stage, turn = after(stage, turn)
                    at_a, at_b = from_a + stage * A_SIZE, from_b + stage * B_SIZE
                    mbarrier_wait(full, stage, turn)
                    load(As, Bs, at_a, at_b, 0, a[0], b[0])
                    multiply(a[1], b[1], acc)
                    # An arrival overtakes an `ldmatrix`: only what was multiplied has been read.
                    mbarrier_arrive(empty, read)
                row, col = tile_corner(tile, m, n)
                update(C, row + i, col + j, alpha, acc, beta)

    return mma_tma


def threads(tiling: Tiling) -> int:
    """Threads of a block: its consumers, and the producer's warpgroup."""
    return tiling.threads + WARPGROUP


def configure(problem: Gemm, tiling: Tiling) -> tuple[Dim, Dim]:
    """Return (grid, block): as many blocks as tiles, in one row."""
    across, down = tiling.grid(problem)
    return (across * down, 1), (threads(tiling), 1)


def compile_options(tiling: Tiling) -> Mapping[str, object]:
    """Registers for one block of an SM, which `setmaxnreg` deals out anew."""
    return {"launch_bounds": (threads(tiling), 1)}


def work(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """Fragments are loaded as in *mma_tuned*; each tile is copied in wavefronts of 128 bytes, and
    no thread loads A or B, but where it carries them. Each block that stays has one step more, of
    zeros.

    Memory's latency is waited for once, in the first tile: afterwards the producer is ahead.
    """
    (bm, bn, _), (across, down) = tiling.block, tiling.grid(problem)
    steps, loads, stores = tiling.steps(problem), Counter(), ()
    rows = bm + bn  # that a step brings
    brought = Counter(tensor_copy_bytes=rows * ROW)
    if not shared_layouts.are_aligned(problem):
        loads, stores = carried(problem, tiling, WARPGROUP)
        brought = Counter()
    fragments = fragment_loads(problem, tiling, shared_layouts.swizzled)
    shared = [*((steps, each) for each in stores), (steps * STEPS, fragments)]
    found = traffic.staged(
        problem, tiling, loads, shared, update_c(problem, tiling),
        barriers=0, round_trips=1, flops=flops(problem, tiling),
    )  # fmt: skip
    zeros = Counter({name: n for name, n in sum(stores, fragments).items() if name != "lane_bytes"})
    copies = across * down * steps
    return replace(
        found,
        counters=found.counters + Counter({name: copies * n for name, n in brought.items()}),
        l1_wavefronts=found.l1_wavefronts + copies * rows,
        chain=(1, 0),
        block_counters=zeros + brought + Counter(barriers=1),
        block_wavefronts=rows + zeros["shared_load_wavefronts"],
    )


def shared_bytes(problem: Gemm, tiling: Tiling) -> int:
    """Shared memory of a block [B]: the ring."""
    return tma_tiles.ring_bytes(tiling)


def fits(tiling: Tiling) -> bool:
    """Say whether warps, boxes and a ring can be made of a tiling."""
    bm, bn, bk = tiling.block
    return (warp_mma.computable(tiling) and tiling.threads == CONSUMERS
            and max(tiling.warp) <= BLOCK
            and bm % BLOCK == bn % BLOCK == 0 and max(bm, bn) <= MOST and bk == DEPTH
            and tiling.stages >= 2)  # fmt: skip


FITS = (
    f"8 warps of 8×4 threads with tiles of powers of two from 16 to {BLOCK}, blocks of multiples "
    f"of {BLOCK} up to {MOST}, steps of {DEPTH} along k, and two stages or more"
)


def check(tiling: Tiling) -> None:
    """Raise ValueError for a tiling that does not fit."""
    check_fit(fits(tiling), tiling, f"mma_tma, which needs {FITS}", DEFAULT)


DEFAULT = Tiling(block=(256, 128, DEPTH), warp=(64, 64), thread=(8, 16), stages=4)
ACROSS = Tiling(block=(128, 256, DEPTH), warp=(64, 64), thread=(8, 16), stages=4)

mma_tma = Kernel(
    name="mma_tma",
    idea="the TMA copies, warps only multiply",
    default=DEFAULT,
    build=build,
    configure=configure,
    persistent=True,
    work=work,
    check=check,
    shared_bytes=shared_bytes,
    dynamic=True,
    operands=tma_tiles.tensor_maps,
    variant=shared_layouts.variant,
    compile=compile_options,
    tilings=(DEFAULT, ACROSS),
    arithmetic=warp_mma.ARITHMETIC,
    layouts=LAYOUTS,
)
