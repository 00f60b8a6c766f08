"""The numbers of NVIDIA's GPU Performance Background User's Guide, computed.

Rules of thumb follow from no model and stand as constants where they are used: four blocks an SM, a
few hundred threads (`gemmlab.model.limiter`). That launches of fewer than 300 blocks should be
looked at for tails is a third, which nothing here uses.
"""

from dataclasses import replace

import numpy as np
import pytest

from gemmlab import kernels
from gemmlab.device import device
from gemmlab.model import predict, predict_all
from gemmlab.model.layers import OPERATIONS, Layer, layer_norm, max_pooling, relu
from gemmlab.model.limiter import intensities, limiter, slopes
from gemmlab.model.quantization import quantization
from gemmlab.problem import Gemm, Gemms
from gemmlab.tiling import Tiling
from tests.support.as_printed import Number, agrees, each

V100, A100 = device("v100"), device("a100_80gb")
LARGE, SMALL, POOLING, RELU, NORM = OPERATIONS.values()
ONE_THREAD = Layer(flops=16000, bytes=16)


def rate(dtype):
    """SMs × clock × operations a cycle [TFLOP/s]."""
    return A100.sms * A100.clock_of(dtype) * A100.flop_per_cycle_per_sm[dtype] / 1e12


def twelve_blocks():
    """Figure 3: 12 blocks, one at a time on each of 8 SMs."""
    return quantization(Gemm(12 * 16, 16, 16), replace(A100, sms=8), (16, 16), per_sm=1)


NUMBERS = [
    Number("architecture, SMs of an A100", "108", lambda: A100.sms),
    Number("architecture, MB of its L2", "40", lambda: A100.l2_bytes / 2**20),
    Number("architecture, GB/s of its memory", "2039", lambda: A100.dram_bandwidth / 1e9),
    Number("architecture, GB of its memory", "80", lambda: A100.dram_bytes / 1e9),
    Number("architecture, GHz of its clock", "1.41", lambda: A100.clock / 1e9),
    Number("architecture, TF32 TFLOP/s", "156", lambda: rate("tf32")),
    Number("architecture, FP16 TFLOP/s", "312", lambda: rate("float16")),
    Number(
        "architecture, 4×4 blocks: FMAs of 8 Tensor Cores",
        "64",
        lambda: V100.flop_per_cycle_per_sm["float16"] / 2 / 8,
    ),
    Number("figure 3, waves", "2", lambda: twelve_blocks().waves),
    Number("figure 3, whole waves' use in percent", "100", lambda: 100 * 8 / twelve_blocks().wave),
    Number("figure 3, second wave's use in percent", "50", lambda: 100 * twelve_blocks().tail_use),
    Number("performance, TFLOP/s of V100", "125", lambda: V100.peak_of("float16") / 1e12),
    Number("performance, GB/s of V100", "900", lambda: V100.dram_bandwidth / 1e9),
    Number("performance, TB/s of its L2", "3.1", lambda: V100.l2_bandwidth / 1e12),
    Number("performance, ops:byte at L2", "40", lambda: V100.ops_per_byte("float16", "l2")),
    Number("performance, ops:byte at DRAM", "139", lambda: V100.ops_per_byte("float16")),
    Number("table 1, linear layer, batch of 512", "315", lambda: LARGE.intensity),
    Number("table 1, linear layer, batch of 1", "1", lambda: SMALL.intensity),
    Number("table 1, max pooling", "2.25", lambda: POOLING.intensity),
    Number("table 1, ReLU", "0.25", lambda: RELU.intensity),
    Number("performance, one thread's FLOP/B", "1000", lambda: ONE_THREAD.intensity),
]


@each(NUMBERS)
def test_number(value, printed):
    assert agrees(value(), printed)


def test_figure_3_the_more_waves_the_smaller_the_tail():
    """After w whole waves, a tail of one block leaves the SMs busy for w/(w + 1) of the time."""
    blocks = 108 * np.arange(1, 12) + 1
    q = quantization(Gemms(16 * blocks, 16, 16), A100, (16, 16), per_sm=1)
    assert q.waves.tolist() == list(range(2, 13))
    assert np.all(np.diff(q.wave_use) > 0)
    assert q.wave_use == pytest.approx(np.arange(1, 12) / np.arange(2, 13), rel=1e-2)


def test_performance_time_is_the_longer_of_math_and_memory():
    """Math limits exactly where intensity exceeds the ops:byte ratio."""
    many = Gemms(*np.random.default_rng(2).integers(1, 9000, (3, 500)), dtype="float16")
    found = predict_all(many, V100)
    longer = np.maximum(
        many.flops / V100.peak_of("float16"), many.bytes / V100.dram_bandwidth
    )  # fmt: skip
    assert found.seconds.tolist() == longer.tolist()
    by_ratio = found.intensity > V100.ops_per_byte("float16")
    assert ((found.limiter == "math") == by_ratio).all()
    assert 0 < by_ratio.sum() < len(many)


@pytest.mark.parametrize("size", [1, 64, 4096])
def test_table_1_sizes_of_the_others_do_not_matter(size):
    assert (max_pooling(size).intensity, relu(size).intensity) == (2.25, 0.25)
    assert layer_norm(512, size).intensity < 10


def test_table_1_limits():
    found = [
        limiter(x, V100, blocks=4 * V100.sms, threads=256).limiter for x in OPERATIONS.values()
    ]
    assert found == ["math", "memory", "memory", "memory", "memory"]
    assert [predict(x, V100).limiter for x in (LARGE, SMALL)] == ["math", "DRAM"]
    for operation in (POOLING, RELU, NORM):  # even from L2
        assert operation.intensity < slopes(V100, "float16")["l2"].ridge


def test_performance_one_thread_is_limited_by_latency():
    found = limiter(ONE_THREAD, V100, blocks=1, threads=1)
    assert found.intensity > found.ops_per_byte
    assert found.limiter == "latency"
    alone = predict(Gemm(1, 1, 8000), V100, kernels.naive, Tiling(block=(1, 1, 1)))
    assert alone.flops == ONE_THREAD.flops
    assert alone.limiter == "latency"
    assert alone.flops_per_second < 1e-4 * V100.peak_of("float32")


def test_performance_reading_inputs_again_lowers_intensity():
    naive = intensities(predict(Gemm(1024, 1024, 1024), V100, kernels.naive))
    assert naive["l1"] < naive["l2"] < naive["dram"]


def test_summary_four_blocks_an_sm():
    assert limiter(LARGE, V100, blocks=320, threads=256).parallel
    assert not limiter(LARGE, V100, blocks=319, threads=256).parallel
