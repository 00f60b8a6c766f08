"""What each kernel of the ladder asks of the machine: transactions, operations, dependent steps.

The counts are algebra, not execution: blocks whose addresses differ by whole lines make the same
requests, so that one representative of each class is counted and multiplied. They are exact, as
the source is written, for row-major operands whose first element lies at the start of a line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

import numpy as np

from gemmlab.model import transactions
from gemmlab.problem import DTYPES, Gemm
from gemmlab.tiling import Tiling

TILE_DTYPE = "float32"  # what the SIMT kernels keep in shared memory, whatever the operands are


@dataclass(frozen=True)
class Work:
    """What one launch asks of the machine.

    counters : exact transactions, by the names that the simulator and Nsight Compute use
    flops : operations executed, whole tiles included [FLOP]
    l2_bytes : traffic between L1 and L2 if L1 kept all that a block rereads [B]
    l1_wavefronts : passes through the L1 and shared-memory pipe, one a cycle; where a global access
        waits for its tags instead, the cycles that these take (`transactions.l1_cycles`)
    blocks, threads, shared_bytes : of the launch; threads and bytes are per block
    chain : (global loads, FMAs) that one thread must do one after the other
    """

    counters: Counter[str]
    flops: int
    l2_bytes: int
    l1_wavefronts: int
    blocks: int
    threads: int
    shared_bytes: int
    chain: tuple[int, int]


class Lanes:
    """The threads of a (width, height) block, warp by warp: x, y and valid, each (warps, 32)."""

    def __init__(self, width: int, height: int) -> None:
        warps = -(-width * height // transactions.WARP)
        thread = np.arange(warps * transactions.WARP).reshape(warps, transactions.WARP)
        self.x, self.y = thread % width, thread // width
        self.valid = thread < width * height
        self.warps = warps


# Positions along one axis that behave alike: offset within a line [elements], extent that lies
# inside the matrix, and how many positions are so.
AxisClass = tuple[int, int, int]


def _axis(count: int, tile: int, stride: int, itemsize: int) -> list[AxisClass]:
    """The classes of the tiles that cover 0 … count, where a step along the axis is `stride`."""
    starts = np.arange(0, count, tile)
    offsets = starts * stride % (transactions.LINE // itemsize)
    extents = np.minimum(tile, count - starts)
    keys, counts = np.unique(offsets * (tile + 1) + extents, return_counts=True)
    return [(*divmod(int(key), tile + 1), int(c)) for key, c in zip(keys, counts, strict=True)]


def _access(
    op: str,
    itemsize: int,
    lanes: Lanes,
    offset: np.ndarray,
    row: np.ndarray,
    col: np.ndarray,
    rows: Iterable[AxisClass],
    cols: Iterable[AxisClass],
    steps: Iterable[AxisClass] = ((0, 1, 1),),
) -> Counter[str]:
    """Transactions of one load or store over the whole grid.

    Lanes are on where `row` and `col` lie inside the extents of `rows` and `cols`; their element
    is `offset` past the class's. `steps` repeats the access at further offsets.
    """
    alike: Counter[tuple[int, int, int]] = Counter()
    for (o1, rows_in, n1), (o2, cols_in, n2), (o3, _, n3) in product(rows, cols, steps):
        alike[(o1 + o2 + o3) % (transactions.LINE // itemsize), rows_in, cols_in] += n1 * n2 * n3
    starts: dict[tuple[int, int], list[tuple[int, int]]] = {}  # by the lanes that are on
    for (start, rows_in, cols_in), count in alike.items():
        starts.setdefault((rows_in, cols_in), []).append((start, count))
    total: Counter[str] = Counter()
    for (rows_in, cols_in), found in starts.items():
        start, times = np.array(found, np.int64).T
        on = lanes.valid & (row < rows_in) & (col < cols_in)
        address = (start[:, None, None] + offset) * itemsize
        each = np.broadcast_to(on, address.shape)
        total[f"global_{op}_requests"] += int(times.sum() * transactions.requests(on).sum())
        total[f"global_{op}_sectors"] += int(times @ transactions.sectors(address, each).sum(1))
        total[f"global_{op}_bytes"] += int(times.sum() * on.sum()) * itemsize
        total["l1_cycles"] += int(times @ transactions.l1_cycles(address, each, itemsize).sum(1))
    return total


def naive(problem: Gemm, tiling: Tiling) -> Work:
    """Rung *naive*: x runs along the rows of C, so that the lanes of a warp walk down columns.

    Each of the k steps loads A[i, p], a different row for each lane, and B[p, j].
    """
    bm, bn, _ = tiling.block
    lanes = Lanes(bm, bn)
    return _one_element_a_thread(problem, tiling, lanes, row=lanes.x, col=lanes.y)


def coalesced(problem: Gemm, tiling: Tiling) -> Work:
    """Rung *coalesced*: x runs along the columns of C, so that lanes are neighbours in memory.

    The same loads as *naive*, two for each FMA; a warp's lanes share rows of A and sectors of B.
    """
    bm, bn, _ = tiling.block
    lanes = Lanes(bn, bm)
    return _one_element_a_thread(problem, tiling, lanes, row=lanes.y, col=lanes.x)


def _one_element_a_thread(
    problem: Gemm, tiling: Tiling, lanes: Lanes, row: np.ndarray, col: np.ndarray
) -> Work:
    """Threads that load what they need of A and B from global memory, whenever they need it."""
    m, n, k, s = problem.m, problem.n, problem.k, DTYPES[problem.dtype].bytes
    bm, bn, _ = tiling.block
    rows_of_a, cols_only = _axis(m, bm, k, s), _axis(n, bn, 0, s)
    rows_only, cols_of_b = _axis(m, bm, 0, s), _axis(n, bn, 1, s)
    load_a = _access("load", s, lanes, row * k, row, col, rows_of_a, cols_only, _axis(k, 1, 1, s))
    load_b = _access("load", s, lanes, col, row, col, rows_only, cols_of_b, _axis(k, 1, n, s))
    update = _update_c(problem, lanes, row * n + col, row, col, _axis(m, bm, n, s), cols_of_b)
    counters = load_a + load_b + update
    across, down = tiling.grid(problem)
    return Work(
        l1_wavefronts=counters.pop("l1_cycles"),
        counters=counters,
        flops=2 * (down * bm) * (across * bn) * k,
        l2_bytes=s * (across * m * k + down * k * n) + _c_bytes(problem),
        blocks=across * down,
        threads=tiling.threads,
        shared_bytes=0,
        chain=(1, k),
    )


def tiled(problem: Gemm, tiling: Tiling) -> Work:
    """Rung *tiled*: each block copies a tile of A and of B to shared memory, then multiplies them.

    A global element is loaded once by each block that needs it: n/bn times for A, m/bm for B.
    """
    m, n, k, s = problem.m, problem.n, problem.k, DTYPES[problem.dtype].bytes
    tile = tiling.block[0]
    lanes = Lanes(tile, tile)
    x, y = lanes.x, lanes.y
    across, down = tiling.grid(problem)
    steps = tiling.steps(problem)
    load_a = _access(
        "load", s, lanes, y * k + x, y, x, _axis(m, tile, k, s), _axis(k, tile, 1, s),
        [(0, 1, across)],
    )  # fmt: skip
    load_b = _access(
        "load", s, lanes, y * n + x, y, x, _axis(k, tile, n, s), _axis(n, tile, 1, s),
        [(0, 1, down)],
    )  # fmt: skip
    c_rows, c_cols = _axis(m, tile, n, s), _axis(n, tile, 1, s)
    counters = load_a + load_b + _update_c(problem, lanes, y * n + x, y, x, c_rows, c_cols)

    blocks = across * down
    held = DTYPES[TILE_DTYPE].bytes
    stores = _shared("store", held, lanes, [y * tile + x] * 2)  # As[y, x] and Bs[y, x]
    loads = _shared(  # As[y, p] and Bs[p, x], for each p of the tile
        "load", held, lanes, [z for p in range(tile) for z in (y * tile + p, p * tile + x)]
    )
    for name, count in (stores + loads).items():
        counters[name] += count * blocks * steps
    counters["barriers"] = 2 * steps * blocks
    return Work(
        l1_wavefronts=counters.pop("l1_cycles")
        + counters["shared_load_wavefronts"]
        + counters["shared_store_wavefronts"],
        counters=counters,
        flops=tiling.padded_flops(problem),
        l2_bytes=transactions.SECTOR
        * (counters["global_load_sectors"] + counters["global_store_sectors"]),
        blocks=blocks,
        threads=tiling.threads,
        shared_bytes=tiling.shared_bytes(TILE_DTYPE),
        chain=(steps, steps * tile),
    )


def _update_c(
    problem: Gemm,
    lanes: Lanes,
    offset: np.ndarray,
    row: np.ndarray,
    col: np.ndarray,
    rows: list[AxisClass],
    cols: list[AxisClass],
) -> Counter[str]:
    """The epilogue: C is stored once, and loaded before where β ≠ 0."""
    s = DTYPES[problem.dtype].bytes
    update = _access("store", s, lanes, offset, row, col, rows, cols)
    if problem.beta != 0:
        update += _access("load", s, lanes, offset, row, col, rows, cols)
    return update


def _shared(op: str, itemsize: int, lanes: Lanes, offsets: list[np.ndarray]) -> Counter[str]:
    """Transactions of accesses to shared memory, all threads of one block taking part."""
    addresses = np.stack(offsets) * itemsize
    on = np.broadcast_to(lanes.valid, addresses.shape)
    passes = int(transactions.wavefronts(addresses, on, itemsize).sum())
    requests = int(transactions.requests(on).sum())
    least = requests * max(1, itemsize // transactions.WORD)
    return Counter({
        f"shared_{op}_requests": requests,
        f"shared_{op}_wavefronts": passes,
        "shared_bank_conflicts": passes - least,
    })  # fmt: skip


def _c_bytes(problem: Gemm) -> int:
    elements = problem.m * problem.n
    return DTYPES[problem.dtype].bytes * elements * (2 if problem.beta != 0 else 1)
