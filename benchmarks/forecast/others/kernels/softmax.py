"""The softmax of each row, a block a row: a maximum, a sum, and a division, by three readings."""

import math

import numpy as np
from numpy import float32

from benchmarks.forecast.others.case import Case, Launch, compared
from gemmlab import cuda

FULL = 0xFFFFFFFF
THREADS = 256
WARPS = THREADS // 32
COLUMNS = 4096


def softmax(x, y):
    of_warps = cuda.shared.array(WARPS, float32)
    row, t = cuda.blockIdx.x, cuda.threadIdx.x
    lane, warp = t % 32, t // 32
    columns = x.shape[1]

    most = float32(-math.inf)
    for j in range(t, columns, THREADS):
        most = max(most, x[row, j])
    offset = 16
    while offset > 0:
        most = max(most, cuda.shfl_xor_sync(FULL, most, offset))
        offset //= 2
    if lane == 0:
        of_warps[warp] = most
    cuda.syncthreads()
    for w in range(WARPS):
        most = max(most, of_warps[w])
    cuda.syncthreads()

    total = float32(0)
    for j in range(t, columns, THREADS):
        total += math.exp(x[row, j] - most)
    offset = 16
    while offset > 0:
        total += cuda.shfl_xor_sync(FULL, total, offset)
        offset //= 2
    if lane == 0:
        of_warps[warp] = total
    cuda.syncthreads()
    total = float32(0)
    for w in range(WARPS):
        total += of_warps[w]

    for j in range(t, columns, THREADS):
        y[row, j] = math.exp(x[row, j] - most) / total


def launch(size):
    x = np.random.default_rng(5).standard_normal((size, COLUMNS), float32)
    return Launch(size, THREADS, (x, np.zeros_like(x)))


def check(x, y):
    powers = np.exp(x - x.max(1, keepdims=True))
    yield compared(y, powers / powers.sum(1, keepdims=True), np.float32(1), COLUMNS)


CASE = Case(softmax, launch, check, size=16_000, small=3)
