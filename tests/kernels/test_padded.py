"""Rows that the TMA cannot copy are copied once before: right, and counted as predicted."""

from collections import Counter

import pytest

from gemmlab import Gemm, Tiling, kernels, run
from gemmlab.kernels.tensor_core import tma_padded
from tests.support.rungs import predicted

SMALL = Tiling(block=(128, 128, 64), stages=2)
PADDED = kernels.tma_padded


def product(m, n, k, layout="nn", dtype="float16", **more):
    return Gemm(m, n, k, dtype=dtype, layout=layout, **more)


MEASURING = pytest.mark.measuring  # what takes long beside another that shows the same
CASES = [
    product(72, 136, 67),  # rows of A, an element at a time
    # Rows of both; a block of a pair without a tile; C by threads, in an odd number of columns.
    pytest.param(product(130, 131, 66, "nt", "bfloat16", beta=0.5), marks=MEASURING),
    pytest.param(product(68, 136, 72, "tn", out_dtype="float32", beta=1), marks=MEASURING),
    # Those of B alone, and C by threads, since its rows are of 520 bytes.
    pytest.param(product(130, 130, 64, out_dtype="float32", alpha=2), marks=MEASURING),
]


@pytest.mark.parametrize("problem", CASES, ids=str)
def test_it_is_right_and_counts_as_predicted(problem):
    seen = run(PADDED, problem, backend="simulator", tiling=SMALL)
    assert seen.passed
    wanted = {name: n for name, n in predicted(PADDED, problem, SMALL).items() if n}
    assert Counter(seen.counters) == Counter(wanted)


@pytest.mark.parametrize(
    ("problem", "padded", "together"),
    [
        (product(64, 64, 64), (False, False), (8, 8)),
        (product(64, 64, 68), (True, False), (4, 8)),
        (product(66, 64, 68, "tt"), (True, True), (2, 4)),
        (product(64, 61, 64), (False, True), (8, 1)),
    ],
    ids=str,
)
def test_what_the_tma_can_copy_is_left_where_it_is(problem, padded, together):
    assert tma_padded.to_pad(problem) == padded
    assert tma_padded.together(problem) == together
    for (rows, columns), copied, copy in zip(
        problem.shapes, padded, PADDED.workspace(problem, SMALL), strict=False
    ):
        assert copy.shape == ((rows, -(-columns // 8) * 8) if copied else (1, 8))


def test_loads_are_as_wide_as_rows_allow():
    """A row of 67 is loaded by elements, one of 68 by fours."""
    by_elements, by_fours = (
        tma_padded.pad_work(product(72, 136, k), SMALL).counters["global_load_requests"]
        for k in (67, 68)
    )
    assert by_elements == 4 * by_fours
