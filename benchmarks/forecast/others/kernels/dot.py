"""A dot product: strides over the grid, shuffles, and one atomic addition a warp to one place."""

import numpy as np
from numpy import float32

from benchmarks.forecast.others.case import IRREGULAR, Case, Launch, compared
from gemmlab import cuda

FULL = 0xFFFFFFFF
THREADS = 256
BLOCKS = 1056  # 8 for each of 132 SMs


def dot(x, y, out):
    total = float32(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        total += x[i] * y[i]
    offset = 16
    while offset > 0:
        total += cuda.shfl_down_sync(FULL, total, offset)
        offset //= 2
    if cuda.threadIdx.x % 32 == 0:
        cuda.atomic.add(out, 0, total)


def launch(size):
    rng = np.random.default_rng(31)
    x, y = rng.random(size, float32), rng.random(size, float32)
    return Launch(min(BLOCKS, -(-size // THREADS)), THREADS, (x, y, np.zeros(1, float32)))


def check(x, y, out):
    exact = np.dot(x.astype(np.float64), y)
    yield compared(out, np.array([exact]), float32(exact), BLOCKS * THREADS // 32)


CASE = Case(dot, launch, check, size=1 << 26, small=3000, kind=IRREGULAR)
