"""Sums over parts of k in a workspace: tiles of their own, stored, and added up by a second launch.

The workspace is a stack of tiles of C, each bm rows of bn float32: whole lines of 128 bytes,
whatever the rows of C are. A tile is written as a whole, also where C ends inside of it.
To add parts, a block takes a row of a tile, 128 columns of it. Its warps take turns at the parts,
and the first warp adds what they have. So the order depends on nothing but the number of parts: the
bits of the result are the same every time.
"""

from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np
from numpy import float32

from gemmlab import Gemm
from gemmlab.formats import number_format
from gemmlab.instructions import load_v4, store_v4
from gemmlab.kernels.kernel import FLOAT, Dim, Workspace, on_device
from gemmlab.kernels.simt.shared.vector_access import FOUR, ZEROS, moved, updating
from gemmlab.kernels.simt.shared.warp_tiles import apart, first_elements
from gemmlab.kernels.tensor_core.shared.warp_mma import two_of
from gemmlab.model import traffic, transactions
from gemmlab.simt import cuda
from gemmlab.tiling import WARP, Tiling

WIDE = FOUR * WARP  # columns of a tile that a block adds up
WARPS = 8  # of such a block, at most


def stack(tiling: Tiling, tiles: int) -> Workspace:
    """Room for so many tiles of sums."""
    bm, bn, _ = tiling.block
    return Workspace((tiles * bm, bn), "float32")


def storing(tiling: Tiling) -> Callable:
    """Give the device function (W, slot, i, j, acc) that stores a thread's sums in tile `slot`."""
    BM = tiling.block[0]
    DOWN, ACROSS = apart(tiling)
    update_tile = updating(True, *tiling.thread)

    @on_device
    def store(W, slot, i, j, acc):
        update_tile(W, slot * BM + i, j, DOWN, ACROSS, float32(1), acc, float32(0))

    return store


def adding(tiling: Tiling, aligned: bool, slot: Callable) -> Callable:
    """Give the device function (C, W, tile, first, last, alpha, beta): C ← α·(sum of parts) + β·C.

    It is called by a block of the launch of `adders`. The parts of C's tile number `tile` are
    `first` to `last` - 1, and slot(part, first) says where each is.
    """
    BM, BN, _ = tiling.block
    GROUPS = groups(tiling)
    update_tile = updating(aligned, 1, FOUR)

    @on_device
    def add(C, W, tile, first, last, alpha, beta):
        of_warps = cuda.shared.array((WARPS, WIDE), float32, alignment=16)
        sums = cuda.local.array((1, FOUR), float32)
        x, y = cuda.threadIdx.x * FOUR, cuda.threadIdx.y
        across = (C.shape[1] + BN - 1) // BN
        r, c = cuda.blockIdx.y, cuda.blockIdx.x % GROUPS * WIDE + x  # in the tile
        i, j = tile // across * BM + r, tile % across * BN + c
        inside = c < BN and i < C.shape[0] and j < C.shape[1]

        for e in range(FOUR):
            sums[0, e] = float32(0)
        for part in range(first + y, last, cuda.blockDim.y):
            v = load_v4(W, slot(part, first) * BM + r, c) if inside else ZEROS
            for e in range(FOUR):
                sums[0, e] += v[e]
        store_v4(of_warps, y, x, (sums[0, 0], sums[0, 1], sums[0, 2], sums[0, 3]))
        cuda.syncthreads()
        if y == 0 and inside:
            for other in range(1, cuda.blockDim.y):
                v = load_v4(of_warps, other, x)
                for e in range(FOUR):
                    sums[0, e] += v[e]
            update_tile(C, i, j, 0, 0, alpha, sums, beta)

    return add


