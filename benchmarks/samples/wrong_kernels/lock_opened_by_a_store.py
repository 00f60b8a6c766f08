"""Misconception: a lock that one thread holds can be opened by a plain store; others update it."""

from gemmlab import cuda

BASE = "lock"
EXPECT = "global-race"


def kernel(x, mutex, out):
    i = cuda.grid(1)
    waits = i < x.size
    while waits:
        if cuda.atomic.cas(mutex, 0, 0, 1) == 0:
            cuda.threadfence()
            out[0] += x[i]
            cuda.threadfence()
            mutex[0] = 0  # fault
            waits = False
