"""Misconception: an array with indices 0 … T-1 has T-1 elements."""

from numpy import float32

from gemmlab import cuda

BASE = "tiled"
EXPECT = "out-of-bounds"
T, SHORT = 8, 8 - 1


def kernel(alpha, A, B, beta, C):
    As = cuda.shared.array((T, SHORT), float32)
    Bs = cuda.shared.array((T, T), float32)
    m, n = C.shape
    k = A.shape[1]
    x = cuda.threadIdx.x
    y = cuda.threadIdx.y
    row = cuda.blockIdx.y * T + y
    col = cuda.blockIdx.x * T + x
    acc = float32(0)
    for start in range(0, k, T):
        As[y, x] = A[row, start + x] if row < m and start + x < k else float32(0)  # fault
        Bs[y, x] = B[start + y, col] if start + y < k and col < n else float32(0)
        cuda.syncthreads()
        for p in range(T):
            acc += As[y, p] * Bs[p, x]
        cuda.syncthreads()
    if row < m and col < n:
        value = alpha * acc
        if beta != 0:
            value += beta * C[row, col]
        C[row, col] = value
