"""Rung 2, mma_shared: tiles in shared memory, whose fragments `ldmatrix` brings to registers.

A block copies a tile of A and one of B, 16 bytes a thread at a time, and each warp loads from there
what it multiplies: sixteen rows in one instruction, in the order that `mma` wants, whichever way
the operand is stored. Counter to watch: global requests, far fewer. And a new one:
shared bank conflicts, for the rows of a tile lie below each other in the same banks.
"""

from collections.abc import Callable

from numpy import float16, float32, uint16, uint32

from gemmlab import Tiling
from gemmlab.kernels.kernel import Kernel, check_fit, on_device, threads_in_a_row
from gemmlab.kernels.tensor_core.shared import shared_layouts, warp_mma
from gemmlab.kernels.tensor_core.shared.shared_layouts import in_rows
from gemmlab.kernels.tensor_core.shared.warp_mma import STEP, multiplying, updating
from gemmlab.model import traffic
from gemmlab.problem import LAYOUTS, Gemm
from gemmlab.simt import cuda


def build(
    tiling: Tiling, layout: str = "nn", aligned: bool = True, paired: bool = True,
    dtype: str = "float16", out_dtype: str = "float32",
) -> Callable:  # fmt: skip
    """Return the kernel as a plain Numba-CUDA function, with all tile sizes frozen into it.

    layout : which operands are stored transposed, see `Gemm.layout`
    aligned : all rows of A and B begin at multiples of 16 bytes
    paired : rows of C have an even number of elements
    dtype, out_dtype : the formats of A and B, and of C
    """
    BM, BN, BK = tiling.block
    WM, WN = tiling.warp
    ALONG_A, ALONG_B = layout[0] == "n", layout[1] == "t"  # rows of the stored tile run along k
    A_TILE, B_TILE = shared_layouts.tile_shapes(tiling, layout)
    A_SIZE, B_SIZE = BM * BK, BN * BK
    ELEMENT = float16 if dtype == "float16" else uint16
    A_WORDS, B_WORDS, SUMS = warp_mma.fragment_shapes(tiling)

    place_a, place_b = in_rows(A_TILE[1]), in_rows(B_TILE[1])
    first_a, copy_a = shared_layouts.copying(tiling, A_TILE, place_a, aligned, dtype)
    first_b, copy_b = shared_layouts.copying(tiling, B_TILE, place_b, aligned, dtype)
    start_a, load_a = warp_mma.loading(WM, A_TILE[1], ALONG_A, True, place_a)
    start_b, load_b = warp_mma.loading(WN, B_TILE[1], ALONG_B, False, place_b)
    warp_corner, clear = on_device(warp_mma.corner(tiling)), warp_mma.clearing(tiling)
    multiply, update = multiplying(tiling, dtype), updating(tiling, out_dtype, paired)

    def mma_shared(alpha, A, B, beta, C):
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

    return mma_shared


def work(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """⌈k/bk⌉ tiles are copied; warps load fragments of all their rows, those beyond k as zeros."""
    steps = tiling.steps(problem)
    return warp_mma.staged(problem, tiling, in_rows, barriers=2 * steps, round_trips=steps)


def check(tiling: Tiling) -> None:
    """Raise ValueError for a tiling that warps and copies cannot be made of."""
    check_fit(
        warp_mma.computable(tiling) and shared_layouts.copyable(tiling) and tiling.stages == 1,
        tiling,
        f"the kernel with tiles in shared memory, which needs {warp_mma.COMPUTABLE}, steps of "
        f"multiples of 16 along k, one stage, and {shared_layouts.COPYABLE}",
        DEFAULT,
    )


DEFAULT = Tiling(block=(128, 128, 32), warp=(64, 32), thread=(8, 8))

mma_shared = Kernel(
    name="mma_shared",
    idea="tiles in shared memory, fragments by ldmatrix",
    default=DEFAULT,
    build=build,
    configure=threads_in_a_row,
    work=work,
    check=check,
    shared_bytes=shared_layouts.shared_bytes,
    variant=shared_layouts.variant,
    tilings=(
        DEFAULT,
        Tiling(block=(128, 128, 64), warp=(64, 32), thread=(8, 8)),
        Tiling(block=(64, 64, 32), warp=(32, 32), thread=(4, 8)),
    ),
    arithmetic=warp_mma.ARITHMETIC,
    layouts=LAYOUTS,
)
