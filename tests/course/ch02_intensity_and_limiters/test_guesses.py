"""The answers of chapter 02, found another way: by counting, small kernels, and recorded lines."""

import json
import statistics

import numpy as np
import pytest

from gemmlab import cuda, device, kernels, run, simulate
from gemmlab.course.ch02_intensity_and_limiters import guesses as answers
from gemmlab.problem import Gemm
from tests.support.record_lines import H200

GPU = device("h200")


def nanoseconds(m, n, k):
    """The library's median time [ns], from the line of its file."""
    lines = map(json.loads, (H200 / "cublas.jsonl").read_text("utf-8").splitlines())
    (line,) = (line for line in lines if line.get("problem") == {"m": m, "n": n, "k": k})
    return line["shortest_ns"] + statistics.median(line["over_ns"])


def launch(name):
    """The row of one launch in the file of the microbenchmarks."""
    rows = json.loads((H200 / "microbenchmarks.json").read_text("utf-8"))["launches"]
    (row,) = (row for row in rows if row["name"] == name)
    return row


def test_hidden():
    elements = 8192 * 8192 + 8192 * 128 + 8192 * 128
    dram = 4 * elements / GPU.dram_bandwidth
    assert answers.hidden().number == pytest.approx(100 * dram / nanoseconds(8192, 128, 8192) * 1e9)


def test_free():
    def relu(x, y):
        i = cuda.grid(1)
        y[i] = max(x[i], 0)

    counted = simulate(relu, 1, 32, np.ones(32, np.float32), np.zeros(32, np.float32)).counters
    each = (counted["global_load_bytes"] + counted["global_store_bytes"]) / 32
    seconds = each / GPU.dram_bandwidth
    assert answers.free().number == pytest.approx(seconds * GPU.peak_of("float32"))


def test_fused():
    moved = {"bias": ("x", "y"), "relu": ("x", "y"), "add": ("x", "r", "y"), "all": ("x", "r", "y")}
    arrays = {name: len(names) for name, names in moved.items()}
    together = arrays.pop("all")
    assert answers.fused().number == sum(arrays.values()) / together


def test_pool():
    side = 64
    inputs, operations = set(), 0
    for row in range(side):
        for column in range(side):
            for near in range(9):
                inputs.add(((row + near // 3) % side, (column + near % 3) % side))
                operations += 1
    assert answers.pool().number == operations / (2 * len(inputs) + 2 * side * side)


def test_shared():
    """Counted on a small product, whose steps are those of a large one."""
    p, tile = Gemm(256, 256, 256), kernels.tiled.default
    counted = run(kernels.tiled, p, backend="simulator", tiling=tile).counters
    passed = 128 * (counted["shared_load_wavefronts"] + counted["shared_store_wavefronts"])
    speed = p.flops / passed * GPU.shared_bandwidth / 1e12
    assert answers.shared().number == pytest.approx(speed, rel=0.01)


def test_narrow():
    def endless(width):
        batch = 10**9
        moved = 2 * (width * width + 2 * width * batch)
        return 2 * width * width * batch / moved

    widest = max(w for w in range(1, 1000) if endless(w) < GPU.ops_per_byte("float16"))
    assert answers.narrow().number == pytest.approx(widest, abs=1)


def test_attention():
    words, size = 2048, 64
    q = k = v = result = words * size
    scores = words * words
    apart = (q + k + scores) + (scores + scores) + (scores + v + result)
    assert answers.attention().number == apart / (q + k + v + result)


def test_flight():
    seconds = GPU.dram_latency
    arriving = GPU.dram_bandwidth * seconds
    assert answers.flight().number == pytest.approx(arriving / 132 / 2048)


def test_pieces():
    row = launch("dram_read_32")
    assert row["bytes"] / row["blocks"] / 256 == 4
    assert answers.pieces().number == pytest.approx(
        statistics.median(row["ns"]) / row["launches"] / 1e3
    )
