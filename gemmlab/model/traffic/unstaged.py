"""The work of a launch whose threads compute one element of C each, and share nothing."""

from __future__ import annotations

from gemmlab.formats import number_format
from gemmlab.model.traffic.access import Lanes, axis, global_access
from gemmlab.model.traffic.staged import update_c
from gemmlab.model.work import Work, instructions
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling


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
