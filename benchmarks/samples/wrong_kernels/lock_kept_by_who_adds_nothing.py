"""Slip: the lock is opened on one of two ways out of the section that it protects."""

from gemmlab import cuda

BASE = "lock"
EXPECT = "deadlock"


def kernel(x, mutex, out):
    i = cuda.grid(1)
    waits = i < x.size
    while waits:  # fault
        if cuda.atomic.cas(mutex, 0, 0, 1) == 0:
            cuda.threadfence()
            if x[i] != 0:
                out[0] += x[i]
                cuda.threadfence()
                cuda.atomic.exch(mutex, 0, 0)
            waits = False
