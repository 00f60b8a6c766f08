"""A step of the heat equation in the plane: each point from itself and four neighbours."""

import numpy as np
from numpy import float32

from benchmarks.forecast.others.case import Case, Launch
from gemmlab import cuda

BLOCK = (32, 8)


def heat(old, new, speed):
    j, i = cuda.grid(2)
    rows, columns = old.shape
    if 0 < i < rows - 1 and 0 < j < columns - 1:
        around = old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1]
        new[i, j] = old[i, j] + speed * (around - float32(4) * old[i, j])


def launch(size):
    old = np.random.default_rng(4).random((size, size), float32)
    grid = -(-size // BLOCK[0]), -(-size // BLOCK[1])
    return Launch(grid, BLOCK, (old, np.zeros_like(old), float32(0.2)))


def check(old, new, speed):
    expected = np.zeros_like(old)
    middle = old[1:-1, 1:-1]
    around = old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:]
    expected[1:-1, 1:-1] = middle + speed * (around - 4 * middle)
    yield new, expected


CASE = Case(heat, launch, check, size=9000, small=50)
