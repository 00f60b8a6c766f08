"""A product made longer is the product that is executed, instruction for instruction."""

from dataclasses import replace

import numpy as np
import pytest

from gemmlab import Gemm, device, kernels
from gemmlab.compiled.forecast.kernel import forecast
from gemmlab.compiled.forecast.rung_listings import rung_listing
from gemmlab.compiled.forecast.rungs import (
    SIMULATED,
    execute_rung,
    execute_whole,
    forecast_rung,
    longer,
    repeated,
    repeats,
    stretch,
)
from gemmlab.compiled.sm.pipes import is_wait
from gemmlab.compiled.sm.streams import stream

H200 = device("h200")
RAGGED = Gemm(140, 72, 509)
FEW = 0.01


def whole(problem, kernel):
    code = rung_listing(kernel, problem)
    return execute_whole(problem, code, H200, kernel, kernel.default)


def sectors(blocks):
    return sum(int(warp.sectors.sum()) for block in blocks for warp in block)


@pytest.mark.ptxas
@pytest.mark.parametrize(
    "kernel",
    [
        pytest.param(k, id=k.name, marks=[pytest.mark.measuring] if number % 4 else [])
        for number, k in enumerate(kernels.LADDER)
    ],
)
def test_a_product_made_longer_is_the_one_that_is_executed(kernel):
    (k, short), (after, long) = execute_rung(RAGGED, H200, kernel).items()
    assert repeats(short, long)
    for periods, cold in ((1, True), (3, False))[:: 1 if kernel is kernels.tiled else 2]:
        more = longer(short, long, periods)
        executed = whole(replace(RAGGED, k=k + periods * (after - k)), kernel)
        assert more.footprint == executed.footprint
        made, done = more.blocks(cold), executed.blocks(cold)
        for block, expected in zip(made, done, strict=True):
            for one, other in zip(block, expected, strict=True):
                np.testing.assert_array_equal(one.instructions, other.instructions)
                np.testing.assert_array_equal(one.cycles, other.cycles)
                assert (one.levels != other.levels).mean() < FEW  # of what L1 keeps
        assert sectors(made) == pytest.approx(sectors(done), rel=FEW)


def test_what_has_few_periods_is_simulated_to_its_end():
    kernel = kernels.vectorised
    for k in (200, 64 * max(SIMULATED)):
        problem = Gemm(300, 300, k)
        found = forecast_rung(problem, execute_rung(problem, H200, kernel))
        alone = forecast(whole(problem, kernel))
        assert found.result.cycles == alone.result.cycles
        assert found.times["sm"] == alone.times["sm"]


def test_beyond_them_each_period_takes_the_same():
    kernel, seconds = kernels.tiled, []
    for k in (2048, 4096, 6144):
        problem = Gemm(512, 512, k)
        seconds += [forecast_rung(problem, execute_rung(problem, H200, kernel)).times["sm"]]
    assert seconds[2] - seconds[1] == pytest.approx(seconds[1] - seconds[0])


def test_where_the_longer_loop_does_something_else_the_two_stand_for_all():
    """As for a kernel that goes another way from some k on."""
    problem = Gemm(256, 256, 4096)
    executed = execute_rung(problem, H200, kernels.tiled)
    (k, short), (after, long) = executed.items()
    other = replace(long, visits=[long.visits[0], *long.visits])
    assert repeats(short, long)
    assert not repeats(short, other)
    first, second = forecast(short).times["sm"], forecast(other).times["sm"]
    found = forecast_rung(problem, {k: short, after: other})
    assert found.times["sm"] == pytest.approx(
        first + (second - first) * (problem.k - k) / (after - k)
    )


def test_streams_that_differ_in_more_than_one_stretch_do_not_repeat():
    short = stream([0, 1, 2, 3])
    assert stretch(short, stream([0, 1, 2, 1, 2, 3])) == slice(2, 4)
    assert stretch(short, short) == slice(2, 2)
    assert stretch(short, stream([0, 5, 1, 2, 5, 3])) is None
    assert stretch(stream([0, 1, 2, 3, 4]), short) is None
    assert len(repeated(short, stream([0, 1, 2, 1, 2, 3]), 10)) == 4 + 10 * 2


@pytest.mark.parametrize("turns", [1, 2])
def test_a_stretch_that_is_repeated_waits_for_the_phases_that_follow(turns):
    """A ring of two stages, turned `turns` times in a stretch; waits take 0, 0, 1, 1, 0, 0 …"""

    def ring(steps):
        """Before the loop, a wait and an arrival in each step, and what follows."""
        asked = [(1, step % 2, 1 + step // 2 % 2) for step in range(steps)]
        done = [(0, 0, 0), *(one for wait in asked for one in (wait, (2, wait[1], 1))), (3, 0, 0)]
        found = stream([instruction for instruction, _, _ in done])
        mbarriers, amounts = (
            np.array(part, np.int32) for part in list(zip(*done, strict=True))[1:]
        )
        return replace(found, mbarriers=mbarriers, amounts=amounts)

    waits, period = np.array([False, True, False, False]), 2 * turns
    for periods in range(4):
        found = repeated(ring(3), ring(3 + period), periods, waits)
        assert np.array_equal(found.amounts, ring(3 + period * periods).amounts)


def test_warps_of_a_ring_wait_for_one_phase_after_the_other():
    """A stretch of one turn of the ring, after which waits are for the other parity."""
    kernel, step = kernels.tma_stored, 64
    problem = Gemm(128, 128, step, dtype="float16", out_dtype="float32", layout="nn")
    code, turn = rung_listing(kernel, problem), kernel.default.stages * step
    short, long = (
        execute_whole(replace(problem, k=turns * turn), code, H200, kernel, kernel.default)
        for turns in (2, 3)
    )
    waits = np.array([is_wait(one) for one in code.instructions])
    (block,) = longer(short, long, 4).blocks(cold=True)
    seen = 0
    for warp in block:
        asks = waits[warp.instructions] & (warp.amounts > 0)
        for mbarrier in np.unique(warp.mbarriers[asks]):
            parities = warp.amounts[asks & (warp.mbarriers == mbarrier)]
            assert (np.diff(parities) != 0).all()
            seen += len(parities)
    assert seen > (2 + 4) * kernel.default.stages
