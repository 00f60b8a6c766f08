"""Rung 1 on Hopper, wgmma_pipelined: warpgroups multiply straight from shared memory.

`mma.sync` takes fragments from registers, and a warp loads each of them by `ldmatrix`. `wgmma`
takes tiles: four warps together name 64 rows of A and all columns of B where they lie, in the
128-byte swizzle, and go on while the Tensor Cores read and multiply. Tiles come by `cp.async`, as
in *mma_pipelined*, into a ring in which two are under way and two are being multiplied. What
threads have copied, `wgmma` sees after a fence. Counter to watch: shared loads, none.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from numpy import float16, float32, int32, uint16

from gemmlab.instructions import (
    WGMMA,
    WGMMA_BF16,
    WGMMA_WAIT,
    cp_async_commit,
    cp_async_wait,
    fence_proxy_async,
    shared_view,
    wgmma_commit,
    wgmma_fence,
)
from gemmlab.instructions.tensor_copies import ROW
from gemmlab.instructions.warpgroup import ROWS, WARPGROUP
from gemmlab.kernels.kernel import Dim, Kernel, check_fit, on_device
from gemmlab.kernels.tensor_core.shared import accumulators, shared_layouts, tma_tiles, warp_mma
from gemmlab.kernels.tensor_core.shared.rasterisation import place_in_bands
from gemmlab.kernels.tensor_core.shared.tma_tiles import DEPTH, shape
from gemmlab.model import traffic
from gemmlab.problem import LAYOUTS, Gemm
from gemmlab.simt import cuda
from gemmlab.tiling import WARP, Tiling


def build(
    tiling: Tiling, layout: str = "nt", aligned: bool = True, paired: bool = True,
    dtype: str = "float16", out_dtype: str = "float32",
) -> Callable:  # fmt: skip
    """Return the kernel as a plain Numba-CUDA function, with all tile sizes frozen into it.

    layout, paired, dtype, out_dtype : as in *mma_shared*
    aligned : all rows of A and B begin at multiples of 16 bytes; else threads carry the tiles
    """
    BM, BN, BK = tiling.block
    STAGES = tiling.stages
    AHEAD = STAGES - 2  # of what is multiplied, in tiles: one more is still being read
    PENDING = AHEAD - 1  # batches of copies that need not have arrived
    THREADS = threads(tiling)
    HELD = BN // 2  # elements of C that a thread accumulates
    A_ALONG, B_ALONG = tma_tiles.along_k(layout)
    A_SHAPE, B_SHAPE = (STAGES, *shape(BM, A_ALONG)), (STAGES, *shape(BN, B_ALONG))
    A_RING = STAGES * BM * ROW  # bytes
    ELEMENT = float16 if dtype == "float16" else uint16
    wgmma = (WGMMA if dtype == "float16" else WGMMA_BF16)[BN, layout]
    wgmma_wait, multiply = WGMMA_WAIT[BN], tma_tiles.multiplying(wgmma, layout)
    carry_a = tma_tiles.carrying(BM, A_ALONG, THREADS, 0, aligned, dtype)
    carry_b = tma_tiles.carrying(BN, B_ALONG, THREADS, 0, aligned, dtype)
    update = accumulators.updating(BN, out_dtype, paired)

    @on_device
    def copy(As, Bs, stage, A, B, row, col, p):
        """Begin to copy the tiles from p of k on to a stage of the ring, as one batch."""
        carry_a(As, stage, A, row, p)
        carry_b(Bs, stage, B, col, p)
        cp_async_commit()

    @on_device
    def after(stage, steps):
        """The stage that comes so many steps later."""
        return stage + steps if stage + steps < STAGES else stage + steps - STAGES

    def wgmma_pipelined(alpha, A, B, beta, C):
        As = shared_view(A_SHAPE, ELEMENT, 0)
        Bs = shared_view(B_SHAPE, ELEMENT, A_RING)
        k = A.shape[1] if A_ALONG else A.shape[0]
        across, down = cuda.gridDim.x, cuda.gridDim.y
        y, x = place_in_bands(cuda.blockIdx.y * across + cuda.blockIdx.x, down, across)
        row, col = int32(y * BM), int32(x * BN)
        thread = cuda.threadIdx.x
        group = thread // WARPGROUP  # of 64 rows of the tile
        acc = cuda.local.array(HELD, float32)

        for stage in range(AHEAD):
            copy(As, Bs, stage, A, B, row, col, int32(stage * BK))

        stage = int32(0)
        for p in range(int32(0), int32(k), int32(BK)):
            cp_async_wait(PENDING)
            fence_proxy_async()
            cuda.syncthreads()  # the tiles are there, and those of two steps ago have been read
            wgmma_fence()
            multiply(acc, As, Bs, stage, group, p > 0)
            wgmma_commit()
            copy(As, Bs, after(stage, AHEAD), A, B, row, col, p + AHEAD * BK)
            # This product goes on while the one before is complete: its stage is read.
            wgmma_wait(1, acc)
            stage = after(stage, 1)
        wgmma_wait(0, acc)

        i = thread // WARP * 16 + thread % WARP // 4  # of the tile, this thread's first element
        j = thread % 4 * 2
        update(C, row + i, col + j, alpha, acc, beta)

    return wgmma_pipelined


def threads(tiling: Tiling) -> int:
    """Threads of a block: a warpgroup for each 64 rows."""
    return tiling.block[0] // ROWS * WARPGROUP


def configure(problem: Gemm, tiling: Tiling) -> tuple[Dim, Dim]:
    """Return (grid, block): a block for each tile."""
    return tiling.grid(problem), (threads(tiling), 1)


def compile_options(tiling: Tiling) -> Mapping[str, object]:
    """Registers for one block of an SM: all that its threads can have."""
    return {"launch_bounds": (threads(tiling), 1)}


def work(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """Copies by threads, `stages` - 2 tiles of zeros beyond k, and products at Tensor Cores' rate.

    In each step a warpgroup reads its 64 rows of A and all of B: so many wavefronts of 128 bytes.
    """
    (bm, bn, _), (across, down) = tiling.block, tiling.grid(problem)
    steps, ahead = tiling.steps(problem), tiling.stages - 2
    loads, stores = tma_tiles.carried(problem, tiling, threads(tiling))
    found = traffic.staged(
        problem, tiling, loads, [(steps + ahead, each) for each in stores],
        accumulators.update_c(problem, tiling), barriers=steps, round_trips=-(-steps // ahead),
        flops={problem.dtype: tiling.padded_flops(problem)},
    )  # fmt: skip
    read = across * down * steps * (bm // ROWS) * (ROWS + bn)
    return replace(found, l1_wavefronts=found.l1_wavefronts + read)


def shared_bytes(problem: Gemm, tiling: Tiling) -> int:
    """Shared memory of a block [B]: the tiles of all stages."""
    bm, bn, _ = tiling.block
    return tiling.stages * (bm + bn) * ROW


def check(tiling: Tiling) -> None:
    """Raise ValueError for a tiling that warpgroups and the ring cannot have."""
    bm, bn, bk = tiling.block
    check_fit(
        bm in (ROWS, 2 * ROWS) and bn in tma_tiles.WIDTHS and bk == DEPTH and tiling.stages >= 3,
        tiling,
        f"wgmma_pipelined, which needs blocks of {ROWS} or {2 * ROWS}×n×{DEPTH} with n "
        f"one of {', '.join(map(str, tma_tiles.WIDTHS))}, and three stages or more",
        DEFAULT,
    )


DEFAULT = Tiling(block=(128, 256, DEPTH), stages=4)

wgmma_pipelined = Kernel(
    name="wgmma_pipelined",
    idea="warpgroups multiply from shared memory",
    default=DEFAULT,
    build=build,
    configure=configure,
    work=work,
    check=check,
    shared_bytes=shared_bytes,
    dynamic=True,
    variant=shared_layouts.variant,
    compile=compile_options,
    tilings=(
        DEFAULT,
        Tiling(block=(128, 256, DEPTH), stages=3),
        Tiling(block=(128, 128, DEPTH), stages=3),
    ),
    arithmetic=warp_mma.ARITHMETIC,
    layouts=LAYOUTS,
)
