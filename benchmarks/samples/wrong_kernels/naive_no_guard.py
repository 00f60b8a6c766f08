"""Misconception: the grid has as many threads as C has elements."""

from numpy import float32

from gemmlab import cuda

BASE = "naive"
EXPECT = "out-of-bounds"


def kernel(alpha, A, B, beta, C):
    k = A.shape[1]
    i, j = cuda.grid(2)
    if i >= 0:
        acc = float32(0)
        for p in range(k):
            acc += A[i, p] * B[p, j]  # fault
        value = alpha * acc
        if beta != 0:
            value += beta * C[i, j]
        C[i, j] = value
