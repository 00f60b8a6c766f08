"""The answers of chapter 05, found another way: by runs, by dealing out, by lines of records."""

import math
from collections import Counter

import pytest

from gemmlab import Gemm, Tiling, device, kernels, run
from gemmlab.course.ch05_tile_and_wave_quantization import (
    guesses as answers,
    q1_only_what_is_needed as only_what_is_needed,
)
from gemmlab.simt import simulate
from tests.support.record_lines import lines, nanoseconds

H200, A100 = device("h200"), device("a100_80gb")


def dealt(tiles, sms):
    """Tiles of each SM if they are dealt out one by one."""
    return Counter(tile % sms for tile in range(tiles))


def tiles(m, n, bm, bn):
    return len(range(0, m, bm)) * len(range(0, n, bn))


def test_column():
    """Eight times smaller, as the simulator counts it."""
    loads = [
        run(kernels.tiled, Gemm(32, n, 32), "simulator", tiling=Tiling.square(16)).counters[
            "shared_load_requests"
        ]
        for n in (32, 33)
    ]
    assert answers.column().number == loads[1] / loads[0]


def test_rest():
    """By the loads of the guarded kernel of exercise 05.1, in blocks of eight warps."""
    loads = []
    for n in (16, 17):
        a, b, c = Gemm(16, n, 16).operands()
        report = simulate(
            only_what_is_needed.build_guarded(16), (-(-n // 16), 1), (16, 16), 1, a, b, 0, c
        )
        loads.append(report.counters["shared_load_requests"])
    working = (loads[1] - loads[0]) / 16 / 2
    assert answers.rest().number == 8 - working


def test_tail():
    of_sms = dealt(tiles(2304, 1544, 256, 128), A100.sms)
    second = sum(count == 2 for count in of_sms.values())
    assert answers.tail().number == pytest.approx(100 * second / A100.sms, abs=0.01)


def test_following():
    def waves(n):
        return max(dealt(tiles(1408, n, 128, 256), H200.sms).values())

    last = next(n for n in range(3073, 20_000) if waves(n + 1) > 2)
    assert answers.following().number == last


def test_side_by_side():
    def rate(n):
        (line,) = (
            line
            for line in lines("pipelined", n)
            if line["tiling"]["block"] == [64, 64, 16] and line["tiling"].get("stages") == 3
        )
        return n**3 / nanoseconds(line)

    assert answers.side_by_side().number == round(100 * rate(1024) / rate(8192))


def test_stays():
    takes = max(dealt(tiles(1408, 3080, 128, 256), H200.sms).values())
    assert answers.stays().number == takes


def test_without():
    with_tile = len(dealt(tiles(1024, 1024, 128, 256), H200.sms))
    assert answers.without().number == H200.sms - with_tile


def test_split():
    of_a_step = 2 * 64 * 64 / (H200.peak_of("float32") / H200.sms)
    longest_part = math.ceil(8192 / H200.sms)
    sums = 4 * 64 * 64 * H200.sms / H200.l2_bandwidth + H200.launch_interval + H200.dram_latency
    parts = longest_part * of_a_step + sums
    assert answers.split().number == pytest.approx(8192 * of_a_step / parts)
    assert sums / parts == pytest.approx(2 / 3, abs=0.02)  # as it says


def test_loads():
    starts = [2 * 4098 * row for row in range(64)]
    widest = max(width for width in (2, 4, 8, 16) if all(s % width == 0 for s in starts))
    assert answers.loads().number == 16 / widest
