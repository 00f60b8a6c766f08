"""Sums of a matrix's columns, a thread a column: so few threads that latency decides."""

import numpy as np
from numpy import float32

from benchmarks.forecast.others.case import Case, Launch, compared
from gemmlab import cuda

THREADS = 256


def column_sums(a, sums):
    j = cuda.grid(1)
    if j < a.shape[1]:
        total = float32(0)
        for i in range(a.shape[0]):
            total += a[i, j]
        sums[j] = total


def launch(size):
    a = np.random.default_rng(38).random((size, size), float32)
    return Launch(-(-size // THREADS), THREADS, (a, np.zeros(size, float32)))


def check(a, sums):
    expected = a.sum(0, np.float64)
    yield compared(sums, expected, expected, a.shape[0])


CASE = Case(column_sums, launch, check, size=8192, small=60)
