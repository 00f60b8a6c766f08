"""The answers of chapter 03, found another way: by small kernels, words, and lines of records."""

import numpy as np
import pytest

from gemmlab import cuda, device, simulate
from gemmlab.course.ch03_threads_warps_blocks import guesses as answers
from tests.support.bank_words import passes
from tests.support.record_lines import time


def ones(*shape):
    return np.ones(shape, np.float32)


def counters(kernel, grid, block, *arguments):
    return simulate(kernel, grid, block, *arguments).counters


def per_request(found):
    return found["global_load_sectors"] / found["global_load_requests"]


def test_idle():
    def without_an_element(x, idle):
        i = cuda.grid(1)
        idle[i] = 0 if i < x.size else 1

    x, threads = ones(1000), 0
    while threads < x.size:
        threads += 256
    idle = np.full(threads, -1)
    simulate(without_an_element, threads // 256, 256, x, idle)
    assert answers.idle().number == idle.sum()


def test_rows():
    def sector_of_its_row(x, y):
        y[cuda.threadIdx.y, cuda.threadIdx.x] = x[8 * cuda.threadIdx.y]

    found = counters(sector_of_its_row, 1, (16, 16), ones(8 * 16), ones(16, 16))
    assert answers.rows().number == per_request(found)


def test_branches():
    def by_lane(x, y):
        i = cuda.grid(1)
        if i % 2 == 0:
            y[i] = x[i]
        else:
            y[i] = -x[i]

    found = counters(by_lane, 1, 64, ones(64), ones(64))
    assert answers.branches().number == found["global_load_requests"]


def test_offset():
    def one_later(x, y):
        i = cuda.grid(1)
        y[i] = x[i + 1]

    assert answers.offset().number == per_request(counters(one_later, 1, 32, ones(33), ones(32)))


def test_stride():
    def every_eighth(x, y):
        i = cuda.grid(1)
        y[i] = x[8 * i]

    found = counters(every_eighth, 1, 32, ones(256), ones(32))
    assert answers.stride().number == per_request(found)


def test_column():
    def first_of_a(A, C):
        i, j = cuda.grid(2)
        C[i, j] = A[i, 0]

    found = counters(first_of_a, 1, (16, 16), ones(16, 100), ones(16, 16))
    assert answers.column().number == per_request(found)


def test_speedup():
    ratio = time("naive", 4096) / time("coalesced", 4096)
    assert answers.speedup().number == pytest.approx(ratio)


def test_banks():
    assert answers.banks().number == passes(2049 * x for x in range(16) for _ in range(2))


def test_hide():
    rows_of_a, columns_of_b = [0, 4096], range(16)  # of a warp of *coalesced* in one step
    step = passes(rows_of_a) + passes(columns_of_b)
    trip = device("h200").dram_latency * device("h200").clock
    warps = 0
    while warps * step < trip:
        warps += 1
    assert answers.hide().number == warps
