"""Stream-K: all steps of all tiles in one row, cut into shares that are equal to one step.

One change from *split_k*: where k is cut. The number of blocks no longer follows from the number of
tiles: there are as many as the GPU holds at once, `split` of them, and each takes its share of the
row, wherever tiles begin and end in it. So there is no last wave that leaves processors idle. A
tile that lies in one share goes to C at once. Of a tile that several blocks share each stores its
sums in the workspace, and a second launch, the fix-up, adds them in the order of the blocks.
Counter to watch: sectors of the workspace, at most two tiles a block, however many tiles C has.
Source: M. Osama et al., Stream-K, arXiv:2301.03598, where the fix-up is inside of the one launch.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy import float32, int32

from gemmlab import Device, Tiling
from gemmlab.instructions import cp_async_wait
from gemmlab.kernels.kernel import FLOAT, Dim, Kernel, Launch, Workspace, on_device
from gemmlab.kernels.simt.pipelined import variant
from gemmlab.kernels.simt.shared import vector_access, warp_tiles
from gemmlab.kernels.split_k.shared import mainloop, split_heuristics, workspace_tiles
from gemmlab.kernels.split_k.shared.workspace_tiles import WARPS, adding, for_adders, stored
from gemmlab.kernels.split_k.split_k import TILINGS, split_k
from gemmlab.model import predict, traffic
from gemmlab.model.in_tiles import adding_up
from gemmlab.problem import Gemm
from gemmlab.simt import cuda


def build(
    tiling: Tiling, layout: str = "nn", aligned: bool = True, asynchronous: bool = True
) -> Callable:
    """Return the function that multiplies, with all tile sizes frozen into it; see *pipelined*."""
    BM, BN, BK = tiling.block
    THREAD = tiling.thread
    DOWN, ACROSS = warp_tiles.apart(tiling)  # from each of a thread's groups of four to its next
    K_AXIS = 1 if layout[0] == "n" else 0  # of A
    first = on_device(warp_tiles.first_element(tiling))
    sum_part = mainloop.summing(tiling, layout, aligned, asynchronous)
    store, update_tile = workspace_tiles.storing(tiling), vector_access.updating(aligned, *THREAD)

    @on_device
    def wait_for_all():
        """The rings are empty, and nobody reads them."""
        if asynchronous:
            cp_async_wait(0)
        cuda.syncthreads()

    def stream_k(alpha, A, B, beta, C, W):
        block, blocks = cuda.blockIdx.x, cuda.gridDim.x
        steps = (A.shape[K_AXIS] + BK - 1) // BK
        across = (C.shape[1] + BN - 1) // BN
        total = (C.shape[0] + BM - 1) // BM * across * steps
        at, end = int32(block * total // blocks), int32((block + 1) * total // blocks)
        i, j = first(cuda.threadIdx.x)
        acc = cuda.local.array(THREAD, float32)
        while at < end:
            tile, step = at // steps, int32(at % steps)
            last = int32(min(steps, step + end - at))
            row, col = int32(tile // across * BM), int32(tile % across * BN)
            sum_part(A, B, row, col, i, j, step * BK, last * BK, acc)
            if last - step == steps:
                update_tile(C, row + i, col + j, DOWN, ACROSS, alpha, acc, beta)
            else:
                store(W, 2 * block + (1 if step == 0 else 0), i, j, acc)
            at = int32(at + last - step)
            wait_for_all()

    return stream_k


def build_fix_up(
    tiling: Tiling, layout: str = "nn", aligned: bool = True, asynchronous: bool = True
) -> Callable:
    """Return the function that adds up the parts of each tile that several blocks share."""
    BM, _, BK = tiling.block
    K_AXIS = 1 if layout[0] == "n" else 0  # of A
    GROUPS = workspace_tiles.groups(tiling)

    @on_device
    def slot(part, first):
        """A block's last tile is its second; it is the first of those that share that tile."""
        return 2 * part + (1 if part == first else 0)

    add = adding(tiling, aligned, slot)

    def fix_up(alpha, A, B, beta, C, W):
        blocks = W.shape[0] // (2 * BM)
        steps = (A.shape[K_AXIS] + BK - 1) // BK
        total = cuda.gridDim.x // GROUPS * steps
        tile = cuda.blockIdx.x // GROUPS
        first = ((tile * steps + 1) * blocks - 1) // total  # the block of its first step
        last = ((tile + 1) * steps * blocks - 1) // total
        if last > first:
            add(C, W, tile, first, last + 1, alpha, beta)

    return fix_up


