"""Ten kernels of CUDA C++ with their launches, and what NumPy says of them."""

from __future__ import annotations

import numpy as np
from numpy import float32, int32, uint8, uint32

from benchmarks.forecast.compiled.case import Case, Launch
from benchmarks.forecast.others.case import compared


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape, float32)


def saxpy(size):
    x, y = normal(1, size), normal(2, size)
    return Launch(-(-size // 256), (int32(size), float32(1.5), x, y))


def saxpy_check(n, a, x, y):
    yield compared(y, a * x + normal(2, n), float32(1), 1)


def reduction(size):
    return Launch(min(1056, -(-size // 256)), (normal(3, size), np.zeros(1, float32), int32(size)))


def reduction_check(x, total, n):
    yield compared(total, x.sum(dtype=float, keepdims=True), np.abs(x).sum(dtype=float), n)


COLUMNS = 4096


def softmax(size):
    x = normal(4, size, COLUMNS)
    return Launch(size, (x, np.zeros_like(x), int32(COLUMNS)))


def softmax_of(x):
    powers = np.exp(x - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def softmax_check(x, y, columns):
    yield compared(y, softmax_of(x), float32(1), columns)


def product(size):
    a, b = normal(5, size, size), normal(6, size, size)
    return Launch((-(-size // 16), -(-size // 16)), (int32(size), a, b, np.zeros_like(a)))


def tiles(size):
    return product(size)._replace(grid=(size // 128, size // 128))


def product_check(n, a, b, c):
    yield c, (a.astype(float) @ b).astype(float32), 1e-5


def transposition(size):
    a = normal(7, size, size)
    return Launch((size // 32, size // 32), (a, np.zeros_like(a), int32(size)))


def transposition_check(a, b, n):
    yield b, a.T


def stencil(size):
    """A grid of 16·size × 8·size × 2·size + 2 points, edges included."""
    x, y, z = 16 * size, 8 * size, 2 * size + 2
    u = normal(8, z, y, x)
    sizes = np.array((x, y, z), [("x", int32), ("y", int32), ("z", int32)])
    return Launch((-(-x // 32), -(-y // 8)), (sizes, float32(0.1), u, np.zeros_like(u)))


def stencil_check(sizes, c, u, v):
    inner = slice(1, -1)
    around = u[:-2, inner, inner] + u[2:, inner, inner] + u[inner, :-2, inner]
    around = around + u[inner, 2:, inner] + u[inner, inner, :-2] + u[inner, inner, 2:]
    expected = np.zeros_like(u)
    here = u[inner, inner, inner]
    expected[inner, inner, inner] = here + c * (around - 6 * here)
    yield compared(v, expected, float32(10), 8)


def histogram(size):
    grey = np.random.default_rng(9).normal(128, 40, (size, 4)).clip(0, 255).astype(uint8)
    return Launch(min(1056, -(-size // 256)), (grey, np.zeros(256, uint32), uint32(size)))


def histogram_check(x, counts, n):
    yield counts, np.bincount(x.ravel(), minlength=256).astype(uint32)


def scan(size):
    x = np.random.default_rng(10).integers(-9, 10, (size, 1024), int32)
    return Launch(size, (x, np.zeros_like(x)))


def scan_check(x, y):
    yield y, np.cumsum(x, axis=1, dtype=int32)


def convolution(size):
    x = np.random.default_rng(11).integers(0, 256, (size, 2 * size), uint8)
    return Launch((size // 16, size // 8), (x, np.zeros_like(x), int32(2 * size), int32(size)))


def convolution_check(x, y, width, height):
    side = np.array((1, 2, 3, 4, 3, 2, 1))
    weights = np.stack([side, 2 * side, 3 * side, 4 * side, 3 * side, 2 * side, side])
    weights[0], weights[1], weights[2] = side, (2, 4, 6, 8, 6, 4, 2), (3, 6, 9, 12, 9, 6, 3)
    weights[3] = 4, 8, 12, 16, 12, 8, 4
    padded = np.pad(x.astype(np.int64), 3, "edge")
    total = sum(
        weights[i, j] * padded[i : i + height, j : j + width] for i in range(7) for j in range(7)
    )
    yield y, ((total + 128) // 256).astype(uint8)


CASES = (
    Case("saxpy", "y = a·x + y", saxpy, saxpy_check, 20_000_000, 3000, 256),
    Case("reduction", "a sum by shuffles and atomics", reduction, reduction_check,
         40_000_000, 3000, 256),
    Case("softmax", "softmax of rows, read three times", softmax, softmax_check, 8192, 2, 256),
    Case("matmul_plain", "a product, a thread an element", product, product_check,
         1024, 40, (16, 16)),
    Case("matmul_tiled", "a product, 128×128 tiles, 8×8 sums", tiles, product_check,
         2048, 128, 256),
    Case("transposition", "a transposition by padded tiles", transposition, transposition_check,
         8000, 64, (32, 8)),
    Case("stencil", "a stencil of seven points in three dimensions", stencil, stencil_check,
         60, 2, (32, 8)),
    Case("histogram", "256 counts by atomics in shared memory", histogram, histogram_check,
         16_000_000, 2000, 256),
    Case("scan", "running sums of a block by shuffles", scan, scan_check, 40_000, 2, 256),
    Case("convolution", "a 7×7 filter of bytes, constant memory", convolution, convolution_check,
         6400, 32, (32, 8)),
)  # fmt: skip
