"""Kernels as a learner might write them: right, racing, endless, and wrong in other ways."""

from numpy import float32

from gemmlab import cuda

T = 16


def right(alpha, A, B, beta, C):
    m, n = C.shape
    col, row = cuda.grid(2)
    if row < m and col < n:
        acc = float32(0)
        for p in range(A.shape[1]):
            acc += A[row, p] * B[p, col]
        if beta == 0:
            C[row, col] = alpha * acc
        else:
            C[row, col] = alpha * acc + beta * C[row, col]


def racing(alpha, A, B, beta, C):
    As = cuda.shared.array((T, T), float32)
    m, n = C.shape
    k = A.shape[1]
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    acc = float32(0)
    for start in range(0, k, T):
        As[y, x] = A[row, start + x] if row < m and start + x < k else float32(0)
        for p in range(T):
            if start + p < k and col < n:
                acc += As[y, p] * B[start + p, col]  # nobody has waited
        cuda.syncthreads()
    if row < m and col < n:
        C[row, col] = alpha * acc if beta == 0 else alpha * acc + beta * C[row, col]


def endless(alpha, A, B, beta, C):
    col, row = cuda.grid(2)
    p = 0
    while p < A.shape[1]:  # p stays 0
        if row < C.shape[0] and col < C.shape[1]:
            C[row, col] = alpha * A[row, p] * B[p, col]


def unguarded(alpha, A, B, beta, C):
    col, row = cuda.grid(2)
    acc = float32(0)
    for p in range(A.shape[1]):
        acc += A[row, p] * B[p, col]
    C[row, col] = alpha * acc


def without_alpha(alpha, A, B, beta, C):
    col, row = cuda.grid(2)
    if row < C.shape[0] and col < C.shape[1]:
        acc = float32(0)
        for p in range(A.shape[1]):
            acc += A[row, p] * B[p, col]
        C[row, col] = acc


def changes_a(alpha, A, B, beta, C):
    m, n = C.shape
    col, row = cuda.grid(2)
    if row < m and col == 0:  # one thread has all of a row
        for j in range(n):
            acc = float32(0)
            for p in range(A.shape[1]):
                acc += A[row, p] * B[p, j]
            C[row, j] = alpha * acc if beta == 0 else alpha * acc + beta * C[row, j]
        A[row, 0] = 0


def raises(alpha, A, B, beta, C):
    col, row = cuda.grid(2)
    C[row, col] = alpha * undefined  # noqa: F821


def crowded(alpha, A, B, beta, C):
    As = cuda.shared.array((256, 256), float32)
    As[cuda.threadIdx.y, cuda.threadIdx.x] = 0


def uncompilable(alpha, A, B, beta, C):
    """Right on the simulator; Numba finds no one type for `scale`, a tuple of two lengths."""
    m, n = C.shape
    col, row = cuda.grid(2)
    if m > 0:  # noqa: SIM108 (always; two statements, as one would write them)
        scale = (1, 2)
    else:
        scale = (1, 2, 3)
    if row < m and col < n:
        acc = float32(0)
        for p in range(A.shape[1]):
            acc += scale[0] * A[row, p] * B[p, col]
        C[row, col] = alpha * acc if beta == 0 else alpha * acc + beta * C[row, col]


def strided(alpha, A, B, beta, C):
    """Right with any grid and any block: each thread takes every so-manieth element."""
    m, n = C.shape
    for e in range(cuda.grid(1), m * n, cuda.gridsize(1)):
        row, col = e // n, e % n
        acc = float32(0)
        for p in range(A.shape[1]):
            acc += A[row, p] * B[p, col]
        C[row, col] = alpha * acc if beta == 0 else alpha * acc + beta * C[row, col]


def other_order(A, B, C, alpha, beta):
    C[0, 0] = alpha


def build(tiling):
    return right


def build_endless(tiling):
    while True:
        pass


def build_other(tiling):
    return other_order


def build_nothing(tiling):
    return None


def build_failing(tiling):
    raise KeyError(tiling.block[7])
