"""Split-K with atomics: the parts of a tile are added to C where they end, in any order.

One change from *split_k*: no workspace, and no launch after the product. Each block adds α times
its sums to C by atomic additions, which L2 does. C must hold βC before the first of them, so that a
launch goes before the product. The price: sums are rounded in the order in which blocks end, and
the last bits differ from run to run. And blocks that end together meet at the same elements of C.
Counter to watch: atomic requests, four for each group of four, where *split_k* stores it at once.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy import float32

from gemmlab import Device
from gemmlab.kernels.kernel import FLOAT, Dim, Kernel, Launch, on_device
from gemmlab.kernels.simt.pipelined import variant
from gemmlab.kernels.simt.shared import warp_tiles
from gemmlab.kernels.simt.shared.vector_access import FOUR, moved, shared_bytes, updating
from gemmlab.kernels.split_k.shared import mainloop, workspace_tiles
from gemmlab.kernels.split_k.shared.split_heuristics import by_atomics, fastest
from gemmlab.kernels.split_k.split_k import DEFAULT, TILINGS, check, launch
from gemmlab.model import predict, traffic
from gemmlab.model.in_tiles import choose_split
from gemmlab.problem import LAYOUTS, Gemm
from gemmlab.simt import cuda
from gemmlab.tiling import WARP, Tiling

SCALERS = 8  # warps of a block of the launch that scales C


def build(
    tiling: Tiling, layout: str = "nn", aligned: bool = True, asynchronous: bool = True
) -> Callable:
    """Return the function that multiplies, with all tile sizes frozen into it; see *pipelined*."""
    BM, BN, BK = tiling.block
    THREAD = TM, TN = tiling.thread
    DOWN, ACROSS = warp_tiles.apart(tiling)  # from each of a thread's groups of four to its next
    K_AXIS = 1 if layout[0] == "n" else 0  # of A
    first = on_device(warp_tiles.first_element(tiling))
    sum_part = mainloop.summing(tiling, layout, aligned, asynchronous)

    @on_device
    def add_tile(C, i, j, alpha, acc):
        for r in range(TM):
            for c in range(TN):
                y, x = i + r // 4 * DOWN + r % 4, j + c // 4 * ACROSS + c % 4
                if y < C.shape[0] and x < C.shape[1]:
                    cuda.atomic.add(C, (y, x), alpha * acc[0, c])
            # A register has no index that could vary: each row in turn moves up to be row 0.
            for y in range(TM - 1):
                for x in range(TN):
                    acc[y, x] = acc[y + 1, x]

    def split_k_atomics(alpha, A, B, beta, C):
        part, split = cuda.blockIdx.z, cuda.gridDim.z
        row, col = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        steps = (A.shape[K_AXIS] + BK - 1) // BK
        begin, end = part * steps // split * BK, (part + 1) * steps // split * BK
        i, j = first(cuda.threadIdx.x)
        acc = cuda.local.array(THREAD, float32)
        sum_part(A, B, row, col, i, j, begin, end, acc)
        add_tile(C, row + i, col + j, alpha, acc)

    return split_k_atomics


def build_scaling(
    tiling: Tiling, layout: str = "nn", aligned: bool = True, asynchronous: bool = True
) -> Callable:
    """Return the function C ← βC; it does not read C where β = 0."""
    update_tile = updating(aligned, 1, FOUR)

    def scale(alpha, A, B, beta, C):
        nothing = cuda.local.array((1, FOUR), float32)
        for e in range(FOUR):
            nothing[0, e] = float32(0)
        j, i = cuda.grid(2)
        update_tile(C, i, FOUR * j, 0, 0, float32(0), nothing, beta)

    return scale


def launch_scaling(problem: Gemm, tiling: Tiling) -> tuple[Dim, Dim]:
    """Return (grid, block): a thread for each group of four."""
    return (-(-problem.n // (FOUR * WARP)), -(-problem.m // SCALERS)), (WARP, SCALERS)


def work(problem: Gemm, tiling: Tiling, capability: tuple[int, int] | None = None) -> traffic.Work:
    """Give the traffic of *pipelined*, whose rings are filled once for each part, and that of C."""
    (across, down), split = tiling.grid(problem), tiling.split
    shape = problem.m, problem.n
    each = workspace_tiles.thread_groups(tiling).repeated([0], range(FOUR))
    atomics = traffic.of_matrix("atomic", FLOAT, each, shape, tiling.block[:2], split)
    longest = -(-tiling.steps(problem) // split)
    product = mainloop.summed(problem, tiling, across * down * split, longest, atomics, capability)
    aligned = variant(problem, capability)["aligned"]
    return traffic.together(product, scaled(problem, aligned))


def scaled(problem: Gemm, aligned: bool) -> traffic.Work:
    """Return the work of the launch that scales C."""
    lane = FOUR * np.arange(WARP)[None]
    row = traffic.Lanes(np.zeros_like(lane), lane, np.ones_like(lane, bool))
    (lanes, wide), counters = moved(row, aligned), Counter()
    for op in ("store", "load") if problem.beta != 0 else ("store",):
        counters += traffic.of_matrix(
            op, FLOAT, lanes, (problem.m, problem.n), (1, FOUR * WARP), wide=wide
        )
    return workspace_tiles.moving(counters)


def suggest(problem: Gemm, device: Device) -> Tiling:
    """Suggest as *split_k* does; the sums take additions in L2, no stores and loads."""

    def split(
        problem: Gemm, device: Device, kernel: Kernel, tiling: Tiling
    ) -> tuple[float, Tiling]:
        tiling = replace(tiling, split=choose_split(problem, device, tiling.block[:2]).split)
        seconds = predict(problem, device, kernel, tiling).seconds
        return seconds + by_atomics(problem, device, tiling), tiling

    return fastest(problem, device, split_k_atomics, split)


split_k_atomics = Kernel(
    name="split_k_atomics",
    idea="parts of k added to C by atomics, in any order",
    default=DEFAULT,
    build=build,
    configure=launch,
    work=work,
    check=check,
    shared_bytes=shared_bytes,
    dynamic=True,
    variant=variant,
    tilings=TILINGS,
    layouts=LAYOUTS,
    before=(Launch(build_scaling, launch_scaling, variant=variant),),
    splits=True,
    suggest=suggest,
)
