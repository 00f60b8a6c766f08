"""Pieces of 1024 numbers sorted by Batcher's bitonic network in shared memory, a block a piece."""

import numpy as np
from numpy import float32

from benchmarks.forecast.others.case import Case, Launch
from gemmlab import cuda

PIECE = 1024
THREADS = PIECE // 2


def bitonic(x, y):
    s = cuda.shared.array(PIECE, float32)
    first, t = cuda.blockIdx.x * PIECE, cuda.threadIdx.x
    s[t] = x[first + t]
    s[t + THREADS] = x[first + t + THREADS]
    sorted_ = 2  # numbers, once their merge has ended
    while sorted_ <= PIECE:
        apart = sorted_ // 2
        while apart > 0:
            cuda.syncthreads()
            a = 2 * t - (t & (apart - 1))
            b = a + apart
            rising = (a & sorted_) == 0
            if (s[a] > s[b]) == rising:
                s[a], s[b] = s[b], s[a]
            apart //= 2
        sorted_ *= 2
    cuda.syncthreads()
    y[first + t] = s[t]
    y[first + t + THREADS] = s[t + THREADS]


def launch(size):
    x = np.random.default_rng(23).random(size, float32)
    return Launch(size // PIECE, THREADS, (x, np.zeros_like(x)))


def check(x, y):
    yield y, np.sort(x.reshape(-1, PIECE), axis=1).reshape(-1)


CASE = Case(bitonic, launch, check, size=1 << 23, small=PIECE)
