"""A product of matrices in float64 by tiles of 16×16 in shared memory, as courses begin."""

import numpy as np
from numpy import float64

from benchmarks.forecast.others.case import Case, Launch, compared
from gemmlab import cuda

TILE = 16


def product(a, b, c):
    of_a = cuda.shared.array((TILE, TILE), float64)
    of_b = cuda.shared.array((TILE, TILE), float64)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    j, i = cuda.grid(2)
    total = float64(0)
    for p in range(0, a.shape[1], TILE):
        of_a[y, x] = a[i, p + x]
        of_b[y, x] = b[p + y, j]
        cuda.syncthreads()
        for q in range(TILE):
            total += of_a[y, q] * of_b[q, x]
        cuda.syncthreads()
    c[i, j] = total


def launch(size):
    rng = np.random.default_rng(30)
    a, b = rng.random((size, size)), rng.random((size, size))
    return Launch((size // TILE, size // TILE), (TILE, TILE), (a, b, np.zeros_like(a)))


def check(a, b, c):
    expected = a @ b
    yield compared(c, expected, expected, a.shape[1])


CASE = Case(product, launch, check, size=2048, small=32)
