"""What chapter 05 says of steps, shares and tiles, against records and models."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from gemmlab import Gemm, Gemms, device, kernels, records
from gemmlab.course.exercises import get
from gemmlab.measure.records import series
from gemmlab.model import occupancy
from gemmlab.model.alignment import multiples
from gemmlab.model.in_tiles import in_tiles
from gemmlab.model.quantization import quantization
from tests.course.answers import edited

GPU, A100 = device("h200"), device("a100_80gb")
OURS = kernels.pipelined
LARGE, _, MIDDLE, SMALL = OURS.tilings
GROWN = {m.problem.n: m for m in series(OURS, "n", m=1408, k=4096)}


def recorded(n, tiling):
    return records.find(OURS, Gemm(n, n, n), tiling)


def library(dtype):
    return {m.problem.n: m for m in series(kernels.cublas, "n", m=2816, k=4096, dtype=dtype)}


# ------------------------------------------------------------------------ title, sections 1 and 2


def test_the_hook():
    before, after = GROWN[3072], GROWN[3080]
    assert round(before.seconds * 1e3, 2) == 0.68
    assert round(after.seconds * 1e3, 2) == 1.31
    assert round(100 * (after.problem.flops / before.problem.flops - 1), 2) == 0.26
    assert GROWN[6144].seconds < 1.05 * after.seconds  # "the next 3000 columns"
    fastest = max(
        kernels.LADDER, key=lambda k: records.find(k, Gemm(4096, 4096, 4096)).flops_per_second
    )
    assert fastest is OURS


def test_one_column_of_257():
    assert round(100 * (257 / 256 - 1), 2) == 0.39
    now = quantization(Gemm(256, 257, 256), GPU, (128, 128), per_sm=1)
    assert now.executed_flops / Gemm(256, 256, 256).flops == 1.5
    assert now.useful == 256 * 257 / (256 * 384)


# --------------------------------------------------------------------------------- sections 3 and 4


def test_the_guides_example():
    q = quantization(Gemm(2304, 1544, 4096), A100, (256, 128), per_sm=1)
    assert (q.down, q.across, q.tiles, A100.sms) == (9, 13, 117, 108)
    assert (q.waves, q.tail) == (2, 9)
    assert quantization(q.problem, GPU, (256, 128), per_sm=1).waves == 1


def test_a_thirteenth_column_of_tiles():
    assert (3072 / 256, math.ceil(3080 / 256), math.ceil(1408 / 128), GPU.sms) == (12, 13, 11, 132)


def test_every_step_is_where_it_is_predicted():
    sizes = sorted(GROWN)
    waves = quantization(Gemms(1408, sizes, 4096), GPU, (128, 256), per_sm=1).waves
    predicted = [n for n, w, v in zip(sizes[1:], waves, waves[1:], strict=False) if v > w]
    seen = [b for a, b in pairwise(sizes) if GROWN[b].seconds > 1.1 * GROWN[a].seconds]
    assert seen == predicted
    assert {3080, 6152, 9224} <= set(seen)
    error = [
        abs(w * GROWN[3072].seconds / GROWN[n].seconds - 1)
        for n, w in zip(sizes, waves, strict=True)
    ]
    assert np.mean(error) < 0.02
    assert max(error) < 0.04


def test_steps_and_waves_and_the_bound():
    assert GROWN[128].seconds == pytest.approx(GROWN[3072].seconds, rel=0.04)
    assert 3072 / 128 == 24
    step = GROWN[3080].seconds - GROWN[3072].seconds
    full = (GROWN[9216].seconds - GROWN[3072].seconds) / 2
    assert round(100 * (1 - step / full)) == 6
    least = float(in_tiles(GROWN[3072].problem, GPU, (128, 256), per_sm=1).seconds)
    share = least / GROWN[3072].seconds
    assert round(100 * share) == 78  # "a fifth too short"


def test_what_to_find_in_the_explorer():
    small = replace(GPU, sms=8)
    for m, full in ((32, [16, 32, 48, 64]), (40, [64])):
        use = {n: quantization(Gemm(m, n, 16), small, (8, 8), 1).use for n in range(1, 65)}
        assert [n for n, share in use.items() if share == 1] == full
    least = {}
    for side in (4, 8, 16):
        use = [quantization(Gemm(32, n, 16), small, (side, side), 1).use for n in range(16, 65)]
        assert max(use) == 1
        least[side] = min(use)
    assert least[4] > least[8] > least[16]
    after = library("float32")[1544]
    share = quantization(after.problem, GPU, (256, 128), 1).use
    assert after.flops_per_second > 1.2 * share * GPU.peak_of("float32")


def test_tails_after_one_and_nine_waves():
    assert [1 / (w + 1) for w in (1, 9)] == [0.5, 0.1]
    assert 2 < 300 / GPU.sms < 300 / A100.sms < 3


# --------------------------------------------------------------------------------- sections 5 and 6


@pytest.mark.parametrize("tiling", [LARGE, MIDDLE, SMALL])
def test_places_are_what_registers_leave(tiling):
    held = recorded(1024, tiling).resources
    asked = held["threads"], held["dynamic_shared_bytes"], held["registers"]
    found = occupancy.resident_blocks(GPU, *asked)
    assert found == held["blocks_per_sm"] == (5 if tiling == SMALL else 1)
    without_registers = occupancy.resident_blocks(GPU, *asked[:2])
    assert without_registers > found


def test_a_wave_of_660_would_be_far_too_slow():
    share = recorded(1024, SMALL).flops_per_second / recorded(8192, SMALL).flops_per_second
    assert (1024 // 64) ** 2 == 256
    assert round(100 * share) == 80
    assert share > 2 * 256 / 660


# -------------------------------------------------------------------------------------- section 7


def test_the_order_turns_between_1024_and_2048():
    def fastest(n):
        return max((LARGE, MIDDLE, SMALL), key=lambda t: recorded(n, t).flops_per_second)

    assert [fastest(n) for n in (256, 512, 1024)] == [SMALL] * 3
    assert [fastest(n) for n in (2048, 4096, 8192)] == [LARGE] * 3
    assert [round(recorded(1024, t).flops_per_second / 1e12) for t in (LARGE, SMALL)] == [12, 35]


def test_one_product_fills_waves_of_every_tile():
    for tiling in (LARGE, MIDDLE, SMALL):
        q = quantization(Gemm(8448, 2048, 4096), GPU, tiling.block[:2], per_sm=1)
        assert q.wave_use == q.useful == 1
    assert quantization(Gemm(8448, 2048, 4096), GPU, (128, 256), per_sm=1).waves == 4
    (large,) = (m for m in series(OURS, "n", m=8448, k=4096) if m.problem.n == 2048)
    (small,) = (m for m in series(OURS, "n", tiling=SMALL, m=8448, k=4096) if m.problem.n == 2048)
    assert 1.1 < large.flops_per_second / small.flops_per_second < 1.25


def test_the_library_must_split_the_small_product():
    p = Gemm(64, 64, 8192)
    times = {k.name: records.find(k, p).seconds for k in (OURS, kernels.cublas)}
    assert round(times["pipelined"] * 1e3, 1) == 1.3
    assert 1 / 120 < times["cublas"] / times["pipelined"] < 1 / 80
    assert times["cublas"] < float(in_tiles(p, GPU, (64, 64)).seconds) / 5  # one SM could not


# -------------------------------------------------------------------------------------- section 8


@pytest.mark.parametrize("dtype", ["float32", "tf32"])
def test_the_largest_steps_are_where_waves_end(dtype):
    found = library(dtype)
    sizes = [n for n in sorted(found) if n >= 1000]
    steps = sorted(pairwise(sizes), key=lambda ab: found[ab[1]].seconds / found[ab[0]].seconds)
    assert sorted(b for _, b in steps[-3:]) == [1544, 3080, 4616]
    assert all(found[b].seconds < 1.5 * found[a].seconds for a, b in steps)
    assert {n // 128 * 11 for n in (1536, 3072, 4608)} == {132, 264, 396}


def least(dtype, n):
    return float(in_tiles(Gemm(2816, n, 4096, dtype=dtype), GPU, (256, 128), per_sm=1).seconds)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_other_tiles_are_taken_after_the_first_full_wave(dtype):
    assert library(dtype)[1544].seconds < 0.8 * least(dtype, 1544)


def test_in_tf32_the_marks_lie_on_the_line_after_the_first_full_wave():
    found = library("tf32")
    on_it = [n for n in found if 1544 <= n <= 2304]
    assert len(on_it) > 10
    assert all(1 < found[n].seconds / least("tf32", n) < 1.06 for n in on_it)
    assert found[1536].seconds > 1.15 * least("tf32", 1536)


def test_the_clock_alone_does_not_explain_tf32():
    full, tail, later = (library("tf32")[n] for n in (1536, 1544, 2304))
    clocks = [float(m.provenance["sm_clock_hz"]) for m in (full, tail, later)]
    assert [round(clock / 1e9, 2) for clock in clocks] == [1.67, 1.94, 1.70]
    assert later.seconds <= tail.seconds


def test_steps_in_microseconds_and_those_of_float16():
    def largest(dtype, size):
        found = library(dtype)
        return max(pairwise(n for n in sorted(found) if n >= 1000), key=lambda ab: size(found, *ab))

    def longer(found, a, b):
        return found[b].seconds - found[a].seconds

    def share(found, a, b):
        return found[b].seconds / found[a].seconds - 1

    assert largest("float32", longer) == (6144, 6152)
    assert round(1e6 * longer(library("float32"), 6144, 6152)) == 331
    assert largest("float16", share) == (2304, 2368)
    assert int(100 * share(library("float16"), 2304, 2368)) == 25


@pytest.mark.numba_cuda  # whose code the numbers are of
@pytest.mark.ptxas
@pytest.mark.slow
def test_a_bound_that_the_compiler_does_not_know_has_its_price():
    one = "                for p in range(min(T, k - start)):\n"
    product = "                    acc += As[y, p] * Bs[p, x]\n"
    two = (
        "                if start + T <= k:\n                    for p in range(T):\n    "
        + product
        + "                else:\n                    for p in range(k - start):\n    "
        + product
    )
    q = get("05.1")
    (build,) = q.task.answers
    times = [q.check(x).details["seconds"] for x in (build, edited(build, (one + product, two)))]
    assert [round(1e3 * seconds) for seconds in times] == [79, 23]


def test_half_of_the_loads_are_not_twice_the_speed():
    filled = Gemm(8448, 2048, 4096)
    speeds = {}
    for t in (MIDDLE, SMALL):
        (m,) = (m for m in series(OURS, "n", tiling=t, m=8448, k=4096) if m.problem == filled)
        speeds[t] = m.flops_per_second / 1e12
    assert round(speeds[MIDDLE], 1) == 45.5
    assert round(speeds[SMALL], 1) == 45.3


def test_an_eighth_of_the_large_tile_lies_in_c():
    record = records.find(OURS, Gemm(64, 64, 8192))
    assert record.tiling.block[:2] == (128, 256)
    assert 64 * 64 / (128 * 256) == 1 / 8
    bound = float(in_tiles(record.problem, GPU, (64, 64), 1).seconds)
    assert round(record.seconds / bound) == 10
    assert round(1e6 * GPU.launch_interval, 1) == 1.5


def test_odd_sizes_cost_where_an_odd_k_does_not():
    for odd, even, loss in ((4095, 4096, 8), (1023, 1024, 11)):
        speeds = [
            max(records.find(OURS, Gemm(n, n, n), t).flops_per_second for t in OURS.tilings)
            for n in (odd, even)
        ]
        assert round(100 * (1 - speeds[0] / speeds[1])) == loss


def test_in_tf32_1544_columns_take_as_long_as_2304():
    found = library("tf32")
    assert found[2304].seconds == pytest.approx(found[1544].seconds, rel=0.02)
    assert found[2368].seconds > 1.1 * found[1544].seconds


def test_k_costs_little_in_float32():
    def each(kernel, k):
        return records.find(kernel, Gemm(4096, 4096, k)).seconds / k

    for k in (4097, 4098, 4100, 4104):
        assert 1.05 < each(kernels.cublas, k) / each(kernels.cublas, 4096) < 1.07
        assert each(OURS, k) <= each(OURS, 4096)
    assert 14 < GPU.peak_of("float16") / GPU.peak_of("float32") < 15.5
    assert (multiples("float16").efficient, multiples("float16").on_a100) == (8, 64)


# ------------------------------------------------------------------------------ section 9, recap


def test_the_rule_picks_the_fastest_tile_of_every_square():
    rule = get("05.4").task.answers[0]
    by_size = {t.block[:2]: t for t in (LARGE, MIDDLE, SMALL)}
    speeds = {
        s: recorded(8192, t).flops_per_second / GPU.peak_of("float32") for s, t in by_size.items()
    }
    for n in (256, 512, 1000, 1023, 1024, 2048, 2049, 4095, 4096):
        fastest = max(by_size, key=lambda s: recorded(n, by_size[s]).flops_per_second)
        assert rule(n, n, GPU.sms, speeds) == fastest, n


def test_a_layer_of_33_708_outputs():
    assert 33_792 % 128 == 33_792 % 256 == 0
    assert math.ceil(33_708 / 256) == math.ceil(33_792 / 256)
    assert round(100 * (33_792 / 33_708 - 1), 2) == 0.25


def test_109_tiles():
    q = quantization(Gemm(109, 1, 1), A100, (1, 1), per_sm=1)
    assert q.waves == quantization(Gemm(216, 1, 1), A100, (1, 1), per_sm=1).waves == 2
