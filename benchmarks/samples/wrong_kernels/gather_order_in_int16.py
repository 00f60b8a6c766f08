"""Misconception: 16 bits are enough for 40,000 places; int16 ends at 32,767."""

from numpy import int16

from gemmlab import cuda

BASE = "gather"
EXPECT = "index-overflow"


def kernel(x, order, out):
    stage = cuda.shared.array(32, int16)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    stage[t] = order[i] if i < out.size else 0
    cuda.syncthreads()
    if i < out.size:
        out[i] = x[stage[t]]  # fault
