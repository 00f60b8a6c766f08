"""Transactions of one load or store of a kernel's source, over the whole grid.

The counts are algebra, not execution: blocks whose addresses differ by whole lines make the same
requests, so that one representative of each class is counted and multiplied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import product
from typing import NamedTuple

import numpy as np

from gemmlab.model import transactions


class Lanes(NamedTuple):
    """The places of warps' lanes in a tile: `row`, `col` and `valid`, each (warps, 32).

    Lanes that are not valid take no part, such as the missing ones of a block's last warp.
    """

    row: np.ndarray
    col: np.ndarray
    valid: np.ndarray

    def turned(self) -> Lanes:
        """The same in a tile that is stored transposed."""
        return Lanes(self.col, self.row, self.valid)

    def row_alone(self) -> Lanes:
        """The same rows, in column 0."""
        return Lanes(self.row, np.zeros_like(self.col), self.valid)

    def col_alone(self) -> Lanes:
        """The same columns, in row 0."""
        return Lanes(np.zeros_like(self.row), self.col, self.valid)

    def repeated(self, rows: Iterable[int], cols: Iterable[int]) -> Lanes:
        """The same lanes at each distance (r, c) of rows × cols, as further warps."""
        far = np.array(list(product(rows, cols)), np.int64)[:, :, None, None]
        row, col = far[:, 0] + self.row, far[:, 1] + self.col
        valid = np.broadcast_to(self.valid, row.shape)
        return Lanes(*(x.reshape(-1, transactions.WARP) for x in (row, col, valid)))


def plane(width: int, height: int) -> Lanes:
    """The threads of a (width, height) block, warp by warp: column x, row y."""
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
    """The numbers of the threads of a block, by warp and lane, and which of them exist."""
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
    (height, length), (down, across) = shape, tile
    rows, cols = axis(height, down, length, itemsize), axis(length, across, 1, itemsize)
    offset = lanes.row * length + lanes.col
    return global_access(op, itemsize, lanes, offset, rows, cols, [(0, 1, times)], wide)


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
