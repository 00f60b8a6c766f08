"""Misconception: the middle of two int32 is an int32; their sum need not be."""

from numpy import int32

from gemmlab import cuda

BASE = "search"
EXPECT = "index-overflow"


def kernel(x, first, wanted, out):
    i = cuda.grid(1)
    if i < out.size:
        low = first
        high = first + x.size
        while low < high:
            middle = int32(low + high) // 2
            if x[middle - first] < wanted[i]:  # fault
                low = middle + 1
            else:
                high = middle
        out[i] = low - first
