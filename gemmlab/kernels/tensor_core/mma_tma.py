"""mma_tma: the ring of *mma_tuned*, filled by the TMA; blocks stay, and take tile after tile of C.

`cp.async` and `ldmatrix` share the way into and out of shared memory, and in *mma_tuned* that way
is full. Here one thread asks the Tensor Memory Accelerator for a whole tile with two instructions,
no other thread has a part in it, and what remains of the way is enough for `ldmatrix`. Two
mbarriers say how each stage stands: `full`, when its bytes have come, and `empty`, when all warps
have its fragments in registers; so warps need not wait for each other. Blocks are persistent: the
copies run ahead into the next tile of C while this one is stored. Counter to watch:
`tensor_copy_bytes`, which no load and no store counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from numpy import float16, float32, int32, uint16, uint32, uint64

from gemmlab.instructions import (
    fence_mbarrier_init,
    fence_tensor_map,
    mbarrier_arrive,
    mbarrier_arrive_expect,
    mbarrier_init,
    mbarrier_wait,
    shared_view,
)
from gemmlab.instructions.tensor_maps import MOST, ROW
from gemmlab.kernels.kernel import Dim, Kernel, on_device
from gemmlab.kernels.tensor_core.bands import place_in_bands
from gemmlab.kernels.tensor_core.boxes import (
    BLOCK,
    DEPTH,
    along_k,
    copying,
    shape,
    tensor_maps,
)
from gemmlab.kernels.tensor_core.pieces import PIECE, swizzled
from gemmlab.kernels.tensor_core.warps import (
    ARITHMETIC,
    STEP,
    clearing,
    computable,
    corner,
    flops,
    fragment_loads,
    fragment_shapes,
    loading,
    multiplying,
    update_c,
    updating,
)
from gemmlab.model import traffic
from gemmlab.problem import Gemm
from gemmlab.product import LAYOUTS
from gemmlab.simt import cuda
from gemmlab.tiling import WARP, Tiling

WORD = 8  # bytes of an mbarrier
BLOCKS = 132  # SMs of an H100 SXM and of an H200
PARTS = DEPTH // STEP  # steps along k in a tile


def build(
    tiling: Tiling, layout: str = "nn", paired: bool = True,
    dtype: str = "float16", out_dtype: str = "float32",
) -> Callable:  # fmt: skip
    """The kernel, a function of (alpha, map of A, map of B, k, beta, C).

    layout : which operands are stored transposed, see `Gemm.layout`
    paired : rows of C have an even number of elements
    dtype, out_dtype : the formats of A and B, and of C
    """
    BM, BN, BK = tiling.block
    WM, WN = tiling.warp
    STAGES, AHEAD = tiling.stages, tiling.stages - 1  # AHEAD: of what is multiplied, in tiles
    WARPS = tiling.threads // WARP
    ALONG_A, ALONG_B = along_k(layout)
    A_SIZE, B_SIZE = BM * BK, BN * BK
    A_BOXES, B_BOXES = (STAGES, *shape(BM, ALONG_A)), (STAGES, *shape(BN, ALONG_B))
    A_RING, B_RING = (STAGES * A_SIZE,), (STAGES * B_SIZE,)
    A_BYTES, B_BYTES = BM * ROW, BN * ROW
    TILES = STAGES * (A_BYTES + B_BYTES)
    ELEMENT = float16 if dtype == "float16" else uint16
    A_WORDS, B_WORDS, SUMS = fragment_shapes(tiling)
    TWO_A, TWO_B = (2, *A_WORDS), (2, *B_WORDS)  # of this step along k, and of the next

    place = swizzled(DEPTH)
    copy_a, copy_b = copying(BM, ALONG_A), copying(BN, ALONG_B)
    start_a, load_a = loading(WM, DEPTH, ALONG_A, True, place)
    start_b, load_b = loading(WN, DEPTH, ALONG_B, False, place)
    warp_corner, clear = on_device(corner(tiling)), clearing(tiling)
    multiply, update = multiplying(tiling, dtype), updating(tiling, out_dtype, paired)

    @on_device
    def tile_corner(tile, m, n):
        """Row and column of C where a tile begins."""
        y, x = place_in_bands(tile, (m + BM - 1) // BM, (n + BN - 1) // BN)
        return y * BM, x * BN

    @on_device
    def fill(boxes_a, boxes_b, slot, A, B, row, col, p, full):
        """Begin to copy the tiles from p of k on to a slot of the rings."""
        mbarrier_arrive_expect(full, slot, A_BYTES + B_BYTES)
        copy_a(boxes_a, slot, A, row, p, full)
        copy_b(boxes_b, slot, B, col, p, full)

    @on_device
    def beyond(tile, row, col, p, k, m, n):
        """The tile, row, column and p of what follows: of the same tile of C, or of the next."""
        if p + BK < k:
            return tile, row, col, p + BK
        following = tile + cuda.gridDim.x
        row, col = tile_corner(following, m, n)
        return following, row, col, 0

    @on_device
    def load(As, Bs, from_a, from_b, slot, s, a, b):
        load_a(As, from_a + slot * A_SIZE, s, a)
        load_b(Bs, from_b + slot * B_SIZE, s, b)

    def mma_tma(alpha, A, B, k, beta, C):
        boxes_a = shared_view(A_BOXES, ELEMENT, 0)
        boxes_b = shared_view(B_BOXES, ELEMENT, STAGES * A_BYTES)
        As = shared_view(A_RING, ELEMENT, 0)  # the same memory, element after element
        Bs = shared_view(B_RING, ELEMENT, STAGES * A_BYTES)
        full = shared_view((STAGES,), uint64, TILES)
        empty = shared_view((STAGES,), uint64, TILES + STAGES * WORD)
        m, n = C.shape
        tiles = (m + BM - 1) // BM * ((n + BN - 1) // BN)
        first, further = cuda.blockIdx.x, cuda.gridDim.x
        thread = cuda.threadIdx.x
        i, j = warp_corner(thread)

        if thread == 0:
            fence_tensor_map(A)
            fence_tensor_map(B)
            for slot in range(STAGES):
                mbarrier_init(full, slot, 1)
                mbarrier_init(empty, slot, WARPS)
            fence_mbarrier_init()
        cuda.syncthreads()

        a = cuda.local.array(TWO_A, uint32)
        b = cuda.local.array(TWO_B, uint32)
        acc = cuda.local.array(SUMS, float32)
        # Where this lane points. A warp's part of a tile lies in the boxes as one of its own would.
        from_a = start_a(i % BLOCK) + i // BLOCK * BLOCK * DEPTH
        from_b = start_b(j % BLOCK) + j // BLOCK * BLOCK * DEPTH

        coming, q = first, 0  # what is copied next: for which tile of C, and from where of k
        row, col = tile_corner(coming, m, n)
        if thread == 0:
            for slot in range(AHEAD):
                if coming < tiles:
                    fill(boxes_a, boxes_b, slot, A, B, row, col, q, full)
                    coming, row, col, q = beyond(coming, row, col, q, k, m, n)

        slot, turn = int32(0), uint32(0)  # what is multiplied: its slot, and the parity of its turn
        before, turn_before = int32(AHEAD), uint32(1)  # what was multiplied before
        mbarrier_wait(full, slot, turn)
        load(As, Bs, from_a, from_b, slot, 0, a[0], b[0])
        for tile in range(first, tiles, further):
            clear(acc)
            for p in range(0, k, BK):
                load(As, Bs, from_a, from_b, slot, 1, a[1], b[1])
                multiply(a[0], b[0], acc)
                load(As, Bs, from_a, from_b, slot, 2, a[0], b[0])
                multiply(a[1], b[1], acc)
                if thread == 0 and coming < tiles:
                    mbarrier_wait(empty, before, turn_before)
                    fill(boxes_a, boxes_b, before, A, B, row, col, q, full)
                    coming, row, col, q = beyond(coming, row, col, q, k, m, n)
                load(As, Bs, from_a, from_b, slot, 3, a[1], b[1])
                multiply(a[0], b[0], acc)
                cuda.syncwarp()  # the last fragments are in registers: the slot may be given up
                if thread % WARP == 0:
                    mbarrier_arrive(empty, slot)
                before, turn_before = slot, turn
                slot, turn = (slot + 1, turn) if slot < AHEAD else (0, turn ^ uint32(1))
                if p + BK < k or tile + further < tiles:
                    mbarrier_wait(full, slot, turn)
                    load(As, Bs, from_a, from_b, slot, 0, a[0], b[0])
                multiply(a[1], b[1], acc)
            y, x = tile_corner(tile, m, n)
            update(C, y + i, x + j, alpha, acc, beta)

    return mma_tma


def variant(problem: Gemm, capability: tuple[int, int] | None) -> Mapping[str, object]:
    """Keyword arguments of `build`; ValueError for rows that the TMA cannot copy."""
    for name, (_, columns) in zip("AB", problem.shapes, strict=False):
        if columns % PIECE:
            raise ValueError(
                f"mma_tma copies rows of A and B by the TMA, and those of {name} have {columns} "
                f"elements; use a multiple of {PIECE}"
            )
    return {
        "layout": problem.layout,
        "paired": problem.n % 2 == 0,
        "dtype": problem.dtype,
        "out_dtype": problem.out_dtype,
    }


def launch(problem: Gemm, tiling: Tiling) -> tuple[Dim, Dim]:
    """(grid, block): a block for each SM, or for each tile where these are fewer."""
    across, down = tiling.grid(problem)
    return (min(across * down, BLOCKS), 1), (tiling.threads, 1)


def compile_options(tiling: Tiling) -> Mapping[str, object]:
    """Registers for one block of an SM: all that its threads can have."""
    return {"launch_bounds": (tiling.threads, 1)}


def work(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """Fragments are loaded as in *mma_tuned*; each step copies (bm + bn)·128 bytes.

    Memory's latency is waited for once, in the first tile: afterwards copies are ahead.
    """
    (bm, bn, _), (across, down) = tiling.block, tiling.grid(problem)
    steps = tiling.steps(problem)
    found = traffic.staged(
        problem,
        tiling,
        copies=Counter(),
        shared=[(steps * PARTS, fragment_loads(problem, tiling, swizzled))],
        update=update_c(problem, tiling),
        barriers=0,
        round_trips=1,
        flops=flops(problem, tiling),
    )
    (blocks, _), _ = launch(problem, tiling)
    copies = across * down * steps * (bm + bn)  # rows of 128 bytes, each a wavefront
    return replace(
        found,
        counters=found.counters + Counter(barriers=blocks, tensor_copy_bytes=copies * ROW),
        l1_wavefronts=found.l1_wavefronts + copies,
        chain=(1, 0),
    )


def shared_bytes(problem: Gemm, tiling: Tiling) -> int:
    """Shared memory of a block [B]: the tiles of all stages, and two mbarriers for each."""
    bm, bn, _ = tiling.block
    return tiling.stages * ((bm + bn) * ROW + 2 * WORD)


def check(tiling: Tiling) -> None:
    """Raise ValueError for a tiling that warps, boxes and rings cannot be made of."""
    bm, bn, bk = tiling.block
    if not (
        computable(tiling)
        and max(tiling.warp) <= BLOCK
        and bm % BLOCK == bn % BLOCK == 0
        and max(bm, bn) <= MOST
        and bk == DEPTH
        and tiling.stages >= 2
    ):
        raise ValueError(
            f"tiling {tiling} does not fit mma_tma, which needs warps of 8×4 threads with tiles of "
            f"powers of two from 16 to {BLOCK}, blocks of multiples of {BLOCK} up to {MOST}, steps "
            f"of {DEPTH} along k, and two stages or more, such as {DEFAULT!r}"
        )


DEFAULT = Tiling(block=(256, 128, DEPTH), warp=(64, 64), thread=(8, 16), stages=4)

mma_tma = Kernel(
    name="mma_tma",
    idea="the TMA copies, and `ldmatrix` has the way to itself",
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
    tilings=(
        DEFAULT,
        Tiling(block=(128, 256, DEPTH), warp=(64, 64), thread=(8, 16), stages=4),
    ),
    arithmetic=ARITHMETIC,
    layouts=LAYOUTS,
)
