"""The library by the model of tiles: at the rate of its full waves, and where that is not known."""

import pytest

from gemmlab import Gemm, device, records
from gemmlab.guide_figures import FORMATS
from gemmlab.model.in_tiles import choose
from gemmlab.prediction.library import efficiency, full_waves, predict_library

H200 = device("h200")


@pytest.mark.parametrize("dtype", FORMATS)
def test_full_waves_take_what_they_took(dtype):
    """Nothing is idle in them: the prediction gives the record back, if 256×128 is the fastest."""
    measured = full_waves(H200, dtype)
    assert (measured.problem.m, measured.problem.n) == (4 * 16 * 132, 2048)
    found = predict_library(measured.problem, "h200")
    assert found.seconds == pytest.approx(measured.seconds, rel=0.05)
    assert found.in_tiles.quantization.use == 1


@pytest.mark.parametrize("dtype", FORMATS)
def test_the_rate_is_below_the_peak_and_slows_what_math_limits(dtype):
    rate = full_waves(H200, dtype).flops_per_second
    assert 0.5 * H200.peak_of(dtype) < rate < H200.peak_of(dtype)
    problem = Gemm(4096, 4096, 4096, dtype=dtype)
    assert predict_library(problem, H200).seconds > choose(problem, H200).seconds


def test_memory_takes_as_long_at_any_rate():
    problem = Gemm(16384, 64, 16384, dtype="float16")
    found = predict_library(problem, H200)
    moved = problem.dram_bytes / H200.dram_copy_bandwidth
    assert found.limiter == "DRAM"
    assert found.seconds == pytest.approx(H200.launch_latency + moved)


def test_rows_that_begin_anywhere_are_as_slow_as_figure_2_shows():
    """The matrix whose rows are aligned worst counts, and more than 16 bytes do not help."""
    speeds = [efficiency(Gemm(4096, 4096, 4096 + more, dtype="float16"), H200) for more in range(9)]
    assert speeds[0] == speeds[8] == 1.0
    assert 0.1 < speeds[1] == speeds[3] < speeds[2] < 0.5
    assert efficiency(Gemm(4096, 4097, 4096, dtype="float16"), H200) == speeds[1]
    assert efficiency(Gemm(4097, 4096, 4096, dtype="float16"), H200) == 1.0
    assert 0.9 < efficiency(Gemm(4097, 4097, 4097), H200) < 1.0


def test_where_figure_2_is_not_recorded_all_rows_are_taken_for_aligned(tmp_path):
    assert efficiency(Gemm(64, 65, 67), H200, tmp_path) == 1.0
    assert efficiency(Gemm(64, 65, 67, dtype="float16"), device("h100_sxm")) == 1.0


def test_where_figure_5_is_not_recorded_it_says_how_to_measure_it(tmp_path):
    with pytest.raises(LookupError, match="figure 5 in float64 is not recorded on h200; `gemmlab"):
        predict_library(Gemm(64, 64, 64, dtype="float64"), "h200")
    with pytest.raises(LookupError, match="--figures 5 --kernels cublas"):
        predict_library(Gemm(64, 64, 64), "h200", root=tmp_path)


def test_large_products_in_records_are_within_a_tenth():
    """Their rows are aligned; nothing but figure 5 was taken from what cuBLAS took."""
    for m in records.load("h200", "cublas"):
        p = m.problem
        if p.dtype == "float32" and min(p.m, p.n, p.k) >= 2048 and p.m % 64 == p.k % 64 == 0:
            assert predict_library(p, "h200").seconds == pytest.approx(m.seconds, rel=0.1), p
