"""The roofline at each memory, and what limits an operation in five steps."""

import numpy as np
import pytest

from gemmlab import kernels
from gemmlab.device import LEVELS, device, names
from gemmlab.model import predict
from gemmlab.model.layers import OPERATIONS, Batched, Layer, layer_norm, linear
from gemmlab.model.limiter import (
    BLOCKS_PER_SM,
    THREADS_PER_BLOCK,
    attainable,
    clocks,
    intensities,
    limiter,
    slopes,
)
from gemmlab.problem import Gemm

V100, H200 = device("v100"), device("h200")


@pytest.mark.parametrize("name", names())
def test_the_nearer_a_memory_the_lower_its_ridge(name):
    gpu = device(name)
    for dtype in gpu.peak:
        found = slopes(gpu, dtype)
        assert list(found) == [level for level in LEVELS if level != "l2" or gpu.l2_bandwidth]
        ridges = [slope.ridge for slope in found.values()]
        assert ridges == sorted(ridges, reverse=True)
        for level, slope in found.items():
            assert slope.ridge * slope.bandwidth == pytest.approx(gpu.peak[dtype])
            assert slope.bytes_per_flop * slope.ridge == pytest.approx(1)
            at_ridge = attainable(gpu, dtype, slope.ridge, level)
            assert at_ridge == pytest.approx(gpu.peak[dtype])


def test_the_roof_over_arrays():
    x = np.array([1.0, 10.0, 1000.0])
    assert attainable(V100, "float16", x).tolist() == [900e9, 9e12, 125e12]
    assert attainable(V100, "float16", x, "l2").tolist() == [3.1e12, 31e12, 125e12]
    with pytest.raises(ValueError, match=r"no bandwidth is known.*'l2'"):
        attainable(device("t4"), "float16", 1.0, "l2")


def test_without_a_kernel_only_the_traffic_of_dram_is_known():
    p = predict(Gemm(8192, 128, 8192, dtype="float16"), V100)
    assert intensities(p) == {"dram": p.intensity}
    assert p.flops_per_second == attainable(V100, "float16", p.intensity)


@pytest.mark.parametrize("kernel", kernels.LADDER, ids=lambda k: k.name)
def test_a_kernel_stays_below_the_roof_of_every_memory(kernel):
    p = predict(Gemm(1024, 1024, 1024), H200, kernel)
    found = intensities(p)
    assert list(found)[:3] == ["dram", "l2", "l1"]
    assert found["dram"] == p.intensity > found["l2"] >= found["l1"]
    assert ("shared" in found) == bool(kernel.shared_bytes(p.problem, p.tiling))
    for level, intensity in found.items():
        roof = attainable(H200, "float32", intensity, level)
        assert p.flops_per_second <= roof * (1 + 1e-12)


# --------------------------------------------------------------------------------- the five steps


def test_the_steps_of_a_large_and_a_small_batch():
    """4096 outputs: with a batch of 512 arithmetic limits a V100, with one sample its memory."""
    blocks = 4 * 80
    large = limiter(linear(4096, 1024, batch=512), V100, blocks, threads=256)
    small = limiter(linear(4096, 1024, batch=1), V100, blocks, threads=256)
    assert (large.limiter, small.limiter) == ("math", "memory")
    assert large.ops_per_byte == V100.ops_per_byte("float16")
    assert large.sms == V100.sms
    assert "where they are large" in large.steps[3]


@pytest.mark.parametrize("name", list(OPERATIONS)[2:])
def test_operations_that_are_no_products_are_limited_by_memory(name):
    found = limiter(OPERATIONS[name], V100, blocks=4096, threads=256)
    assert found.limiter == "memory"
    assert "memory, as a rule" in found.steps[3]


def test_too_few_blocks_or_threads_are_latency_at_any_intensity():
    layer = linear(4096, 1024, batch=512)
    least = BLOCKS_PER_SM * V100.sms
    assert limiter(layer, V100, least, THREADS_PER_BLOCK).parallel
    for blocks, threads in ((least - 1, 1024), (least, THREADS_PER_BLOCK - 1)):
        found = limiter(layer, V100, blocks, threads)
        assert not found.parallel
        assert found.limiter == "latency"
        assert "is not enough" in found.steps[2]
    norm = layer_norm(512, 1024)
    assert limiter(norm, V100, least - 1, 1024).limiter == "latency"


@pytest.mark.parametrize("kernel", kernels.LADDER, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("n", [32, 100, 4096])
def test_the_longest_clock_bounds_what_is_predicted(kernel, n):
    """Amounts by rates are the least: `predict` adds blocks that come whole, and requests."""
    p = predict(Gemm(n, n, n), H200, kernel)
    found = clocks(p, H200)
    assert max(found.values()) <= p.seconds * (1 + 1e-12)
    assert found.keys() == {"math", *intensities(p)}
    for level, intensity in intensities(p).items():
        rate = intensity * H200.bandwidth_of(level)
        assert p.flops / found[level] == pytest.approx(rate)


def test_a_memory_of_unknown_speed_has_no_clock():
    t4 = device("t4")
    assert t4.l2_bandwidth is None
    found = clocks(predict(Gemm(64, 64, 64), t4, kernels.tiled), t4)
    assert found.keys() == {"math", "dram", "l1", "shared"}


def test_the_level_and_the_format_count():
    """At L2's ratio of 40 FLOP/B an intensity of 60 is math's; at DRAM's, 139, memory's."""
    layer = Layer(60, 1)
    assert limiter(layer, V100, 1000, 256).limiter == "memory"
    assert limiter(layer, V100, 1000, 256, level="l2").limiter == "math"
    assert limiter(layer, V100, 1000, 256, dtype="float32").limiter == "math"
    double = Gemm(64, 64, 64, dtype="float64")
    for operation in (double, Batched(5, double)):
        assert limiter(operation, V100, 1000, 256).ops_per_byte == V100.ops_per_byte("float64")


def test_each_step_is_a_sentence_with_its_numbers():
    text = str(limiter(linear(4096, 1024, batch=512), V100, blocks=128, threads=256))
    assert [line[:2] for line in text.splitlines()] == ["1.", "2.", "3.", "4.", "5."]
    for words in ("80 SMs", "138.9 FLOP/B", "315.1 FLOP/B, above", "128 × 256 threads",
                  "320", "dot product", "limiter is latency"):  # fmt: skip
        assert words in text
    with pytest.raises(ValueError, match="blocks=0"):
        limiter(Layer(1, 1), V100, 0, 1)
