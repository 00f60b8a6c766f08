"""Vectors and matrices: products, factorisations, triangular systems, iterations."""

import math

import numpy as np
from numpy import float32, float64

from gemmlab import cuda

TPB = 8
PADDED = 9
ORDER = 4
MOST = 24


@cuda.jit
def matvec(a, x, y):
    row = cuda.grid(1)
    if row < a.shape[0]:
        total = 0.0
        for k in range(a.shape[1]):
            total += a[row, k] * x[k]
        y[row] = total


def matrix_times_vector(launch):
    rng = np.random.default_rng(1)
    a, x, y = rng.random((50, 33)), rng.random(33), np.zeros(50)
    launch(matvec, 2, 32, a, x, y)
    return y, np.einsum("ij,j->i", a, x)


@cuda.jit
def outer(x, y, out):
    j, i = cuda.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        out[i, j] += x[i] * y[j]


def outer_product_added(launch):
    rng = np.random.default_rng(2)
    x, y, out = rng.random(20), rng.random(27), rng.random((20, 27))
    expected = out + x[:, None] * y
    launch(outer, (4, 3), (8, 8), x, y, out)
    return out, expected


@cuda.jit
def matmul(A, B, C):
    i, j = cuda.grid(2)
    if i < C.shape[0] and j < C.shape[1]:
        tmp = 0.0
        for k in range(A.shape[1]):
            tmp += A[i, k] * B[k, j]
        C[i, j] = tmp


def product_element_by_element(launch):
    rng = np.random.default_rng(3)
    a, b, c = rng.random((19, 23)), rng.random((23, 30)), np.zeros((19, 30))
    launch(matmul, (3, 4), (8, 8), a, b, c)
    return c, np.einsum("ik,kj->ij", a, b)


