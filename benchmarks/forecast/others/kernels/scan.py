"""Prefix sums within blocks, and the sum of each block: the first of a scan's three passes."""

import numpy as np
from numpy import int32

from benchmarks.forecast.others.case import Case, Launch
from gemmlab import cuda

FULL = 0xFFFFFFFF
THREADS = 512
WARPS = THREADS // 32


def scan(x, y, sums):
    of_warps = cuda.shared.array(WARPS, int32)
    i = cuda.grid(1)
    lane, warp = cuda.threadIdx.x % 32, cuda.threadIdx.x // 32
    value = x[i] if i < x.size else int32(0)
    offset = 1
    while offset < 32:
        before = cuda.shfl_up_sync(FULL, value, offset)
        if lane >= offset:
            value += before
        offset *= 2
    if lane == 31:
        of_warps[warp] = value
    cuda.syncthreads()
    if warp == 0:
        total = of_warps[lane] if lane < WARPS else int32(0)
        offset = 1
        while offset < WARPS:
            before = cuda.shfl_up_sync(FULL, total, offset)
            if lane >= offset:
                total += before
            offset *= 2
        if lane < WARPS:
            of_warps[lane] = total
    cuda.syncthreads()
    if warp > 0:
        value += of_warps[warp - 1]
    if i < x.size:
        y[i] = value
    if cuda.threadIdx.x == THREADS - 1:
        sums[cuda.blockIdx.x] = value


def launch(size):
    x = np.random.default_rng(7).integers(0, 100, size, int32)
    blocks = -(-size // THREADS)
    return Launch(blocks, THREADS, (x, np.zeros_like(x), np.zeros(blocks, int32)))


def check(x, y, sums):
    rows = np.zeros((sums.size, THREADS), int32)
    rows.reshape(-1)[: x.size] = x
    expected = rows.cumsum(1, dtype=int32)
    yield y, expected.reshape(-1)[: x.size]
    yield sums, expected[:, -1]


CASE = Case(scan, launch, check, size=80_000_000, small=2000)
