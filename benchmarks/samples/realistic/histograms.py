"""Histograms: in global and shared memory, privatised, joint, weighted, merged within warps."""

import numpy as np
from numpy import float32, int32, uint32

from gemmlab import cuda

BINS = 32
WARPS = 4
FULL = 0xFFFFFFFF


def bytes_of(seed, n=1500):
    return np.random.default_rng(seed).integers(0, 256, n).astype(np.uint8)


@cuda.jit
def in_global_memory(x, bins):
    i = cuda.grid(1)
    stride = cuda.gridsize(1)
    while i < x.size:
        cuda.atomic.add(bins, x[i] >> 3, 1)
        i += stride


def histogram_in_global_memory(launch):
    x, bins = bytes_of(1), np.zeros(BINS, int32)
    launch(in_global_memory, 4, 128, x, bins)
    return bins, np.bincount(x // 8, minlength=BINS)


@cuda.jit
def in_shared_memory(x, bins):
    own = cuda.shared.array(BINS, uint32)
    for b in range(cuda.threadIdx.x, BINS, cuda.blockDim.x):
        own[b] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
        cuda.atomic.add(own, x[i] // 8, 1)
    cuda.syncthreads()
    for b in range(cuda.threadIdx.x, BINS, cuda.blockDim.x):
        cuda.atomic.add(bins, b, own[b])


def histogram_in_shared_memory(launch):
    x, bins = bytes_of(2), np.zeros(BINS, uint32)
    launch(in_shared_memory, 3, 96, x, bins)
    return bins, np.bincount(x // 8, minlength=BINS)


@cuda.jit
def one_copy_a_warp(x, bins):
    own = cuda.shared.array((WARPS, BINS), int32)
    warp = cuda.threadIdx.x // 32
    lane = cuda.threadIdx.x % 32
    own[warp, lane] = 0
    cuda.syncwarp()
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(own, (warp, x[i] // 8), 1)
    cuda.syncthreads()
    if warp == 0:
        total = 0
        for w in range(WARPS):
            total += own[w, lane]
        bins[cuda.blockIdx.x, lane] = total


def histogram_with_a_copy_for_each_warp(launch):
    x, bins = bytes_of(3), np.zeros((3, BINS), int32)
    launch(one_copy_a_warp, 3, 32 * WARPS, x, bins)
    return bins.sum(axis=0), np.bincount(x // 8, minlength=BINS)


@cuda.jit
def one_copy_a_thread(x, bins):
    own = cuda.local.array(8, int32)
    for b in range(8):
        own[b] = 0
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        own[x[i] // 32] += 1
    for b in range(8):
        if own[b] > 0:
            cuda.atomic.add(bins, b, own[b])


def histogram_with_a_copy_for_each_thread(launch):
    x, bins = bytes_of(4), np.zeros(8, int32)
    launch(one_copy_a_thread, 2, 64, x, bins)
    return bins, np.bincount(x // 32, minlength=8)


@cuda.jit
def merged_in_the_warp(x, bins):
    i = cuda.grid(1)
    key = x[i] // 64
    same = cuda.match_any_sync(FULL, key)
    if cuda.ffs(same) - 1 == cuda.laneid:
        cuda.atomic.add(bins, key, cuda.popc(same))


def histogram_with_equal_keys_merged(launch):
    x, bins = bytes_of(5, 256).astype(int32), np.zeros(4, int32)
    launch(merged_in_the_warp, 4, 64, x, bins)
    return bins, np.bincount(x // 64, minlength=4)


@cuda.jit
def joint(x, y, table):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(table, (min(int(x[i] * 8), 7), min(int(y[i] * 4), 3)), 1)


def joint_histogram_of_two_variables(launch):
    x, y = np.random.default_rng(6).random((2, 900))
    table = np.zeros((8, 4), int32)
    launch(joint, 9, 100, x, y, table)
    expected, _, _ = np.histogram2d(x, y, bins=(8, 4), range=((0, 1), (0, 1)))
    return table, expected.astype(int)


@cuda.jit
def between_edges(x, edges, weights, bins):
    i = cuda.grid(1)
    if i >= x.size or x[i] < edges[0] or x[i] >= edges[edges.size - 1]:
        return
    b = 0
    while x[i] >= edges[b + 1]:
        b += 1
    cuda.atomic.add(bins, b, weights[i])


def weighted_histogram_between_edges(launch):
    rng = np.random.default_rng(7)
    x, weights = rng.random(500) * 10, rng.random(500)
    edges, bins = np.array([0.5, 1.0, 3.0, 3.5, 8.0]), np.zeros(4)
    launch(between_edges, 4, 128, x, edges, weights, bins)
    return bins, np.histogram(x, edges, weights=weights)[0]


@cuda.jit
def bin_averages(x, values, sums, counts, means, done):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(sums, x[i], values[i])
        cuda.atomic.add(counts, x[i], 1)
    cuda.threadfence()
    cuda.syncthreads()
    last = False
    if cuda.threadIdx.x == 0:
        last = cuda.atomic.add(done, 0, 1) == cuda.gridDim.x - 1
    if last:
        for b in range(sums.size):
            if cuda.atomic.add(counts, b, 0) > 0:
                means[b] = cuda.atomic.add(sums, b, 0.0) / cuda.atomic.add(counts, b, 0)


def averages_of_bins_by_the_last_block(launch):
    rng = np.random.default_rng(8)
    x, values = rng.integers(0, 6, 300), rng.random(300).astype(float32)
    sums, counts, means, done = np.zeros(6), np.zeros(6, int32), np.zeros(6), np.zeros(1, int32)
    launch(bin_averages, 5, 64, x, values, sums, counts, means, done)
    return means, np.array([values[x == b].mean(dtype=float) for b in range(6)])
