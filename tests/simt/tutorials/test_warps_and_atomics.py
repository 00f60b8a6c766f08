"""Tutorials: kernels with shuffles and atomics give what NumPy and plain Python give."""

import numpy as np
from numpy import float32

from gemmlab.simt import cuda

RNG = np.random.default_rng(7)
FULL = 0xFFFFFFFF


@cuda.jit(device=True)
def warp_sum(value):
    offset = 16
    while offset > 0:
        value += cuda.shfl_down_sync(FULL, value, offset)
        offset //= 2
    return value


@cuda.jit
def block_sum(x, out):
    parts = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    lane, warp = t % 32, t // 32
    i = cuda.grid(1)
    value = warp_sum(x[i] if i < x.size else float32(0))
    if lane == 0:
        parts[warp] = value
    cuda.syncthreads()
    if warp == 0:
        value = parts[lane] if lane < cuda.blockDim.x // 32 else float32(0)
        value = warp_sum(value)
        if lane == 0:
            cuda.atomic.add(out, 0, value)


def test_sum_by_shuffles():
    x, out = RNG.integers(0, 9, 1000).astype(float32), np.zeros(1, float32)
    block_sum[4, 256](x, out)
    assert out[0] == x.sum()


@cuda.jit
def warp_prefix(x, out):
    i = cuda.grid(1)
    lane = cuda.laneid
    value = x[i]
    delta = 1
    while delta < cuda.warpsize:
        other = cuda.shfl_up_sync(FULL, value, delta)
        if lane >= delta:
            value += other
        delta <<= 1
    out[i] = value


@cuda.jit
def matvec(a, x, y):
    row = cuda.grid(1) // 32
    lane = cuda.threadIdx.x & 31
    if row >= a.shape[0]:
        return
    total = float32(0)
    for j in range(lane, a.shape[1], 32):
        total += a[row, j] * x[j]
    for shift in (16, 8, 4, 2, 1):
        total += cuda.shfl_xor_sync(-1, total, shift)
    if lane == 0:
        y[row] = total


def test_warps():
    x, out = RNG.integers(0, 9, 128), np.zeros(128, np.int64)
    warp_prefix[2, 64](x, out)
    np.testing.assert_array_equal(out.reshape(4, 32), np.cumsum(x.reshape(4, 32), 1))
    a, v = RNG.integers(0, 9, (13, 50)).astype(float32), np.arange(50, dtype=float32)
    y = np.zeros(13, float32)
    matvec[4, 128](a, v, y)
    np.testing.assert_array_equal(y, a @ v)


@cuda.jit
def extremes(x, low, high):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.min(low, 0, x[i])
        cuda.atomic.max(high, 0, x[i])


@cuda.jit
def atomic_max_by_cas(x, high):
    i = cuda.grid(1)
    if i >= x.size:
        return
    old = cuda.atomic.add(high, 0, 0)
    while x[i] > old:
        found = cuda.atomic.cas(high, 0, old, x[i])
        if found == old:
            break
        old = found


def test_extremes():
    x = RNG.permutation(1000)
    low, high, again = np.full(1, 10**6), np.full(1, -1), np.full(1, -1)
    extremes[8, 128](x, low, high)
    atomic_max_by_cas[8, 128](x, again)
    assert (low[0], high[0], again[0]) == (0, 999, 999)
