"""A step of Floyd's shortest paths: from each vertex to each, maybe by way of one more."""

import numpy as np
from numpy import float32, int32

from benchmarks.forecast.others.case import Case, Launch
from gemmlab import cuda

BLOCK = (32, 8)


def floyd(old, new, k):
    """Not in place, so that each launch finds as many ways to shorten as the first."""
    j, i = cuda.grid(2)
    if i < old.shape[0] and j < old.shape[1]:
        way, through = old[i, j], old[i, k] + old[k, j]
        if through < way:
            way = through
        new[i, j] = way


def launch(size):
    old = np.random.default_rng(26).random((size, size), float32)
    grid = -(-size // BLOCK[0]), -(-size // BLOCK[1])
    return Launch(grid, BLOCK, (old, np.zeros_like(old), int32(7)))


def check(old, new, k):
    yield new, np.minimum(old, old[:, k, None] + old[k])


CASE = Case(floyd, launch, check, size=4096, small=40)
