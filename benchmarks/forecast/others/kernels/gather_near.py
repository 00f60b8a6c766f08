"""Elements of a table of 8 MB, which L2 holds, at random places: y = table[index]."""

import numpy as np
from numpy import float32, int32

from benchmarks.forecast.others.case import IRREGULAR, Case, Launch
from gemmlab import cuda

THREADS = 256
TABLE = 1 << 21  # elements


def gather(table, index, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = table[index[i]]


def launch(size):
    rng = np.random.default_rng(34)
    table, index = rng.random(TABLE, float32), rng.integers(0, TABLE, size, int32)
    return Launch(-(-size // THREADS), THREADS, (table, index, np.zeros(size, float32)))


def check(table, index, y):
    yield y, table[index]


CASE = Case(gather, launch, check, size=16_000_000, small=1000, kind=IRREGULAR)
