"""A matrix times a vector, a block a row: a strided sum, shuffles, and shared memory at the end."""

import numpy as np
from numpy import float32

from benchmarks.forecast.others.case import Case, Launch, compared
from gemmlab import cuda

FULL = 0xFFFFFFFF
THREADS = 128
WARPS = THREADS // 32
COLUMNS = 8192


def matvec(a, x, y):
    of_warps = cuda.shared.array(WARPS, float32)
    row, t = cuda.blockIdx.x, cuda.threadIdx.x
    total = float32(0)
    for j in range(t, x.size, THREADS):
        total += a[row, j] * x[j]
    offset = 16
    while offset > 0:
        total += cuda.shfl_down_sync(FULL, total, offset)
        offset //= 2
    if t % 32 == 0:
        of_warps[t // 32] = total
    cuda.syncthreads()
    if t == 0:
        y[row] = of_warps[0] + of_warps[1] + of_warps[2] + of_warps[3]


def launch(size):
    rng = np.random.default_rng(20)
    a, x = rng.random((size, COLUMNS), float32), rng.random(COLUMNS, float32)
    return Launch(size, THREADS, (a, x, np.zeros(size, float32)))


def check(a, x, y):
    expected = a @ x
    yield compared(y, expected, expected, COLUMNS)


CASE = Case(matvec, launch, check, size=8192, small=2)
