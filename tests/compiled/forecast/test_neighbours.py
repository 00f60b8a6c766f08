"""Two blocks in a row: which they are, and how often they ask for the same."""

import numpy as np
import pytest

from gemmlab import Gemm, kernels
from gemmlab.compiled.forecast.executed import Share, asked_together, first_warps, neighbour
from gemmlab.compiled.forecast.rungs import execute_rung
from gemmlab.compiled.sass.execution.machine import Visit
from gemmlab.compiled.sass.execution.memory import Cost


def cost(op, warps, sectors, box=None):
    """Of warps whose lanes ask for these sectors, a row each; of the TMA, for a box of so many."""
    warps = np.array(warps)
    if box is not None:
        return Cost("mbarrier", op, warps, 0 * warps, np.array([sectors]), box=box)
    pieces = np.full((len(warps), 32), -1)
    for row, of in zip(pieces, sectors, strict=True):
        row[32 - len(of) :] = of
    counts = np.array([len(set(of)) for of in sectors])
    return Cost("global", op, warps, 0 * warps, counts, pieces)


def visit(*costs):
    return Visit(0, np.unique(np.concatenate([c.warps for c in costs])), 1, list(enumerate(costs)))


@pytest.mark.parametrize(
    ("costs", "often"),
    [
        ([cost("load", [0, 1], [[1, 2], [1, 2]])], 2),
        ([cost("load", [0, 1], [[1, 2], [3, 4]])], 1),
        ([cost("load", [0, 1], [[1, 2], [2, 3]])], 4 / 3),
        ([cost("load", [0, 1], [[1], [1]]), cost("load", [0], [[1]])], 3 / 2),  # once more alone
        ([cost("load", [0, 1], [[1], [1]]), cost("store", [0, 1], [[7], [7]])], 4 / 3),
        ([cost("load", [0, 1], [[1], [1]]), cost("store", [2], [[7]])], 2),  # another block's
        ([cost("copy", [0], 8, (9, 0, 0)), cost("copy", [1], 8, (9, 0, 0))], 2),
        ([cost("copy", [0], 8, (9, 0, 0)), cost("copy", [1], 8, (9, 0, 64))], 1),
        ([cost("copy", [0], 8, (9, 0, 0)), cost("copy", [1], 8, (7, 0, 0))], 1),  # another matrix
        ([cost("init", [0], 0, box=())], 1),
        ([], 1),
    ],
)
def test_what_both_ask_for_comes_once(costs, often):
    visits = [visit(one) for one in costs]
    assert asked_together(visits, 1, (0, 1)) == pytest.approx(often)


def test_the_neighbour_of_a_block_has_the_other_number_of_a_pair():
    share = Share((3, 3, 1), 1, 1, 132)
    assert [neighbour(share, block) for block in (0, 1, 6, 8)] == [[(1, 0, 0)], [(0, 0, 0)],
                                                                  [(1, 2, 0)], []]  # fmt: skip


def test_what_the_first_warps_did_is_kept_alone():
    both, later = cost("load", [0, 1], [[1, 2], [3]]), cost("load", [1], [[4]])
    kept = first_warps([visit(both, later), visit(later)], 1)
    assert [v.warps.tolist() for v in kept] == [[0]]
    ((at, one),) = kept[0].costs
    assert (at, one.warps.tolist(), one.sectors.tolist()) == (0, [0], [2])
    assert one.pieces.tolist() == both.pieces[:1].tolist()
    whole = [visit(both)]
    assert first_warps(whole, 2) == whole


@pytest.mark.ptxas
@pytest.mark.parametrize(
    ("m", "n", "often"), [(128, 512, 96 / 80), (256, 256, 96 / 64), (128, 256, 1)], ids=str
)
def test_tiles_of_neighbours_have_a_or_b_in_common(m, n, often):
    """Of a step A is 16 KB and B 32 KB; what is stored, 4 steps' worth of 128x256, stays apart."""
    problem, kernel = Gemm(m, n, 4096, dtype="float16", out_dtype="float32"), kernels.tma_stored
    k, one = next(iter(execute_rung(problem, "h200", kernel).items()))
    if often == 1:
        assert one.together == 1  # there is one block
        return
    asked, stored = 2 * 48 * k // 64, 2 * 128
    come = asked / often
    assert one.together == pytest.approx((asked + stored) / (come + stored), rel=0.01)
