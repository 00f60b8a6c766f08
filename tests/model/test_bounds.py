"""Bounds of many products at once: the numbers that one prediction after the other gives."""

from dataclasses import replace

import numpy as np
import pytest

from gemmlab import kernels, records
from gemmlab.device import device, names
from gemmlab.formats import FORMATS
from gemmlab.model import predict, predict_all
from gemmlab.problem import Gemm, Gemms

FIELDS = ("flops", "seconds", "bottleneck", "limiter", "intensity", "flops_per_second")
SIZES = np.random.default_rng(7).integers(1, 20_000, (3, 200))


def assert_same(many, gpu):
    together = predict_all(many, gpu)
    for i in range(len(many)):
        alone = predict(many[i], gpu)
        for field in FIELDS:
            assert getattr(together, field)[i] == getattr(alone, field), (field, many[i])
        assert {x: t[i] for x, t in together.times.items()} == alone.times
        assert {x: b[i] for x, b in together.bytes.items()} == alone.bytes


@pytest.mark.parametrize("name", names())
def test_many_are_predicted_as_one_by_one(name):
    gpu = device(name)
    for dtype in FORMATS:
        if dtype in gpu.peak:
            assert_same(Gemms(*SIZES, dtype=dtype), gpu)


def test_every_field_of_a_problem_counts():
    assert_same(Gemms(*SIZES, alpha=2, beta=0.5, dtype="float16", out_dtype="float32"), "h200")
    assert_same(Gemms(*SIZES[:, :20], dtype="float16", accumulate="float16", layout="nt"), "h200")


def test_ties_and_large_products():
    """A tie goes to the resource that is named first; 2·165140³ is just below 2⁵³."""
    gpu = device("v100")
    even = replace(gpu, peak={"float32": 2.0}, dram_bandwidth=12.0)  # 1×1×1: 2 FLOP and 12 B
    assert predict_all(Gemms(1, 1, 1), even).bottleneck.tolist() == ["math"]
    assert_same(Gemms([1, 165_140], [1, 165_140], [1, 165_140]), even)


def test_a_hundred_thousand_at_once():
    n = np.arange(1, 100_001)
    found = predict_all(Gemms(4096, n, 4096, dtype="float16"), "h200")
    assert found.seconds.shape == (100_000,)
    for i in (0, 1, 477, 99_999):
        assert found.seconds[i] == predict(found.problems[i], "h200").seconds
    turns = np.flatnonzero(found.limiter[1:] != found.limiter[:-1])
    assert found.limiter[0] == "DRAM"
    assert found.limiter[-1] == "math"
    assert len(turns) == 1  # from there on, intensity exceeds the ratio of the device
    before, after = found.intensity[turns[0] : turns[0] + 2]
    assert before < device("h200").ops_per_byte("float16") <= after


def test_sizes_broadcast_and_are_checked():
    many = Gemms([[1], [2]], [3, 4, 5], 6)
    assert many.m.shape == many.n.shape == many.k.shape == (2, 3)
    assert many[1, 2] == Gemm(2, 5, 6)
    assert len(Gemms(7, 8, 9)) == 1
    assert len(Gemms([7, 7], 8, 9)) == 2
    with pytest.raises(ValueError, match="k=0 is too small"):
        Gemms([1, 2], 3, [4, 0])
    with pytest.raises(TypeError, match="n holds float64; use whole numbers"):
        Gemms(1, [1.0, 2.0], 3)
    with pytest.raises(ValueError, match="shape mismatch"):
        Gemms([1, 2], [1, 2, 3], 4)
    for sizes in ((165_141, [1, 165_141], 165_141), (1, [1, 2**50], 1)):
        with pytest.raises(ValueError, match=r"operations or bytes.* up to 2\^53"):
            Gemms(*sizes)
    with pytest.raises(TypeError, match="m holds object; use whole numbers"):
        Gemms(2**70, 1, 1)
    with pytest.raises(ValueError, match="float31"):
        Gemms(1, 1, 1, dtype="float31")
    with pytest.raises(ValueError, match="no peak for dtype 'tf32'"):
        predict_all(Gemms(1, 1, 1, dtype="tf32"), "v100")


@pytest.mark.parametrize(
    "kernel", [*kernels.TENSOR_CORE_TMA, *kernels.HOPPER], ids=lambda k: k.name
)
def test_no_kernel_for_hopper_is_faster_than_its_bound(kernel):
    """What L2 gives to threads alone would not be a bound of copies by the TMA."""
    for m in records.load("h200", kernel):
        bound = predict(m.problem, "h200", kernel, m.tiling).seconds
        assert bound < min(m.samples), (m.problem, m.tiling)


def test_copies_by_the_tma_have_a_bandwidth_of_their_own():
    gpu, problem = device("h200"), Gemm(4096, 4096, 4096, dtype="float16")
    for kernel, bandwidth in (
        (kernels.tma_stored, gpu.l2_tma_bandwidth),
        (kernels.mma_pipelined, gpu.l2_bandwidth),
    ):
        found = predict(problem, gpu, kernel)
        assert found.times["l2"] == found.bytes["l2"] / bandwidth
    unknown = replace(gpu, l2_tma_bandwidth=None)
    found = predict(problem, unknown, kernels.tma_stored)
    assert found.times["l2"] == found.bytes["l2"] / gpu.l2_bandwidth


def test_tiles_come_whole_where_blocks_take_several():
    """133 tiles: one SM has two, and does not share them."""
    gpu, kernel = device("h200"), kernels.tma_stored
    even, odd = (
        predict(Gemm(128 * tiles, 256, 4096, dtype="float16"), gpu, kernel).times["math"]
        for tiles in (gpu.sms, gpu.sms + 1)
    )
    assert odd == pytest.approx(2 * even)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((Gemm(8, 8, 8), "h200", "tiled"), "kernel='tiled' is not a Kernel"),
        (((8, 8, 8), "h200"), "problem=\\(8, 8, 8\\) is not a Gemm"),
        ((Gemm(8, 8, 8), None), "unknown device None"),
        ((Gemm(2**40, 1, 1), "h200", kernels.naive), "has 68,719,476,736 tiles of"),
    ],
)
def test_what_cannot_be_predicted_is_named(given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        predict(*given)
