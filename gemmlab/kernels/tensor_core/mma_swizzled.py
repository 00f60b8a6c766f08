"""Rung 3, mma_swizzled: pieces of rows change places, so that no two meet in a bank.

`ldmatrix` reads eight pieces of 16 bytes that lie below each other. In rows of 64 elements they
have one another's banks, and are read one by one. Here the number of the row says, by an exclusive
or, at which place of its row a piece lies: the eight lie in all 32 banks, and nothing else changes.
Counter to watch: shared bank conflicts, none.
"""

from collections.abc import Callable
from dataclasses import replace

from numpy import float16, float32, uint16, uint32

from gemmlab import Gemm, Tiling
from gemmlab.kernels.kernel import check_fit, on_device
from gemmlab.kernels.tensor_core.mma_shared import DEFAULT, mma_shared
from gemmlab.kernels.tensor_core.shared import shared_layouts, warp_mma
from gemmlab.kernels.tensor_core.shared.shared_layouts import swizzled
from gemmlab.kernels.tensor_core.shared.warp_mma import STEP, multiplying, updating
from gemmlab.model import traffic
from gemmlab.simt import cuda


def build(
    tiling: Tiling, layout: str = "nn", aligned: bool = True, paired: bool = True,
    dtype: str = "float16", out_dtype: str = "float32",
) -> Callable:  # fmt: skip
    """Return the kernel as a plain Numba-CUDA function, with all tile sizes frozen into it.

    layout, aligned, paired, dtype, out_dtype : as in *mma_shared*
    """
    BM, BN, BK = tiling.block
    WM, WN = tiling.warp
    ALONG_A, ALONG_B = layout[0] == "n", layout[1] == "t"  # rows of the stored tile run along k
    A_TILE, B_TILE = shared_layouts.tile_shapes(tiling, layout)
    A_SIZE, B_SIZE = BM * BK, BN * BK
    ELEMENT = float16 if dtype == "float16" else uint16
    A_WORDS, B_WORDS, SUMS = warp_mma.fragment_shapes(tiling)

    place_a, place_b = swizzled(A_TILE[1]), swizzled(B_TILE[1])
    first_a, copy_a = shared_layouts.copying(tiling, A_TILE, place_a, aligned, dtype)
    first_b, copy_b = shared_layouts.copying(tiling, B_TILE, place_b, aligned, dtype)
    start_a, load_a = warp_mma.loading(WM, A_TILE[1], ALONG_A, True, place_a)
    start_b, load_b = warp_mma.loading(WN, B_TILE[1], ALONG_B, False, place_b)
    warp_corner, clear = on_device(warp_mma.corner(tiling)), warp_mma.clearing(tiling)
    multiply, update = multiplying(tiling, dtype), updating(tiling, out_dtype, paired)

    def mma_swizzled(alpha, A, B, beta, C):
        As = cuda.shared.array(A_SIZE, ELEMENT, alignment=16)
        Bs = cuda.shared.array(B_SIZE, ELEMENT, alignment=16)
        k = A.shape[1] if ALONG_A else A.shape[0]
        row, col = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        i, j = warp_corner(cuda.threadIdx.x)

        a = cuda.local.array(A_WORDS, uint32)
        b = cuda.local.array(B_WORDS, uint32)
        acc = cuda.local.array(SUMS, float32)
        clear(acc)

        to_a, to_b = first_a(), first_b()  # where this thread copies to
        from_a, from_b = start_a(i), start_b(j)  # where this lane points
        for p in range(0, k, BK):
            copy_a(As, to_a, A, row if ALONG_A else p, p if ALONG_A else row, 0)
            copy_b(Bs, to_b, B, col if ALONG_B else p, p if ALONG_B else col, 0)
            cuda.syncthreads()
            for s in range(BK // STEP):
                load_a(As, from_a, s, a)
                load_b(Bs, from_b, s, b)
                multiply(a, b, acc)
            cuda.syncthreads()

        update(C, row + i, col + j, alpha, acc, beta)

    return mma_swizzled


def work(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """Return the traffic of *mma_shared*, at other places."""
    steps = tiling.steps(problem)
    return warp_mma.staged(problem, tiling, swizzled, barriers=2 * steps, round_trips=steps)


def check(tiling: Tiling) -> None:
    """Raise ValueError for a tiling that warps and copies cannot be made of."""
    check_fit(
        warp_mma.computable(tiling) and shared_layouts.copyable(tiling) and tiling.stages == 1,
        tiling,
        f"the swizzled kernel, which needs {warp_mma.COMPUTABLE}, steps of multiples of 16 along "
        f"k, one stage, and {shared_layouts.COPYABLE}",
        DEFAULT,
    )


mma_swizzled = replace(
    mma_shared,
    name="mma_swizzled",
    idea="pieces of rows in other banks",
    build=build,
    work=work,
    check=check,
)
