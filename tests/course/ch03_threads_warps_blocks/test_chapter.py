"""What the prose of chapter 03 says in numbers, held against records, models and the simulator."""

import json
from functools import cache

import numpy as np
import pytest

from benchmarks.hardware.checks import loads
from gemmlab import Gemm, cuda, device, kernels, predict, run, simulate
from gemmlab.model import transactions
from tests.support.paths import ROOT

GPU = device("h200")
LANE, ALL = np.arange(32), np.ones(32, bool)
LOADS = ROOT / "benchmarks" / "hardware" / "recorded" / "h200" / "loads.json"


@cache
def clock(kernel, n):
    """Recorded time [s], and the time that the model predicts."""
    seen = run(kernel, Gemm(n, n, n), backend="recorded")
    return seen.seconds, predict(seen.problem, GPU, kernel).seconds


def l1_cycles(kernel, n):
    """Cycles of L1 for one FMA of a warp."""
    return kernel.work(Gemm(n, n, n), kernel.default).l1_wavefronts / (n**3 / 32)


def test_the_hook():
    even, odd = (clock(kernels.naive, n)[0] for n in (2048, 2049))
    assert (round(even * 1e3, 1), round(odd * 1e3, 1)) == (17.7, 6.4)
    assert round(100 * ((2049 / 2048) ** 3 - 1), 2) == 0.15


@pytest.mark.parametrize(("even", "odd"), [(1024, 1023), (2048, 2049), (4096, 4095)])
def test_all_three_pairs_show_the_gap(even, odd):
    slow, fast = (2 * n**3 / clock(kernels.naive, n)[0] / 1e12 for n in (even, odd))
    assert slow == pytest.approx(1, abs=0.07)
    assert fast == pytest.approx(2.6, abs=0.09)


def test_what_an_h200_has():
    assert GPU.sms == 132
    assert GPU.threads_per_sm // GPU.warp_size == 64
    assert round(GPU.dram_latency * GPU.clock) == 667


def test_a_third_of_the_triangles_loop_is_empty():
    steps = np.arange(1, 65).reshape(2, 32)
    longest = steps.max(axis=1)
    assert longest.tolist() == [32, 64]
    assert 1 - steps.sum() / (32 * longest.sum()) == pytest.approx(1 / 3, abs=0.02)


def test_sixty_three_additions_are_lost():
    def race(x, total):
        total[0] += x[cuda.grid(1)]

    total = np.zeros(1, np.float32)
    simulate(race, 2, 32, np.ones(64, np.float32), total, on_hazard="collect")
    assert total[0] == 1


def test_sectors_tell_the_kernels_apart_but_not_the_sizes():
    p = Gemm(64, 64, 64)
    naive, coalesced = (
        c["global_load_sectors"] / c["global_load_requests"]
        for c in (predict(p, GPU, k).counters for k in (kernels.naive, kernels.coalesced))
    )
    assert (naive, coalesced, naive / coalesced) == (8.5, 2, 4.25)
    even, odd = (predict(Gemm(n, n, n), GPU, kernels.naive).counters for n in (2048, 2049))
    for c in (even, odd):
        assert round(c["global_load_sectors"] / c["global_load_requests"], 2) == 8.50


@pytest.mark.parametrize(("floats", "wavefronts", "cycles"), [(2048, 16, 16), (2049, 1, 4.5)])
def test_a_profiler_counted_other_wavefronts(floats, wavefronts, cycles):
    pieces = json.loads(LOADS.read_text("utf-8"))["pieces"]
    (found,) = (
        load
        for piece in pieces
        for load in piece["measured"]["loads"]
        if load["pattern"] == f"16 rows, stride {4 * floats}" and load["width"] == 4
    )
    passes, busy = loads.of_one_load(found)
    assert passes == pytest.approx(wavefronts, abs=0.05)
    assert busy == pytest.approx(cycles, abs=0.1)


def test_what_keeps_l1_busy():
    assert l1_cycles(kernels.naive, 2048) == pytest.approx(16 + 1, abs=0.05)
    assert l1_cycles(kernels.naive, 2049) == pytest.approx(4 + 1, abs=0.05)
    assert 64 * l1_cycles(kernels.coalesced, 4096) == pytest.approx(192, abs=0.5)
    assert 64 * l1_cycles(kernels.naive, 4096) == pytest.approx(1090, abs=5)


def test_the_bound_and_the_clock():
    over = {
        (k.name, n): seen / bound
        for k, n in ((kernels.naive, 2048), (kernels.naive, 2049), (kernels.coalesced, 4096))
        for seen, bound in [clock(k, n)]
    }
    assert over["naive", 2048] == pytest.approx(1, abs=0.01)
    assert over["naive", 2049] == pytest.approx(1.25, abs=0.03)
    assert 1.75 < over["coalesced", 4096] < 2  # nearly twice; L1 is idle for almost half
    assert 0.4 < 1 - 1 / over["coalesced", 4096] < 0.5


def test_the_answers_of_check_yourself():
    x, y = LANE % 8, LANE // 8
    assert transactions.sectors(4 * 64 * x, ALL) + transactions.sectors(4 * y, ALL) == 8 + 1
    column = 4 * 2056 * (LANE % 16)
    assert transactions.l1_wavefronts(column, ALL, 4) == 4
    assert transactions.l1_cycles(column, ALL, 4) == 4
    assert transactions.l1_cycles(4 * 2049 * (LANE % 16), ALL, 4) == 4
