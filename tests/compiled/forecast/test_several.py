"""Kernels of several launches, clocks by what code runs, additions that L2 takes."""

from dataclasses import replace

import numpy as np
import pytest

from gemmlab import Gemm, Tiling, device, kernels
from gemmlab.compiled.forecast.executed import Executed, Share
from gemmlab.compiled.forecast.kernel import Forecast, at_its_clock, forecast
from gemmlab.compiled.forecast.power import Load
from gemmlab.compiled.forecast.rung_listings import arguments, usual
from gemmlab.compiled.forecast.rungs import (
    execute_rung,
    footprint,
    forecast_other,
    forecast_rung,
    predict_rung,
)
from gemmlab.compiled.forecast.traffic import L1, Weights, streams, weights
from gemmlab.compiled.forecast.whole_gpu import clock, full_clock, sm_facts
from gemmlab.compiled.sass.execution.machine import Visit
from gemmlab.compiled.sass.execution.memory import Cost
from gemmlab.compiled.sm.facts import facts
from gemmlab.compiled.sm.streams import Level
from tests.support.listings import listing

H200 = device("h200")
SMALL = Tiling(block=(64, 64, 16), warp=(32, 32), thread=(8, 4), stages=3, split=4)
PROBLEM = Gemm(128, 128, 4096)


@pytest.mark.ptxas
@pytest.mark.parametrize("kernel", kernels.SPLIT_K, ids=lambda kernel: kernel.name)
def test_launches_are_added_up_with_the_time_between_them(kernel):
    parts = 16 if kernel is kernels.stream_k else SMALL.split  # of all tiles, or of each
    found = predict_rung(PROBLEM, H200, kernel, replace(SMALL, split=parts))
    (other,) = found.others
    assert other.launch == H200.launch_interval
    assert found.launch == H200.launch_latency
    own = found.launch + max(found.times.values())
    after = H200.launch_interval + max(other.times.values())
    assert found.seconds == pytest.approx(own + after)
    alone = predict_rung(PROBLEM, H200, kernels.pipelined, SMALL.unsplit)
    assert alone.others == ()
    assert found.seconds < alone.seconds / 2


@pytest.mark.ptxas
def test_blocks_that_divide_k_get_whole_steps_more_each():
    """Of k two lengths are executed whose parts of it differ alike."""
    (k, short), (after, long) = execute_rung(PROBLEM, H200, kernels.split_k, SMALL).items()
    assert (after - k) % (SMALL.split * SMALL.block[2]) == 0
    more = {
        len(b) - len(a)
        for one, other in zip(short.blocks(False), long.blocks(False), strict=True)
        for a, b in zip(one, other, strict=True)
    }
    assert len(more) == 1


def test_the_workspace_is_a_part_of_the_footprint():
    tiles = 2 * 2 * SMALL.split
    plain = 4 * (2 * 128 * 4096 + 128 * 128)
    assert footprint(PROBLEM, kernels.split_k, SMALL) == plain + 4 * tiles * 64 * 64
    assert footprint(PROBLEM, kernels.split_k_atomics, SMALL) == plain


def test_an_addition_takes_l2_as_long_as_it_was_measured():
    code = listing("------ W- R- - S01  RED.E.ADD.F32.FTZ.RN.STRONG.GPU [R2.64], R5")
    visit = Visit(0, np.array([0]), 1)
    pieces = np.full((1, 32), -1)
    pieces[0, :20] = np.arange(20) // 8  # of three sectors
    visit.costs.append(
        (0, Cost("global", "atomic", np.array([0]), np.array([1]), np.array([3]), pieces))
    )
    levels = np.array([int(Level.L2)], np.int32)
    each = weights(H200).addition
    assert each == pytest.approx(H200.l2_bandwidth / 32 / H200.l2_additions)
    (one,) = streams([visit], code, levels, L1(4096), Weights(addition=each))
    assert one.sectors.tolist() == [round(20 * each)]
    (one,) = streams([visit], code, levels, L1(4096), Weights(addition=0.1))
    assert one.sectors.tolist() == [3]


SM = facts("h200")
FFMA = "FFMA R0, R1, R2, R3"
HMMA = "HMMA.16816.F32 R0, R4, R8, R0"
HGMMA = "HGMMA.64x128x16.F32 R24, gdesc[UR20], R24, gsb0"


def on_sms(opcode, sms, together=1.0):
    """A launch of a block on each of so many SMs."""
    code = listing(f"------ W- R- - S01  {opcode}")
    share = Share((sms, 1, 1), 1, 1, H200.sms)
    return Executed(code, H200, share, (), 1, 1, 0, 0, 0, together)


