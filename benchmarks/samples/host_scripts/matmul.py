"""A product of matrices by tiles in shared memory, with ragged edges."""

import math

import numpy as np
from numba import cuda, float32

TPB = 16


@cuda.jit("void(float32[:, ::1], float32[:, ::1], float32[:, ::1])", fastmath=True)
def multiply(A, B, C):
    sA = cuda.shared.array(shape=(TPB, TPB), dtype=float32)
    sB = cuda.shared.array(shape=(TPB, TPB), dtype=float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0.0)
    for i in range((A.shape[1] + TPB - 1) // TPB):
        sA[ty, tx] = 0
        sB[ty, tx] = 0
        if y < A.shape[0] and tx + i * TPB < A.shape[1]:
            sA[ty, tx] = A[y, tx + i * TPB]
        if x < B.shape[1] and ty + i * TPB < B.shape[0]:
            sB[ty, tx] = B[ty + i * TPB, x]
        cuda.syncthreads()
        for j in range(TPB):
            total += sA[ty, j] * sB[j, tx]
        cuda.syncthreads()
    if y < C.shape[0] and x < C.shape[1]:
        C[y, x] = total


def main():
    rng = np.random.default_rng(2)
    A = rng.integers(-4, 5, (60, 33)).astype(np.float32)
    B = rng.integers(-4, 5, (33, 45)).astype(np.float32)
    d_C = cuda.device_array((60, 45), np.float32)
    blocks = math.ceil(45 / TPB), math.ceil(60 / TPB)
    multiply[blocks, (TPB, TPB)](cuda.to_device(A), cuda.to_device(B), d_C)
    np.testing.assert_array_equal(d_C.copy_to_host(), A @ B)
    print("C[0, 0] =", d_C[0, 0])


if __name__ == "__main__":
    main()
