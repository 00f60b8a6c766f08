"""Split-K: several blocks share a tile of C, each with a part of k, and their sums are added.

One change from *pipelined*: the grid has a third axis, along k. Where C has fewer tiles than the
GPU has processors, `split` times as many blocks find work. The price: each block stores its sums in
a workspace, and a second launch adds them up, in a fixed order, and updates C. Counter to watch:
the sectors of the workspace, 2·split·m·n·4 bytes of them; time falls until they, or the launch,
outweigh what idle processors gain.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy import float32

from gemmlab import Device, Tiling
from gemmlab.kernels.kernel import Dim, Kernel, Launch, Workspace, check_fit, on_device
from gemmlab.kernels.simt.pipelined import variant
from gemmlab.kernels.simt.shared import tile_copies, vector_access, warp_tiles
from gemmlab.kernels.split_k.shared import mainloop, split_heuristics, workspace_tiles
from gemmlab.model import predict, traffic
from gemmlab.model.in_tiles import choose_split
from gemmlab.problem import LAYOUTS, Gemm
from gemmlab.simt import cuda


def build(
    tiling: Tiling, layout: str = "nn", aligned: bool = True, asynchronous: bool = True
) -> Callable:
    """Return the function that multiplies, with all tile sizes frozen into it; see *pipelined*."""
    BM, BN, BK = tiling.block
    THREAD = tiling.thread
    K_AXIS = 1 if layout[0] == "n" else 0  # of A
    first = on_device(warp_tiles.first_element(tiling))
    sum_part = mainloop.summing(tiling, layout, aligned, asynchronous)
    store = workspace_tiles.storing(tiling)

    def split_k(alpha, A, B, beta, C, W):
        part, split = cuda.blockIdx.z, cuda.gridDim.z
        steps = (A.shape[K_AXIS] + BK - 1) // BK
        begin, end = part * steps // split * BK, (part + 1) * steps // split * BK
        i, j = first(cuda.threadIdx.x)
        acc = cuda.local.array(THREAD, float32)
        sum_part(A, B, cuda.blockIdx.y * BM, cuda.blockIdx.x * BN, i, j, begin, end, acc)
        tile = cuda.blockIdx.y * cuda.gridDim.x + cuda.blockIdx.x
        store(W, tile * split + part, i, j, acc)

    return split_k


def build_sum(
    tiling: Tiling, layout: str = "nn", aligned: bool = True, asynchronous: bool = True
) -> Callable:
    """Return the function that adds up the parts and updates C."""
    BM = tiling.block[0]
    GROUPS = workspace_tiles.groups(tiling)

    @on_device
    def slot(part, first):
        return part

    add = workspace_tiles.adding(tiling, aligned, slot)

    def add_parts(alpha, A, B, beta, C, W):
        split = W.shape[0] // (cuda.gridDim.x // GROUPS * BM)
        tile = cuda.blockIdx.x // GROUPS
        add(C, W, tile, tile * split, (tile + 1) * split, alpha, beta)

    return add_parts


def launch(problem: Gemm, tiling: Tiling) -> tuple[Dim, Dim]:
    """Return (grid, block): tiles across and down, and parts of k."""
    return (*tiling.grid(problem), tiling.split), (tiling.threads, 1)


def launch_sum(problem: Gemm, tiling: Tiling) -> tuple[Dim, Dim]:
    """Return (grid, block) of `build_sum`."""
    return workspace_tiles.adders(problem, tiling, tiling.split)


def workspace(problem: Gemm, tiling: Tiling) -> tuple[Workspace, ...]:
    """Return the parts' sums, those of a tile one after the other."""
    across, down = tiling.grid(problem)
    return (workspace_tiles.stack(tiling, across * down * tiling.split),)


def work(problem: Gemm, tiling: Tiling, capability: tuple[int, int] | None = None) -> traffic.Work:
    """The traffic of *pipelined*, whose rings are filled once for each part, and that of the sums.

    A part beyond the end of k is a tile of zeros.
    """
    (across, down), split = tiling.grid(problem), tiling.split
    tiles = across * down
    longest = -(-tiling.steps(problem) // split)
    multiplied = mainloop.summed(
        problem,
        tiling,
        tiles * split,
        longest,
        workspace_tiles.stored(tiling, tiles * split),
        capability,
    )
    aligned = variant(problem, capability)["aligned"]
    counts = np.full(tiles, split)
    return traffic.together(
        multiplied,
        workspace_tiles.added(problem, tiling, counts, min(workspace_tiles.WARPS, split), aligned),
    )


def check(tiling: Tiling) -> None:
    """Raise ValueError for a tiling that *pipelined* does not take, or whose sums do not stack."""
    fits = warp_tiles.computable(tiling) and tile_copies.copyable(tiling) and tiling.stages >= 2
    check_fit(
        fits and workspace_tiles.stackable(tiling),
        tiling,
        "kernels that split k, which need what the pipelined kernel needs, and tiles of 32, 64 or "
        "a multiple of 128 columns",
        DEFAULT,
    )


def suggest(problem: Gemm, device: Device) -> Tiling:
    """Suggest the largest tile that no other outdoes, with the split that the model chooses for it.

    `predict` says what a tiling asks of a processor, the model of tiles what the sums take.
    """

    def split(
        problem: Gemm, device: Device, kernel: Kernel, tiling: Tiling
    ) -> tuple[float, Tiling]:
        found = choose_split(problem, device, tiling.block[:2])
        tiling = replace(tiling, split=found.split)
        return predict(problem, device, kernel, tiling).seconds + found.reduction, tiling

    return split_heuristics.fastest(problem, device, split_k, split)


DEFAULT = Tiling(block=(128, 256, 16), warp=(64, 64), thread=(16, 8), stages=3)
TILINGS = (
    DEFAULT,
    Tiling(block=(128, 128, 8), warp=(64, 32), thread=(8, 8), stages=3),
    Tiling(block=(64, 64, 16), warp=(32, 32), thread=(8, 4), stages=3),
)

split_k = Kernel(
    name="split_k",
    idea="parts of k on more processors, added by a second launch",
    default=DEFAULT,
    build=build,
    configure=launch,
    work=work,
    check=check,
    shared_bytes=vector_access.shared_bytes,
    dynamic=True,
    variant=variant,
    tilings=TILINGS,
    layouts=LAYOUTS,
    after=(Launch(build_sum, launch_sum, variant=variant, compile=workspace_tiles.for_adders),),
    workspace=workspace,
    splits=True,
    suggest=suggest,
)
