"""Misconception: range(k + 1) is needed to reach element k."""

from numpy import float32

from gemmlab import cuda

BASE = "naive"
EXPECT = "out-of-bounds"


def kernel(alpha, A, B, beta, C):
    m, n = C.shape
    k = A.shape[1]
    i, j = cuda.grid(2)
    if i < m and j < n:
        acc = float32(0)
        for p in range(k + 1):
            acc += A[i, p] * B[p, j]  # fault
        value = alpha * acc
        if beta != 0:
            value += beta * C[i, j]
        C[i, j] = value