@cuda.jit
def fast_matmul(A, B, C):
    sA = cuda.shared.array(shape=(TPB, TPB), dtype=float32)
    sB = cuda.shared.array(shape=(TPB, TPB), dtype=float32)
    x, y = cuda.grid(2)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    tmp = float32(0.0)
    for i in range((A.shape[1] + TPB - 1) // TPB):
        sA[ty, tx] = 0
        sB[ty, tx] = 0
        if y < A.shape[0] and (tx + i * TPB) < A.shape[1]:
            sA[ty, tx] = A[y, tx + i * TPB]
        if x < B.shape[1] and (ty + i * TPB) < B.shape[0]:
            sB[ty, tx] = B[ty + i * TPB, x]
        cuda.syncthreads()
        for j in range(TPB):
            tmp += sA[ty, j] * sB[j, tx]
        cuda.syncthreads()
    if y < C.shape[0] and x < C.shape[1]:
        C[y, x] = tmp


def product_with_tiles(launch):
    rng = np.random.default_rng(4)
    a, b = rng.random((21, 37), float32), rng.random((37, 26), float32)
    c = np.full((21, 26), np.nan, float32)
    launch(fast_matmul, (4, 3), (TPB, TPB), a, b, c)
    return c, np.einsum("ik,kj->ij", a.astype(float), b).astype(float32)


@cuda.jit
def transpose(x, y):
    tile = cuda.shared.array((TPB, PADDED), float64)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    column = cuda.blockIdx.x * TPB + tx
    row = cuda.blockIdx.y * TPB + ty
    if row < x.shape[0] and column < x.shape[1]:
        tile[ty, tx] = x[row, column]
    cuda.syncthreads()
    column = cuda.blockIdx.y * TPB + tx
    row = cuda.blockIdx.x * TPB + ty
    if row < y.shape[0] and column < y.shape[1]:
        y[row, column] = tile[tx, ty]


def transposition_with_tiles(launch):
    x = np.random.default_rng(5).random((21, 30))
    y = np.zeros((30, 21))
    launch(transpose, (4, 3), (TPB, TPB), x, y)
    return y, np.array([[x[i, j] for i in range(21)] for j in range(30)])


def positive(seed, n):
    a = np.random.default_rng(seed).random((n, n))
    return a @ a.T + n * np.eye(n)


@cuda.jit
def cholesky(a):
    t = cuda.threadIdx.x
    n = a.shape[0]
    for k in range(n):
        if t == 0:
            a[k, k] = math.sqrt(a[k, k])
        cuda.syncthreads()
        i = k + 1 + t
        if i < n:
            a[i, k] /= a[k, k]
        cuda.syncthreads()
        if i < n:
            for j in range(k + 1, i + 1):
                a[i, j] -= a[i, k] * a[j, k]
        cuda.syncthreads()


def factor_of_cholesky(launch):
    a = positive(6, 20)
    expected = np.linalg.cholesky(a)
    launch(cholesky, 1, 32, a)
    return np.tril(a), expected, 1e-12


@cuda.jit
def scale_column(a, k):
    i = cuda.grid(1) + k + 1
    if i < a.shape[0]:
        a[i, k] = a[i, k] / a[k, k]


@cuda.jit
def eliminate(a, k):
    j, i = cuda.grid(2)
    i += k + 1
    j += k + 1
    if i < a.shape[0] and j < a.shape[1]:
        a[i, j] -= a[i, k] * a[k, j]


def factors_lower_and_upper(launch):
    original = positive(7, 18)
    a = original.copy()
    for k in range(17):
        launch(scale_column, 1, 32, a, k)
        launch(eliminate, (3, 3), (8, 8), a, k)
    lower = np.tril(a, -1) + np.eye(18)
    return [(lower @ np.triu(a), original, 1e-12), (np.prod(np.diag(a)) > 0, True)]


@cuda.jit
def forward_substitution(lower, b, x):
    solved = cuda.shared.array(MOST, float64)
    t = cuda.threadIdx.x
    n = b.size
    own = b[t] if t < n else 0.0
    for k in range(n):
        if t == k:
            solved[k] = own / lower[k, k]
        cuda.syncthreads()
        if k < t < n:
            own -= lower[t, k] * solved[k]
    if t < n:
        x[t] = solved[t]


def triangular_system(launch):
    lower, b = np.tril(positive(8, MOST)), np.random.default_rng(8).random(MOST)
    x = np.zeros(MOST)
    launch(forward_substitution, 1, 32, lower, b, x)
    return x, np.linalg.solve(lower, b), 1e-12


@cuda.jit
def jacobi(a, b, x, new_x):
    i = cuda.grid(1)
    if i < b.size:
        total = b[i]
        for j in range(b.size):
            if j != i:
                total -= a[i, j] * x[j]
        new_x[i] = total / a[i, i]


def iteration_of_jacobi(launch):
    a, b = np.random.default_rng(9).random((30, 30)) + 30 * np.eye(30), np.arange(30.0)
    x, y = np.zeros(30), np.zeros(30)
    for _ in range(40):
        launch(jacobi, 1, 32, a, b, x, y)
        x, y = y, x
    return x, np.linalg.solve(a, b), 1e-10


@cuda.jit
def square(x, total):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(total, 0, x[i] * x[i])


@cuda.jit
def divide(x, total):
    i = cuda.grid(1)
    if i < x.size:
        x[i] /= math.sqrt(total[0])


def power_iteration(launch):
    a = positive(10, 12)
    x, y = np.ones(12), np.zeros(12)
    for _ in range(60):
        total = np.zeros(1)
        launch(matvec, 1, 16, a, x, y)
        launch(square, 1, 16, y, total)
        launch(divide, 1, 16, y, total)
        x, y = y, x
    values, vectors = np.linalg.eigh(a)
    return [(abs(x @ vectors[:, -1]), 1.0, 1e-6), (x @ a @ x, values[-1], 1e-6)]


@cuda.jit
def rotate_rows(a, q):
    t = cuda.threadIdx.x
    n = a.shape[0]
    for j in range(n - 1):
        for i in range(n - 1, j, -1):
            upper, lower = a[i - 1, j], a[i, j]
            cuda.syncthreads()
            r = math.hypot(upper, lower)
            if r != 0.0:
                c, s = upper / r, lower / r
                if t < n:
                    p, o = a[i - 1, t], a[i, t]
                    a[i - 1, t], a[i, t] = c * p + s * o, c * o - s * p
                    p, o = q[i - 1, t], q[i, t]
                    q[i - 1, t], q[i, t] = c * p + s * o, c * o - s * p
            cuda.syncthreads()


def factors_of_givens(launch):
    original = np.random.default_rng(11).random((10, 10))
    a, q = original.copy(), np.eye(10)
    launch(rotate_rows, 1, 32, a, q)
    return [
        (q.T @ a, original, 1e-13),
        (q @ q.T, np.eye(10), 1e-13),
        (np.abs(np.tril(a, -1)).max() < 1e-14, True),
        (np.abs(np.diag(a)), np.abs(np.diag(np.linalg.qr(original)[1])), 1e-12),
    ]


@cuda.jit(device=True)
def swap_rows(m, i, j):
    for k in range(ORDER):
        temp = m[i, k]
        m[i, k] = m[j, k]
        m[j, k] = temp


@cuda.jit
def determinants(matrices, out):
    t = cuda.grid(1)
    if t >= out.size:
        return
    m = cuda.local.array((ORDER, ORDER), float64)
    for i in range(ORDER):
        for j in range(ORDER):
            m[i, j] = matrices[t, i, j]
    result = 1.0
    for k in range(ORDER):
        pivot = k
        for i in range(k + 1, ORDER):
            if abs(m[i, k]) > abs(m[pivot, k]):
                pivot = i
        if m[pivot, k] == 0.0:
            out[t] = 0.0
            return
        if pivot != k:
            swap_rows(m, pivot, k)
            result = -result
        result *= m[k, k]
        for i in range(k + 1, ORDER):
            factor = m[i, k] / m[k, k]
            for j in range(k, ORDER):
                m[i, j] -= factor * m[k, j]
    out[t] = result


def determinants_of_many_small_matrices(launch):
    matrices = np.random.default_rng(12).integers(-3, 4, (60, ORDER, ORDER)).astype(float)
    matrices[0] = 0
    out = np.full(60, np.nan)
    launch(determinants, 2, 32, matrices, out)
    return out, np.linalg.det(matrices), 1e-12


@cuda.jit
def thomas(lower, diagonal, upper, right, x):
    s = cuda.grid(1)
    n = x.shape[1]
    if s < x.shape[0]:
        c = cuda.local.array(MOST, float64)
        c[0] = upper[s, 0] / diagonal[s, 0]
        x[s, 0] = right[s, 0] / diagonal[s, 0]
        for i in range(1, n):
            scale = 1.0 / (diagonal[s, i] - lower[s, i] * c[i - 1])
            c[i] = upper[s, i] * scale
            x[s, i] = (right[s, i] - lower[s, i] * x[s, i - 1]) * scale
        for i in range(n - 2, -1, -1):
            x[s, i] -= c[i] * x[s, i + 1]


def tridiagonal_systems_of_thomas(launch):
    rng = np.random.default_rng(13)
    lower, upper, right = rng.random((3, 40, MOST))
    diagonal, x = 3 + rng.random((40, MOST)), np.zeros((40, MOST))
    launch(thomas, 2, 32, lower, diagonal, upper, right, x)
    expected = [
        np.linalg.solve(np.diag(d) + np.diag(a[1:], -1) + np.diag(c[:-1], 1), r)
        for a, d, c, r in zip(lower, diagonal, upper, right, strict=True)
    ]
    return x, np.array(expected), 1e-12


@cuda.jit
def cyclic_reduction(a, b, c, d):
    i = cuda.threadIdx.x
    n = d.size
    step = 1
    while step < n:
        low, high = i - step, i + step
        own_a = own_c = 0.0
        own_b, own_d = b[i], d[i]
        if low >= 0:
            factor = a[i] / b[low]
            own_a = -factor * a[low]
            own_b -= factor * c[low]
            own_d -= factor * d[low]
        if high < n:
            factor = c[i] / b[high]
            own_c = -factor * c[high]
            own_b -= factor * a[high]
            own_d -= factor * d[high]
        cuda.syncthreads()
        a[i], b[i], c[i], d[i] = own_a, own_b, own_c, own_d
        cuda.syncthreads()
        step *= 2
    d[i] /= b[i]


def tridiagonal_system_by_cyclic_reduction(launch):
    a, c, d = np.random.default_rng(14).random((3, 50))
    b = 3 + np.random.default_rng(15).random(50)
    a[0] = c[-1] = 0
    expected = np.linalg.solve(np.diag(b) + np.diag(a[1:], -1) + np.diag(c[:-1], 1), d)
    launch(cyclic_reduction, 1, 50, a, b, c, d)
    return d, expected, 1e-12
