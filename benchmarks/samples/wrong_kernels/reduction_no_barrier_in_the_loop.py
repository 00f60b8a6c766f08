"""Misconception: one barrier before the loop orders all of its steps."""

from numpy import float32

from gemmlab import cuda

BASE = "reduction"
EXPECT = "shared-race"
THREADS = 64


def kernel(x, out):
    part = cuda.shared.array(THREADS, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    part[t] = x[i] if i < x.size else float32(0)
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            part[t] += part[t + half]  # fault
        half //= 2
    if t == 0:
        out[cuda.blockIdx.x] = part[0]
