"""What the prose of chapter 04 says of times and counts, against records and models."""

import json

import numpy as np
import pytest

from gemmlab import Gemm, Tiling, device, kernels, predict, run
from gemmlab.model import occupancy, transactions
from tests.support.paths import ROOT

GPU = device("h200")
BIG = Gemm(4096, 4096, 4096)
WARP_FMAS = BIG.flops / 2 / GPU.warp_size
SIDES = (8, 16, 32)


def seconds(kernel, side=None):
    tiling = Tiling.square(side) if side else kernel.default
    return run(kernel, BIG, backend="recorded", tiling=tiling).seconds


def at_best(side):
    return predict(BIG, GPU, kernels.tiled, Tiling.square(side)).seconds


def wavefronts(kernel, side=None):
    tiling = Tiling.square(side) if side else kernel.default
    return kernel.work(BIG, tiling).l1_wavefronts / WARP_FMAS


def test_half_the_loads_take_the_same_time():
    sectors = [
        predict(BIG, GPU, kernels.tiled, Tiling.square(side)).counters["global_load_sectors"]
        for side in (16, 32)
    ]
    assert sectors[0] == 2 * sectors[1]
    assert [f"{seconds(kernels.tiled, side):.4f}" for side in (16, 32)] == ["0.0175", "0.0175"]


def test_neither_l2_nor_dram_holds_the_tiles_of_32_up():
    moved = 4 * BIG.m * BIG.n * BIG.k * 2 / 32
    fmas = BIG.flops / GPU.peak_of("float32")
    assert moved / GPU.l2_bandwidth < fmas
    assert moved / GPU.dram_bandwidth < seconds(kernels.tiled, 32) / 4


def test_a_strip_does_not_fit_into_an_sm():
    assert 16 * 4096 * 4 == 256 * 1024 > GPU.shared_bytes_per_sm


def test_requests_fall_by_16_and_sectors_by_8():
    small = Gemm(64, 64, 64)
    before, now = (predict(small, GPU, k).counters for k in (kernels.coalesced, kernels.tiled))
    assert before["global_load_requests"] == 16 * now["global_load_requests"]
    assert before["global_load_sectors"] == 8 * now["global_load_sectors"]
    assert before["global_load_sectors"] == 2 * before["global_load_requests"]


def test_104_loads_fewer_sectors_than_100():
    of = {
        n: predict(Gemm(n, n, n), GPU, kernels.tiled).counters["global_load_sectors"]
        for n in (100, 104, 127, 128)
    }
    assert of[104] < of[100]
    assert of[127] > of[128]
    assert 104 * 4 % transactions.SECTOR == 0 != 100 * 4 % transactions.SECTOR


def test_an_odd_width_spreads_a_column_over_the_banks():
    x = np.arange(32) % 16
    found = {w: transactions.wavefronts(4 * w * x, np.ones(32, bool), 4) for w in range(16, 33)}
    assert all(found[w] == 1 for w in found if w % 2)
    assert found[18] == 1  # some even ones do as well
    assert (found[16], found[20]) == (8, 2)


def test_copies_are_six_wavefronts_in_sixteen_steps():
    assert 16 * wavefronts(kernels.tiled, 16) == pytest.approx(32 + 6, abs=0.01)
    assert 32 * wavefronts(kernels.tiled, 32) == pytest.approx(64 + 4, abs=0.01)
    assert 2 * GPU.warp_size / GPU.flop_per_cycle_per_sm["float32"] == 1 / 4


def test_coalesced_needs_fewer_wavefronts_than_tiles_of_8_and_more_time():
    assert wavefronts(kernels.coalesced) < wavefronts(kernels.tiled, 8)
    assert seconds(kernels.coalesced) > 1.6 * seconds(kernels.tiled, 8)
    assert seconds(kernels.coalesced) / seconds(kernels.tiled, 16) > 2.5
    assert seconds(kernels.tiled, 8) == pytest.approx(at_best(8), rel=0.03)


def test_coalesced_waits_for_a_trip_between_l2_and_dram():
    trip = GPU.dram_latency * GPU.clock
    assert round(trip) == 667
    assert "a hit in L2 takes 290" in GPU.sources["dram_latency"].text
    warps = occupancy.resident_blocks(GPU, 256) * 256 // 32
    assert warps * round(wavefronts(kernels.coalesced)) == 64 * 3
    cycles = seconds(kernels.coalesced) * GPU.clock * GPU.sms / WARP_FMAS * warps
    assert 290 < cycles < trip


@pytest.mark.parametrize("side", SIDES)
def test_the_compiler_merges_loads_of_as(side):
    text = (ROOT / "benchmarks/hardware/recorded/h200/counters.json").read_text("utf-8")
    rungs = next(r for r in json.loads(text)["pieces"] if r["piece"] == "rungs")["measured"]
    shape = Gemm(64, 64, 64)
    measured = rungs[f"tiled_{side}_even"]["counters"]["shared_load_wavefronts"]
    of_source = predict(shape, GPU, kernels.tiled, Tiling.square(side)).counters
    assert measured * 2 == of_source["shared_load_wavefronts"] * 1.5


def test_with_merged_loads_tiles_of_32_lose_most():
    lost = {}
    for side in SIDES:
        count = wavefronts(kernels.tiled, side)
        lost[side] = seconds(kernels.tiled, side) / (at_best(side) * (count - 0.5) / count)
    assert seconds(kernels.tiled, 16) < at_best(16)  # by the source it could not be
    assert 1 < lost[16] < lost[8] < lost[32]


def test_an_sm_holds_two_blocks_of_32_and_eight_of_16():
    held = [
        occupancy.resident_blocks(
            GPU, side**2, kernels.tiled.shared_bytes(BIG, Tiling.square(side))
        )
        for side in (32, 16)
    ]
    assert held == [2, 8]


def test_small_problems_take_longer_than_predicted():
    for n, far in ((256, True), (4096, False)):
        m = run(kernels.tiled, Gemm(n, n, n), backend="recorded")
        assert (m.seconds > 2 * predict(m.problem, GPU, kernels.tiled).seconds) == far
        if far:
            assert round(m.seconds * 1e6) == 16
            assert round(predict(m.problem, GPU, kernels.tiled).seconds * 1e6) == 6


def test_a_flat_shape_has_less_work_and_more_traffic_than_a_cube():
    cube, flat = (predict(Gemm(*s), GPU, kernels.tiled) for s in ((128, 128, 128), (512, 512, 4)))
    assert flat.flops < cube.flops
    assert flat.bytes["global"] > cube.bytes["global"]


def test_the_fma_units_are_idle_most_of_the_time():
    assert BIG.flops / seconds(kernels.tiled, 16) < GPU.peak_of("float32") / 8
