"""Slip: the accumulator is set to zero in every step."""

from numpy import float32

from gemmlab import cuda

BASE = "naive"
EXPECT = "values"


def kernel(alpha, A, B, beta, C):
    m, n = C.shape
    k = A.shape[1]
    i, j = cuda.grid(2)
    if i < m and j < n:
        for p in range(k):
            acc = float32(0)  # fault
            acc += A[i, p] * B[p, j]
        value = alpha * acc
        if beta != 0:
            value += beta * C[i, j]
        C[i, j] = value
