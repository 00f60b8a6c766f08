"""A sparse matrix times a vector, compressed rows of many lengths, a warp a row."""

import numpy as np
from numpy import float32, int32

from benchmarks.forecast.others.case import IRREGULAR, Case, Launch, compared
from gemmlab import cuda

FULL = 0xFFFFFFFF
THREADS = 128
MEAN = 32  # elements of a row


def product(starts, columns, values, x, y):
    row, lane = cuda.grid(1) // 32, cuda.threadIdx.x % 32
    if row < y.size:
        total = float32(0)
        for k in range(starts[row] + lane, starts[row + 1], 32):
            total += values[k] * x[columns[k]]
        offset = 16
        while offset > 0:
            total += cuda.shfl_down_sync(FULL, total, offset)
            offset //= 2
        if lane == 0:
            y[row] = total


def launch(size):
    rng = np.random.default_rng(10)
    starts = np.append(0, rng.geometric(1 / MEAN, size).cumsum()).astype(int32)
    columns = rng.integers(0, size, starts[-1], int32)
    values, x = rng.random(starts[-1], float32), rng.random(size, float32)
    arguments = starts, columns, values, x, np.zeros(size, float32)
    return Launch(-(-size // (THREADS // 32)), THREADS, arguments)


def check(starts, columns, values, x, y):
    sums = np.add.reduceat(values.astype(np.float64) * x[columns], starts[:-1])
    yield compared(y, sums, sums, int(np.diff(starts).max()))


CASE = Case(product, launch, check, size=1_000_000, small=60, kind=IRREGULAR)
