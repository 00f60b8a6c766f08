"""A step of Jacobi's method in space: each point becomes the mean of six neighbours."""

import numpy as np
from numpy import float32

from benchmarks.forecast.others.case import Case, Launch
from gemmlab import cuda

BLOCK = (32, 8, 4)


def jacobi(old, new):
    k, j, i = cuda.grid(3)
    deep, rows, columns = old.shape
    if 0 < i < deep - 1 and 0 < j < rows - 1 and 0 < k < columns - 1:
        above, below = old[i - 1, j, k], old[i + 1, j, k]
        around = old[i, j - 1, k] + old[i, j + 1, k] + old[i, j, k - 1] + old[i, j, k + 1]
        new[i, j, k] = (above + below + around) / float32(6)


def launch(size):
    old = np.random.default_rng(24).random((size, size, size), float32)
    return Launch(tuple(-(-size // b) for b in BLOCK), BLOCK, (old, np.zeros_like(old)))


def check(old, new):
    expected = np.zeros_like(old)
    around = old[1:-1, :-2, 1:-1] + old[1:-1, 2:, 1:-1] + old[1:-1, 1:-1, :-2] + old[1:-1, 1:-1, 2:]
    expected[1:-1, 1:-1, 1:-1] = (old[:-2, 1:-1, 1:-1] + old[2:, 1:-1, 1:-1] + around) / float32(6)
    yield new, expected


CASE = Case(jacobi, launch, check, size=512, small=9)
