"""Launches of kernels that others published, with their data, and what NumPy says of the results.

Sizes, grids and blocks are their authors' own, or larger where theirs would fit into L2.
"""

from __future__ import annotations

import numpy as np
from numpy import float16, float32, int32, int64, uint32

from benchmarks.forecast.compiled.case import Case, Launch
from benchmarks.forecast.compiled.of_nvcc import normal, softmax_of
from benchmarks.forecast.compiled.of_triton import bfloat16, float32_of


def whole(seed, low, high, *shape, dtype=int32):
    return np.random.default_rng(seed).integers(low, high, shape, dtype)


def some(rows):
    """Every so-many-th row, 64 at most, or 2**20 numbers: NumPy would need seconds for all."""
    return slice(0, None, -(-len(rows) // (64 if rows.ndim > 1 else 1 << 20)))


# ---------------------------------------------------------------------------- NVIDIA's cuda-samples


def transposition(size):
    x = normal(1, size, size)
    return Launch((size // 32, size // 32), (np.zeros_like(x), x, int32(size), int32(size)))


def transposition_check(y, x, width, height):
    rows = some(y)
    yield y[rows], x[:, rows].T


def histogram(size):
    x = whole(2, 0, 2**32, size, dtype=uint32)
    return Launch(240, (np.zeros((240, 256), uint32), x, uint32(size)))


def histogram_check(partial, x, n):
    yield partial.sum(0), np.bincount(x.view(np.uint8), minlength=256).astype(np.uint64)


def sort(size):
    """Blocks of 1024 keys."""
    keys = whole(3, 0, 2**32, size, 1024, dtype=uint32)
    values = np.arange(keys.size, dtype=uint32).reshape(keys.shape)
    return Launch(size, (np.zeros_like(keys), np.zeros_like(keys), keys, values))


def sort_check(keys, values, before, _):
    """Blocks fall and rise by turns, and each value goes with its key."""
    ordered = np.sort(before, axis=1)
    ordered[::2] = ordered[::2, ::-1]
    yield keys, ordered
    yield before.ravel()[values], keys


def product(size):
    a, b = normal(4, size, size), normal(5, size, size)
    grid = size // 32, size // 32
    return Launch(grid, (np.zeros_like(a), a, b, int32(size), int32(size)))


def product_check(c, a, b, *_):
    rows = some(a)
    yield c[rows], (a[rows].astype(float) @ b).astype(float32), 1e-5


def reduction(size):
    return Launch(64, (whole(6, -9, 10, size), np.zeros(64, int32), uint32(size)))


def reduction_check(x, sums, n):
    yield sums.sum(keepdims=True), x.sum(keepdims=True)


# ------------------------------------------------------------------------------- karpathy's llm.c

CHANNELS, WORDS = 768, 50_257


def layer_norm(size):
    x, weight, bias = normal(7, size, CHANNELS), normal(8, CHANNELS), normal(9, CHANNELS)
    told = np.zeros(size, float32), np.zeros(size, float32)
    sizes = int32(size), int32(CHANNELS)
    return Launch(-(-size // 8), (np.zeros_like(x), *told, x, weight, bias, *sizes))


def layer_norm_check(y, mean, rstd, x, weight, bias, *_):
    rows = some(x)
    wide = x[rows].astype(float)
    expected = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    yield y[rows], (expected * weight + bias).astype(float32), 1e-5
    yield mean, x.mean(1), 1e-5


def softmax(size):
    x = normal(10, size, WORDS)
    return Launch(-(-size // 4), (np.zeros_like(x), x, int32(size), int32(WORDS)))


def softmax_check(y, x, *_):
    rows = some(x)
    yield y[rows], softmax_of(x[rows].astype(float)).astype(float32), 1e-5


HEADS = 48


def causal_softmax(size):
    x = normal(11, HEADS, size, size)
    grid = -(-HEADS * size // 8)
    return Launch(grid, (np.zeros_like(x), float32(0.125), x, int32(HEADS), int32(size)))


def causal_softmax_check(y, scale, x, *_):
    masked = np.where(np.tri(x.shape[1], dtype=bool), x[0] * float(scale), -np.inf)
    yield y[0], softmax_of(masked).astype(float32), 1e-5


def attention(size):
    """Eight times twelve heads of 64 numbers, each by one warp; M begins as its author's memset."""
    q, k, v = (normal(seed, 96, size, 64) for seed in (12, 13, 14))
    low = np.full((96, size), 0xF0F0F0F0, uint32).view(float32)
    tiles = size // 32
    sizes = int32(size), int32(64), int32(tiles), int32(tiles), int32(32), int32(32), float32(0.125)
    return Launch((8, 12), (q, k, v, *sizes, np.zeros((96, size), float32), low, np.zeros_like(q)))


def attention_check(q, k, v, *rest):
    out = rest[-1]
    scores = np.where(np.tri(q.shape[1], dtype=bool), q[0].astype(float) @ k[0].T / 8, -np.inf)
    yield out[0], (softmax_of(scores) @ v[0]).astype(float32), 1e-4


def encoder(size):
    """Sentences of 1024 tokens."""
    tokens = whole(15, 0, WORDS, size, 1024)
    words, places = bfloat16(normal(16, WORDS, CHANNELS)), bfloat16(normal(17, 1024, CHANNELS))
    out = np.zeros((size, 1024, CHANNELS), np.uint16)
    sizes = int32(size), int32(1024), int32(CHANNELS)
    return Launch(out.size // 8 // 256, (out, tokens, words, places, *sizes))


def encoder_check(out, tokens, words, places, *_):
    expected = float32_of(words[tokens[0]]) + float32_of(places)
    yield float32_of(out[0]), expected, 2**-8


def layer(size):
    columns = 128 * max(1, 24 * size // 2048)
    x, weight, bias = normal(18, size, CHANNELS), normal(19, columns, CHANNELS), normal(20, columns)
    out = np.zeros((size, columns), float32)
    grid = size // 128, columns // 128
    return Launch(grid, (out, x, weight, bias, int32(CHANNELS), int32(columns)))


def layer_check(out, x, weight, bias, *_):
    rows = some(x)
    yield out[rows], (x[rows].astype(float) @ weight.T + bias).astype(float32), 1e-5


RATES = [float32(x) for x in (1e-3, 0.9, 0.999, 0.1, 0.001, 1e-8, 0.01)]


def adamw(size):
    arrays = normal(21, size), normal(22, size), normal(23, size), np.abs(normal(24, size))
    return Launch(-(-size // 512), (*arrays, int64(size), *RATES))


def adamw_check(p, gradient, m, v, n, rate, beta1, beta2, corrects1, corrects2, epsilon, decay):
    one = some(p)
    first, second, before = normal(23, n)[one], np.abs(normal(24, n))[one], normal(21, n)[one]
    p, gradient, m, v = p[one], gradient[one], m[one], v[one]
    yield m, beta1 * first + (1 - beta1) * gradient, 1e-5
    yield v, beta2 * second + (1 - beta2) * gradient**2, 1e-5
    step = m / corrects1 / (np.sqrt(v / corrects2) + epsilon) + decay * before
    yield p, before - rate * step, 1e-5


def gelu_backward(size):
    x, dy = bfloat16(normal(25, size)), bfloat16(normal(26, size))
    return Launch(-(-size // 8 // 256), (np.zeros_like(x), x, dy, int32(size)))


def gelu_backward_check(dx, x, dy, n):
    x, dy, dx = (float32_of(a[some(a)]) for a in (x, dy, dx))
    scale = float32((2 / np.pi) ** 0.5)
    t = np.tanh(scale * (x + float32(0.044715) * x**3))
    slope = scale * (1 + float32(3 * 0.044715) * x**2)
    yield dx, dy * (0.5 * (1 + t) + 0.5 * x * (1 - t**2) * slope), 2**-7


def bias(size):
    columns = 4 * CHANNELS
    dy = bfloat16(normal(27, size, columns))
    sizes = int32(8), int32(size // 8), int32(columns)
    return Launch(columns // 32, (np.zeros(columns, np.uint16), dy, *sizes))


def bias_check(out, dy, *_):
    yield float32_of(out), float32_of(dy).sum(0), 2**-7


# ------------------------------------------------------------ Liu-xiandong, How_to_optimize_in_GPU


def sparse(seed, rows, columns, mean):
    """Rows of 0 to 2·mean numbers, columns anywhere: where they begin, columns, numbers."""
    begins = mean * np.arange(rows + 1, dtype=int32)
    begins[1:-1] += whole(seed, -(mean // 2), mean // 2 + 1, rows - 1)
    return begins, whole(seed + 1, 0, columns, mean * rows), normal(seed + 2, mean * rows)


def sparse_vector(size):
    x, y = normal(31, size), np.zeros(size, float32)
    return Launch(-(-size // 16), (int32(size), *sparse(28, size, size, 16), x, y))


def sparse_vector_check(n, begins, columns, values, x, y):
    sums = np.add.reduceat(np.append(values.astype(float) * x[columns], 0), begins[:-1])
    expected = np.where(np.diff(begins) > 0, sums, 0).astype(float32)
    yield y, expected, 1e-5


def sparse_matrix(size):
    b, c = normal(35, size, 1024), np.zeros((size, 1024), float32)
    sizes = int32(1024), int32(1024)
    return Launch((8, size), (int32(size), *sparse(32, size, size, 64), b, c, *sizes))


def sparse_matrix_check(n, begins, columns, values, b, c, *_):
    for row in range(0, n, -(-n // 16)):
        one = slice(begins[row], begins[row + 1])
        yield c[row], (values[one].astype(float) @ b[columns[one]]).astype(float32), 1e-5


def vector(size):
    a, x = normal(36, size, 4096), normal(37, 4096)
    return Launch(size // 4, (a, x, np.zeros(size, float32), int32(size), int32(4096)))


def vector_check(a, x, y, *_):
    yield y, (a.astype(float) @ x).astype(float32), 1e-5


def tiles(size):
    a, b = normal(38, size, size), normal(39, size, size)
    return Launch((size // 128, size // 128), (a, b, np.zeros_like(a), *3 * [int32(size)]))


def tiles_check(a, b, c, *_):
    yield from product_check(c, a, b)


# ---------------------------------------------------------------------------- xlite-dev's LeetCUDA

HALF = 2048  # of a token's numbers


def rope(size):
    x = normal(40, size, 2 * HALF)
    return Launch(x.size // 2 // 256, (x, np.zeros_like(x), int32(size), int32(HALF)))


def rope_check(x, y, n, half):
    rows = some(x)
    angle = np.arange(n)[rows, None] * 10_000.0 ** (-np.arange(half) / half)
    wide = x[rows].astype(float)
    pairs = (wide[:, ::2] + 1j * wide[:, 1::2]) * np.exp(1j * angle)
    yield y[rows], np.stack([pairs.real, pairs.imag], 2).reshape(y[rows].shape), 2e-3


def atomics(size):
    return Launch(-(-size // 256), (whole(41, 0, 1024, size), np.zeros(1024, int32), int32(size)))


def atomics_check(x, counts, n):
    yield counts, np.bincount(x, minlength=1024).astype(int32)


def half_tiles(size):
    a, b = normal(42, size, size).astype(float16), normal(43, size, size).astype(float16)
    return Launch((size // 128, size // 128), (a, b, np.zeros_like(a), *3 * [int32(size)]))


def half_tiles_check(a, b, c, *_):
    """Sums are in float16."""
    rows = some(a)
    yield c[rows].astype(float32), a[rows].astype(float32) @ b.astype(float32), 0.02


def flash(size):
    """Four times sixteen heads of 64 numbers."""
    q, k, v = (normal(seed, 64, size, 64).astype(float16) for seed in (44, 45, 46))
    return Launch((size // 64, 64), (q, k, v, np.zeros_like(q), int32(size), int32(16)))


def flash_check(q, k, v, out, *_):
    scores = q[0].astype(float) @ k[0].T.astype(float) / 8
    yield out[0].astype(float), softmax_of(scores) @ v[0], 0.02


CASES = (
    Case("transpose_naive", "a transposition, stores apart", transposition, transposition_check,
         4096, 64, (32, 16)),
    Case("transpose_coalesced", "a transposition by tiles, with conflicts of banks",
         transposition, transposition_check, 4096, 64, (32, 16)),
    Case("histogram256", "256 counts of each warp in shared memory", histogram, histogram_check,
         1 << 24, 50_000, 192),
    Case("bitonic_sort", "1024 keys and values of a block sorted", sort, sort_check,
         8192, 2, 512),
    Case("matrix_mul", "a product by 32×32 tiles", product, product_check, 2048, 64, (32, 32)),
    Case("reduce7", "a sum of integers by 64 blocks", reduction, reduction_check,
         1 << 25, 1 << 15, 256),
    Case("layernorm3", "layer norm of a row by a warp", layer_norm, layer_norm_check,
         32_768, 10, 256),
    Case("softmax_online8", "softmax of 50,257 numbers by a warp", softmax, softmax_check,
         1024, 4, 128),
    Case("softmax5", "softmax of causal attention", causal_softmax, causal_softmax_check,
         1024, 40, 256),
    Case("attention2", "causal attention of a head by a warp", attention, attention_check,
         128, 32, 32),
    Case("encoder3", "rows gathered from a table, and added", encoder, encoder_check,
         32, 1, 256),
    Case("matmul4", "a product and a bias, 128×128 tiles", layer, layer_check,
         2048, 128, (16, 16)),
    Case("adamw2", "a step of AdamW", adamw, adamw_check, 1 << 24, 3000, 512),
    Case("gelu_backward2", "GELU's gradient in bfloat16", gelu_backward, gelu_backward_check,
         25_165_824, 4096, 256),
    Case("bias4", "sums of columns in bfloat16", bias, bias_check, 8192, 64, 512),
    Case("spmv", "a sparse matrix times a vector", sparse_vector, sparse_vector_check,
         1 << 20, 300, 256),
    Case("spmm", "a sparse matrix times a matrix", sparse_matrix, sparse_matrix_check,
         4096, 20, 128),
    Case("sgemv1", "a matrix times a vector, a row a warp", vector, vector_check,
         8192, 8, (32, 4)),
    Case("sgemm3", "a product, 128×128 tiles, two buffers", tiles, tiles_check,
         4096, 128, (16, 16)),
    Case("rope", "pairs turned by angles of their places", rope, rope_check, 8192, 2, 256),
    Case("histogram_atomics", "1024 counts by atomics in global memory", atomics, atomics_check,
         1 << 24, 4000, 64),
    Case("hgemm_wmma", "a float16 product by WMMA", half_tiles, half_tiles_check,
         4096, 128, 256),
    Case("hgemm_mma_stages", "a float16 product by mma, three stages",
         half_tiles, half_tiles_check, 4096, 128, 256),
    Case("flash_attn", "attention by mma, two stages", flash, flash_check, 2048, 64, 128),
)  # fmt: skip