@pytest.mark.parametrize(
    ("opcode", "hertz"),
    [(FFMA, H200.clock), (HMMA, SM.tensor_clocks[-1]), (HGMMA, SM.wgmma_clocks[-1])],
)
def test_tensor_cores_lower_the_clock_and_not_that_of_l2(opcode, hertz):
    one = on_sms(opcode, 132)
    assert clock(one) == hertz
    for rate in ("l2_bytes_per_cycle", "dram_bytes_per_cycle"):
        found = getattr(sm_facts(one), rate) * hertz
        assert found == pytest.approx(getattr(SM, rate) * H200.clock)


def test_the_clock_falls_with_the_use_of_tensor_cores_and_with_the_sms_that_use_them():
    few, _, most, lowest = SM.wgmma_clocks
    assert few == most > lowest
    assert clock(on_sms(HGMMA, 132), Load(0)) == clock(on_sms(HGMMA, 1)) == few
    assert clock(on_sms(HGMMA, 132), Load(SM.wgmma_use / 2)) == pytest.approx((few + lowest) / 2)
    assert clock(on_sms(HGMMA, 132), Load(1)) == lowest
    assert clock(on_sms(HGMMA, 99 + 11)) == pytest.approx(most - (most - lowest) / 3)
    assert clock(on_sms(HMMA, 132), Load(0.9)) == SM.tensor_clocks[-1]  # as busy as they can be
    assert clock(on_sms(FFMA, 132), Load(0.9)) == H200.clock


@pytest.mark.ptxas
def test_a_launch_takes_what_it_takes_at_its_own_clock():
    """A product whose Tensor Cores wait for most of the time is not at the lowest one."""
    problem, kernel = Gemm(2048, 2048, 256, dtype="float16"), kernels.mma_shared
    found, executed = predict_rung(problem, H200, kernel), execute_rung(problem, H200, kernel)
    assert 0 < found.load.use < SM.tensor_use
    again = forecast_rung(problem, executed, load=found.load)
    assert again.times["sm"] < found.times["sm"] < 1.04 * again.times["sm"]  # with its first dip
    assert again.times["sm"] < forecast_rung(problem, executed).times["sm"]


@pytest.mark.parametrize(
    ("opcode", "load", "times"),
    [(FFMA, Load(0.0, 300.0), 1), (FFMA, Load(0.0, 1500.0), 2), (HMMA, Load(0.4, 300.0), 2)],
)
def test_only_what_has_another_clock_is_simulated_again(opcode, load, times):
    seen = []

    def forecast_at(one):
        seen.append(one)
        made = Forecast("h200", listing(""), {"sm": 1e-3, "dram": 0.0}, 0.0, None, 1, None)
        return replace(made, load=load)

    found = at_its_clock(forecast_at, on_sms(opcode, 132))
    assert seen == [Load(), load][:times]
    assert found.load == load


@pytest.mark.slow
@pytest.mark.parametrize("n", [4096, 8192])
def test_nobody_is_promised_more_than_tensor_cores_can_do(n):
    """A long product is on a line through two short ones, which could lead anywhere."""
    problem = Gemm(n, n, n, dtype="float16", out_dtype="float32")
    found = predict_rung(problem, H200, kernels.tma_stored)
    per_cycle = H200.flop_per_cycle_per_sm["float16"] * H200.sms
    peak = per_cycle * full_clock(on_sms(HGMMA, 132))
    assert problem.flops / peak < found.times["sm"]
    assert found.load.use <= 1


@pytest.mark.parametrize(
    ("kernel", "accessed"),
    [
        (kernels.tcec_split, "ABW"),  # a split, of A and B into the workspace
        (kernels.split_k, "WC"),  # a sum of what is in the workspace
        (kernels.split_k_atomics, "C"),  # C times beta
    ],
    ids=["split", "sum", "scaling"],
)
def test_another_launch_has_to_do_with_what_it_accesses(kernel, accessed, monkeypatch):
    """These arrays are its footprint, by which device memory and L2 are judged."""
    problem, found = Gemm(512, 512, 2048), []
    tiling = kernel.choose(None, problem, H200)

    def seen(executed, *asked, **options):
        found.append(executed.footprint)
        return forecast(executed, *asked, **options)

    monkeypatch.setattr("gemmlab.compiled.forecast.kernel.forecast", seen)
    (further,) = (one for one in kernel.launches if one is not kernel)
    forecast_other(problem, H200, kernel, tiling, further)
    sizes = dict(zip("ABC", problem.array_bytes, strict=True))
    sizes["W"] = footprint(problem, kernel, tiling) - sum(problem.array_bytes)
    assert set(found) == {sum(sizes[name] for name in accessed)}


@pytest.mark.parametrize("kernel", kernels.GPU, ids=lambda kernel: kernel.name)
def test_a_kernel_is_compiled_for_as_many_arguments_as_it_takes(kernel):
    problem = usual(kernel, Gemm(256, 256, 256))
    tiling = kernel.choose(None, problem, "h200")
    for one in kernel.launches:
        taken = one.function(problem, tiling, (9, 0)).__code__.co_argcount
        assert len(arguments(kernel, problem, tiling)) == taken
