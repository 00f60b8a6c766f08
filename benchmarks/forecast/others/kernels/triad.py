"""STREAM's triad, z = x + a·y: nothing but memory."""

import numpy as np
from numpy import float32

from benchmarks.forecast.others.case import Case, Launch
from gemmlab import cuda

THREADS = 256


def triad(a, x, y, z):
    i = cuda.grid(1)
    if i < z.size:
        z[i] = x[i] + a * y[i]


def launch(size):
    rng = np.random.default_rng(0)
    x, y = rng.random(size, float32), rng.random(size, float32)
    return Launch(-(-size // THREADS), THREADS, (float32(3), x, y, np.zeros(size, float32)))


def check(a, x, y, z):
    yield z, x + a * y


CASE = Case(triad, launch, check, size=100_000_000, small=1000)
