"""Rung 2, tcec_registers: shared memory holds A and B in FP32; registers hold the two parts.

A fragment is split as it is loaded. So tiles are copied as they are, by `cp.async`, several ahead
of the one that is multiplied, nothing is stored a second time, and no space is taken for parts.
What it costs is arithmetic: every warp splits what it loads, also what others load, too.
Counter to watch: shared stores, those of the copies alone.

Source of the idea: H. Ootomo, R. Yokota, "Reducing shared memory footprint to leverage high
throughput on Tensor Cores and its flexible API extension library", HPC Asia 2023.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from numpy import float32, uint32

from gemmlab.instructions import cp_async_commit, cp_async_wait, shared_view
from gemmlab.kernels.kernel import FLOAT, Kernel, on_device, threads_in_a_row
from gemmlab.kernels.tcec.quads import (
    copied,
    copyable,
    copying,
    fragment_loads,
    loading,
    placed,
)
from gemmlab.kernels.tcec.sums import flops, joining, multiplying, variant
from gemmlab.kernels.tensor_core.bands import place_in_bands
from gemmlab.kernels.tensor_core.pieces import tile_shapes
from gemmlab.kernels.tensor_core.warps import (
    STEP,
    clearing,
    computable,
    corner,
    fragment_shapes,
    update_c,
    updating,
)
from gemmlab.model import traffic
from gemmlab.problem import Gemm
from gemmlab.product import LAYOUTS
from gemmlab.simt import cuda
from gemmlab.tiling import Tiling


def build(
    tiling: Tiling, layout: str = "nn", aligned: bool = True, paired: bool = True
) -> Callable:
    """The kernel as a plain Numba-CUDA function, with all tile sizes frozen into it.

    layout : which operands are stored transposed, see `Gemm.layout`
    aligned : all rows of A and B begin at multiples of 16 bytes
    paired : rows of C have an even number of elements
    """
    BM, BN, BK = tiling.block
    WM, WN = tiling.warp
    STAGES, AHEAD = tiling.stages, tiling.stages - 1  # AHEAD: of what is multiplied, in tiles
    PENDING = AHEAD - 1  # batches of copies that need not have arrived
    ALONG_A, ALONG_B = layout[0] == "n", layout[1] == "t"  # rows of the stored tile run along k
    A_TILE, B_TILE = tile_shapes(tiling, layout)
    A_SIZE, B_SIZE = BM * BK, BN * BK
    A_RING, B_RING = (STAGES * A_SIZE,), (STAGES * B_SIZE,)
    A_BYTES = FLOAT * STAGES * A_SIZE
    A_WORDS, B_WORDS, SUMS = fragment_shapes(tiling)

    place_a, place_b = placed(A_TILE[1], ALONG_A), placed(B_TILE[1], ALONG_B)
    first_a, copy_a = copying(tiling, A_TILE, place_a, aligned)
    first_b, copy_b = copying(tiling, B_TILE, place_b, aligned)
    start_a, load_a = loading(WM, A_TILE[1], ALONG_A, True, place_a)
    start_b, load_b = loading(WN, B_TILE[1], ALONG_B, False, place_b)
    warp_corner, clear = on_device(corner(tiling)), clearing(tiling)
    multiply, join = multiplying(tiling), joining(tiling)
    update = updating(tiling, "float32", paired)

    @on_device
    def block_corner():
        """Where this block's tile of C begins."""
        across, down = cuda.gridDim.x, cuda.gridDim.y
        y, x = place_in_bands(cuda.blockIdx.y * across + cuda.blockIdx.x, down, across)
        return y * BM, x * BN

    @on_device
    def copy(As, Bs, to_a, to_b, slot, A, B, row, col, p):
        """Begin to copy the tiles from p of k on to a slot of the rings, as one batch."""
        copy_a(As, to_a + slot * A_SIZE, A, row if ALONG_A else p, p if ALONG_A else row)
        copy_b(Bs, to_b + slot * B_SIZE, B, col if ALONG_B else p, p if ALONG_B else col)
        cp_async_commit()

    def tcec_registers(alpha, A, B, beta, C):
        As = shared_view(A_RING, float32, 0)
        Bs = shared_view(B_RING, float32, A_BYTES)
        k = A.shape[1] if ALONG_A else A.shape[0]
        row, col = block_corner()
        i, j = warp_corner(cuda.threadIdx.x)

        a_high, a_low = cuda.local.array(A_WORDS, uint32), cuda.local.array(A_WORDS, uint32)
        b_high, b_low = cuda.local.array(B_WORDS, uint32), cuda.local.array(B_WORDS, uint32)
        main, cross = cuda.local.array(SUMS, float32), cuda.local.array(SUMS, float32)
        clear(main)
        clear(cross)

        to_a, to_b = first_a(), first_b()  # where this thread copies to
        from_a, from_b = start_a(i), start_b(j)  # where this lane begins to load
        for tile in range(AHEAD):
            copy(As, Bs, to_a, to_b, tile, A, B, row, col, tile * BK)

        slot = 0  # of the rings: the one that is multiplied
        for p in range(0, k, BK):
            cp_async_wait(PENDING)
            cuda.syncthreads()
            before = slot - 1 if slot > 0 else AHEAD  # the slot that was multiplied before
            copy(As, Bs, to_a, to_b, before, A, B, row, col, p + AHEAD * BK)
            for s in range(BK // STEP):
                load_a(As, from_a + slot * A_SIZE, s, a_high, a_low)
                load_b(Bs, from_b + slot * B_SIZE, s, b_high, b_low)
                multiply(a_high, a_low, b_high, b_low, main, cross)
            slot = slot + 1 if slot < AHEAD else 0

        join(main, cross)
        update(C, row + i, col + j, alpha, main, beta)

    return tcec_registers


def compile_options(tiling: Tiling) -> Mapping[str, object]:
    """Registers for one block of an SM: all that its threads can have."""
    return {"launch_bounds": (tiling.threads, 1)}


def shared_bytes(problem: Gemm, tiling: Tiling) -> int:
    """`stages` tiles of A and of B in FP32 [B]."""
    bm, bn, bk = tiling.block
    return FLOAT * tiling.stages * bk * (bm + bn)


def work(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """Copies in FP32, quads in place of fragments, and `stages` - 1 tiles of zeros beyond k."""
    steps, ahead = tiling.steps(problem), tiling.stages - 1
    loads, stores = copied(problem, tiling)
    return traffic.staged(
        problem,
        tiling,
        copies=loads,
        shared=[
            *((steps + ahead, each) for each in stores),
            (steps * tiling.block[2] // STEP, fragment_loads(problem, tiling)),
        ],
        update=update_c(problem, tiling),
        barriers=steps,
        round_trips=-(-steps // ahead),
        flops=flops(problem, tiling),
    )


def check(tiling: Tiling) -> None:
    """Raise ValueError for a tiling that warps, copies and rings cannot be made of."""
    if not (computable(tiling) and tiling.stages >= 2 and copyable(tiling)):
        raise ValueError(
            f"tiling {tiling} does not fit the kernel that splits in registers, which needs warps "
            "of 8×4 threads with tiles of powers of two from 16 on, steps of multiples of 16 along "
            "k, two stages or more, and blocks that its threads copy without a remainder, such as "
            f"{DEFAULT!r}"
        )


DEFAULT = Tiling(block=(128, 128, 32), warp=(64, 32), thread=(8, 8), stages=4)

tcec_registers = Kernel(
    name="tcec_registers",
    idea="operands split in registers, as fragments are loaded",
    default=DEFAULT,
    build=build,
    launch=threads_in_a_row,
    work=work,
    check=check,
    shared_bytes=shared_bytes,
    dynamic=True,
    variant=variant,
    compile=compile_options,
    layouts=LAYOUTS,
)
