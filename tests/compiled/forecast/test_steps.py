"""Steps of a rung along k: cycles and slots add up, and an effect left out leaves no wait of it."""

import numpy as np
import pytest

from gemmlab import Gemm, kernels
from gemmlab.compiled.forecast.rungs import execute_rung
from gemmlab.compiled.forecast.steps import steps
from gemmlab.compiled.sm.pipes import Kind
from gemmlab.compiled.sm.streams import Effects

PROBLEM = Gemm(512, 512, 512)
BK = kernels.tiled.default.block[2]


@pytest.fixture(scope="module")
def executed():
    return execute_rung(PROBLEM, "h200", kernels.tiled)


@pytest.fixture(scope="module")
def whole(executed):
    return steps(executed, BK)


def test_every_slot_is_used_or_empty(whole):
    assert whole.issued.sum() + whole.lost.sum() == pytest.approx(whole.slots)
    assert sum(whole.used.values()) + sum(whole.empty.values()) == pytest.approx(1, abs=0.01)
    assert sum(cost.share for cost in whole.lines) == pytest.approx(1, abs=0.02)
    assert list(whole.used.values()) == sorted(whole.used.values(), reverse=True)


def test_a_step_multiplies_the_tiles_of_all_resident_blocks(executed, whole):
    share = next(iter(executed.values())).share
    fmas = share.resident * 16 * 16 * BK / 32
    assert whole.issued[whole.run.kinds == Kind.FMA].sum() == fmas
    assert whole.used["fma"] == pytest.approx(fmas / whole.slots)


def test_the_line_that_multiplies_has_the_products(whole):
    [cost] = [c for c in whole.lines if c.line.text == "acc += As[y, p] * Bs[p, x]"]
    assert cost.used["fma"] == pytest.approx(whole.used["fma"])
    assert cost is whole.lines[0]
    assert [c.share for c in whole.lines] == sorted((c.share for c in whole.lines), reverse=True)


def test_the_run_has_its_whole_timeline(whole):
    timeline = whole.run.timeline
    assert timeline.issued.shape[1] >= whole.run.cycles
    assert (timeline.issued >= 0).sum() == whole.run.issued.sum()


def test_what_is_left_out_is_not_waited_for(executed, whole):
    without = steps(executed, BK, Effects.only("stalls", "scoreboards", "pipes"))
    assert not {"barrier", "lsu", "bank", "fetch"} & set(without.empty)
    assert without.cycles < whole.cycles
    assert np.array_equal(without.issued, whole.issued)


def test_one_run_alone_has_no_steps():
    short = execute_rung(Gemm(64, 64, 64), "h200", kernels.tiled)
    with pytest.raises(ValueError, match=r"not that of k = \[64\]: take a longer k"):
        steps(short, BK)
