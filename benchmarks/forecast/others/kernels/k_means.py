"""The nearest of 64 centres for each point of eight coordinates, a thread a point."""

import numpy as np
from numpy import float32, int32

from benchmarks.forecast.others.case import Case, Launch
from gemmlab import cuda

THREADS = 128
CENTRES, COORDINATES = 64, 8


def k_means(points, centres, nearest):
    i = cuda.grid(1)
    if i < points.shape[0]:
        best, which = float32(1e30), 0
        for c in range(centres.shape[0]):
            distance = float32(0)
            for f in range(points.shape[1]):
                apart = points[i, f] - centres[c, f]
                distance += apart * apart
            if distance < best:
                best, which = distance, c
        nearest[i] = which


def launch(size):
    rng = np.random.default_rng(28)
    points, centres = (rng.random((n, COORDINATES), float32) for n in (size, CENTRES))
    return Launch(-(-size // THREADS), THREADS, (points, centres, np.full(size, -1, int32)))


def check(points, centres, nearest):
    """Of two centres at equal distances but for rounding, either is right."""
    apart = [np.square(points - centre).sum(1) for centre in centres]
    yield float(nearest.min() >= 0), 1.0
    yield np.square(points - centres[nearest]).sum(1), np.min(apart, 0)


CASE = Case(k_means, launch, check, size=1 << 20, small=40)
