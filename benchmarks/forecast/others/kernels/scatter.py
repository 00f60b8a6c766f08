"""Elements stored at the places that a permutation says: y[places] = x."""

import numpy as np
from numpy import float32, int32

from benchmarks.forecast.others.case import IRREGULAR, Case, Launch
from gemmlab import cuda

THREADS = 256


def scatter(x, places, y):
    i = cuda.grid(1)
    if i < x.size:
        y[places[i]] = x[i]


def launch(size):
    rng = np.random.default_rng(37)
    x, places = rng.random(size, float32), rng.permutation(np.arange(size, dtype=int32))
    return Launch(-(-size // THREADS), THREADS, (x, places, np.zeros_like(x)))


def check(x, places, y):
    yield y[places], x


CASE = Case(scatter, launch, check, size=32_000_000, small=1000, kind=IRREGULAR)
