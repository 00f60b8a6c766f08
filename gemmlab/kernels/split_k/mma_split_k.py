"""Split-K on Tensor Cores: several blocks share a tile of C, each with a part of k.

One change from *mma_pipelined*, and the one that *split_k* makes of *pipelined*: the grid has a
third axis, along k, each block stores its sums in a workspace, and a second launch adds them up, in
a fixed order, and updates C. Sums are stored in float32, whatever C is: so it is rounded once.
Counter to watch: the sectors of the workspace, 2·split·m·n·4 bytes of them.
"""

from collections.abc import Callable

import numpy as np
from numpy import float16, float32, int32, uint16, uint32

from gemmlab import Device, Tiling
from gemmlab.instructions import cp_async_commit, cp_async_wait, shared_view
from gemmlab.kernels.kernel import Kernel, Launch, check_fit, on_device
from gemmlab.kernels.split_k.shared import workspace_tiles
from gemmlab.kernels.split_k.shared.mainloop import BEYOND
from gemmlab.kernels.split_k.shared.mainloop_mma import stored, summed
from gemmlab.kernels.split_k.shared.split_heuristics import fastest, filled
from gemmlab.kernels.split_k.shared.workspace_tiles import WARPS
from gemmlab.kernels.split_k.split_k import launch, launch_sum, workspace
from gemmlab.kernels.tensor_core.shared import shared_layouts, warp_mma
from gemmlab.kernels.tensor_core.shared.shared_layouts import copying
from gemmlab.kernels.tensor_core.shared.warp_mma import STEP, multiplying, updating
from gemmlab.model import traffic
from gemmlab.problem import LAYOUTS, Gemm
from gemmlab.simt import cuda


