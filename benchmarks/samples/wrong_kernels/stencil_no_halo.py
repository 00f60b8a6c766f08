"""Misconception: a tile of as many elements as threads has all its neighbours."""

from numpy import float32

from gemmlab import cuda

BASE = "stencil"
EXPECT = "uninitialised-read"
THREADS, TILE = 32, 32 + 2


def kernel(x, out):
    tile = cuda.shared.array(TILE, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    tile[t + 1] = x[i] if i < x.size else float32(0)
    if t == THREADS - 1:
        tile[t + 2] = x[i + 1] if i + 1 < x.size else float32(0)
    cuda.syncthreads()
    if i < x.size:
        out[i] = tile[t] + tile[t + 1] + tile[t + 2]  # fault
