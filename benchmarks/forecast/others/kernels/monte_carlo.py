"""Points that fall into a quarter of a circle, drawn by a linear congruence in each thread."""

import numpy as np
from numpy import float32, int32, uint32

from benchmarks.forecast.others.case import Case, Launch
from gemmlab import cuda

THREADS = 256
MOST = 2000  # points that a thread draws
LOOKED_AT = 1000  # threads


def monte_carlo(hits, points):
    i = cuda.grid(1)
    state = uint32((i * 747796405 + 2891336453) & 0xFFFFFFFF)
    inside = int32(0)
    for _ in range(points):
        state = uint32((state * 1664525 + 1013904223) & 0xFFFFFFFF)
        x = float32(state >> uint32(8)) * float32(2**-24)
        state = uint32((state * 1664525 + 1013904223) & 0xFFFFFFFF)
        y = float32(state >> uint32(8)) * float32(2**-24)
        if x * x + y * y < float32(1):
            inside += int32(1)
    hits[i] = inside


def launch(size):
    points = int32(min(MOST, size // 32))
    return Launch(size // THREADS, THREADS, (np.zeros(size, int32), points))


def check(hits, points):
    """A point at the very edge may fall to either side of it."""
    some = np.unique(np.linspace(0, hits.size - 1, LOOKED_AT).astype(int))
    state, expected = (some * 747796405 + 2891336453) & 0xFFFFFFFF, np.zeros(some.size, int)
    for _ in range(points):
        x = state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        y = state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        expected += (x >> 8) ** 2 + (y >> 8) ** 2 < 2**48
    yield float(np.abs(hits[some] - expected).max() <= 1), 1.0


CASE = Case(monte_carlo, launch, check, size=1 << 19, small=THREADS)
