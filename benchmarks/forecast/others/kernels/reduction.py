"""Sums of an array's parts: strides over the grid, shuffles in a warp, shared memory at the end."""

import numpy as np
from numpy import float32

from benchmarks.forecast.others.case import Case, Launch, compared
from gemmlab import cuda

FULL = 0xFFFFFFFF
THREADS = 256
WARPS = THREADS // 32
BLOCKS = 1056  # 8 for each of 132 SMs, as its author would launch it


def reduction(x, partial):
    of_warps = cuda.shared.array(WARPS, float32)
    lane, warp = cuda.threadIdx.x % 32, cuda.threadIdx.x // 32
    total = float32(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        total += x[i]
    offset = 16
    while offset > 0:
        total += cuda.shfl_down_sync(FULL, total, offset)
        offset //= 2
    if lane == 0:
        of_warps[warp] = total
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        total = float32(0)
        for w in range(WARPS):
            total += of_warps[w]
        partial[cuda.blockIdx.x] = total


def launch(size):
    x = np.random.default_rng(3).standard_normal(size, float32)
    blocks = min(BLOCKS, -(-size // THREADS))
    return Launch(blocks, THREADS, (x, np.zeros(blocks, float32)))


def check(x, partial):
    stride = partial.size * THREADS
    whole = np.zeros((-(-x.size // stride), partial.size, THREADS), float32)
    whole.reshape(-1)[: x.size] = x
    sums, magnitudes = (a.sum((0, 2), np.float64) for a in (whole, np.abs(whole)))
    yield compared(partial, sums, magnitudes, whole.shape[0] + THREADS)


CASE = Case(reduction, launch, check, size=100_000_000, small=3000)
