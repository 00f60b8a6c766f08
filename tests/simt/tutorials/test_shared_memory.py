"""Tutorials: kernels with shared memory give what NumPy and plain Python give."""

import numpy as np
import pytest
from numpy import float32, float64, int32, uint8

from gemmlab.simt import cuda

RNG = np.random.default_rng(7)
THREADS = 64
HALO = THREADS + 2
TILE, PADDED = 8, 9


@cuda.jit
def histogram(data, bins):
    local = cuda.shared.array(16, dtype=int32)
    t = cuda.threadIdx.x
    if t < 16:
        local[t] = 0
    cuda.syncthreads()
    i = cuda.grid(1)
    while i < data.size:
        cuda.atomic.add(local, data[i] // 16, 1)
        i += cuda.gridsize(1)
    cuda.syncthreads()
    if t < 16:
        cuda.atomic.add(bins, t, local[t])


def test_histogram():
    data, bins = RNG.integers(0, 256, 5000).astype(uint8), np.zeros(16, int32)
    histogram[4, 64](data, bins)
    np.testing.assert_array_equal(bins, np.bincount(data // 16, minlength=16))


@cuda.jit
def hillis_steele(x, out):
    buffer = cuda.shared.array((2, THREADS), float64)
    t = cuda.threadIdx.x
    source, target = 0, 1
    buffer[source, t] = x[t]
    cuda.syncthreads()
    step = 1
    while step < THREADS:
        if t >= step:
            buffer[target, t] = buffer[source, t] + buffer[source, t - step]
        else:
            buffer[target, t] = buffer[source, t]
        source, target = target, source
        cuda.syncthreads()
        step *= 2
    out[t] = buffer[source, t]


@cuda.jit
def blelloch(x, out):
    temp = cuda.shared.array(shape=THREADS, dtype=float64)
    t = cuda.threadIdx.x
    n = THREADS
    temp[2 * t] = x[2 * t]
    temp[2 * t + 1] = x[2 * t + 1]
    offset = 1
    d = n >> 1
    while d > 0:
        cuda.syncthreads()
        if t < d:
            ai = offset * (2 * t + 1) - 1
            bi = offset * (2 * t + 2) - 1
            temp[bi] += temp[ai]
        offset *= 2
        d >>= 1
    if t == 0:
        temp[n - 1] = 0
    d = 1
    while d < n:
        offset >>= 1
        cuda.syncthreads()
        if t < d:
            ai = offset * (2 * t + 1) - 1
            bi = offset * (2 * t + 2) - 1
            swapped = temp[ai]
            temp[ai] = temp[bi]
            temp[bi] += swapped
        d *= 2
    cuda.syncthreads()
    out[2 * t] = temp[2 * t]
    out[2 * t + 1] = temp[2 * t + 1]


def test_scans():
    x, out = RNG.integers(0, 9, THREADS).astype(float), np.zeros(THREADS)
    hillis_steele[1, THREADS](x, out)
    np.testing.assert_array_equal(out, np.cumsum(x))
    blelloch[1, THREADS // 2](x, out)
    np.testing.assert_array_equal(out, np.cumsum(x) - x)


@cuda.jit
def stencil(x, out):
    tile = cuda.shared.array(HALO, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    n = x.size
    tile[t + 1] = x[i] if i < n else 0
    if t == 0:
        tile[0] = x[i - 1] if 0 < i <= n else 0
    if t == cuda.blockDim.x - 1:
        tile[t + 2] = x[i + 1] if i + 1 < n else 0
    cuda.syncthreads()
    if 0 < i < n - 1:
        out[i] = 0.25 * tile[t] + 0.5 * tile[t + 1] + 0.25 * tile[t + 2]


def test_stencil_with_a_halo():
    x = RNG.random(200).astype(float32)
    out = np.zeros_like(x)
    stencil[4, THREADS](x, out)
    np.testing.assert_allclose(out[1:-1], (x[:-2] + 2 * x[1:-1] + x[2:]) / 4, rtol=1e-6)


@cuda.jit
def transpose(a, out):
    tile = cuda.shared.array((TILE, PADDED), a.dtype)
    x, y = cuda.grid(2)
    if x < a.shape[1] and y < a.shape[0]:
        tile[cuda.threadIdx.y, cuda.threadIdx.x] = a[y, x]
    cuda.syncthreads()
    x = cuda.blockIdx.y * TILE + cuda.threadIdx.x
    y = cuda.blockIdx.x * TILE + cuda.threadIdx.y
    if x < out.shape[1] and y < out.shape[0]:
        out[y, x] = tile[cuda.threadIdx.x, cuda.threadIdx.y]


def test_transpose():
    a = RNG.random((19, 30))
    out = np.zeros((30, 19))
    transpose[(4, 3), (TILE, TILE)](a, out)
    np.testing.assert_array_equal(out, a.T)


@cuda.jit
def dot(a, b, out):
    cache = cuda.shared.array(THREADS, float64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    total = 0.0
    while i < len(a):
        total += a[i] * b[i]
        i += cuda.blockDim.x * cuda.gridDim.x
    cache[t] = total
    cuda.syncthreads()
    half = cuda.blockDim.x // 2
    while half != 0:
        if t < half:
            cache[t] += cache[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        cuda.atomic.add(out, 0, cache[0])


def test_dot_product():
    a, b = RNG.random((2, 1000))
    out = np.zeros(1)
    dot[3, THREADS](a, b, out)
    assert out[0] == pytest.approx(a @ b)


@cuda.jit
def bitonic(x):
    shared = cuda.shared.array(0, int32)
    t = cuda.threadIdx.x
    shared[t] = x[t]
    cuda.syncthreads()
    k = 2
    while k <= x.size:
        j = k >> 1
        while j > 0:
            other = t ^ j
            if other > t:
                up = (t & k) == 0
                if (shared[t] > shared[other]) == up:
                    shared[t], shared[other] = shared[other], shared[t]
            cuda.syncthreads()
            j >>= 1
        k <<= 1
    x[t] = shared[t]


def test_bitonic_sort_in_dynamic_shared_memory():
    x = RNG.integers(0, 1000, 128).astype(int32)
    expected = np.sort(x)
    bitonic[1, 128, 0, 512](x)
    np.testing.assert_array_equal(x, expected)


@cuda.jit
def several_views(x, out):
    keys = cuda.shared.array(0, int32)[:32]
    values = cuda.shared.array(0, int32)[32:64]
    t = cuda.threadIdx.x
    keys[t] = x[t]
    values[t] = t
    cuda.syncthreads()
    rank = 0
    for j in range(32):
        if keys[j] < keys[t] or (keys[j] == keys[t] and j < t):
            rank += 1
    out[rank] = values[t]


def test_dynamic_shared_memory_in_parts():
    x, out = RNG.integers(0, 9, 32).astype(int32), np.zeros(32, int32)
    several_views[1, 32, cuda.stream(), 256](x, out)
    np.testing.assert_array_equal(out, np.argsort(x, kind="stable"))


MASK = RNG.random((3, 3)).astype(float32)


@cuda.jit
def convolve(result, image):
    mask = cuda.const.array_like(MASK)
    i, j = cuda.grid(2)
    rows, cols = image.shape
    if (i >= rows) or (j >= cols):
        return
    delta_rows = mask.shape[0] // 2
    delta_cols = mask.shape[1] // 2
    s = 0
    for k in range(mask.shape[0]):
        for l in range(mask.shape[1]):  # noqa: E741
            i_k = i - k + delta_rows
            j_l = j - l + delta_cols
            if (i_k >= 0) and (i_k < rows) and (j_l >= 0) and (j_l < cols):
                s += mask[k, l] * image[i_k, j_l]
    result[i, j] = s


def test_convolution():
    image = RNG.random((20, 17)).astype(float32)
    result = np.zeros_like(image)
    convolve[(3, 3), (8, 8)](result, image)
    wide = np.pad(image, 1)
    expected = sum(
        MASK[k, l] * wide[2 - k : 22 - k, 2 - l : 19 - l]
        for k in range(3)
        for l in range(3)  # noqa: E741
    )
    np.testing.assert_allclose(result, expected, rtol=1e-5)
