"""Right answers to exercise 06.2, each in a style of its own."""

from numpy import float32

from gemmlab import cuda
from gemmlab.course.ch06_register_tiles.q2_wide_loads import ZEROS
from gemmlab.instructions import (
    cp_async_16,
    cp_async_commit,
    cp_async_wait,
    load_v4,
    store_v4,
)


def written_out(T):
    """Sixteen named sums, columns first, and the tile of B stored word by word."""
    wide = 4 * T

    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((T, wide), float32, alignment=16)
        Bs = cuda.shared.array((T, wide), float32, alignment=16)
        m, n = C.shape
        k = A.shape[1]
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        row, col = cuda.blockIdx.y * wide, cuda.blockIdx.x * wide
        t = y * T + x
        q = 4 * (t % (T // 4))
        i = t // (T // 4)
        acc = cuda.local.array((4, 4), float32)
        for c in range(4):
            for r in range(4):
                acc[r, c] = 0
        start = 0
        while start < k:
            v = ZEROS
            if row + i < m and start + q < k:
                v = load_v4(A, row + i, start + q)
            for e in range(4):
                As[q + e, i] = v[e]
            w = ZEROS
            if start + y < k and col + 4 * x < n:
                w = load_v4(B, start + y, col + 4 * x)
            for e in range(4):
                Bs[y, 4 * x + e] = w[e]
            cuda.syncthreads()
            p = 0
            while p < T:
                b0, b1, b2, b3 = load_v4(Bs, p, 4 * x)
                a = load_v4(As, p, 4 * y)
                for r in range(4):
                    acc[r, 0] += a[r] * b0
                    acc[r, 1] += a[r] * b1
                    acc[r, 2] += a[r] * b2
                    acc[r, 3] += a[r] * b3
                p += 1
            cuda.syncthreads()
            start += T
        for r in range(4):
            for c in range(4):
                i_c, j_c = row + 4 * y + r, col + 4 * x + c
                if i_c < m and j_c < n:
                    if beta == 0:
                        C[i_c, j_c] = alpha * acc[r, c]
                    else:
                        C[i_c, j_c] = alpha * acc[r, c] + beta * C[i_c, j_c]

    return kernel


def stored_in_fours(T):
    """The solution with another epilogue: a row of four is updated at once."""
    wide, across = 4 * T, T // 4

    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((T, wide), float32, alignment=16)
        Bs = cuda.shared.array((T, wide), float32, alignment=16)
        m, n = C.shape
        k = A.shape[1]
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        row, col = cuda.blockIdx.y * wide, cuda.blockIdx.x * wide
        i, q = (y * T + x) // across, (y * T + x) % across * 4
        acc = cuda.local.array((4, 4), float32)
        for r in range(4):
            for c in range(4):
                acc[r, c] = 0
        for start in range(0, k, T):
            v = load_v4(A, row + i, start + q) if row + i < m and start + q < k else ZEROS
            As[q, i], As[q + 1, i], As[q + 2, i], As[q + 3, i] = v
            inside = start + y < k and col + 4 * x < n
            store_v4(Bs, y, 4 * x, load_v4(B, start + y, col + 4 * x) if inside else ZEROS)
            cuda.syncthreads()
            for p in range(T):
                a, b = load_v4(As, p, 4 * y), load_v4(Bs, p, 4 * x)
                for r in range(4):
                    for c in range(4):
                        acc[r, c] += a[r] * b[c]
            cuda.syncthreads()
        j = col + 4 * x
        for r in range(4):
            if row + 4 * y + r < m and j < n:
                old = load_v4(C, row + 4 * y + r, j) if beta != 0 else ZEROS
                new = (
                    alpha * acc[r, 0] + beta * old[0], alpha * acc[r, 1] + beta * old[1],
                    alpha * acc[r, 2] + beta * old[2], alpha * acc[r, 3] + beta * old[3],
                )  # fmt: skip
                store_v4(C, row + 4 * y + r, j, new)

    return kernel


def rows_as_they_lie(T):
    """The tile of A is not transposed: four groups along k, for each of the thread's rows."""
    wide, across = 4 * T, T // 4
    padded = T + 4

    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((wide, padded), float32, alignment=16)
        Bs = cuda.shared.array((T, wide), float32, alignment=16)
        m, n = C.shape
        k = A.shape[1]
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        row, col = cuda.blockIdx.y * wide, cuda.blockIdx.x * wide
        i, q = (y * T + x) // across, (y * T + x) % across << 2
        acc = cuda.local.array(16, float32)
        a, b = cuda.local.array((4, 4), float32), cuda.local.array((4, 4), float32)
        for e in range(16):
            acc[e] = 0
        start = 0
        while start < k:
            store_v4(
                As, i, q, load_v4(A, row + i, start + q) if row + i < m and start + q < k else ZEROS
            )
            inside = start + y < k and col + 4 * x < n
            store_v4(Bs, y, x << 2, load_v4(B, start + y, col + (x << 2)) if inside else ZEROS)
            cuda.syncthreads()
            for p in range(0, T, 4):
                for e in range(4):
                    a[e, 0], a[e, 1], a[e, 2], a[e, 3] = load_v4(As, 4 * y + e, p)
                    b[e, 0], b[e, 1], b[e, 2], b[e, 3] = load_v4(Bs, p + e, 4 * x)
                for e in range(16):
                    for q4 in range(4):
                        acc[e] += a[e >> 2, q4] * b[q4, e & 3]
            cuda.syncthreads()
            start += T
        for e in range(16):
            r, c = row + 4 * y + (e >> 2), col + 4 * x + (e & 3)
            if r < m and c < n:
                C[r, c] = alpha * acc[e] if beta == 0 else alpha * acc[e] + beta * C[r, c]

    return kernel


@cuda.jit(device=True)
def four(X, i, j):
    """Four elements of X from X[i, j] on, or four zeros."""
    return load_v4(X, i, j) if i < X.shape[0] and j < X.shape[1] else ZEROS


def with_a_device_function(T):
    """Groups of A by a device function, and each thread's FMAs row by row."""
    wide, across = 4 * T, T // 4

    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((T, wide), float32, alignment=16)
        Bs = cuda.shared.array((T, wide), float32, alignment=16)
        t = cuda.threadIdx.y * T + cuda.threadIdx.x
        down, right = cuda.blockIdx.y * wide, cuda.blockIdx.x * wide
        i, j = 4 * cuda.threadIdx.y, 4 * cuda.threadIdx.x
        acc = cuda.local.array((4, 4), float32)
        for e in range(16):
            acc[e // 4, e % 4] = float32(0)
        for start in range(0, A.shape[1], T):
            v0, v1, v2, v3 = four(A, down + t // across, start + 4 * (t % across))
            q = 4 * (t % across)
            As[q, t // across] = v0
            As[q + 1, t // across] = v1
            As[q + 2, t // across] = v2
            As[q + 3, t // across] = v3
            store_v4(Bs, t // T, j, four(B, start + t // T, right + j))
            cuda.syncthreads()
            for p in range(T):
                a, b = load_v4(As, p, i), load_v4(Bs, p, j)
                for c in range(4):
                    for r in range(4):
                        acc[r, c] += a[r] * b[c]
            cuda.syncthreads()
        for r in range(4):
            for c in range(4):
                if down + i + r < C.shape[0] and right + j + c < C.shape[1]:
                    sum_ = alpha * acc[r, c]
                    if beta != 0:
                        sum_ += beta * C[down + i + r, right + j + c]
                    C[down + i + r, right + j + c] = sum_

    return kernel


def b_in_the_background(T):
    """B by cp.async, 16 bytes at once; A through registers, which transpose it."""
    wide, across = 4 * T, T // 4

    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((T, wide), float32, alignment=16)
        Bs = cuda.shared.array((T, wide), float32, alignment=16)
        m, n = C.shape
        k = A.shape[1]
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        row, col = cuda.blockIdx.y * wide, cuda.blockIdx.x * wide
        i, q = (y * T + x) // across, (y * T + x) % across * 4
        acc = cuda.local.array((4, 4), float32)
        for r in range(4):
            for c in range(4):
                acc[r, c] = 0
        for start in range(0, k, T):
            j = col + 4 * x
            cp_async_16(Bs, y, 4 * x, B, start + y, j, start + y < k and j < n)
            cp_async_commit()
            v = load_v4(A, row + i, start + q) if row + i < m and start + q < k else ZEROS
            for e in range(4):
                As[q + e, i] = v[e]
            cp_async_wait(0)
            cuda.syncthreads()
            for p in range(T):
                a, b = load_v4(As, p, 4 * y), load_v4(Bs, p, 4 * x)
                for r in range(4):
                    for c in range(4):
                        acc[r, c] += a[r] * b[c]
            cuda.syncthreads()
        for r in range(4):
            for c in range(4):
                if row + 4 * y + r < m and col + 4 * x + c < n:
                    old = C[row + 4 * y + r, col + 4 * x + c] if beta != 0 else float32(0)
                    C[row + 4 * y + r, col + 4 * x + c] = alpha * acc[r, c] + beta * old

    return kernel
