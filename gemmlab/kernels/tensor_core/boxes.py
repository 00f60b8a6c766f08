"""Tiles of A and B as the TMA copies them and `wgmma` reads them, for every layout.

Rows of A or B, as they are stored, lie along k or across it. Along k, a tile is one box of the
matrix, with 64 elements of k in a row; across it, blocks of 64 rows or columns of C, a row for each
k. Either way rows have 128 bytes and are in the 128-byte swizzle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gemmlab.instructions import tensor_map, tma_load
from gemmlab.instructions.tensor_maps import ROW
from gemmlab.kernels.kernel import on_device
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling

HALF = 2  # bytes of an element
DEPTH = BLOCK = ROW // HALF  # elements of a row: of k, or of the rows or columns of C


def along_k(layout: str) -> tuple[bool, bool]:
    """Whether rows of A and rows of B, as they are stored, lie along k."""
    return layout[0] == "n", layout[1] == "t"


def shape(size: int, along: bool) -> tuple[int, int, int]:
    """A tile of `size` rows of A or columns of B: [0, its row, k], or [block, k, its column]."""
    return (1, size, DEPTH) if along else (size // BLOCK, DEPTH, BLOCK)


def copying(size: int, along: bool) -> Callable:
    """The device function that begins to copy a tile, from `first` and from p of k on."""
    COUNT = size // BLOCK

    @on_device
    def copy_rows(tiles, stage, matrix, first, p, full):
        tma_load(tiles, stage, 0, 0, 0, matrix, first, p, full, stage)

    @on_device
    def copy_blocks(tiles, stage, matrix, first, p, full):
        for block in range(COUNT):
            tma_load(tiles, stage, block, 0, 0, matrix, p, first + block * BLOCK, full, stage)

    return copy_rows if along else copy_blocks


def placing(along: bool) -> Callable:
    """The device function that says where in a tile a block of 64 begins, at q of k."""

    @on_device
    def in_rows(block, q):
        return 0, block * BLOCK, q

    @on_device
    def in_blocks(block, q):
        return block, q, 0

    return in_rows if along else in_blocks


def tensor_maps(problem: Gemm, tiling: Tiling, A: Any, B: Any) -> tuple[Any, Any, int]:
    """What the kernel takes in place of A and B: their tensor maps, and k."""
    rows = [
        size if along else DEPTH
        for size, along in zip(tiling.block, along_k(problem.layout), strict=False)
    ]
    return tensor_map(A, rows[0]), tensor_map(B, rows[1]), problem.k
