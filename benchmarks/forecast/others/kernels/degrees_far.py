"""Degrees of a graph of few edges: atomic additions all over an array of 64 MB."""

import numpy as np
from numpy import int32

from benchmarks.forecast.others.case import IRREGULAR, Case, Launch
from gemmlab import cuda

THREADS = 256
ENDS = 2  # of edges at a vertex


def degrees(ends, counts):
    i = cuda.grid(1)
    if i < ends.size:
        cuda.atomic.add(counts, ends[i], 1)


def launch(size):
    ends = np.random.default_rng(36).integers(0, size, ENDS * size, int32)
    return Launch(-(-ends.size // THREADS), THREADS, (ends, np.zeros(size, int32)))


def check(ends, counts):
    yield counts, np.bincount(ends, minlength=counts.size).astype(int32)


CASE = Case(degrees, launch, check, size=16_000_000, small=500, kind=IRREGULAR)
