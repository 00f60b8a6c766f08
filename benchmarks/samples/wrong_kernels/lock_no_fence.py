"""Misconception: a lock orders what is done while it is held; without a fence it need not."""

from gemmlab import cuda

BASE = "lock"
EXPECT = "global-race"


def kernel(x, mutex, out):
    i = cuda.grid(1)
    waits = i < x.size
    while waits:
        if cuda.atomic.cas(mutex, 0, 0, 1) == 0:
            out[0] += x[i]  # fault
            cuda.atomic.exch(mutex, 0, 0)
            waits = False
