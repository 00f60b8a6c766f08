"""A step of Conway's game of life on a torus, a byte a cell, whose neighbours remainders find."""

import numpy as np
from numpy import uint8

from benchmarks.forecast.others.case import Case, Launch
from gemmlab import cuda

BLOCK = (32, 8)


def life(old, new):
    j, i = cuda.grid(2)
    rows, columns = old.shape
    if i < rows and j < columns:
        alive = 0
        for di in range(-1, 2):
            for dj in range(-1, 2):
                if di != 0 or dj != 0:
                    alive += old[(i + di + rows) % rows, (j + dj + columns) % columns]
        new[i, j] = 1 if alive == 3 or (alive == 2 and old[i, j] == 1) else 0


def launch(size):
    old = np.random.default_rng(27).integers(0, 2, (size, size), uint8)
    grid = -(-size // BLOCK[0]), -(-size // BLOCK[1])
    return Launch(grid, BLOCK, (old, np.zeros_like(old)))


def check(old, new):
    of_three_rows = old + np.roll(old, 1, 0) + np.roll(old, -1, 0)
    alive = of_three_rows + np.roll(of_three_rows, 1, 1) + np.roll(of_three_rows, -1, 1) - old
    yield new, ((alive == 3) | ((alive == 2) & (old == 1))).astype(uint8)


CASE = Case(life, launch, check, size=8192, small=36)
