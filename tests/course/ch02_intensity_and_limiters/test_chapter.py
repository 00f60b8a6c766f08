"""What the prose of chapter 02 says in numbers, held against records and models."""

import ast
import json
from functools import cache

import numpy as np
import pytest
from numpy import float32

from gemmlab import Gemm, cuda, device, kernels, predict, run
from gemmlab.compiled.forecast.kernel import predict_time
from gemmlab.course.ch02_intensity_and_limiters.q1_fused_epilogue import build_epilogue
from gemmlab.course.ch02_intensity_and_limiters.q3_shared_weights import build_layer
from gemmlab.measure import microbenchmarks as results
from gemmlab.model.layers import OPERATIONS, Attention, Convolution, Linear
from gemmlab.model.limiter import BLOCKS_PER_SM, attainable, clocks, intensities, limiter, slopes
from tests.course.answers import cell
from tests.support.paths import ROOT

GPU = device("h200")
CUBE, WIDE = (2048, 2048, 2048), (8192, 128, 8192)
SMALL, VECTOR = (256, 256, 256), (4096, 1, 4096)
PEAK = GPU.peak_of("float32")
ONE_LAUNCH, WHOLE_BATCH = 2.3, 2.7  # times as fast, by compiled code


@cache
def library(*size):
    return run(kernels.cublas, Gemm(*size), backend="recorded")


@cache
def at_4096(kernel):
    """Recorded speed of a rung [FLOP/s], and its intensity at each memory."""
    p = Gemm(4096, 4096, 4096)
    speed = run(kernel, p, backend="recorded").flops_per_second
    return speed, intensities(predict(p, GPU, kernel))


@cache
def own(name):
    """A kernel of the chapter, from the cell that defines it."""
    notebook = ROOT / "notebooks" / "02_intensity_and_limiters.ipynb"
    for found in json.loads(notebook.read_text("utf-8"))["cells"]:
        text = "".join(found["source"])
        for node in ast.parse(text).body if found["cell_type"] == "code" else ():
            if isinstance(node, ast.FunctionDef) and node.name == name:
                source = ast.get_source_segment(text, node)
                return cell(source, {"cuda": cuda, "float32": float32})[name]
    raise LookupError(name)


def near(number, other, within=0.005):
    assert number == pytest.approx(other, rel=within)


# ---------------------------------------------------------------------------------------- the hook


def test_the_third_pair():
    one, other = library(1024, 1024, 1024), library(4096, 4096, 64)
    near(other.problem.bytes / one.problem.bytes, 5.5)
    near(100 * (other.seconds / one.seconds - 1), 12, within=0.03)


def test_a_slope_is_no_forecast():
    vector = library(*VECTOR)
    near(1e6 * vector.seconds, 32.9)
    near(1e6 * predict(vector.problem, GPU).times["dram"], 14.0)
    near(1e6 * predict(Gemm(*CUBE), GPU).times["math"], 256.8, 1e-3)


def test_a_copy_and_what_layer_normalization_does():
    near(GPU.dram_copy_bandwidth / 1e12, 4.23, within=0.001)
    near(100 * GPU.dram_copy_bandwidth / GPU.dram_bandwidth, 88)
    near(OPERATIONS["layer normalization"].intensity * 2 * 2, 7, within=0.01)


def test_shared_memory_passes_seventeen_times_what_l1_does():
    of_tiled, of_naive = at_4096(kernels.tiled)[1], at_4096(kernels.naive)[1]
    near(of_tiled["l1"] / of_tiled["shared"], 17, within=0.01)
    near(of_naive["l2"], of_tiled["l2"])


def test_two_clocks_are_longer_than_what_was_recorded():
    for name, each in (("dram_read_32", 4), ("dram_read_64", 8)):
        seen, found = streams(name, each)
        assert 1 < max(found.values()) / seen < 1.05, (name, seen, found)


def test_the_hook():
    assert [f"{library(*size).seconds * 1e6:.1f}" for size in (CUBE, WIDE)] == ["342.6", "342.4"]
    assert round(Gemm(*VECTOR).bytes / Gemm(*SMALL).bytes) == 85
    near(Gemm(*WIDE).bytes / Gemm(*CUBE).bytes, 5.5)
    near(library(*VECTOR).seconds / library(*SMALL).seconds, 3, 0.03)


@pytest.mark.parametrize("pair", [(CUBE, WIDE), (SMALL, VECTOR), ((1024,) * 3, (4096, 4096, 64))])
def test_a_pair_does_the_same_work(pair):
    assert Gemm(*pair[0]).flops == Gemm(*pair[1]).flops
    assert Gemm(*pair[0]).bytes < Gemm(*pair[1]).bytes


def test_the_clocks():
    assert (GPU.dram_bandwidth, round(Gemm(*WIDE).bytes / 1e6)) == (4.8e12, 277)
    assert round(library(*WIDE).seconds * 1e6) == 342
    times = {size: predict(Gemm(*size), GPU).times for size in (CUBE, WIDE, SMALL, VECTOR)}
    assert times[CUBE]["math"] == times[WIDE]["math"] > times[WIDE]["dram"]
    near(times[VECTOR]["dram"] / times[VECTOR]["math"], 28, 0.02)
    both = times[SMALL]["math"] + times[SMALL]["dram"]
    assert both < library(*SMALL).seconds / 10


