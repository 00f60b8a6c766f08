"""The answers of chapter 10, found another way: by dealing out, by trying, by lines of records."""

import json
from itertools import permutations

import numpy as np
import pytest

from gemmlab import device
from gemmlab.course.ch10_split_k import guesses as answers
from tests.support.paths import ROOT
from tests.support.record_lines import lines, nanoseconds

H200 = device("h200")
TILES, STEPS = (1024 // 128) * (1024 // 256), 8192 // 16


def busiest(parts):
    """Steps of the SM that has most, if blocks are dealt out one by one."""
    sms = [0] * H200.sms
    for block in range(TILES * parts):
        part = block // TILES
        sms[block % H200.sms] += (part + 1) * STEPS // parts - part * STEPS // parts
    return max(sms)


def recorded(parts):
    """Nanoseconds of *split_k* for 1024×1024×8192."""
    (line,) = (
        line
        for line in lines("split_k", 1024, 1024, 8192)
        if line["tiling"].get("split", 1) == parts
    )
    return nanoseconds(line)


def test_idle():
    assert answers.idle().number == pytest.approx(100 * TILES / H200.sms, abs=0.1)


def test_traffic():
    workspace = np.empty((8, 1024, 1024), np.float32)
    assert answers.traffic().number == round(2 * workspace.nbytes / 1e6, 1)


def test_best():
    of_waves = {parts: busiest(parts) for parts in range(1, 200)}
    least = min(of_waves.values())  # some splits into many parts gain little, and store more
    assert answers.best().number == min(p for p, steps in of_waves.items() if steps <= 1.05 * least)
    times = {parts: recorded(parts) for parts in (1, 2, 3, 4, 5, 6, 8, 12, 16)}
    assert answers.best().number == min(times, key=times.get)


def test_one_more():
    assert answers.one_more().number == round(recorded(5) / recorded(4), 2)
    assert busiest(5) / busiest(4) == pytest.approx(answers.one_more().number, rel=0.05)


def test_same():
    rows = json.loads((ROOT / "gemmlab/recorded/h200/microbenchmarks.json").read_text("utf-8"))
    cycles = {
        which: row["cycles"][0][0]
        for row in rows["loops"]
        for which in ("own", "same")
        if (row["name"], row["warps"]) == (f"global_red_f32_{which}_rate", 32)
    }
    assert answers.same().number == round(cycles["same"] / cycles["own"])


def test_orders():
    """Numbers of which all sums in float32 differ that can."""
    rng, most = np.random.default_rng(0), 0
    for _ in range(2000):
        parts = rng.standard_normal(4).astype(np.float32) * np.float32(10.0) ** rng.integers(-3, 4)
        sums = set()
        for order in permutations(parts.tolist()):
            total = np.float32(0)
            for part in order:
                total = np.float32(total + np.float32(part))
            sums.add(float(total))
        most = max(most, len(sums))
    assert most <= answers.orders().number
    symbols = set()
    for a, b, c, d in permutations("abcd"):
        symbols.add((frozenset((a, b)), c, d))
    assert answers.orders().number == len(symbols)


def test_stream():
    total = 11 * 13 * (4096 // 8)
    shares = [0] * H200.sms
    for step in range(total):
        shares[step % H200.sms] += 1
    assert answers.stream().number == round(2 * (4096 // 8) / max(shares), 2)


def test_pieces():
    owner = np.arange(512 * 512) * H200.sms // (512 * 512)
    shares = np.array([len(set(tile)) for tile in owner.reshape(512, 512).tolist()])
    assert answers.pieces().number == shares[shares > 1].sum()
