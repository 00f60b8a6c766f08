"""Misconception: what is computed in 64 bits stays so; an int32 array keeps 32 of them."""

from numpy import int32

from gemmlab import cuda

BASE = "window"
EXPECT = "index-overflow"


def kernel(x, first, pitch, out):
    start = cuda.shared.array(1, int32)
    i = cuda.grid(1)
    if cuda.threadIdx.x == 0:
        start[0] = first * pitch
    cuda.syncthreads()
    if i < out.size:
        position = (first + i) * pitch
        out[i] = x[position - start[0]]  # fault
