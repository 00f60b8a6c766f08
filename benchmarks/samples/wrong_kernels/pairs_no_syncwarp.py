"""Misconception: lanes of a warp run in lock-step, so that they need not wait."""

from gemmlab import cuda

BASE = "pairs"
EXPECT = "global-race"


def kernel(x, swap, out):
    i = cuda.grid(1)
    swap[i] = x[i]
    out[i] = swap[i ^ 1]  # fault