def build(
    tiling: Tiling, layout: str = "nn", aligned: bool = True, paired: bool = True,
    dtype: str = "float16", out_dtype: str = "float32",
) -> Callable:  # fmt: skip
    """The function that multiplies, with all tile sizes frozen into it; see *mma_pipelined*."""
    BM, BN, BK = tiling.block
    WM, WN = tiling.warp
    STAGES, AHEAD = tiling.stages, tiling.stages - 1  # AHEAD: of what is multiplied, in tiles
    PENDING = AHEAD - 1  # batches of copies that need not have arrived
    ALONG_A, ALONG_B = layout[0] == "n", layout[1] == "t"  # rows of the stored tile run along k
    K_AXIS = 1 if ALONG_A else 0  # of A
    A_TILE, B_TILE = shared_layouts.tile_shapes(tiling, layout)
    A_SIZE, B_SIZE = BM * BK, BN * BK
    A_RING, B_RING = (STAGES * A_SIZE,), (STAGES * B_SIZE,)
    A_BYTES = shared_layouts.BYTES * STAGES * A_SIZE
    ELEMENT = float16 if dtype == "float16" else uint16
    A_WORDS, B_WORDS, SUMS = warp_mma.fragment_shapes(tiling)

    place_a, place_b = shared_layouts.swizzled(A_TILE[1]), shared_layouts.swizzled(B_TILE[1])
    first_a, copy_a = copying(tiling, A_TILE, place_a, aligned, dtype, asynchronous=True)
    first_b, copy_b = copying(tiling, B_TILE, place_b, aligned, dtype, asynchronous=True)
    start_a, load_a = warp_mma.loading(WM, A_TILE[1], ALONG_A, True, place_a)
    start_b, load_b = warp_mma.loading(WN, B_TILE[1], ALONG_B, False, place_b)
    warp_corner, clear = on_device(warp_mma.corner(tiling)), warp_mma.clearing(tiling)
    multiply, store = multiplying(tiling, dtype), updating(tiling, "float32", paired=True)

    @on_device
    def copy(As, Bs, to_a, to_b, slot, A, B, row, col, p, end):
        """Begin to copy the tiles from p of k on to a slot of the rings; zeros beyond the part."""
        p = int32(p) if p < end else int32(BEYOND)
        copy_a(As, to_a + slot * A_SIZE, A, row if ALONG_A else p, p if ALONG_A else row, 0)
        copy_b(Bs, to_b + slot * B_SIZE, B, col if ALONG_B else p, p if ALONG_B else col, 0)
        cp_async_commit()

    def mma_split_k(alpha, A, B, beta, C, W):
        As = shared_view(A_RING, ELEMENT, 0)
        Bs = shared_view(B_RING, ELEMENT, A_BYTES)
        part, split = cuda.blockIdx.z, cuda.gridDim.z
        steps = (A.shape[K_AXIS] + BK - 1) // BK
        begin, end = part * steps // split * BK, (part + 1) * steps // split * BK
        row, col = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        i, j = warp_corner(cuda.threadIdx.x)

        a = cuda.local.array(A_WORDS, uint32)
        b = cuda.local.array(B_WORDS, uint32)
        acc = cuda.local.array(SUMS, float32)
        clear(acc)

        to_a, to_b = first_a(), first_b()  # where this thread copies to
        from_a, from_b = start_a(i), start_b(j)  # where this lane points
        for tile in range(AHEAD):
            copy(As, Bs, to_a, to_b, tile, A, B, row, col, begin + tile * BK, end)

        slot = 0  # of the rings: the one that is multiplied
        for p in range(begin, end, BK):
            cp_async_wait(PENDING)
            cuda.syncthreads()
            before = slot - 1 if slot > 0 else AHEAD  # the slot that was multiplied before
            copy(As, Bs, to_a, to_b, before, A, B, row, col, p + AHEAD * BK, end)
            for s in range(BK // STEP):
                load_a(As, from_a + slot * A_SIZE, s, a)
                load_b(Bs, from_b + slot * B_SIZE, s, b)
                multiply(a, b, acc)
            slot = slot + 1 if slot < AHEAD else 0

        place = (cuda.blockIdx.y * cuda.gridDim.x + cuda.blockIdx.x) * split + part  # in the stack
        store(W, place * BM + i, j, float32(1), acc, float32(0))

    return mma_split_k


def build_sum(
    tiling: Tiling, layout: str = "nn", aligned: bool = True, paired: bool = True,
    dtype: str = "float16", out_dtype: str = "float32",
) -> Callable:  # fmt: skip
    """Return the function that adds up the parts and updates C."""
    GROUPS, BM = workspace_tiles.groups(tiling), tiling.block[0]
    add = workspace_tiles.adding_pairs(tiling, out_dtype, paired)

    def add_parts(alpha, A, B, beta, C, W):
        split = W.shape[0] // (cuda.gridDim.x // GROUPS * BM)
        tile = cuda.blockIdx.x // GROUPS
        add(C, W, tile, tile * split, (tile + 1) * split, alpha, beta)

    return add_parts


def work(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """The traffic of *mma_pipelined*, whose rings are filled once for each part, and that of the
    sums. A part beyond the end of k is a tile of zeros.
    """
    (across, down), split = tiling.grid(problem), tiling.split
    tiles, longest = across * down, -(-tiling.steps(problem) // split)
    multiplied = summed(problem, tiling, tiles * split, longest, stored(tiling, tiles * split))
    paired = shared_layouts.variant(problem, None)["paired"]
    counts = np.full(tiles, split)
    return traffic.together(
        multiplied,
        workspace_tiles.added(problem, tiling, counts, min(WARPS, split), True, 2 if paired else 1),
    )


def check(tiling: Tiling) -> None:
    """Raise ValueError for what *mma_pipelined* does not take, or tiles that do not stack."""
    fits = warp_mma.computable(tiling) and shared_layouts.copyable(tiling) and tiling.stages >= 2
    check_fit(
        fits and workspace_tiles.stackable(tiling),
        tiling,
        "kernels that split k on Tensor Cores, which need what mma_pipelined needs, two stages or "
        "more, and tiles of 32, 64 or a multiple of 128 columns",
        DEFAULT,
    )


def suggest(problem: Gemm, device: Device) -> Tiling:
    """Suggest the largest tile that no other outdoes, with the split that `predict` and the model
    of sums choose for it.
    """
    return fastest(problem, device, mma_split_k, filled)


DEFAULT = Tiling(block=(128, 128, 64), warp=(64, 32), thread=(8, 8), stages=3)
TILINGS = (DEFAULT, Tiling(block=(64, 64, 64), warp=(32, 32), thread=(4, 8), stages=4))

mma_split_k = Kernel(
    name="mma_split_k",
    idea="parts of k on more processors' Tensor Cores, added by a second launch",
    default=DEFAULT,
    build=build,
    configure=launch,
    work=work,
    check=check,
    shared_bytes=shared_layouts.shared_bytes,
    dynamic=True,
    variant=shared_layouts.variant,
    tilings=TILINGS,
    arithmetic=warp_mma.ARITHMETIC,
    layouts=LAYOUTS,
    after=(
        Launch(
            build_sum,
            launch_sum,
            variant=shared_layouts.variant,
            compile=workspace_tiles.for_adders,
        ),
    ),
    workspace=workspace,
    splits=True,
    suggest=suggest,
)
