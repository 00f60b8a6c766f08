"""Prefix sums within blocks after Hillis and Steele: in shared memory, two barriers a step."""

import numpy as np
from numpy import float32

from benchmarks.forecast.others.case import Case, Launch, compared
from gemmlab import cuda

THREADS = 512


def block_scan(x, y):
    sums = cuda.shared.array(THREADS, float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    sums[t] = x[i] if i < x.size else float32(0)
    cuda.syncthreads()
    offset = 1
    while offset < THREADS:
        before = sums[t - offset] if t >= offset else float32(0)
        cuda.syncthreads()
        sums[t] += before
        cuda.syncthreads()
        offset *= 2
    if i < x.size:
        y[i] = sums[t]


def launch(size):
    x = np.random.default_rng(22).random(size, float32)
    return Launch(-(-size // THREADS), THREADS, (x, np.zeros_like(x)))


def check(x, y):
    rows = np.zeros((-(-x.size // THREADS), THREADS), float32)
    rows.reshape(-1)[: x.size] = x
    expected = rows.cumsum(1, np.float64).reshape(-1)[: x.size]
    yield compared(y, expected, expected, THREADS)


CASE = Case(block_scan, launch, check, size=1 << 25, small=1000)
