"""Sparse matrices times vectors, in the formats that textbooks compare."""

import numpy as np
from numpy import float32, int32

from gemmlab import cuda

FULL = 0xFFFFFFFF
SIDE = 2  # of the blocks of block-CSR


def matrix(seed, rows=40, columns=50, filled=0.1):
    """A dense matrix with few entries, and its entries as rows, columns and values."""
    rng = np.random.default_rng(seed)
    dense = rng.random((rows, columns)) * (rng.random((rows, columns)) < filled)
    row, column = np.nonzero(dense)
    return dense, row.astype(int32), column.astype(int32), dense[row, column]


def csr(seed, **sizes):
    dense, row, column, values = matrix(seed, **sizes)
    pointers = np.searchsorted(row, np.arange(dense.shape[0] + 1)).astype(int32)
    return dense, pointers, column, values


@cuda.jit
def coo(row, column, values, x, y):
    i = cuda.grid(1)
    if i < values.size:
        cuda.atomic.add(y, row[i], values[i] * x[column[i]])


def product_in_coordinates(launch):
    dense, row, column, values = matrix(1)
    x, y = np.random.default_rng(1).random(50), np.zeros(40)
    launch(coo, -(-values.size // 64), 64, row, column, values, x, y)
    return y, dense @ x


@cuda.jit
def csr_scalar(pointers, columns, values, x, y):
    row = cuda.grid(1)
    if row < y.size:
        total = 0.0
        for k in range(pointers[row], pointers[row + 1]):
            total += values[k] * x[columns[k]]
        y[row] = total


def product_in_compressed_rows_one_thread_each(launch):
    dense, pointers, columns, values = csr(2)
    x, y = np.random.default_rng(2).random(50), np.zeros(40)
    launch(csr_scalar, 2, 32, pointers, columns, values, x, y)
    return y, dense @ x


@cuda.jit
def csr_vector(pointers, columns, values, x, y):
    lane = cuda.threadIdx.x & 31
    row = cuda.grid(1) // 32
    if row < y.size:
        total = float32(0.0)
        k = pointers[row] + lane
        while k < pointers[row + 1]:
            total += values[k] * x[columns[k]]
            k += 32
        offset = 16
        while offset > 0:
            total += cuda.shfl_down_sync(FULL, total, offset)
            offset >>= 1
        if lane == 0:
            y[row] = total


def product_in_compressed_rows_one_warp_each(launch):
    dense, pointers, columns, values = csr(3, rows=20, columns=200, filled=0.3)
    x, y = np.random.default_rng(3).random(200, float32), np.zeros(20, float32)
    launch(csr_vector, 5, 128, pointers, columns, values.astype(float32), x, y)
    return y, (dense @ x).astype(float32)


@cuda.jit
def ell(columns, values, x, y):
    row = cuda.grid(1)
    if row < values.shape[0]:
        total = 0.0
        for k in range(values.shape[1]):
            column = columns[row, k]
            if column != -1:
                total += values[row, k] * x[column]
        y[row] = total


def product_in_rows_of_one_length(launch):
    dense, pointers, columns, values = csr(4)
    width = np.diff(pointers).max()
    padded, padding = np.zeros((40, width)), np.full((40, width), -1)
    for r in range(40):
        part = slice(pointers[r], pointers[r + 1])
        padded[r, : part.stop - part.start] = values[part]
        padding[r, : part.stop - part.start] = columns[part]
    x, y = np.random.default_rng(4).random(50), np.zeros(40)
    columns_of, values_of = np.asfortranarray(padding), np.asfortranarray(padded)
    launch(ell, 2, 32, columns_of, values_of, x, y)
    return y, dense @ x


@cuda.jit
def diagonals(offsets, values, x, y):
    row = cuda.grid(1)
    if row < y.shape[0]:
        total = 0.0
        for d in range(offsets.shape[0]):
            column = row + offsets[d]
            if 0 <= column < x.shape[0]:
                total += values[d, row] * x[column]
        y[row] += total


def product_by_diagonals(launch):
    rng = np.random.default_rng(5)
    offsets, values, x, y = (
        np.array([-3, 0, 1, 5]),
        rng.random((4, 30)),
        rng.random(30),
        np.ones(30),
    )
    dense = np.zeros((30, 30))
    for d, offset in enumerate(offsets):
        for r in range(30):
            if 0 <= r + offset < 30:
                dense[r, r + offset] = values[d, r]
    launch(diagonals, 1, 64, offsets, values, x, y)
    return y, 1 + dense @ x


@cuda.jit
def block_csr(pointers, columns, blocks, x, y):
    row = cuda.grid(1)
    if row < y.size:
        block_row, r = divmod(row, SIDE)
        total = 0.0
        for k in range(pointers[block_row], pointers[block_row + 1]):
            for c in range(SIDE):
                total += blocks[k, r, c] * x[columns[k] * SIDE + c]
        y[row] = total


def product_in_small_dense_blocks(launch):
    rng = np.random.default_rng(6)
    pattern, pointers, columns, _ = csr(6, rows=15, columns=15, filled=0.3)
    blocks = rng.random((columns.size, SIDE, SIDE))
    dense = np.zeros((30, 30))
    for k, (r, c) in enumerate(zip(*np.nonzero(pattern), strict=True)):
        dense[SIDE * r : SIDE * r + SIDE, SIDE * c : SIDE * c + SIDE] = blocks[k]
    x, y = rng.random(30), np.zeros(30)
    launch(block_csr, 1, 32, pointers, columns, blocks, x, y)
    return y, dense @ x


@cuda.jit
def scatter_columns(pointers, rows, values, x, y):
    column = cuda.grid(1)
    if column < x.size and x[column] != 0:
        for k in range(pointers[column], pointers[column + 1]):
            cuda.atomic.add(y, rows[k], values[k] * x[column])


def product_in_compressed_columns(launch):
    dense, pointers, rows, values = csr(7)
    x, y = np.random.default_rng(7).random(40), np.zeros(50)
    x[::3] = 0
    launch(scatter_columns, 2, 32, pointers, rows, values, x, y)
    return y, dense.T @ x


@cuda.jit
def times_dense(pointers, columns, values, b, c):
    j, i = cuda.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        total = 0.0
        for k in range(pointers[i], pointers[i + 1]):
            total += values[k] * b[columns[k], j]
        c[i, j] = total


def sparse_times_dense_matrix(launch):
    dense, pointers, columns, values = csr(8)
    b, c = np.random.default_rng(8).random((50, 12)), np.zeros((40, 12))
    launch(times_dense, (2, 5), (8, 8), pointers, columns, values, b, c)
    return c, dense @ b


@cuda.jit
def row_products(pointers, columns, values, out):
    i, j = cuda.grid(2)
    n = out.shape[0]
    if i < n and j < n:
        a, b = pointers[i], pointers[j]
        total = 0.0
        while a < pointers[i + 1] and b < pointers[j + 1]:
            if columns[a] == columns[b]:
                total += values[a] * values[b]
                a += 1
                b += 1
            elif columns[a] < columns[b]:
                a += 1
            else:
                b += 1
        out[i, j] = total


def products_of_sparse_rows_by_merging(launch):
    dense, pointers, columns, values = csr(9, rows=14, filled=0.3)
    out = np.full((14, 14), np.nan)
    launch(row_products, (2, 2), (8, 8), pointers, columns, values, out)
    return out, dense @ dense.T
