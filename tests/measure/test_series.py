"""Measurements along one size of a product."""

import pytest

from gemmlab import Gemm, kernels, records
from gemmlab.measure.records import figures, series


def test_every_figure_is_a_measurement_on_its_device():
    found = figures()
    assert {m.device for m in found} == {"h200"}
    assert {m.kernel for m in found} == {"cublas", "pipelined"}
    assert all(m.passed and m.provenance["data"] != "zeros" for m in found)


def test_a_series_is_sorted_and_has_one_of_each_size():
    found = series(kernels.pipelined, "n", m=1408, k=4096)
    sizes = [m.problem.n for m in found]
    assert sizes == sorted(set(sizes))
    assert {(m.problem.m, m.problem.k, m.tiling) for m in found} == {
        (1408, 4096, kernels.pipelined.default)
    }
    assert {3072, 3080} <= set(sizes)


@pytest.mark.parametrize("dtype", ["float32", "tf32", "float16"])
def test_a_series_has_one_format(dtype):
    found = series(kernels.cublas, "n", dtype=dtype, m=2816, k=4096)
    assert len(found) > 50
    assert {m.problem.dtype for m in found} == {dtype}


def test_the_ladders_records_belong_to_it():
    (m,) = (m for m in series(kernels.tiled, "n", m=4096, k=4096) if m.problem.n == 4096)
    assert m == records.find(kernels.tiled, Gemm(4096, 4096, 4096))


def test_what_is_not_recorded_is_left_out(tmp_path):
    assert series(kernels.pipelined, "n", m=7, k=7) == []
    assert figures("h200", tmp_path) == []


def test_sizes_that_make_no_problem():
    with pytest.raises(TypeError, match="the sizes are n, m; use one of m, n, k"):
        series(kernels.tiled, "n", m=4096)
    with pytest.raises(TypeError, match="the sizes are n, n, k"):
        series(kernels.tiled, "n", n=4096, k=4096)
