"""Probes: rates of the right size."""

import numpy as np
import pytest

from gemmlab.here import detection


def test_processor():
    assert detection.cores() >= 1
    assert detection.processor_name().strip()


def test_flop_rate_refuses_other_dtypes():
    with pytest.raises(ValueError, match=r"'float16'.*float32, float64"):
        detection.flop_rate("float16")


def test_numpy_stands_in_for_numba(monkeypatch):
    def missing(dtype):
        raise ImportError("numba")

    monkeypatch.setattr(detection, "_fma_chains", missing)
    rate = detection.flop_rate("float32")
    assert rate.value > 1e8
    assert "Numba is not usable" in rate.source


def test_peak_is_above_numpy():
    pytest.importorskip("numba")
    single, double = detection.flop_rate("float32"), detection.flop_rate("float64")
    moved = detection.bandwidth()
    product = detection._matmul_rate("float32")
    assert product.value < 1.1 * single.value  # 10 % for other programs on the machine
    assert 1.5 < single.value / double.value < 2.5  # a float32 register holds twice the elements
    assert single.value > 1e9
    assert moved.value > 1e8
    for rate in (single, double, moved):
        assert rate.source.startswith("measured here")


def test_fma_chains_count_their_flop():
    pytest.importorskip("numba")
    run, flop = detection._fma_chains(np.dtype(np.float64))
    assert flop % 4 == 0
    # Every chain tends to the fixed point of x = x / 2 + 1, so the first lanes add up to 2 each.
    chains = run(200) / 2
    assert chains == int(chains)
    assert flop % (2 * int(chains)) == 0
