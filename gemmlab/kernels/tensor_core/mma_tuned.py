"""Rung 5, mma_tuned: the Tensor Cores never wait, and L2 is asked for little.

Three things at once, because each alone is hidden by the others. A thread loads the fragments of
the next step along k while it multiplies those of this one, and copies of tiles begin a few at a
time between the steps, so that neither fills the queue before shared memory. One block of eight
warps with tiles of 64×64 has an SM to itself, and needs fewer bytes for each operation than two
smaller ones. And blocks go through C in groups of rows, so that those that run at one time share
more of A and B in L2. Counter to watch: none moves; the time does.
"""

from collections.abc import Callable
from dataclasses import replace

from numpy import float16, float32, uint16, uint32

from gemmlab import Tiling
from gemmlab.instructions import cp_async_commit, cp_async_wait, shared_view
from gemmlab.kernels.kernel import check_fit, on_device
from gemmlab.kernels.tensor_core.mma_pipelined import mma_pipelined
from gemmlab.kernels.tensor_core.shared import shared_layouts, warp_mma
from gemmlab.kernels.tensor_core.shared.rasterisation import place_in_bands
from gemmlab.kernels.tensor_core.shared.shared_layouts import copyable
from gemmlab.kernels.tensor_core.shared.warp_mma import STEP, multiplying, updating
from gemmlab.model import traffic
from gemmlab.problem import Gemm
from gemmlab.simt import cuda


def build(
    tiling: Tiling, layout: str = "nn", aligned: bool = True, paired: bool = True,
    dtype: str = "float16", out_dtype: str = "float32",
) -> Callable:  # fmt: skip
    """Return the kernel as a plain Numba-CUDA function, with all tile sizes frozen into it.

    layout, aligned, paired, dtype, out_dtype : as in *mma_shared*
    """
    BM, BN, BK = tiling.block
    AHEAD = tiling.stages - 1  # tiles between what is multiplied and what is copied
    PENDING = AHEAD - 1  # batches of copies that need not have arrived
    PARTS = BK // STEP  # steps along k in a tile, and parts in which the next one is copied
    ALONG_A = layout[0] == "n"  # rows of A's stored tile run along k
    A_SIZE, B_SIZE = BM * BK, BN * BK
    A_RING, B_RING = (tiling.stages * A_SIZE,), (tiling.stages * B_SIZE,)
    A_BYTES = shared_layouts.BYTES * tiling.stages * A_SIZE
    ELEMENT = float16 if dtype == "float16" else uint16
    A_WORDS, B_WORDS, SUMS = warp_mma.fragment_shapes(tiling)
    TWO_A, TWO_B = (2, *A_WORDS), (2, *B_WORDS)  # of this step along k, and of the next

    first_a, first_b, copy = copying_tiles(tiling, layout, aligned, dtype)
    start_a, load_a, start_b, load_b = loading_fragments(tiling, layout)
    warp_corner, clear = on_device(warp_mma.corner(tiling)), warp_mma.clearing(tiling)
    multiply, update = multiplying(tiling, dtype), updating(tiling, out_dtype, paired)
    all_but_one = steps_along_k(0, PARTS, copy, load_a, load_b, multiply)

    @on_device
    def block_corner():
        """Where this block's tile of C begins."""
        across, down = cuda.gridDim.x, cuda.gridDim.y
        y, x = place_in_bands(cuda.blockIdx.y * across + cuda.blockIdx.x, down, across)
        return y * BM, x * BN

    def mma_tuned(alpha, A, B, beta, C):
        As = shared_view(A_RING, ELEMENT, 0)
        Bs = shared_view(B_RING, ELEMENT, A_BYTES)
        k = A.shape[1] if ALONG_A else A.shape[0]
        row, col = block_corner()
        i, j = warp_corner(cuda.threadIdx.x)

        a = cuda.local.array(TWO_A, uint32)
        b = cuda.local.array(TWO_B, uint32)
        acc = cuda.local.array(SUMS, float32)
        clear(acc)

        to_a, to_b = first_a(), first_b()  # where this thread copies to
        from_a, from_b = start_a(i), start_b(j)  # where this lane points
        for tile in range(AHEAD):
            for part in range(PARTS):
                copy(As, Bs, to_a, to_b, A, B, row, col, tile * BK, part)
            cp_async_commit()
            to_a += A_SIZE
            to_b += B_SIZE
        cp_async_wait(PENDING)
        cuda.syncthreads()
        load_a(As, from_a, 0, a[0])
        load_b(Bs, from_b, 0, b[0])

        p, reads, fills = 0, 0, AHEAD  # of k: where this tile begins; of the rings: its place
        while p < k:
            all_but_one(
                As, Bs, from_a, from_b, to_a, to_b, A, B, row, col, p + AHEAD * BK, a, b, acc
            )
            copy(As, Bs, to_a, to_b, A, B, row, col, p + AHEAD * BK, PARTS - 1)
            cp_async_commit()
            # One step is left, whose fragments are in registers: the tile may be given up.
            p += BK
            to_a += A_SIZE if fills < AHEAD else -AHEAD * A_SIZE
            to_b += B_SIZE if fills < AHEAD else -AHEAD * B_SIZE
            fills = fills + 1 if fills < AHEAD else 0
            from_a += A_SIZE if reads < AHEAD else -AHEAD * A_SIZE
            from_b += B_SIZE if reads < AHEAD else -AHEAD * B_SIZE
            reads = reads + 1 if reads < AHEAD else 0
            cp_async_wait(PENDING)
            cuda.syncthreads()
            load_a(As, from_a, 0, a[0])
            load_b(Bs, from_b, 0, b[0])
            multiply(a[1], b[1], acc)

        update(C, row + i, col + j, alpha, acc, beta)

    return mma_tuned


