"""Rungs whose threads compute one element of C each, and share nothing."""

from __future__ import annotations

from gemmlab.formats import number_format
from gemmlab.model.traffic.access import Lanes, axis, global_access, plane
from gemmlab.model.traffic.pieces import c_bytes, update_c
from gemmlab.model.traffic.work import Work
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling


def naive(problem: Gemm, tiling: Tiling) -> Work:
    """Rung *naive*: x runs along the rows of C, so that the lanes of a warp walk down columns.

    Each of the k steps loads A[i, p], a different row for each lane, and B[p, j].
    """
    bm, bn, _ = tiling.block
    return _one_element_a_thread(problem, tiling, plane(bm, bn).turned())


def coalesced(problem: Gemm, tiling: Tiling) -> Work:
    """Rung *coalesced*: x runs along the columns of C, so that lanes are neighbours in memory.

    The same loads as *naive*, two for each FMA; a warp's lanes share rows of A and sectors of B.
    """
    bm, bn, _ = tiling.block
    return _one_element_a_thread(problem, tiling, plane(bn, bm))


def _one_element_a_thread(problem: Gemm, tiling: Tiling, lanes: Lanes) -> Work:
    """Threads that load what they need of A and B from global memory, whenever they need it."""
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
    return Work(
        l1_wavefronts=counters.pop("l1_cycles"),
        counters=counters,
        flops=2 * (down * bm) * (across * bn) * k,
        l2_bytes=s * (across * m * k + down * k * n) + c_bytes(problem),
        blocks=across * down,
        threads=tiling.threads,
        shared_bytes=0,
        chain=(1, k),
    )