def adding_pairs(tiling: Tiling, out_dtype: str, paired: bool) -> Callable:
    """Give the device function (C, W, tile, first, last, alpha, beta): C ← α·(sum of parts) + β·C.

    It is called by a block of the launch of `adders`. The parts of C's tile number `tile` are
    slots `first` to `last` - 1 of the workspace.
    paired : whether pairs of C are moved at once
    """
    BM, BN, _ = tiling.block
    GROUPS = groups(tiling)
    read, write = two_of(out_dtype, paired)

    @on_device
    def update_two(C, i, j, alpha, left, right, beta):
        old = (float32(0), float32(0)) if beta == 0 else read(C, i, j)
        write(C, i, j, alpha * left + beta * old[0], alpha * right + beta * old[1])

    @on_device
    def add(C, W, tile, first, last, alpha, beta):
        of_warps = cuda.shared.array((WARPS, WIDE), float32, alignment=16)
        sums = cuda.local.array(FOUR, float32)
        x, y = cuda.threadIdx.x * FOUR, cuda.threadIdx.y
        across = (C.shape[1] + BN - 1) // BN
        r, c = cuda.blockIdx.y, cuda.blockIdx.x % GROUPS * WIDE + x  # in the tile
        i, j = tile // across * BM + r, tile % across * BN + c
        inside = c < BN and i < C.shape[0] and j < C.shape[1]

        for e in range(FOUR):
            sums[e] = float32(0)
        for part in range(first + y, last, cuda.blockDim.y):
            v = load_v4(W, part * BM + r, c) if inside else ZEROS
            for e in range(FOUR):
                sums[e] += v[e]
        store_v4(of_warps, y, x, (sums[0], sums[1], sums[2], sums[3]))
        cuda.syncthreads()
        if y == 0 and inside:
            for other in range(1, cuda.blockDim.y):
                v = load_v4(of_warps, other, x)
                for e in range(FOUR):
                    sums[e] += v[e]
            update_two(C, i, j, alpha, sums[0], sums[1], beta)
            update_two(C, i, j + 2, alpha, sums[2], sums[3], beta)

    return add


