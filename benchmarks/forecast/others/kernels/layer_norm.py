"""Each row less its mean, over its standard deviation, a block a row, by three readings."""

import math

import numpy as np
from numpy import float32

from benchmarks.forecast.others.case import Case, Launch
from gemmlab import cuda

FULL = 0xFFFFFFFF
THREADS = 256
WARPS = THREADS // 32
COLUMNS = 4096


def layer_norm(x, y):
    of_warps = cuda.shared.array(WARPS, float32)
    row, t = cuda.blockIdx.x, cuda.threadIdx.x
    columns = x.shape[1]

    total = float32(0)
    for j in range(t, columns, THREADS):
        total += x[row, j]
    offset = 16
    while offset > 0:
        total += cuda.shfl_xor_sync(FULL, total, offset)
        offset //= 2
    if t % 32 == 0:
        of_warps[t // 32] = total
    cuda.syncthreads()
    total = float32(0)
    for w in range(WARPS):
        total += of_warps[w]
    mean = total / float32(columns)
    cuda.syncthreads()

    total = float32(0)
    for j in range(t, columns, THREADS):
        apart = x[row, j] - mean
        total += apart * apart
    offset = 16
    while offset > 0:
        total += cuda.shfl_xor_sync(FULL, total, offset)
        offset //= 2
    if t % 32 == 0:
        of_warps[t // 32] = total
    cuda.syncthreads()
    total = float32(0)
    for w in range(WARPS):
        total += of_warps[w]
    scale = float32(1) / math.sqrt(total / float32(columns) + float32(1e-5))

    for j in range(t, columns, THREADS):
        y[row, j] = (x[row, j] - mean) * scale


def launch(size):
    x = np.random.default_rng(25).standard_normal((size, COLUMNS), float32)
    return Launch(size, THREADS, (x, np.zeros_like(x)))


def check(x, y):
    apart = x - x.mean(1, np.float64, keepdims=True).astype(float32)
    variance = np.square(apart).mean(1, np.float64, keepdims=True)
    yield y, apart / np.sqrt(variance + 1e-5).astype(float32)


CASE = Case(layer_norm, launch, check, size=16_384, small=3)
