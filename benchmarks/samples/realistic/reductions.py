"""Reductions, as textbooks have them: trees, warps, strides, votes, and a last block that ends."""

import math

import numpy as np
from numpy import float32, float64, int32

from gemmlab import cuda

THREADS = 128
FULL = 0xFFFFFFFF


@cuda.jit
def interleaved(x, sums):
    part = cuda.shared.array(THREADS, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    part[t] = x[i] if i < x.size else 0.0
    cuda.syncthreads()
    step = 1
    while step < cuda.blockDim.x:
        if t % (2 * step) == 0:
            part[t] += part[t + step]
        cuda.syncthreads()
        step *= 2
    if t == 0:
        sums[cuda.blockIdx.x] = part[0]


def sum_with_interleaved_addresses(launch):
    x = np.random.default_rng(1).random(1000, float32)
    sums = np.zeros(8, float32)
    launch(interleaved, 8, THREADS, x, sums)
    expected = [x[i : i + THREADS].sum(dtype=float) for i in range(0, 1000, THREADS)]
    return sums, np.array(expected, float32)


@cuda.jit
def first_add_during_load(x, total):
    part = cuda.shared.array(THREADS, float64)
    t = cuda.threadIdx.x
    i = cuda.blockIdx.x * cuda.blockDim.x * 2 + t
    part[t] = x[i] + x[i + cuda.blockDim.x]
    cuda.syncthreads()
    s = cuda.blockDim.x >> 1
    while s > 32:
        if t < s:
            part[t] += part[t + s]
        cuda.syncthreads()
        s >>= 1
    if t < 32:
        value = part[t] + part[t + 32]
        for offset in (16, 8, 4, 2, 1):
            value += cuda.shfl_down_sync(FULL, value, offset)
        if t == 0:
            cuda.atomic.add(total, 0, value)


def sum_that_ends_in_a_warp(launch):
    x = np.random.default_rng(2).random(4 * 2 * THREADS)
    total = np.zeros(1)
    launch(first_add_during_load, 4, THREADS, x, total)
    return total, np.array([math.fsum(x)])


@cuda.jit(device=True)
def warp_max(value):
    offset = 16
    while offset > 0:
        value = max(value, cuda.shfl_xor_sync(FULL, value, offset))
        offset //= 2
    return value


@cuda.jit
def max_by_shuffles(x, out):
    warps = cuda.shared.array(32, int32)
    lane = cuda.threadIdx.x % 32
    warp = cuda.threadIdx.x // 32
    best = -2147483648
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        best = max(best, x[i])
    best = warp_max(best)
    if lane == 0:
        warps[warp] = best
    cuda.syncthreads()
    if warp == 0:
        best = warps[lane] if lane < cuda.blockDim.x // 32 else -2147483648
        best = warp_max(best)
        if lane == 0:
            cuda.atomic.max(out, 0, best)


def max_by_shuffles_in_two_levels(launch):
    x = np.random.default_rng(3).integers(-1000, -3, 5000).astype(int32)
    out = np.full(1, -2147483648, int32)
    launch(max_by_shuffles, 3, 256, x, out)
    return out, np.array([max(x.tolist())])


@cuda.jit
def dot(x, y, out):
    cache = cuda.shared.array(THREADS, float64)
    tid = cuda.grid(1)
    cache_index = cuda.threadIdx.x
    temp = 0.0
    while tid < x.size:
        temp += x[tid] * y[tid]
        tid += cuda.blockDim.x * cuda.gridDim.x
    cache[cache_index] = temp
    cuda.syncthreads()
    i = cuda.blockDim.x // 2
    while i != 0:
        if cache_index < i:
            cache[cache_index] += cache[cache_index + i]
        cuda.syncthreads()
        i //= 2
    if cache_index == 0:
        out[cuda.blockIdx.x] = cache[0]


def dot_product(launch):
    x, y = np.random.default_rng(4).random((2, 3000))
    out = np.zeros(4)
    launch(dot, 4, THREADS, x, y, out)
    return out.sum(), np.dot(x, y)


@cuda.jit
def argmax(x, values, places):
    best = cuda.shared.array(THREADS, float64)
    where = cuda.shared.array(THREADS, int32)
    t = cuda.threadIdx.x
    own, place = -math.inf, -1
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        if x[i] > own:
            own, place = x[i], i
    best[t], where[t] = own, place
    cuda.syncthreads()
    s = THREADS // 2
    while s > 0:
        if t < s and (
            best[t + s] > best[t] or (best[t + s] == best[t] and where[t + s] < where[t])
        ):
            best[t] = best[t + s]
            where[t] = where[t + s]
        cuda.syncthreads()
        s //= 2
    if t == 0:
        values[cuda.blockIdx.x] = best[0]
        places[cuda.blockIdx.x] = where[0]


def argmax_with_its_place(launch):
    x = np.random.default_rng(5).random(2000)
    values, places = np.zeros(3), np.zeros(3, int32)
    launch(argmax, 3, THREADS, x, values, places)
    return [(places[np.argmax(values)], np.argmax(x)), (values.max(), x.max())]


@cuda.jit
def moments(x, count, mean, m2):
    own_count, own_mean, own_m2 = 0, 0.0, 0.0
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        own_count += 1
        delta = x[i] - own_mean
        own_mean += delta / own_count
        own_m2 += delta * (x[i] - own_mean)
    t = cuda.grid(1)
    count[t], mean[t], m2[t] = own_count, own_mean, own_m2


def mean_and_variance_of_welford(launch):
    x = np.random.default_rng(6).random(1001) + 5
    count, mean, m2 = np.zeros(64, np.int64), np.zeros(64), np.zeros(64)
    launch(moments, 2, 32, x, count, mean, m2)
    whole = (count * mean).sum() / count.sum()
    spread = (m2 + count * (mean - whole) ** 2).sum() / count.sum()
    return [(count.sum(), 1001), (whole, x.mean()), (spread, x.var())]


@cuda.jit
def row_sums(a, out):
    row = cuda.grid(1) // 32
    lane = cuda.laneid
    if row < a.shape[0]:
        total = float32(0)
        for column in range(lane, a.shape[1], 32):
            total += a[row, column]
        for i in range(5):
            total += cuda.shfl_down_sync(FULL, total, 16 >> i)
        if lane == 0:
            out[row] = total


def row_sums_by_warps(launch):
    a = np.random.default_rng(7).random((13, 77), float32)
    out = np.zeros(13, float32)
    launch(row_sums, 4, 128, a, out)
    return out, a.sum(axis=1, dtype=float).astype(float32)


@cuda.jit
def column_sums(a, out):
    column = cuda.grid(1)
    if column < a.shape[1]:
        total = 0.0
        for row in range(a.shape[0]):
            total += a[row, column]
        out[column] = total


def column_sums_one_thread_each(launch):
    a = np.asfortranarray(np.random.default_rng(8).random((30, 50)))
    out = np.zeros(50)
    launch(column_sums, 2, 32, a, out)
    return out, np.array([math.fsum(a[:, j]) for j in range(50)])


@cuda.jit
def threadfence_sum(x, partial, done, total):
    part = cuda.shared.array(THREADS, float64)
    is_last = cuda.shared.array(1, int32)
    t = cuda.threadIdx.x
    own = 0.0
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        own += x[i]
    part[t] = own
    cuda.syncthreads()
    s = THREADS // 2
    while s > 0:
        if t < s:
            part[t] += part[t + s]
        cuda.syncthreads()
        s //= 2
    if t == 0:
        partial[cuda.blockIdx.x] = part[0]
        cuda.threadfence()
        is_last[0] = cuda.atomic.inc(done, 0, cuda.gridDim.x - 1) == cuda.gridDim.x - 1
    cuda.syncthreads()
    if is_last[0] and t == 0:
        cuda.threadfence()
        whole = 0.0
        for b in range(cuda.gridDim.x):
            whole += partial[b]
        total[0] = whole


def sum_that_the_last_block_ends(launch):
    x = np.random.default_rng(9).random(5000)
    partial, done, total = np.zeros(6), np.zeros(1, np.uint32), np.zeros(1)
    launch(threadfence_sum, 6, THREADS, x, partial, done, total)
    return [(total, np.array([math.fsum(x)])), (done[0], 0)]


@cuda.jit
def kahan(x, out):
    t = cuda.grid(1)
    total = float32(0)
    lost = float32(0)
    for i in range(t, x.size, cuda.gridsize(1)):
        y = x[i] - lost
        s = total + y
        lost = (s - total) - y
        total = s
    out[t] = total


def compensated_sum(launch):
    x = np.random.default_rng(10).random(32 * 300, float32)
    out = np.zeros(32, float32)
    launch(kahan, 1, 32, x, out)
    exact = [math.fsum(x[t::32].tolist()) for t in range(32)]
    return out, np.array(exact, float32), 1e-7


@cuda.jit
def count_by_votes(x, limit, counts, every):
    i = cuda.grid(1)
    inside = i < x.size and x[i] < limit
    count = cuda.syncthreads_count(1 if inside else 0)
    small = i >= x.size or x[i] < 2 * limit
    all_of_them = cuda.syncthreads_and(1 if small else 0)
    if cuda.threadIdx.x == 0:
        counts[cuda.blockIdx.x] = count
        every[cuda.blockIdx.x] = all_of_them != 0


def counts_by_votes_of_the_block(launch):
    x = np.random.default_rng(11).random(500)
    counts, every = np.zeros(8, int32), np.zeros(8, np.bool_)
    launch(count_by_votes, 8, 64, x, 0.495, counts, every)
    blocks = [x[i : i + 64] for i in range(0, 512, 64)]
    return [
        (counts, np.array([(b < 0.495).sum() for b in blocks])),
        (every, np.array([(b < 0.99).all() for b in blocks])),
    ]


@cuda.jit
def segment_sums(values, keys, sums, largest):
    i = cuda.grid(1)
    if i >= values.size:
        return
    cuda.atomic.add(sums, keys[i], values[i])
    cuda.atomic.max(largest, keys[i], values[i])


def sums_by_key_with_atomics(launch):
    rng = np.random.default_rng(12)
    values, keys = rng.random(700), rng.integers(0, 9, 700)
    sums, largest = np.zeros(9), np.zeros(9)
    launch(segment_sums, 6, 128, values, keys, sums, largest)
    return [
        (sums, np.bincount(keys, values, 9)),
        (largest, np.array([values[keys == k].max() for k in range(9)])),
    ]


@cuda.jit
def synchronous_warp_sum(x, out):
    part = cuda.shared.array(64, float64)
    t = cuda.threadIdx.x
    part[t] = x[cuda.blockIdx.x, t]
    cuda.syncthreads()
    if t < 32:
        step = 32
        while step > 0:
            value = part[t] + part[t + step] if t < step else 0.0
            cuda.syncwarp()
            if t < step:
                part[t] = value
            cuda.syncwarp()
            step //= 2
    if t == 0:
        out[cuda.blockIdx.x] = part[0]


def sum_of_a_warp_in_shared_memory(launch):
    x = np.random.default_rng(13).random((5, 64))
    out = np.zeros(5)
    launch(synchronous_warp_sum, 5, 64, x, out)
    return out, x.sum(axis=1)
