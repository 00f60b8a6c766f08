"""Degrees of a graph's vertices from its edges: atomic additions all over an array."""

import numpy as np
from numpy import int32

from benchmarks.forecast.others.case import IRREGULAR, Case, Launch
from gemmlab import cuda

THREADS = 256
EDGES = 16  # for each vertex


def degrees(ends, counts):
    i = cuda.grid(1)
    if i < ends.size:
        cuda.atomic.add(counts, ends[i], 1)


def launch(size):
    ends = np.random.default_rng(12).integers(0, size, EDGES * size, int32)
    return Launch(-(-ends.size // THREADS), THREADS, (ends, np.zeros(size, int32)))


def check(ends, counts):
    yield counts, np.bincount(ends, minlength=counts.size).astype(int32)


CASE = Case(degrees, launch, check, size=2_000_000, small=50, kind=IRREGULAR)