def groups(tiling: Tiling) -> int:
    """Blocks side by side that add up a row of a tile."""
    return max(1, tiling.block[1] // WIDE)


def adders(problem: Gemm, tiling: Tiling, parts: int) -> tuple[Dim, Dim]:
    """Return (grid, block) of the launch that adds up as many as `parts` parts of each tile."""
    across, down = tiling.grid(problem)
    return (across * down * groups(tiling), tiling.block[0]), (WARP, min(WARPS, parts))


def for_adders(tiling: Tiling) -> Mapping[str, int]:
    """Options of `cuda.jit`: one function for any number of warps."""
    return {"launch_bounds": WARP * WARPS}


def stackable(tiling: Tiling) -> bool:
    """Say whether rows of tiles are whole lines, and groups of 128 columns, or less than one."""
    bn = tiling.block[1]
    return FLOAT * bn % transactions.LINE == 0 and (WIDE % bn == 0 or bn % WIDE == 0)


# ------------------------------------------------------------------------------------- their counts


def stored(tiling: Tiling, tiles: int) -> Counter[str]:
    """Stores of so many tiles of sums."""
    bm, bn, _ = tiling.block
    lanes, wide = moved(thread_groups(tiling), True)
    offset = lanes.row * bn + lanes.col
    return traffic.global_access(
        "store", FLOAT, lanes, offset, [(0, bm, tiles)], [(0, bn, 1)], wide=wide
    )


def thread_groups(tiling: Tiling) -> traffic.Lanes:
    """Return the groups of four that all threads of a block have of its tile of C."""
    (tm, tn), (down, across) = tiling.thread, apart(tiling)
    rows = [r // FOUR * down + r % FOUR for r in range(tm)]
    return first_elements(tiling).repeated(rows, [c // FOUR * across for c in range(0, tn, FOUR)])


def added(
    problem: Gemm, tiling: Tiling, parts: np.ndarray, warps: int, aligned: bool,
    wide: int | None = None,
) -> traffic.Work:  # fmt: skip
    """Return the work of the launch that adds parts up, and updates C.

    parts : of each tile of C in turn, 0 for one that needs no sum; warps : of a block
    wide : elements of C that an access moves; four where None and rows are aligned, else one
    Additions are not counted: four of them need 16 bytes of the workspace.
    """
    bm, bn, _ = tiling.block
    lane = FOUR * np.arange(WARP)[None]
    whole = traffic.Lanes(np.zeros_like(lane), lane, np.ones_like(lane, bool))
    row = whole._replace(valid=lane < bn)
    rows = row.repeated(range(bm), range(0, bn, WIDE))
    which, counters = np.flatnonzero(parts), Counter()
    for (_, height, width), count in placed(problem, tiling, which, parts[which]).items():
        inside = [(0, height, count)], [(0, width, 1)]
        counters += traffic.global_access(
            "load", FLOAT, rows, rows.row * bn + rows.col, *inside, wide=FOUR
        )
    wide = wide or (FOUR if aligned else 1)
    counters += updated(problem, tiling, which, rows.repeated([0], range(0, FOUR, wide)), wide)
    for (_, height, width), count in placed(problem, tiling, which, 1).items():
        for far in range(0, min(width, bn), WIDE):
            read = row._replace(valid=row.valid & (lane + far < width))
            each = traffic.shared_access("load", FLOAT, read, WIDE, FOUR)
            counters += times(each, (warps - 1) * height * count)
    blocks = bm * groups(tiling) * len(which)
    counters += times(traffic.shared_access("store", FLOAT, whole, WIDE, FOUR), warps * blocks)
    counters["barriers"] = blocks
    return moving(counters)


def updated(
    problem: Gemm, tiling: Tiling, tiles: np.ndarray, lanes: traffic.Lanes, wide: int
) -> Counter[str]:
    """Return the updates of C in tiles that need no workspace, `wide` elements a lane at a time."""
    offset, size = lanes.row * problem.n + lanes.col, number_format(problem.out_dtype).bytes
    counters: Counter[str] = Counter()
    for (start, rows, cols), count in placed(problem, tiling, tiles, 1).items():
        inside = [(start, rows, count)], [(0, cols, 1)]
        for op in ("store", "load") if problem.beta != 0 else ("store",):
            counters += traffic.global_access(op, size, lanes, offset, *inside, wide=wide)
    return counters


def moving(counters: Counter[str]) -> traffic.Work:
    """Return the work of a launch that multiplies nothing: its transactions, and one round trip."""
    counters.pop("lane_bytes", None)
    sectors = counters["global_load_sectors"] + counters["global_store_sectors"]
    shared = counters["shared_load_wavefronts"] + counters["shared_store_wavefronts"]
    return traffic.Work(
        counters=counters,
        flops={},
        l2_bytes=transactions.SECTOR * sectors,
        l1_wavefronts=counters.pop("l1_cycles", 0) + shared,
        chain=(1, 0),
    )


def placed(
    problem: Gemm, tiling: Tiling, tiles: np.ndarray, counts: np.ndarray | int
) -> Counter[tuple[int, int, int]]:
    """Tiles of C that lie alike: (offset within a line, rows and columns inside of C) -> how many.

    tiles : their numbers, row by row; counts : as how many each counts
    """
    (bm, bn, _), (across, _) = tiling.block, tiling.grid(problem)
    alike: Counter[tuple[int, int, int]] = Counter()
    line = transactions.LINE // number_format(problem.out_dtype).bytes
    for tile, count in zip(tiles, np.broadcast_to(counts, tiles.shape), strict=True):
        i, j = int(tile) // across * bm, int(tile) % across * bn
        start = (i * problem.n + j) % line
        alike[start, min(bm, problem.m - i), min(bn, problem.n - j)] += int(count)
    return alike


def times(counters: Counter[str], count: int) -> Counter[str]:
    """Transactions that are made `count` times."""
    return Counter({name: each * count for name, each in counters.items()})
