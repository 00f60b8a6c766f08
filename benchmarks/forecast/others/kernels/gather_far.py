"""Elements of a table of 256 MB, of which most are never read, at random places."""

import numpy as np
from numpy import float32, int32

from benchmarks.forecast.others.case import IRREGULAR, Case, Launch
from gemmlab import cuda

THREADS = 256
PLACES = 4  # of the table for each element that is read


def gather(table, index, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = table[index[i]]


def launch(size):
    rng = np.random.default_rng(35)
    places = PLACES * size
    table, index = rng.random(places, float32), rng.integers(0, places, size, int32)
    return Launch(-(-size // THREADS), THREADS, (table, index, np.zeros(size, float32)))


def check(table, index, y):
    yield y, table[index]


CASE = Case(gather, launch, check, size=16_000_000, small=1000, kind=IRREGULAR)
