"""A student's product of matrices: tiles of 64×64 in shared memory, 4×4 sums a thread, no more."""

import numpy as np
from numpy import float32

from benchmarks.forecast.others.case import Case, Launch, compared
from gemmlab import cuda

TILE, DEPTH = 64, 16
ACROSS = 16  # threads of a tile in each direction
THREADS = ACROSS * ACROSS
SUMS = TILE // ACROSS  # of a thread in each direction


def sgemm(a, b, c):
    of_a = cuda.shared.array((TILE, DEPTH), float32)
    of_b = cuda.shared.array((DEPTH, TILE), float32)
    sums = cuda.local.array((SUMS, SUMS), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    top, left = cuda.blockIdx.y * TILE, cuda.blockIdx.x * TILE
    for i in range(SUMS):
        for j in range(SUMS):
            sums[i, j] = float32(0)
    for p in range(0, a.shape[1], DEPTH):
        for s in range(SUMS):
            e = y * ACROSS + x + THREADS * s
            of_a[e // DEPTH, e % DEPTH] = a[top + e // DEPTH, p + e % DEPTH]
            of_b[e // TILE, e % TILE] = b[p + e // TILE, left + e % TILE]
        cuda.syncthreads()
        for q in range(DEPTH):
            for i in range(SUMS):
                for j in range(SUMS):
                    sums[i, j] += of_a[y * SUMS + i, q] * of_b[q, x * SUMS + j]
        cuda.syncthreads()
    for i in range(SUMS):
        for j in range(SUMS):
            c[top + y * SUMS + i, left + x * SUMS + j] = sums[i, j]


def launch(size):
    rng = np.random.default_rng(33)
    a, b = rng.random((size, size), float32), rng.random((size, size), float32)
    return Launch((size // TILE, size // TILE), (ACROSS, ACROSS), (a, b, np.zeros_like(a)))


def check(a, b, c):
    expected = a @ b
    yield compared(c, expected, expected, a.shape[1])


CASE = Case(sgemm, launch, check, size=4096, small=TILE)
