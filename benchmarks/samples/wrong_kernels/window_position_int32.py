"""Misconception: an index fits int32; a position in a large matrix need not."""

from numpy import int32

from gemmlab import cuda

BASE = "window"
EXPECT = "index-overflow"


def kernel(x, first, pitch, out):
    i = cuda.grid(1)
    if i < out.size:
        position = int32((first + i) * pitch)
        out[i] = x[position - first * pitch]  # fault
