"""Rung 4, mma_pipelined: tiles are on their way while others are multiplied.

Copies by `cp.async` need no registers and nobody waits for them: `stages` - 1 tiles are under way
into a ring in shared memory, and one barrier a tile is enough. With one stage there is no ring: a
tile is waited for, then multiplied. Counter to watch: barriers, half as many; and the time, with
one stage, two, and more.
"""

from collections.abc import Callable
from dataclasses import replace

from numpy import float16, float32, uint16, uint32

from gemmlab import Tiling
from gemmlab.instructions import cp_async_commit, cp_async_wait, shared_view
from gemmlab.kernels.kernel import check_fit, on_device
from gemmlab.kernels.tensor_core.mma_swizzled import mma_swizzled
from gemmlab.kernels.tensor_core.shared import shared_layouts, warp_mma
from gemmlab.kernels.tensor_core.shared.shared_layouts import copying
from gemmlab.kernels.tensor_core.shared.warp_mma import STEP, multiplying, updating
from gemmlab.model import traffic
from gemmlab.problem import Gemm
from gemmlab.simt import cuda


def build(
    tiling: Tiling, layout: str = "nn", aligned: bool = True, paired: bool = True,
    dtype: str = "float16", out_dtype: str = "float32",
) -> Callable:  # fmt: skip
    """Return the kernel as a plain Numba-CUDA function, with all tile sizes frozen into it.

    layout, paired, dtype, out_dtype : as in *mma_shared*
    aligned : all rows of A and B begin at multiples of 16 bytes; else threads carry the tiles
    """
    BM, BN, BK = tiling.block
    WM, WN = tiling.warp
    STAGES, AHEAD = tiling.stages, tiling.stages - 1  # AHEAD: of what is multiplied, in tiles
    PENDING = max(0, AHEAD - 1)  # batches of copies that need not have arrived
    ALONG_A, ALONG_B = layout[0] == "n", layout[1] == "t"  # rows of the stored tile run along k
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
    multiply, update = multiplying(tiling, dtype), updating(tiling, out_dtype, paired)

    @on_device
    def copy(As, Bs, to_a, to_b, slot, A, B, row, col, p):
        """Begin to copy the tiles from p of k on to a slot of the rings, as one batch."""
        copy_a(As, to_a + slot * A_SIZE, A, row if ALONG_A else p, p if ALONG_A else row, 0)
        copy_b(Bs, to_b + slot * B_SIZE, B, col if ALONG_B else p, p if ALONG_B else col, 0)
        cp_async_commit()

    def mma_pipelined(alpha, A, B, beta, C):
        As = shared_view(A_RING, ELEMENT, 0)
        Bs = shared_view(B_RING, ELEMENT, A_BYTES)
        k = A.shape[1] if ALONG_A else A.shape[0]
        row, col = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        i, j = warp_corner(cuda.threadIdx.x)

        a = cuda.local.array(A_WORDS, uint32)
        b = cuda.local.array(B_WORDS, uint32)
        acc = cuda.local.array(SUMS, float32)
        clear(acc)

        to_a, to_b = first_a(), first_b()  # where this thread copies to
        from_a, from_b = start_a(i), start_b(j)  # where this lane points
        for tile in range(AHEAD):
            copy(As, Bs, to_a, to_b, tile, A, B, row, col, tile * BK)

        slot = 0  # of the rings: the one that is multiplied
        for p in range(0, k, BK):
            if AHEAD == 0:
                cuda.syncthreads()  # the tile before has been read
                copy(As, Bs, to_a, to_b, 0, A, B, row, col, p)
            cp_async_wait(PENDING)
            cuda.syncthreads()
            if AHEAD > 0:  # into the slot that was multiplied before
                before = slot - 1 if slot > 0 else AHEAD
                copy(As, Bs, to_a, to_b, before, A, B, row, col, p + AHEAD * BK)
            for s in range(BK // STEP):
                load_a(As, from_a + slot * A_SIZE, s, a)
                load_b(Bs, from_b + slot * B_SIZE, s, b)
                multiply(a, b, acc)
            slot = slot + 1 if slot < AHEAD else 0

        update(C, row + i, col + j, alpha, acc, beta)

    return mma_pipelined


def work(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """Return the traffic of *mma_swizzled*, and `stages` - 1 tiles of zeros beyond k."""
    steps, ahead = tiling.steps(problem), tiling.stages - 1
    return warp_mma.staged(
        problem, tiling, ahead=ahead, barriers=steps if ahead else 2 * steps,
        round_trips=-(-steps // max(1, ahead)),
    )  # fmt: skip


def check(tiling: Tiling) -> None:
    """Raise ValueError for a tiling that warps and copies cannot be made of."""
    check_fit(
        warp_mma.computable(tiling) and shared_layouts.copyable(tiling),
        tiling,
        f"the kernel with rings, which needs {warp_mma.COMPUTABLE}, steps of multiples of 16 "
        f"along k, and {shared_layouts.COPYABLE}",
        DEFAULT,
    )


DEFAULT = Tiling(block=(128, 128, 32), warp=(64, 32), thread=(8, 8), stages=4)

mma_pipelined = replace(
    mma_swizzled,
    name="mma_pipelined",
    idea="tiles copied while others are multiplied",
    default=DEFAULT,
    build=build,
    work=work,
    check=check,
    dynamic=True,
    tilings=(
        DEFAULT,
        *(Tiling(DEFAULT.block, DEFAULT.thread, stages, DEFAULT.warp) for stages in (1, 2, 3, 5)),
    ),
)