def blocks_of(problem: Gemm, tiling: Tiling) -> int:
    """Blocks that share the steps: `split`, but none without a step."""
    across, down = tiling.grid(problem)
    return min(tiling.split, across * down * tiling.steps(problem))


def shares(problem: Gemm, tiling: Tiling) -> tuple[np.ndarray, int]:
    """Count the blocks that share each tile of C, and the steps of the longest share."""
    across, down = tiling.grid(problem)
    steps, blocks = tiling.steps(problem), blocks_of(problem, tiling)
    total = across * down * steps
    starts = np.arange(blocks) * total // blocks
    parts = np.unique(np.concatenate([starts, np.arange(0, total, steps)]))
    return np.bincount(parts // steps), -(-total // blocks)


def launch(problem: Gemm, tiling: Tiling) -> tuple[Dim, Dim]:
    """Return (grid, block): a block for each share."""
    return (blocks_of(problem, tiling), 1), (tiling.threads, 1)


def launch_fix_up(problem: Gemm, tiling: Tiling) -> tuple[Dim, Dim]:
    """Return (grid, block) of `build_fix_up`."""
    return workspace_tiles.adders(problem, tiling, int(shares(problem, tiling)[0].max()))


def workspace(problem: Gemm, tiling: Tiling) -> tuple[Workspace, ...]:
    """Two tiles of sums for each block: one that it did not begin, and one that it does not end."""
    return (workspace_tiles.stack(tiling, 2 * blocks_of(problem, tiling)),)


def counted(problem: Gemm, tiling: Tiling) -> tuple[np.ndarray, int]:
    """Return what `shares` does, in 64 bits, whatever NumPy's own integers have here.

    The text of `shares` decides a grid, so that records are known by it.
    """
    across, down = tiling.grid(problem)
    steps, blocks = tiling.steps(problem), blocks_of(problem, tiling)
    total = across * down * steps
    starts = np.arange(blocks, dtype=np.int64) * total // blocks
    parts = np.union1d(starts, steps * np.arange(across * down, dtype=np.int64))
    return np.unique(parts // steps, return_counts=True)[1].astype(np.int64), -(-total // blocks)


def work(problem: Gemm, tiling: Tiling, capability: tuple[int, int] | None = None) -> traffic.Work:
    """Return the traffic of *pipelined*, whose rings are filled once for each part of a tile."""
    aligned = variant(problem, capability)["aligned"]
    parts, longest = counted(problem, tiling)
    shared, whole = np.where(parts > 1, parts, 0), np.flatnonzero(parts == 1)
    update = stored(tiling, int(shared.sum()))
    update += workspace_tiles.updated(
        problem, tiling, whole, *vector_access.moved(workspace_tiles.thread_groups(tiling), aligned)
    )
    every = int(parts.sum())
    product = mainloop.summed(problem, tiling, every, longest, update, capability, barriers=every)
    return traffic.together(
        product,
        workspace_tiles.added(problem, tiling, shared, min(WARPS, int(parts.max())), aligned),
    )


def shared(problem: Gemm, device: Device, kernel: Kernel, tiling: Tiling) -> tuple[float, Tiling]:
    """Return (seconds, `tiling` with as many blocks as keep processors busy)."""
    tiling = replace(tiling, split=device.sms * max(1, BUSY // tiling.threads))
    parts, _ = counted(problem, tiling)
    stored = parts[parts > 1].sum() * tiling.block[0] * tiling.block[1] * FLOAT
    adding = adding_up(stored, device) if stored else 0.0
    return predict(problem, device, kernel, tiling).seconds + adding, tiling


def suggest(problem: Gemm, device: Device) -> Tiling:
    """Suggest the largest tile that no other outdoes, with blocks that keep processors busy."""
    return split_heuristics.fastest(problem, device, stream_k, shared)


# With 16 rows a step, what the loop over tiles must remember no longer fits into registers.
DEFAULT = Tiling(block=(128, 256, 8), warp=(64, 64), thread=(16, 8), stages=4)

BUSY = 256  # threads of an SM, two warps for each scheduler: one multiplies while the other waits

stream_k = replace(
    split_k,
    name="stream_k",
    idea="equal shares of all steps, wherever tiles end",
    default=DEFAULT,
    build=build,
    configure=launch,
    work=work,
    tilings=(DEFAULT, *TILINGS[1:]),
    after=(Launch(build_fix_up, launch_fix_up, variant=variant, compile=for_adders),),
    workspace=workspace,
    suggest=suggest,
)
