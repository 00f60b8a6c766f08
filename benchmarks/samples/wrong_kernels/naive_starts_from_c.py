"""Misconception: C can serve as the accumulator, since it is overwritten anyway."""

from gemmlab import cuda

BASE = "naive"
EXPECT = "values"


def kernel(alpha, A, B, beta, C):
    m, n = C.shape
    k = A.shape[1]
    i, j = cuda.grid(2)
    if i < m and j < n:
        acc = C[i, j]  # fault
        for p in range(k):
            acc += A[i, p] * B[p, j]
        value = alpha * acc
        if beta != 0:
            value += beta * C[i, j]
        C[i, j] = value
