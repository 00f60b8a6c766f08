"""A histogram: each block counts in shared memory, then adds to the whole."""

import numpy as np
from numba import cuda, types

BINS = 64


@cuda.jit
def histogram(values, low, high, counts):
    own = cuda.shared.array(BINS, types.int32)
    t = cuda.threadIdx.x
    for b in range(t, BINS, cuda.blockDim.x):
        own[b] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        b = int((values[i] - low) / (high - low) * BINS)
        if 0 <= b < BINS:
            cuda.atomic.add(own, b, 1)
    cuda.syncthreads()
    for b in range(t, BINS, cuda.blockDim.x):
        cuda.atomic.add(counts, b, own[b])


values = np.random.default_rng(4).normal(size=20_000).astype(np.float32)
counts = cuda.to_device(np.zeros(BINS, np.int32))
histogram[16, 128](cuda.to_device(values), np.float32(-4), np.float32(4), counts)

scaled = (values - np.float32(-4)) / (np.float32(4) - np.float32(-4)) * np.float32(BINS)
expected = np.bincount(scaled[(scaled > -1) & (scaled < BINS)].astype(int), minlength=BINS)
np.testing.assert_array_equal(counts.copy_to_host(), expected)
print("in the middle:", int(counts[BINS // 2 : BINS // 2 + 1].copy_to_host()[0]))
