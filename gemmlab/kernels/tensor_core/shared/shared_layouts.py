"""Tiles of A and B in shared memory, as their operands are stored, in pieces of 16 bytes.

A piece is eight neighbours of a row. Nothing is transposed on its way: `ldmatrix` does that, when
fragments are loaded. Where all rows begin at multiples of 16 bytes, a piece lies inside of its
matrix, or outside, as a whole, and moves in one access; else its elements are looked at one by one.
Functions ending in -ing make device functions for the kernels that ask for them.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy import float16, float32, int32, uint16

from gemmlab import Gemm, Tiling
from gemmlab.instructions import cp_async_16, load_v8, store_v8
from gemmlab.kernels.kernel import on_device
from gemmlab.model import traffic
from gemmlab.simt import cuda

PIECE = 8  # elements: 16 bytes
BYTES = 2  # of an element
LINE = 64  # elements in a wavefront of shared memory: 128 bytes, all banks
ALIKE = 8  # rows after which `swizzled` begins anew, whatever their length

Place = Callable[[Any, Any], Any]  # (row, piece of the row) -> the element at which it lies


def in_rows(length: int) -> Place:
    """Pieces in the order of memory, in rows of `length` elements."""

    def place(row, piece):
        return row * length + piece * PIECE

    return place


def swizzled(length: int) -> Place:
    """Pieces that change places within their rows: eight below each other lie in all banks.

    The number of a row's line of 128 bytes is added to the number of the piece, bit by bit and
    without carries. Rows that share a line lie in different banks from the start.
    """
    SHARING = max(1, LINE // length)  # rows of a line
    PLACES = min(LINE, length) // PIECE

    def place(row, piece):
        return row * length + (piece ^ row // SHARING % PLACES) * PIECE

    return place


def tile_shapes(tiling: Tiling, layout: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """Rows of a tile of A and of B, and elements of a row, as the operands are stored."""
    bm, bn, bk = tiling.block
    return (bm, bk) if layout[0] == "n" else (bk, bm), (bk, bn) if layout[1] == "n" else (bn, bk)


def copying(
    tiling: Tiling, shape: tuple[int, int], place: Place, aligned: bool, dtype: str,
    asynchronous: bool = False, parts: int = 1,
) -> tuple[Callable, Callable]:  # fmt: skip
    """Device functions first() and copy(tile, to, X, i, j, part), for tiles of one shape.

    `copy` brings one of `parts` parts of the tile of X that begins at X[i, j] to shared memory,
    with zeros for what is outside of X; `to` is the place of the thread's first piece, `first()`
    that in a tile at the beginning of the array.
    asynchronous : by `cp.async` where rows are aligned
    """
    HEIGHT, LENGTH = shape
    ACROSS = LENGTH // PIECE  # threads that share a row
    DOWN = tiling.threads // ACROSS  # rows that are copied at a time
    PIECES = HEIGHT // DOWN  # of a thread
    at, read = on_device(place), reading(aligned, dtype)
    BY_ITSELF = asynchronous and aligned

    @on_device
    def first():
        return at(cuda.threadIdx.x // ACROSS, cuda.threadIdx.x % ACROSS)

    @on_device
    def copy(tile, to, X, i, j, part):
        first_row, col = i + cuda.threadIdx.x // ACROSS, j + cuda.threadIdx.x % ACROSS * PIECE
        for n in range(part * PIECES // parts, (part + 1) * PIECES // parts):
            row, there = first_row + n * DOWN, to + n * DOWN * LENGTH
            if BY_ITSELF:
                cp_async_16(tile, there, X, row, col, inside(X, row, col))
            else:
                store_v8(tile, there, read(X, row, col))

    return first, copy


def reading(aligned: bool, dtype: str) -> Callable:
    """The device function (X, i, j) -> the piece that begins at X[i, j]; zeros outside of X."""
    zero = zero_of(dtype)

    @on_device
    def one(X, i, j):
        return X[i, j] if inside(X, i, j) else zero()

    @on_device
    def zeros():
        return zero(), zero(), zero(), zero(), zero(), zero(), zero(), zero()

    @on_device
    def read(X, i, j):
        if aligned:
            return load_v8(X, i, j) if inside(X, i, j) else zeros()
        return (
            one(X, i, j), one(X, i, j + 1), one(X, i, j + 2), one(X, i, j + 3),
            one(X, i, j + 4), one(X, i, j + 5), one(X, i, j + 6), one(X, i, j + 7),
        )  # fmt: skip

    return read


def zero_of(dtype: str) -> Callable:
    """Return the device function () -> 0 as it lies in memory."""
    FLOAT32, FLOAT16 = dtype == "float32", dtype == "float16"

    @on_device
    def zero():
        if FLOAT32:
            return float32(0)
        if FLOAT16:
            return float16(float32(0))  # Numba's code for a constant of float16 is not valid
        return uint16(0)

    return zero


@on_device
def inside(X, i, j):
    """Whether X[i, j] exists; compared in 32 bits, which hold every size of a matrix."""
    return int32(i) < int32(X.shape[0]) and int32(j) < int32(X.shape[1])


def are_aligned(problem: Gemm) -> bool:
    """Say whether all rows of A and of B begin at multiples of 16 bytes."""
    return all(columns % PIECE == 0 for _, columns in problem.shapes[:2])


def variant(problem: Gemm, capability: tuple[int, int] | None) -> Mapping[str, object]:
    """Keyword arguments of the `build` of a kernel with tiles in shared memory, for a problem."""
    return {
        "layout": problem.layout,
        "aligned": are_aligned(problem),
        "paired": problem.n % 2 == 0,
        "dtype": problem.dtype,
        "out_dtype": problem.out_dtype,
    }


COPYABLE = "blocks that its threads copy without a remainder"


def copyable(tiling: Tiling) -> bool:
    """Say whether a block's threads copy its tiles without a remainder, for every layout, and the
    pieces of a thread lie in rows that are swizzled alike.
    """
    for layout in ("nn", "tt"):
        for height, length in tile_shapes(tiling, layout):
            across = length // PIECE
            if length % PIECE or length & length - 1 or tiling.threads % across:
                return False
            down = tiling.threads // across
            if height % down or down % ALIKE:
                return False
    return True


def shared_bytes(problem: Gemm, tiling: Tiling) -> int:
    """Return `stages` tiles of A and of B [B]."""
    bm, bn, bk = tiling.block
    return BYTES * tiling.stages * bk * (bm + bn)


# ------------------------------------------------------------------------------------- their counts


def copied(
    problem: Gemm, tiling: Tiling, placed: Callable[[int], Place]
) -> tuple[Counter[str], tuple[Counter[str], Counter[str]]]:
    """Return the copies' loads over the whole grid, and a block's stores of a tile of A and of B.

    placed : `in_rows` or `swizzled`
    An asynchronous copy is counted as the load and the store that it makes.
    """
    shapes = tile_shapes(tiling, problem.layout)
    lanes = [traffic.in_turn(tiling.threads, *shape, PIECE) for shape in shapes]
    wide = PIECE
    loads = lanes
    if not are_aligned(problem):
        wide, loads = 1, [each.repeated([0], range(PIECE)) for each in lanes]
    stores = [
        moved("store", each, placed(length))
        for each, (_, length) in zip(lanes, shapes, strict=True)
    ]
    return traffic.copied(problem, tiling, *loads, wide, wide), (stores[0], stores[1])


def moved(op: str, lanes: traffic.Lanes, place: Place) -> Counter[str]:
    """Accesses of lanes to pieces in shared memory; `lanes.col` is the first element of each."""
    flat = place(lanes.row, lanes.col // PIECE)
    one_row = traffic.Lanes(np.zeros_like(flat), flat, lanes.valid)
    return traffic.shared_access(op, BYTES, one_row, 0, PIECE)
