"""The work of a launch whose blocks copy tiles of A and B to shared memory, step by step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from gemmlab.formats import number_format
from gemmlab.model import transactions
from gemmlab.model.counters import OPS
from gemmlab.model.traffic.access import Lanes, in_turn, of_matrix
from gemmlab.model.work import Work, instructions
from gemmlab.problem import Gemm
from gemmlab.tiling import WARP, Tiling


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
    """The work of the whole launch of blocks that go along k tile by tile.

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
    return Work(
        l1_wavefronts=counters.pop("l1_cycles")
        + counters["shared_load_wavefronts"]
        + counters["shared_store_wavefronts"],
        counters=counters,
        flops=executed,
        l2_bytes=transactions.SECTOR * (_distinct(problem, tiling) + _of_c(update)),
        chain=(round_trips, tiling.steps(problem) * tiling.block[2]),
        instructions=0 if flops else instructions(*executed.values(), lane_bytes),
    )


def _of_c(update: Counter[str]) -> int:
    return sum(update[f"global_{op}_sectors"] for op in OPS)


def _distinct(problem: Gemm, tiling: Tiling) -> int:
    """Sectors of A and B that blocks need, each once a tile: those of copies in memory's order."""
    lanes = [in_turn(WARP, *tile) for tile in stored_tiles(problem, tiling)]
    return copied(problem, tiling, *lanes)["global_load_sectors"]
