"""Counts of a kernel's transactions: the functions that a kernel's file predicts its `Work` with.

`Work` is what a launch asks of the machine. `Lanes` say where the threads of warps are in a tile.
`of_matrix` and `shared_access` count the transactions of one load or store by such lanes, over the
whole grid or in a block. `unstaged` and `staged` add up a whole launch: without shared memory, or
tile by tile through it.

The counts are algebra, not execution, and exact as the source is written, for operands whose first
element lies at the start of a line: blocks whose addresses differ by whole lines make the same
requests, so that one representative of each class is counted and multiplied. The compiler unrolls
loops over a tile and may merge shared loads of neighbours into wider ones: a GPU's requests and
wavefronts are then fewer than these.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product
from typing import NamedTuple, Self

import numpy as np

from gemmlab import Gemm
from gemmlab.formats import number_format
from gemmlab.model import transactions
from gemmlab.model.counters import OPS
from gemmlab.tiling import WARP, Tiling

WIDEST = 16  # bytes of a lane that one load moves


@dataclass(frozen=True)
class Work:
    """The work is what one launch asks of the machine.

    counters : exact transactions, by the names that the simulator and Nsight Compute use
    flops : operations that each pipe executes, whole tiles included [FLOP]; a pipe is named by its
        format, as in `Device.peak`: "float32" for FMAs, "float16" or "tf32" for Tensor Cores
    l2_bytes : traffic between L1 and L2 if L1 kept all that a block rereads [B]
    l1_wavefronts : of the L1 and shared-memory pipe, one a cycle; where a global access
        waits for its tags instead, the cycles that these take (`transactions.l1_cycles`)
    chain : (round trips to DRAM, FMAs) that one thread must do one after the other
    instructions : of warps, at least: their FMAs, and loads of 128 bits a lane, which is the most
        that one instruction moves. Stores, addresses and loops come on top
    block_counters, block_wavefronts : what each block adds to `counters` and `l1_wavefronts`, where
        blocks are persistent: how many there are is the device's, see `Launched.launch`
    """

    counters: Counter[str]
    flops: Mapping[str, int]
    l2_bytes: int
    l1_wavefronts: int
    chain: tuple[int, int]
    instructions: int = 0
    block_counters: Counter[str] = field(default_factory=Counter)
    block_wavefronts: int = 0

    def with_blocks(self, blocks: int) -> Self:
        """Return the work where so many blocks are launched: what they add is added."""
        counters = Counter(self.counters)
        counters.update({name: blocks * count for name, count in self.block_counters.items()})
        return replace(
            self,
            counters=counters,
            l1_wavefronts=self.l1_wavefronts + blocks * self.block_wavefronts,
            block_counters=Counter(),
            block_wavefronts=0,
        )


def instructions(flops: int, lane_bytes: int) -> int:
    """Instructions of warps that FMAs and loads take at least: an FMA for each lane, 128 bits."""
    return flops // (2 * WARP) + lane_bytes // WIDEST


def together(*works: Work) -> Work:
    """Return the work of launches that follow each other."""
    counters: Counter[str] = Counter()
    flops: Counter[str] = Counter()
    block_counters: Counter[str] = Counter()
    for work in works:
        counters.update(work.counters)
        flops.update(work.flops)
        block_counters.update(work.block_counters)
    return Work(
        counters=counters,
        flops=dict(flops),
        l2_bytes=sum(work.l2_bytes for work in works),
        l1_wavefronts=sum(work.l1_wavefronts for work in works),
        chain=(sum(work.chain[0] for work in works), sum(work.chain[1] for work in works)),
        instructions=sum(work.instructions for work in works),
        block_counters=block_counters,
        block_wavefronts=sum(work.block_wavefronts for work in works),
    )


class Lanes(NamedTuple):
    """The places of warps' lanes in a tile: `row`, `col` and `valid`, each (warps, 32).

    Lanes that are not valid take no part, such as the missing ones of a block's last warp.
    """

    row: np.ndarray
    col: np.ndarray
    valid: np.ndarray

    def turned(self) -> Self:
        """Place the same lanes in a tile that is stored transposed."""
        return Lanes(self.col, self.row, self.valid)

    def row_alone(self) -> Self:
        """Keep the rows, and move all lanes to column 0."""
        return Lanes(self.row, np.zeros_like(self.col), self.valid)

    def col_alone(self) -> Self:
        """Keep the columns, and move all lanes to row 0."""
        return Lanes(np.zeros_like(self.row), self.col, self.valid)

    def repeated(self, rows: Iterable[int], cols: Iterable[int]) -> Self:
        """Repeat the lanes at each distance (r, c) of rows × cols, as further warps."""
        far = np.array(list(product(rows, cols)), np.int64)[:, :, None, None]
        row, col = far[:, 0] + self.row, far[:, 1] + self.col
        valid = np.broadcast_to(self.valid, row.shape)
        return Lanes(*(x.reshape(-1, transactions.WARP) for x in (row, col, valid)))


def plane(width: int, height: int) -> Lanes:
    """Return the threads of a (width, height) block, warp by warp: column x, row y."""
    thread, valid = _whole_warps(width * height)
    return Lanes(thread // width, thread % width, valid)


def in_turn(threads: int, height: int, width: int, wide: int = 1) -> Lanes:
    """Threads that go through a height×width tile row by row, `wide` elements each a turn."""
    thread, valid = _whole_warps(threads)
    across = width // wide
    turns = np.arange(-(-height * across // threads))[:, None, None] * threads
    piece = (turns + thread).reshape(-1, transactions.WARP)
    valid = np.broadcast_to(valid, (len(turns), *valid.shape)).reshape(piece.shape)
    return Lanes(piece // across, piece % across * wide, valid & (piece < height * across))


def _whole_warps(threads: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the threads of a block, by warp and lane, and which of them exist."""
    warps = -(-threads // transactions.WARP)
    thread = np.arange(warps * transactions.WARP).reshape(warps, transactions.WARP)
    return thread, thread < threads


# Positions along one axis that behave alike: offset within a line [elements], extent that lies
# inside the matrix, and how many positions are so.
AxisClass = tuple[int, int, int]


def axis(count: int, tile: int, stride: int, itemsize: int) -> list[AxisClass]:
    """The classes of the tiles that cover 0 … count, where a step along the axis is `stride`."""
    starts = np.arange(0, count, tile)
    offsets = starts * stride % (transactions.LINE // itemsize)
    extents = np.minimum(tile, count - starts)
    keys, counts = np.unique(offsets * (tile + 1) + extents, return_counts=True)
    return [(*divmod(int(key), tile + 1), int(c)) for key, c in zip(keys, counts, strict=True)]


def global_access(
    op: str,
    itemsize: int,
    lanes: Lanes,
    offset: np.ndarray,
    rows: Iterable[AxisClass],
    cols: Iterable[AxisClass],
    steps: Iterable[AxisClass] = ((0, 1, 1),),
    wide: int = 1,
) -> Counter[str]:
    """Transactions of one load or store over the whole grid.

    Lanes are on where their row and column lie inside the extents of `rows` and `cols`; each
    accesses `wide` elements from `offset` past the class's on. `steps` repeats the access at
    further offsets. Beside the counters there are "l1_cycles", which go into
    `Work.l1_wavefronts`, and of loads "lane_bytes", requests times the bytes of a lane.
    """
    alike: Counter[tuple[int, int, int]] = Counter()
    for (o1, rows_in, n1), (o2, cols_in, n2), (o3, _, n3) in product(rows, cols, steps):
        alike[(o1 + o2 + o3) % (transactions.LINE // itemsize), rows_in, cols_in] += n1 * n2 * n3
    starts: dict[tuple[int, int], list[tuple[int, int]]] = {}  # by the lanes that are on
    for (start, rows_in, cols_in), count in alike.items():
        starts.setdefault((rows_in, cols_in), []).append((start, count))
    width = itemsize * wide
    total: Counter[str] = Counter()
    for (rows_in, cols_in), found in starts.items():
        start, times = np.array(found, np.int64).T
        on = lanes.valid & (lanes.row < rows_in) & (lanes.col < cols_in)
        address = (start[:, None, None] + offset) * itemsize
        each = np.broadcast_to(on, address.shape)
        total[f"global_{op}_requests"] += int(times.sum() * transactions.requests(on).sum())
        total[f"global_{op}_sectors"] += int(times @ transactions.sectors(address, each).sum(1))
        total[f"global_{op}_bytes"] += int(times.sum() * on.sum()) * width
        total["l1_cycles"] += int(times @ transactions.l1_cycles(address, each, width).sum(1))
    if op == "load":
        total["lane_bytes"] = total["global_load_requests"] * width
    return total


def of_matrix(
    op: str,
    itemsize: int,
    lanes: Lanes,
    shape: tuple[int, int],
    tile: tuple[int, int],
    times: int = 1,
    wide: int = 1,
) -> Counter[str]:
    """Transactions of lanes that access each tile of a row-major matrix, `times` over."""
    row, col = (np.asarray(part, np.int64).tobytes() for part in (lanes.row, lanes.col))
    once = _of_matrix(op, itemsize, row, col, lanes.valid.tobytes(), shape, tile, wide)
    return Counter({name: times * count for name, count in once.items()})


@lru_cache(maxsize=128)  # a choice of tilings asks again for other divisions of k
def _of_matrix(
    op: str,
    itemsize: int,
    row: bytes,
    col: bytes,
    valid: bytes,
    shape: tuple[int, int],
    tile: tuple[int, int],
    wide: int,
) -> Counter[str]:
    (height, length), (down, across) = shape, tile
    parts = zip((row, col, valid), (np.int64, np.int64, bool), strict=True)
    lanes = Lanes(*(np.frombuffer(x, kind).reshape(-1, transactions.WARP) for x, kind in parts))
    rows, cols = axis(height, down, length, itemsize), axis(length, across, 1, itemsize)
    offset = lanes.row * length + lanes.col
    return global_access(op, itemsize, lanes, offset, rows, cols, wide=wide)


def shared_access(op: str, itemsize: int, lanes: Lanes, length: int, wide: int = 1) -> Counter[str]:
    """Transactions of lanes that access one tile in shared memory, rows of `length` elements.

    With "lane_bytes", as `global_access` has them.
    """
    width = itemsize * wide
    address, on = (lanes.row * length + lanes.col) * itemsize, lanes.valid
    passes, least = (
        int(count(address, on, width).sum()) for count in transactions.SHARED_PASSES[op == "load"]
    )
    requests = int(transactions.requests(on).sum())
    return Counter({
        f"shared_{op}_requests": requests,
        f"shared_{op}_wavefronts": passes,
        "shared_bank_conflicts": passes - least,
        "lane_bytes": requests * width * (op == "load"),
    })  # fmt: skip


def stored_tiles(problem: Gemm, tiling: Tiling) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the tiles of A and of B as they lie in the stored arrays, (rows, columns)."""
    bm, bn, bk = tiling.block
    a, b = (bm, bk), (bk, bn)
    left, right = problem.layout
    return a if left == "n" else a[::-1], b if right == "n" else b[::-1]


def copied(
    problem: Gemm, tiling: Tiling, a: Lanes, b: Lanes, wide_a: int = 1, wide_b: int = 1
) -> Counter[str]:
    """Loads of each tile of A by lanes `a`, n/bn times, and of each tile of B by `b`, m/bm times.

    wide_a, wide_b : elements that an access moves
    Tiles beyond the end of k, which a kernel may ask for, count nothing: no lane is on there.
    """
    s = number_format(problem.dtype).bytes
    (shape_a, shape_b, _), (tile_a, tile_b) = problem.shapes, stored_tiles(problem, tiling)
    across, down = tiling.grid(problem)
    of_a = of_matrix("load", s, a, shape_a, tile_a, across, wide_a)
    return of_a + of_matrix("load", s, b, shape_b, tile_b, down, wide_b)


def update_c(problem: Gemm, tiling: Tiling, lanes: Lanes, wide: int = 1) -> Counter[str]:
    """The epilogue: C is stored once, `wide` elements an access, and loaded before where β ≠ 0."""
    s, tile = number_format(problem.out_dtype).bytes, tiling.block[:2]
    shape = problem.m, problem.n
    update = of_matrix("store", s, lanes, shape, tile, wide=wide)
    if problem.beta != 0:
        update += of_matrix("load", s, lanes, shape, tile, wide=wide)
    return update


def staged(
    problem: Gemm,
    tiling: Tiling,
    copies: Counter[str],
    shared: Iterable[tuple[int, Counter[str]]],
    update: Counter[str],
    barriers: int,
    round_trips: int,
    flops: Mapping[str, int] | None = None,
    blocks: int | None = None,
) -> Work:
    """Return the work of the whole launch of blocks that go along k tile by tile.

    copies, update : loads of A and B, and the epilogue, over the whole grid
    shared : each access of a block to shared memory: how many times, and its transactions
    barriers : that a block waits at; round_trips : to DRAM, one after the other
    flops : by pipe; FMAs in the format of the sum, whole tiles of them, where None. Others are not
        counted as instructions
    blocks : of which `shared` and `barriers` speak; one for each tile of C where None
    """
    if blocks is None:
        across, down = tiling.grid(problem)
        blocks = across * down
    counters = copies + update
    for times, each in shared:
        for name, count in each.items():
            counters[name] += count * times * blocks
    counters["barriers"] = barriers * blocks
    executed = flops or {problem.accumulate: tiling.padded_flops(problem)}
    lane_bytes = counters.pop("lane_bytes", 0)  # where threads load at all
    of_c = sum(update[f"global_{op}_sectors"] for op in OPS)
    return Work(
        l1_wavefronts=counters.pop("l1_cycles")
        + counters["shared_load_wavefronts"]
        + counters["shared_store_wavefronts"],
        counters=counters,
        flops=executed,
        l2_bytes=transactions.SECTOR * (_distinct(problem, tiling) + of_c),
        chain=(round_trips, tiling.steps(problem) * tiling.block[2]),
        instructions=0 if flops else instructions(*executed.values(), lane_bytes),
    )


def _distinct(problem: Gemm, tiling: Tiling) -> int:
    """Sectors of A and B that blocks need, each once a tile: those of copies in memory's order."""
    lanes = [in_turn(WARP, *tile) for tile in stored_tiles(problem, tiling)]
    return copied(problem, tiling, *lanes)["global_load_sectors"]


def unstaged(problem: Gemm, tiling: Tiling, lanes: Lanes) -> Work:
    """The work of threads that load an element of A and one of B from global memory for each FMA.

    lanes : which element of a block's tile of C each thread computes
    """
    m, n, k, s = problem.m, problem.n, problem.k, number_format(problem.dtype).bytes
    bm, bn, _ = tiling.block
    rows_of_a, cols_only = axis(m, bm, k, s), axis(n, bn, 0, s)
    rows_only, cols_of_b = axis(m, bm, 0, s), axis(n, bn, 1, s)
    load_a = global_access(
        "load", s, lanes, lanes.row * k, rows_of_a, cols_only, axis(k, 1, 1, s)
    )  # fmt: skip
    load_b = global_access("load", s, lanes, lanes.col, rows_only, cols_of_b, axis(k, 1, n, s))
    counters = load_a + load_b + update_c(problem, tiling, lanes)
    across, down = tiling.grid(problem)
    touched = 2 if problem.beta != 0 else 1  # C is read, too
    flops = 2 * (down * bm) * (across * bn) * k
    lane_bytes = counters.pop("lane_bytes")
    return Work(
        l1_wavefronts=counters.pop("l1_cycles"),
        counters=counters,
        flops={problem.accumulate: flops},
        l2_bytes=s * (across * m * k + down * k * n) + touched * problem.array_bytes[2],
        chain=(1, k),
        instructions=instructions(flops, lane_bytes),
    )


__all__ = [
    "Lanes", "Work", "copied", "global_access", "in_turn", "of_matrix", "plane", "shared_access",
    "staged", "unstaged", "update_c",
]  # fmt: skip
