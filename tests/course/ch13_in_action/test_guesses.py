"""The answers of chapter 13, found another way: by counting, by training, by lines of records."""

import json

import numpy as np
import pytest

from gemmlab.course.ch13_in_action import digits, guesses as answers, network, step
from tests.support.paths import ROOT

RECORDED = ROOT / "gemmlab/recorded/h100_sxm"
TRAINING, BLOCK = (
    json.loads((RECORDED / f"{name}.json").read_text("utf-8")) for name in ("training", "block")
)


def step_of(batch, fused):
    return next(s for s in TRAINING["steps"] if (s["batch"], s["fused"]) == (batch, fused))


def right_after(epochs, rounded, scale):
    """Percentage of the test after a training that is written out for two layers."""
    taught, test = digits.load()
    (w, v), (b, c) = (
        [x.copy() for x in arrays]
        for arrays in (network.initial((64, 32, 10)).weights, network.initial((64, 32, 10)).biases)
    )
    draw = np.random.default_rng(0)
    for _ in range(epochs):
        order = draw.permutation(1437)
        for at in range(0, 1437 - 63, 64):
            x, label = taught.pixels[:, order[at : at + 64]], taught.labels[order[at : at + 64]]
            h = np.maximum(rounded(w) @ rounded(x) + b, 0)
            s = rounded(v) @ rounded(h) + c
            p = np.exp(s - s.max(axis=0))
            g = (p / p.sum(axis=0) - np.eye(10, dtype=np.float32)[:, label]) / 64 * scale
            g = g.astype(np.float32)
            back = rounded(v).T @ rounded(g) * (h > 0)
            v -= np.float32(0.5 / scale) * (rounded(g) @ rounded(h).T)
            c -= np.float32(0.5 / scale) * g.sum(axis=1, keepdims=True)
            w -= np.float32(0.5 / scale) * (rounded(back) @ rounded(x).T)
            b -= np.float32(0.5 / scale) * back.sum(axis=1, keepdims=True)
    said = (v @ np.maximum(w @ test.pixels + b, 0) + c).argmax(axis=0)
    return 100 * (said == test.labels).mean()


def test_count():
    some = digits.load()[0].some(slice(0, 64))
    of = step.memory(network.initial((64, 512, 512, 10)), some.pixels, some.targets)
    assert answers.count().number == sum(one.problem is not None for one in step.launches(of, 0.1))


def test_epoch():
    assert answers.epoch().number == pytest.approx(right_after(1, lambda x: x, 1), abs=2)


def test_survive():
    def half(x):
        return x.astype(np.float16).astype(np.float32)

    assert answers.survive().number == pytest.approx(right_after(4, half, 2.0**-16), abs=3)


def test_batch():
    few, many = step_of(64, True)["seconds"], step_of(512, True)["seconds"]
    assert answers.batch().number == pytest.approx(many / few, abs=0.005)


def test_fuse():
    apart, fused = step_of(64, False)["seconds"], step_of(64, True)["seconds"]
    assert answers.fuse().number == pytest.approx(1e6 * (apart - fused), abs=0.05)


def test_split():
    (one,) = (s for s in TRAINING["splits"] if (s["name"], s["batch"]) == ("forward 2", 64))
    assert one["parts"]["tiling"]["split"] == 16
    times = one["whole"]["seconds"] / one["parts"]["seconds"]
    assert answers.split().number == pytest.approx(times, abs=0.05)


def test_torch():
    plain, ours = (
        next(e["seconds"] for e in TRAINING["eager"] if e["way"] == way)
        for way in ("PyTorch, FP32", "gemmlab.matmul")
    )
    assert answers.torch().number == pytest.approx(plain / ours, abs=0.005)


def test_operations():
    """Of a layer: what three products of d×d weights and n characters take, divided by both."""
    d, n = 512, 8192
    three = [(n, d, d), (n, d, d), (d, d, n)]
    assert answers.operations().number == sum(2 * x * y * z for x, y, z in three) / (d * d * n)


def test_lookup():
    (seconds,) = (
        k["seconds"]
        for s in BLOCK["steps"]
        for k in s["kernels"]
        if "indexing_backward" in k["name"]
    )
    assert answers.lookup().number == round(1e6 * seconds)
