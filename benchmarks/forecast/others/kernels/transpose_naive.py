"""A transposition by one thread for each element: its stores go down a column."""

import numpy as np
from numpy import float32

from benchmarks.forecast.others.case import Case, Launch
from gemmlab import cuda

BLOCK = (32, 8)


def transpose(source, target):
    j, i = cuda.grid(2)
    if i < source.shape[0] and j < source.shape[1]:
        target[j, i] = source[i, j]


def launch(size):
    source = np.random.default_rng(1).random((size, size + 96), float32)
    grid = -(-source.shape[1] // BLOCK[0]), -(-size // BLOCK[1])
    return Launch(grid, BLOCK, (source, np.zeros(source.shape[::-1], float32)))


def check(source, target):
    yield target, source.T


CASE = Case(transpose, launch, check, size=6000, small=45)
