"""Misconception: the neighbours' old values are still there after this thread stored its own."""

from numpy import float32

from gemmlab import cuda

BASE = "stencil"
EXPECT = "global-race"
THREADS, TILE = 32, 32 + 2


def kernel(x, out):
    tile = cuda.shared.array(TILE, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    tile[t + 1] = x[i] if i < x.size else float32(0)
    if t == 0:
        tile[0] = x[i - 1] if 0 < i <= x.size else float32(0)
    if t == THREADS - 1:
        tile[t + 2] = x[i + 1] if i + 1 < x.size else float32(0)
    cuda.syncthreads()
    if 0 < i < x.size - 1:
        x[i] = x[i - 1] + tile[t + 1] + tile[t + 2]  # fault