def test_shares_of_the_roof():
    reached = [
        100 * predict(m.problem, GPU).seconds / m.seconds
        for m in (library(*size) for size in (VECTOR, CUBE, WIDE, SMALL))
    ]
    # 256³ is compared with its roof, and not with a trip to DRAM
    assert predict(Gemm(*SMALL), GPU).limiter == "math"
    assert list(map(round, reached)) == [42, 75, 75, 5]


# -------------------------------------------------------------------------------------- operations


def test_a_copy():
    copied = results.load("h200").launch("dram_copy_128")
    near(copied.bytes_per_second, 4.22e12)
    near(copied.bytes_per_second, GPU.dram_copy_bandwidth)
    assert round(copied.bytes / 2 / 1e6) == 537
    assert round(100 * copied.bytes_per_second / GPU.dram_bandwidth) == 88
    assert PEAK == 66.9e12


def test_three_launches_and_one():
    floats = {"bias": 2, "relu": 2, "residual": 3}
    assert 4 * sum(floats.values()) == 28
    near(28 / 12, 2.3, 0.02)


@pytest.mark.numba_cuda  # whose code the numbers are of
@pytest.mark.ptxas
@pytest.mark.slow
def test_what_compiled_code_says_of_one_launch():
    x, r, y = (np.zeros(1 << 24, np.float32) for _ in range(3))
    bias, launch = np.zeros(64, np.float32), ((1 << 24) // 256, 256)
    apart = [
        predict_time(own(name), *launch, *arguments).seconds
        for name, *arguments in (
            ("add_bias", x, bias, y),
            ("relu", x, y),
            ("add_residual", x, r, y),
        )
    ]
    together = predict_time(build_epilogue(), *launch, x, bias, r, y).seconds
    near(sum(apart) / together, ONE_LAUNCH, 0.05)
    assert x.size == 4096**2
    near(together, 80e-6, 0.02)
    near(12 * x.size / GPU.dram_copy_bandwidth, 48e-6, 0.01)


def test_what_lies_above_the_ratios():
    ratios = [device(name).ops_per_byte("float16") for name in ("v100", "a100_80gb", "h200")]
    assert ratios == sorted(ratios)
    above = [name for name, it in OPERATIONS.items() if it.intensity > max(ratios)]
    assert above == ["linear layer, batch of 512"]
    low = [it.intensity for name, it in OPERATIONS.items() if "linear" not in name]
    assert min(ratios) / max(low) > 60
    assert max(low) / min(ratios) < 0.02
    assert all(it.intensity < max(ratios) for it in OPERATIONS.values() if it.intensity < 300)


# ---------------------------------------------------------------------------------------- memories


def test_tiled_meets_one_slope():
    speed, found = at_4096(kernels.tiled)
    assert {level: round(x, 2) for level, x in found.items()} == {
        "dram": 682.67, "l2": 3.99, "l1": 3.99, "shared": 0.24,
    }  # fmt: skip
    near(found["dram"] / GPU.ops_per_byte("float32"), 50, 0.03)
    assert 1 / 9 < speed / PEAK < 1 / 8
    roofs = {level: attainable(GPU, "float32", found[level], level) for level in found}
    near(speed, roofs["shared"], 0.01)
    assert min(roofs["dram"], roofs["l2"]) > 4 * speed
    near(GPU.shared_bandwidth, 33.5e12)


def over_its_bound(name, n):
    """The longest clock of a rung, and the recorded time as a multiple of it."""
    kernel = kernels.get(name)
    m = run(kernel, Gemm(n, n, n), backend="recorded")
    found = clocks(predict(m.problem, GPU, kernel), GPU)
    longest = max(found, key=found.get)
    return longest, round(m.seconds / found[longest], 1)


def test_the_answers_to_the_explorer_of_rungs():
    assert over_its_bound("naive", 4096) == ("l1", 4.0)
    assert over_its_bound("coalesced", 4096) == ("l1", 5.5)
    assert [over_its_bound(name, 4096)[0] for name in ("tiled", "register_tiled")] == ["shared"] * 2
    rungs = [over_its_bound(name, 4096) for name in ("vectorised", "warp_tiled", "pipelined")]
    assert rungs == [("math", 2.1), ("math", 1.7), ("math", 1.3)]
    sizes = (4096, 2048, 1024, 512, 256)
    assert [over_its_bound("tiled", n)[1] for n in sizes] == [1.0, 1.0, 1.1, 1.4, 3.8]
    at_1024 = run(kernels.tiled, Gemm(1024, 1024, 1024), backend="recorded")
    found = clocks(predict(at_1024.problem, GPU, kernels.tiled), GPU)
    assert at_1024.seconds < 1.1 * max(found.values())  # from 512 on "more than a tenth longer"


def test_ratios_of_a_v100():
    ridges = [round(slope.ridge) for slope in slopes(device("v100"), "float16").values()]
    assert ridges == [139, 40, 8, 8]


# ------------------------------------------------------------------------------------------ layers


def test_three_products_of_a_layer():
    layer = Linear(4096, 1024, 512)
    passes = layer.forward, layer.activation_gradient, layer.weight_gradient
    assert {round(p.intensity) for p in passes} == {315}
    assert len({tuple(sorted((p.m, p.n, p.k))) for p in passes}) == 1
    assert [(p.m, p.n, p.k).index(512) for p in passes] == [1, 1, 2]
    assert {p.flops for p in passes} == {layer.forward.flops}


def test_the_answers_to_the_explorer():
    assert round(GPU.ops_per_byte("float16"), 1) == 206.1
    for dtype, least in (("float16", 230), ("float32", 29)):
        verdicts = [predict(Gemm(4096, n, 4096, dtype=dtype), GPU).limiter for n in
                    (least - 1, least)]  # fmt: skip
        assert verdicts == ["DRAM", "math"]
    near(GPU.peak_of("float16") / PEAK, 15, 0.02)


@pytest.mark.numba_cuda  # whose code the numbers are of
@pytest.mark.ptxas
@pytest.mark.slow
def test_what_compiled_code_says_of_a_batch():
    weights, inputs, outputs = (
        np.zeros(shape, np.float32) for shape in ((16384, 1024), (1024, 8), (16384, 8))
    )
    launch = 16384 // 128, 128, weights, inputs, outputs
    slow, fast = (
        predict_time(kernel, *launch).seconds
        for kernel in (own("column_by_column"), build_layer(8))
    )
    near(slow / fast, WHOLE_BATCH, 0.07)


def test_attention():
    text, word = (Attention(8, 16, queries, 2048, 64) for queries in (2048, 1))
    ratio = GPU.ops_per_byte("float16")
    assert max(text.scores.intensity, text.softmax.intensity, text.values.intensity) < ratio
    assert round(text.fused.intensity) == 1044
    near(text.fused.intensity / ratio, 5, 0.02)
    assert max(word.apart.intensity, word.fused.intensity, word.softmax.intensity) < 2


def test_convolution():
    c = Convolution(32, 64, 56, 56, 128, (3, 3), padding=1)
    image = 2 * 32 * 64 * 56 * 56
    assert c.unrolled_bytes == 9 * image
    assert (round(c.forward.intensity), round(c.intensity)) == (105, 383)
    assert c.forward.intensity < GPU.ops_per_byte("float16") < c.intensity
    assert c.forward.flops == 2 * 32 * 56 * 56 * 128 * 64 * 9


# ----------------------------------------------------------------------------------------- latency


def test_five_steps():
    steps = limiter(Gemm(*SMALL), GPU, blocks=256, threads=256)
    assert (256 // 16) ** 2 == 256
    assert (steps.limiter, BLOCKS_PER_SM) == ("latency", 4)
    assert round(steps.intensity) == 43
    near(steps.intensity / steps.ops_per_byte, 3, 0.03)
    assert round(library(*SMALL).seconds * 1e6, 1) == 10.9
    near(predict(Gemm(*SMALL), GPU).times["math"], 0.5e-6, 0.01)


def test_parts_of_the_shortest_product():
    measured = results.load("h200")
    assert round(measured.launch("empty_alone").seconds * 1e6, 1) == 2.7
    fma = measured.loop("ffma_latency", warps=1)
    assert round(256 * fma.each / fma.clock_hz * 1e6, 1) == 0.5
    assert round(GPU.dram_latency * 1e6, 1) == 0.3


def test_what_keeps_dram_busy():
    assert (round(GPU.dram_latency * 1e9), GPU.sms, GPU.threads_per_sm) == (337, 132, 2048)


def streams(name, each):
    """Recorded time of a stream, and the three that the chapter predicts [s]."""
    launch = results.load("h200").launch(name)
    return launch.seconds, {
        "DRAM": launch.bytes / GPU.dram_bandwidth,
        "bytes under way": launch.bytes / (each * GPU.threads) * GPU.dram_latency,
        "starting blocks": launch.blocks * GPU.hand_out_interval,
    }


def test_the_longest_clock_is_near_four_bars_of_five():
    near_it = {
        "dram_read_128": 16, "dram_read_64": 8, "dram_read_32": 4, "dram_read_32_4_each": 16,
    }  # fmt: skip
    for name, each in near_it.items():
        seen, found = streams(name, each)
        near(max(found.values()), seen, 0.1)
    seen, found = streams("dram_read_32_1024_threads", 4)
    near(seen / max(found.values()), 2, 0.05)
    assert GPU.threads_per_sm // 1024 == 2


def test_both_kinds_of_latency():
    _, found = streams("dram_read_32", 4)
    assert found["DRAM"] < found["bytes under way"] < found["starting blocks"]
    small, four, wide = (
        results.load("h200").launch(f"dram_read_{name}") for name in ("32", "32_4_each", "128")
    )
    assert small.blocks == 4 * four.blocks == 4 * wide.blocks == 524_288
    assert (round(wide.bytes / 1e6), round(wide.seconds * 1e6)) == (537, 117)
    assert {launch.bytes for launch in (small, four, wide)} == {1 << 29}
