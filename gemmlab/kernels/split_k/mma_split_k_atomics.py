"""Split-K on Tensor Cores with atomics: the parts of a tile are added to C where they end.

One change from *mma_split_k*, and the one that *split_k_atomics* makes of *split_k*: no workspace,
and no launch after the product. Each block adds α times its sums to C by atomic additions, which L2
does, and a launch before makes C βC. The last bits of C differ from run to run. Counter to watch:
atomic requests, two for each pair of neighbours, where *mma_split_k* stores it at once. (Compute
capability 9.0 can add a pair at once, by `red.v2.f32`; `cuda.atomic` has no name for it.)

C is in FP32 alone. In FP16 or BF16 every addition would round C, so that the error would grow with
the number of parts: there *mma_split_k* adds in FP32, and rounds once.
"""

from collections.abc import Callable, Mapping
from functools import partial

from numpy import float32, int32

from gemmlab import Device, Tiling
from gemmlab.kernels.kernel import FLOAT, Kernel, Launch, on_device
from gemmlab.kernels.simt.shared.vector_access import FOUR
from gemmlab.kernels.split_k.mma_split_k import DEFAULT, TILINGS, check
from gemmlab.kernels.split_k.shared.mainloop_mma import summed, summing
from gemmlab.kernels.split_k.shared.split_heuristics import by_atomics, fastest, filled
from gemmlab.kernels.split_k.split_k import launch
from gemmlab.kernels.split_k.split_k_atomics import build_scaling, launch_scaling, scaled
from gemmlab.kernels.tensor_core.shared import warp_mma
from gemmlab.kernels.tensor_core.shared.shared_layouts import inside, shared_bytes, variant
from gemmlab.kernels.tensor_core.shared.warp_mma import STEP, corner
from gemmlab.model import traffic
from gemmlab.problem import LAYOUTS, Gemm
from gemmlab.simt import cuda


def build(
    tiling: Tiling, layout: str = "nn", aligned: bool = True, paired: bool = True,
    dtype: str = "float16", out_dtype: str = "float32",
) -> Callable:  # fmt: skip
    """The function that multiplies, with all tile sizes frozen into it; see *mma_pipelined*."""
    BM, BN, BK = tiling.block
    K_AXIS = 1 if layout[0] == "n" else 0  # of A
    ROWS, COLUMNS, _ = SUMS = warp_mma.fragment_shapes(tiling)[2]
    warp_corner, sum_part = on_device(corner(tiling)), summing(tiling, layout, aligned, dtype)

    @on_device
    def add_tile(C, i, j, alpha, acc):
        lane = cuda.laneid
        row, col = int32(i + lane // 4), int32(j + lane % 4 * 2)
        for x in range(ROWS):
            for y in range(COLUMNS):
                for e in range(4):
                    r, c = row + x * STEP + e // 2 * 8, col + y * 8 + e % 2
                    if inside(C, r, c):
                        cuda.atomic.add(C, (r, c), alpha * acc[0, y, e])
            # A register has no index that could vary: each row in turn moves up to be row 0.
            for z in range(ROWS - 1):
                for y in range(COLUMNS):
                    for e in range(4):
                        acc[z, y, e] = acc[z + 1, y, e]

    def mma_split_k_atomics(alpha, A, B, beta, C):
        part, split = cuda.blockIdx.z, cuda.gridDim.z
        row, col = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        steps = (A.shape[K_AXIS] + BK - 1) // BK
        begin, end = part * steps // split * BK, (part + 1) * steps // split * BK
        i, j = warp_corner(cuda.threadIdx.x)
        acc = cuda.local.array(SUMS, float32)
        sum_part(A, B, row, col, i, j, begin, end, acc)
        add_tile(C, row + i, col + j, alpha, acc)

    return mma_split_k_atomics


def by_fours(problem: Gemm, capability: tuple[int, int] | None) -> Mapping[str, object]:
    """Keyword arguments of `build_scaling`: whether rows of C begin at multiples of 16 bytes."""
    return {"aligned": problem.n % FOUR == 0}


def work(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """The traffic of *mma_pipelined*, whose rings are filled once for each part, and that of C."""
    (across, down), split = tiling.grid(problem), tiling.split
    each, shape = warp_mma.pairs_of_sums(tiling).repeated([0], range(2)), (problem.m, problem.n)
    atomics = traffic.of_matrix("atomic", FLOAT, each, shape, tiling.block[:2], split)
    longest = -(-tiling.steps(problem) // split)
    product = summed(problem, tiling, across * down * split, longest, atomics)
    return traffic.together(product, scaled(problem, **by_fours(problem, None)))


def suggest(problem: Gemm, device: Device) -> Tiling:
    """Suggest as *mma_split_k* does; the sums take additions in L2, no stores and loads."""
    return fastest(problem, device, mma_split_k_atomics, partial(filled, sums=by_atomics))


mma_split_k_atomics = Kernel(
    name="mma_split_k_atomics",
    idea="parts of k on Tensor Cores, added to C by atomics, in any order",
    default=DEFAULT,
    build=build,
    configure=launch,
    work=work,
    check=check,
    shared_bytes=shared_bytes,
    dynamic=True,
    variant=variant,
    tilings=TILINGS,
    arithmetic=tuple(formats for formats in warp_mma.ARITHMETIC if formats.out_dtype == "float32"),
    layouts=LAYOUTS,
    before=(Launch(build_scaling, launch_scaling, variant=by_fours),),
    splits=True,
    suggest=suggest,
)
