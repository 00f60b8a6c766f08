"""How often each of 256 values occurs: atomic additions in shared memory, then to the whole."""

import numpy as np
from numpy import int32, uint8

from benchmarks.forecast.others.case import IRREGULAR, Case, Launch
from gemmlab import cuda

BINS = 256  # and as many threads
BLOCKS = 1056  # 8 for each of 132 SMs


def histogram(values, counts):
    own = cuda.shared.array(BINS, int32)
    t = cuda.threadIdx.x
    own[t] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        cuda.atomic.add(own, values[i], 1)
    cuda.syncthreads()
    cuda.atomic.add(counts, t, own[t])


def launch(size):
    grey = np.random.default_rng(9).normal(128, 40, size).clip(0, BINS - 1).astype(uint8)
    return Launch(min(BLOCKS, -(-size // BINS)), BINS, (grey, np.zeros(BINS, int32)))


def check(values, counts):
    yield counts, np.bincount(values, minlength=BINS).astype(int32)


CASE = Case(histogram, launch, check, size=64_000_000, small=2000, kind=IRREGULAR)
