"""Rung 3, tcec_mma_tma: parts are split beforehand, the TMA copies them, warps only multiply.

In *tcec_registers* every warp splits what it loads, also what others load, and more instructions
go into parts than into products. Here a launch before writes the parts to memory, at its speed,
and the kernel is *mma_tma* with four rings in place of two and three products in place of one.
Corrections have sums of their own, so that a warp's tile is half of what it is there. Three
products of two parts make up for it: as many fragments are loaded for each `mma`.
Counter to watch: `tensor_copy_bytes`, in place of all loads of the parts.

Source of the loop: see *mma_tma*; of the products: see `product_sums`.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from numpy import float16, float32, uint32, uint64

from gemmlab import Tiling
from gemmlab.instructions import (
    fence_mbarrier_init,
    fence_tensor_map,
    mbarrier_arrive,
    mbarrier_init,
    mbarrier_wait,
    setmaxnreg_dec,
    setmaxnreg_inc,
    shared_view,
)
from gemmlab.instructions.tensor_copies import ROW
from gemmlab.kernels.kernel import Kernel, check_fit, on_device
from gemmlab.kernels.tcec.shared import product_sums, split_operands
from gemmlab.kernels.tcec.shared.product_sums import (
    flops,
    fragments,
    joining,
    multiplying_rows,
    starting,
)
from gemmlab.kernels.tcec.shared.split_operands import PARTS, split_work
from gemmlab.kernels.tensor_core.mma_tma import (
    CONSUMERS,
    FITS,
    REGISTERS,
    STEPS,
    compile_options,
    configure,
    fits,
)
from gemmlab.kernels.tensor_core.shared import rasterisation, shared_layouts, warp_mma
from gemmlab.kernels.tensor_core.shared.tma_tiles import DEPTH, WORD, along_k, copying, shape
from gemmlab.kernels.tensor_core.shared.warp_mma import STEP, fragment_loads, update_c
from gemmlab.model import traffic
from gemmlab.problem import LAYOUTS, Gemm
from gemmlab.simt import cuda

MANY, FEW = REGISTERS[True]


def build(tiling: Tiling, layout: str = "nn", paired: bool = True) -> Callable:
    """The kernel, a function of (alpha, A, B, beta, C, the parts of A and B, their tensor maps).

    layout, paired : as in *mma_shared*
    """
    BM, BN, BK = tiling.block
    STAGES, LAST = tiling.stages, tiling.stages - 1
    ALONG_A, ALONG_B = along_k(layout)
    A_SIZE, B_SIZE = BM * BK, BN * BK
    A_BOXES, B_BOXES = (STAGES, *shape(BM, ALONG_A)), (STAGES, *shape(BN, ALONG_B))
    A_RING, B_RING = (STAGES * A_SIZE,), (STAGES * B_SIZE,)
    OF_AH, OF_AL, OF_BH, OF_BL, TILES = split_operands.rings(tiling)
    (A_WORDS, B_WORDS), SUMS = fragments(tiling), warp_mma.fragment_shapes(tiling)[2]

    copy = split_operands.copying_parts(tiling, copying(BM, ALONG_A), copying(BN, ALONG_B))
    tile_corner, warp_corner = rasterisation.corners(tiling), on_device(warp_mma.corner(tiling))
    clear, join = warp_mma.clearing(tiling), joining(tiling)
    start, (first_row, all_but_last, last_row) = starting(layout), multiplying_rows(tiling, layout)
    update = warp_mma.updating(tiling, "float32", paired)

    @on_device
    def after(stage, turn):
        """The stage of the ring that follows, and the parity of its turn."""
        return (stage + 1, turn) if stage < LAST else (0, turn ^ uint32(1))

    def tcec_mma_tma(
        alpha, A, B, beta, C, A_high, A_low, B_high, B_low, to_Ah, to_Al, to_Bh, to_Bl
    ):  # fmt: skip
        boxes_ah = shared_view(A_BOXES, float16, OF_AH)
        boxes_al = shared_view(A_BOXES, float16, OF_AL)
        boxes_bh = shared_view(B_BOXES, float16, OF_BH)
        boxes_bl = shared_view(B_BOXES, float16, OF_BL)
        # The same, element after element.
        Ah, Al = shared_view(A_RING, float16, OF_AH), shared_view(A_RING, float16, OF_AL)
        Bh, Bl = shared_view(B_RING, float16, OF_BH), shared_view(B_RING, float16, OF_BL)
        full = shared_view((STAGES,), uint64, TILES)
        empty = shared_view((STAGES,), uint64, TILES + STAGES * WORD)
        m, n = C.shape
        k = A.shape[1] if ALONG_A else A.shape[0]
        tiles = (m + BM - 1) // BM * ((n + BN - 1) // BN)
        first, further = cuda.blockIdx.x, cuda.gridDim.x
        thread = cuda.threadIdx.x

        if thread == 0:
            for stage in range(STAGES):
                mbarrier_init(full, stage, 1)
                mbarrier_init(empty, stage, CONSUMERS)
            fence_mbarrier_init()
        cuda.syncthreads()

        if thread >= CONSUMERS:
            setmaxnreg_dec(FEW)
            if thread == CONSUMERS:
                fence_tensor_map(to_Ah)
                fence_tensor_map(to_Al)
                fence_tensor_map(to_Bh)
                fence_tensor_map(to_Bl)
                stage, turn = 0, uint32(1)  # in the first turn, waiting for `empty` ends at once
                for tile in range(first, tiles, further):
                    row, col = tile_corner(tile, m, n)
                    for p in range(0, k, BK):
                        mbarrier_wait(empty, stage, turn)
                        copy(
                            boxes_ah, boxes_al, boxes_bh, boxes_bl, stage,
                            to_Ah, to_Al, to_Bh, to_Bl, row, col, p, p, full,
                        )  # fmt: skip
                        stage, turn = after(stage, turn)
                # One tile more, of zeros: its first fragments are loaded, and never used. It lies
                # behind the others along k, for boxes begin at multiples of 16 bytes.
                behind = (k + BK - 1) // BK * BK
                mbarrier_wait(empty, stage, turn)
                copy(
                    boxes_ah, boxes_al, boxes_bh, boxes_bl, stage,
                    to_Ah, to_Al, to_Bh, to_Bl, 0, 0, behind, behind, full,
                )  # fmt: skip
        else:
            setmaxnreg_inc(MANY)
            a_high, a_low = cuda.local.array(A_WORDS, uint32), cuda.local.array(A_WORDS, uint32)
            b_high, b_low = cuda.local.array(B_WORDS, uint32), cuda.local.array(B_WORDS, uint32)
            main, cross = cuda.local.array(SUMS, float32), cuda.local.array(SUMS, float32)
            i, j = warp_corner(thread)
            from_a, from_b = start(i, j)  # where this lane points
            stage, turn = 0, uint32(0)
            at_a, at_b = from_a, from_b  # in this stage
            mbarrier_wait(full, stage, turn)
            first_row(Ah, Al, Bh, Bl, at_a, at_b, a_high, a_low, b_high, b_low)
            for tile in range(first, tiles, further):
                clear(main)
                clear(cross)
                for _ in range(0, k, BK):
                    all_but_last(
                        Ah, Al, Bh, Bl, at_a, at_b, a_high, a_low, b_high, b_low, main, cross
                    )
                    stage, turn = after(stage, turn)
                    at_a, at_b = from_a + stage * A_SIZE, from_b + stage * B_SIZE
                    mbarrier_wait(full, stage, turn)
                    last_row(Ah, Al, Bh, Bl, at_a, at_b, a_high, a_low, b_high, b_low, main, cross)
                    # An arrival overtakes an `ldmatrix`: only what was multiplied has been read.
                    mbarrier_arrive(empty, stage - 1 if stage > 0 else LAST)
                join(main, cross)
                row, col = tile_corner(tile, m, n)
                update(C, row + i, col + j, alpha, main, beta)

    return tcec_mma_tma


def variant(problem: Gemm, capability: tuple[int, int] | None) -> Mapping[str, object]:
    """Keyword arguments of `build`."""
    return {"layout": problem.layout, "paired": problem.n % 2 == 0}


def work(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """The split, and *mma_tma*'s copies and fragments, of two parts. No thread loads A or B."""
    (bm, bn, _), (across, down) = tiling.block, tiling.grid(problem)
    steps = tiling.steps(problem)
    rows = PARTS * (bm + bn)  # that a step brings
    copies = across * down * steps
    fragments = fragment_loads(problem, tiling, shared_layouts.swizzled)
    found = traffic.staged(
        problem, tiling, Counter(), [(PARTS * steps * STEPS, fragments)], update_c(problem, tiling),
        barriers=0, round_trips=1, flops=flops(problem, tiling),
    )  # fmt: skip
    first_row = fragment_loads(problem, tiling, shared_layouts.swizzled, (STEP, tiling.warp[1]))
    zeros = Counter({n: PARTS * v for n, v in first_row.items() if n != "lane_bytes"})
    multiplied = replace(
        found,
        counters=found.counters + Counter(tensor_copy_bytes=copies * rows * ROW),
        l1_wavefronts=found.l1_wavefronts + copies * rows,
        chain=(1, 0),
        block_counters=zeros + Counter(barriers=1, tensor_copy_bytes=rows * ROW),
        block_wavefronts=rows + zeros["shared_load_wavefronts"],
    )
    return traffic.together(split_work(problem), multiplied)


def check(tiling: Tiling) -> None:
    """Raise ValueError for a tiling that warps, boxes and rings cannot be made of."""
    check_fit(fits(tiling), tiling, f"tcec_mma_tma, which needs {FITS}", DEFAULT)


DEFAULT = Tiling(block=(128, 128, DEPTH), warp=(64, 32), thread=(8, 8), stages=3)

tcec_mma_tma = Kernel(
    name="tcec_mma_tma",
    idea="operands split beforehand, the TMA copies, warps only multiply",
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
)
