"""The answers of reviews, found from the numbers that a question quotes, without the models."""

import re
from collections.abc import Callable
from math import ceil, floor

import numpy as np

NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?!\w)")


def numbers(text: str) -> list[float]:
    """The numbers of a text in their order, without those that are parts of names."""
    return [float(one.replace(",", "")) for one in NUMBER.findall(text)]


def _bytes(text: str) -> int:
    return {"float16": 2, "float32": 4, "float64": 8}[re.search(r"float\d\d", text)[0]]


def _conflicts(words: int, rows: int) -> int:
    """How many of so many rows begin in the busiest of 32 banks."""
    return max(np.bincount(np.arange(rows) * words % 32))


def _batch(width, peak, bandwidth):
    ratio = peak / bandwidth
    return ceil(ratio * width / (width - 2 * ratio))


def _narrower(m, n, k, slow, fast, bandwidth):
    flops, numbers_moved = 2 * m * n * k, m * k + k * n + m * n
    times = [
        max(flops / peak, size * numbers_moved / bandwidth) for peak, size in ((slow, 4), (fast, 2))
    ]
    return times[0] / times[1]


def _strided(flops, size, stride):
    starts = np.arange(32) * stride * size
    return flops / (32 * len({x // 32 for x in starts}) / 32)


def _stands_still(step, fraction_bits):
    return step * 2 ** (fraction_bits + 1)


def _low(x):
    high = float(np.float16(x))
    return float(np.float16((x - high) * 2048))


def _fmas(text: str) -> int:
    m, n, k = map(int, re.search(r"m(\d+)n(\d+)k(\d+)", text).groups())
    return m * n * k


# key -> a function of the text and its numbers
FOUND: dict[str, Callable] = {
    "01.row_in_sectors": lambda t, k, _: k * _bytes(t) / 32,
    "01.moved_by_loops": lambda t, m, n, k, *_: 2 * m * n * k * 32 / (4 * (m * k + k * n)),
    "01.share_of_peak": lambda t, n, _m, _k, ms, peak: 100 * 2 * n**3 / (ms / 1e3) / (peak * 1e12),
    "02.fused": lambda t, m, n, k, *_: 1 + 2 * m * n / (m * k + k * n + m * n),
    "02.batch": lambda t, *x: _batch(x[0], x[-2], x[-1]),
    "02.busy_dram": lambda t, m, n, k, us, _p, bw: 4e2 * (m * k + k * n + m * n) / bw / us / 1e6,
    "03.strided_intensity": lambda t, flops, size, stride: _strided(flops, size, int(stride)),
    "03.idle_threads": lambda t, m, n, x, y: ceil(m / y) * y * ceil(n / x) * x - m * n,
    "03.warps_in_flight": lambda t, bw, ns, sms, size: ceil(bw * ns * 1e3 / sms / (32 * size)),
    "04.tile_intensity": lambda t, m, n, size: 2 * m * n / (size * (m + n)),
    "04.padded_column": lambda t, words, *_: _conflicts(int(words), 32),
    "04.shared_bound": lambda t, loads, fmas: 100 * 32 / fmas / loads,
    "05.used_by_waves": lambda t, m, n, x, y, sms: (
        100 * (m / x * n / y) / (ceil(m / x * n / y / sms) * sms)
    ),
    "05.padded_work": lambda t, m, n, x, _: 100 - 100 * m * n / (ceil(m / x) * ceil(n / x) * x * x),
    "05.smaller_tiles": lambda t, a, b, c, d: (c + d) / (c * d) * (a * b) / (a + b),
    "06.loads_for_an_fma": lambda t, m, n, *_: 1 / m + 1 / n,
    "06.warps_by_registers": lambda t, threads, r, *_: 65536 // (threads * r) * threads / 32,
    "06.idle_sms": lambda t, x, y, n, _, sms: sms - ceil(n / x) * ceil(n / y),
    "07.registers_of_warp_tile": lambda t, *x: x[-3] * 4 + x[-2] * 2 + x[-3] * x[-2] * 4,
    "07.rows_of_ldmatrix": lambda t, *x: _conflicts(int(x[3]) // 4, 8),
    "07.fmas_for_a_register": lambda t, _, read: 3 * _fmas(t) / 32 / read,
    "08.fed_by_warp_tile": lambda t, m, n, *_: 4 / (n / 8) + 2 / (m / 16),
    "08.swizzled_bank": lambda t, *x: 4 * (int(x[-2]) ^ int(x[-1]) % 8),
    "08.blocks_by_tiles": lambda t, _, m, k, _k, n, *x: min(
        16, floor(228 / (2 * k * (m + n) / 1024 + 1))
    ),
    "09.stages_for_tile": lambda t, rate, m, k, _, n, copy: 1 + ceil(copy / (m * n * k / rate)),
    "09.stages_that_fit": lambda t, _, m, k, _k, n: 227 * 1024 // (2 * k * (m + n)),
    "09.waits_in_step": lambda t, copy, multiply, s: 100 - 100 * multiply * (s - 1) / copy,
    "10.steps_of_split": lambda t, tiles, steps, sms, s: ceil(tiles * s / sms) * steps / s,
    "10.price_of_sums": lambda t, m, n, s, bw: 2 * 4 * s * m * n / bw / 1e6,
    "10.equal_shares": lambda t, tiles, _, sms: ceil(tiles / sms) * sms / tiles,
    "11.sum_that_stands_still": lambda t, step, _, bits: _stands_still(step, bits),
    "11.longest_finite": lambda t, x, *_: ceil(65520 / x**2) - 1,
    "11.narrower": lambda t, *x: _narrower(*x[:3], 66.9e12, 989e12, 4.8e12),
    "12.parts_beside_tiles": lambda t, m, k, _, n, s: (m + n) * k * (4 * s + 4) / 1024,
    "12.three_products": lambda t, count, *x: x[-2] / x[-1] / count,
    "12.low_part": lambda t, x, *_: _low(x),
    "13.tiles_of_gradient": lambda t, inputs, outputs, *_: ceil(inputs / 128) * ceil(outputs / 128),
    "13.scale_of_loss": lambda t, *_: int(re.search(r"2\^\{-(\d+)\}", t)[1]) - 14,
    "13.saved_by_epilogue": lambda t, m, n, launches, bw: launches * 2 * 4 * m * n / bw / 1e6,
}