def copying_tiles(
    tiling: Tiling, layout: str, aligned: bool, dtype: str
) -> tuple[Callable, Callable, Callable]:
    """Return first_a(), first_b() and copy(As, Bs, to_a, to_b, A, B, row, col, p, part).

    The first two say where this thread copies to in the first stage of a ring. The third begins a
    part of the copies of the tiles from p of k on, one of as many as a tile has steps along k.
    """
    PARTS = tiling.block[2] // STEP
    ALONG_A, ALONG_B = layout[0] == "n", layout[1] == "t"  # rows of the stored tile run along k
    tile_a, tile_b = shared_layouts.tile_shapes(tiling, layout)
    place_a, place_b = shared_layouts.swizzled(tile_a[1]), shared_layouts.swizzled(tile_b[1])
    first_a, copy_a = shared_layouts.copying(tiling, tile_a, place_a, aligned, dtype, True, PARTS)
    first_b, copy_b = shared_layouts.copying(tiling, tile_b, place_b, aligned, dtype, True, PARTS)

    @on_device
    def copy(As, Bs, to_a, to_b, A, B, row, col, p, part):
        copy_a(As, to_a, A, row if ALONG_A else p, p if ALONG_A else row, part)
        copy_b(Bs, to_b, B, col if ALONG_B else p, p if ALONG_B else col, part)

    return first_a, first_b, copy


def loading_fragments(tiling: Tiling, layout: str) -> tuple[Callable, ...]:
    """Return start_a, load_a, start_b and load_b, device functions as `warp_mma.loading` says."""
    (WM, WN), (tile_a, tile_b) = tiling.warp, shared_layouts.tile_shapes(tiling, layout)
    place_a, place_b = shared_layouts.swizzled(tile_a[1]), shared_layouts.swizzled(tile_b[1])
    of_a = warp_mma.loading(WM, tile_a[1], layout[0] == "n", True, place_a)
    of_b = warp_mma.loading(WN, tile_b[1], layout[1] == "t", False, place_b)
    return *of_a, *of_b


def steps_along_k(
    s: int, count: int, copy: Callable, load_a: Callable, load_b: Callable, multiply: Callable
) -> Callable:
    """Return the device function of a tile's steps along k from s on, but for the last one.

    Each loads the fragments of the next step and begins a part of a copy, then multiplies its own.
    Nesting writes the steps out, so that all fragments live in registers.
    """
    others = no_steps
    if s + 2 < count:
        others = steps_along_k(s + 1, count, copy, load_a, load_b, multiply)

    @on_device
    def step(As, Bs, from_a, from_b, to_a, to_b, A, B, row, col, p, a, b, acc):
        load_a(As, from_a, s + 1, a[(s + 1) % 2])
        load_b(Bs, from_b, s + 1, b[(s + 1) % 2])
        copy(As, Bs, to_a, to_b, A, B, row, col, p, s)
        multiply(a[s % 2], b[s % 2], acc)
        others(As, Bs, from_a, from_b, to_a, to_b, A, B, row, col, p, a, b, acc)

    return step


@on_device
def no_steps(As, Bs, from_a, from_b, to_a, to_b, A, B, row, col, p, a, b, acc):
    """Have no further step."""


def work(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """The traffic of *mma_pipelined*, and fragments of one step more, which nobody multiplies."""
    steps, ahead = tiling.steps(problem), tiling.stages - 1
    return warp_mma.staged(
        problem, tiling, ahead=ahead, more=1, barriers=steps + 1, round_trips=-(-steps // ahead)
    )


def check(tiling: Tiling) -> None:
    """Raise ValueError for a tiling that warps, copies and rings cannot be made of."""
    steps = tiling.block[2] // STEP
    fits = warp_mma.computable(tiling) and copyable(tiling) and steps > 0 and steps % 2 == 0
    check_fit(
        fits and tiling.stages >= 2,
        tiling,
        f"the tuned kernel, which needs {warp_mma.COMPUTABLE}, steps of multiples of 32 along k, "
        f"two stages or more, and {shared_layouts.COPYABLE}",
        DEFAULT,
    )


DEFAULT = Tiling(block=(256, 128, 64), warp=(64, 64), thread=(8, 16), stages=4)

mma_tuned = replace(
    mma_pipelined,
    name="mma_tuned",
    idea="fragments read ahead, and blocks in groups",
    default=DEFAULT,
    build=build,
    work=work,
    check=check,
    compile=warp_mma.compile_options,
    tilings=(
        DEFAULT,
        Tiling(block=(128, 256, 64), warp=(64, 64), thread=(8, 16), stages=3),
        Tiling(block=(256, 128, 32), warp=(64, 64), thread=(8, 16), stages=4),
    ),
)
