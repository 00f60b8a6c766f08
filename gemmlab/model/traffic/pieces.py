"""What kernels with tiles in shared memory have in common: copies, the update of C, the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from gemmlab.formats import number_format
from gemmlab.model import transactions
from gemmlab.model.traffic.access import Lanes, in_turn, of_matrix
from gemmlab.model.traffic.work import Work
from gemmlab.problem import Gemm
from gemmlab.tiling import WARP, Tiling

TILE_DTYPE = "float32"  # what the SIMT kernels keep in shared memory, whatever the operands are
HELD = number_format(TILE_DTYPE).bytes
FOUR = 4  # neighbours that an access of 128 bits moves
PAD = 4  # words after each row of a tile that is stored transposed


def stored_tiles(problem: Gemm, tiling: Tiling) -> tuple[tuple[int, int], tuple[int, int]]:
    """The tiles of A and of B as they lie in the stored arrays, (rows, columns)."""
    bm, bn, bk = tiling.block
    a, b = (bm, bk), (bk, bn)
    left, right = problem.layout
    return a if left == "n" else a[::-1], b if right == "n" else b[::-1]


def copied(
    problem: Gemm, tiling: Tiling, a: Lanes, b: Lanes, wide_a: int = 1, wide_b: int = 1
) -> Counter[str]:
    """Loads of each tile of A by lanes `a`, n/bn times, and of each tile of B by `b`, m/bm times.

    Without the tiles that a kernel may ask for beyond the last: there no lane is on.
    """
    s = number_format(problem.dtype).bytes
    (shape_a, shape_b, _), (tile_a, tile_b) = problem.shapes, stored_tiles(problem, tiling)
    across, down = tiling.grid(problem)
    of_a = of_matrix("load", s, a, shape_a, tile_a, across, wide_a)
    return of_a + of_matrix("load", s, b, shape_b, tile_b, down, wide_b)


def update_c(problem: Gemm, tiling: Tiling, lanes: Lanes, wide: int = 1) -> Counter[str]:
    """The epilogue: C is stored once, and loaded before where β ≠ 0."""
    s, tile = number_format(problem.dtype).bytes, tiling.block[:2]
    shape = problem.m, problem.n
    update = of_matrix("store", s, lanes, shape, tile, wide=wide)
    if problem.beta != 0:
        update += of_matrix("load", s, lanes, shape, tile, wide=wide)
    return update


def update_fours(
    problem: Gemm, tiling: Tiling, threads: Lanes, apart: tuple[int, int], aligned: bool
) -> Counter[str]:
    """The epilogue of threads whose elements come in groups of four rows and four columns.

    threads : where each thread's first element is; apart : rows and columns between its groups
    """
    (tm, tn), (down, across) = tiling.thread, apart
    rows = [r // FOUR * down + r % FOUR for r in range(tm)]
    cols = [c // FOUR * across for c in range(0, tn, FOUR)]
    lanes, wide = by_fours(threads.repeated(rows, cols), aligned)
    return update_c(problem, tiling, lanes, wide)


def by_fours(groups: Lanes, aligned: bool) -> tuple[Lanes, int]:
    """The accesses of groups of four, and the elements of each: one of 4, or four of 1."""
    return (groups, FOUR) if aligned else (groups.repeated([0], range(FOUR)), 1)


def staged(
    problem: Gemm,
    tiling: Tiling,
    copies: Counter[str],
    shared: Iterable[tuple[int, Counter[str]]],
    update: Counter[str],
    barriers: int,
    shared_bytes: int,
    round_trips: int,
) -> Work:
    """The whole launch of blocks that go along k tile by tile.

    shared : (times, transactions) of a block in shared memory
    barriers, round_trips : of a block, and to memory one after the other
    """
    across, down = tiling.grid(problem)
    blocks = across * down
    counters = copies + update
    for times, each in shared:
        for name, count in each.items():
            counters[name] += count * times * blocks
    counters["barriers"] = barriers * blocks
    return Work(
        l1_wavefronts=counters.pop("l1_cycles")
        + counters["shared_load_wavefronts"]
        + counters["shared_store_wavefronts"],
        counters=counters,
        flops=tiling.padded_flops(problem),
        l2_bytes=transactions.SECTOR * (_distinct(problem, tiling) + _of_c(update)),
        blocks=blocks,
        threads=tiling.threads,
        shared_bytes=shared_bytes,
        chain=(round_trips, tiling.steps(problem) * tiling.block[2]),
    )


def _of_c(update: Counter[str]) -> int:
    return update["global_store_sectors"] + update["global_load_sectors"]


def _distinct(problem: Gemm, tiling: Tiling) -> int:
    """Sectors of A and B that blocks need, each once a tile: copied in memory's order."""
    lanes = [in_turn(WARP, *tile) for tile in stored_tiles(problem, tiling)]
    return copied(problem, tiling, *lanes)["global_load_sectors"]


def c_bytes(problem: Gemm) -> int:
    """Traffic of C, read where β ≠ 0 and written [B]."""
    elements = problem.m * problem.n
    return number_format(problem.dtype).bytes * elements * (2 if problem.beta != 0 else 1)
