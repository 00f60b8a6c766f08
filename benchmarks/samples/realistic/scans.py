"""Scans and what is made of them: prefix sums in a block, a warp, a grid; compaction, splitting."""

import itertools

import numpy as np
from numpy import int32

from gemmlab import cuda

THREADS, TWICE = 64, 128
FULL = 0xFFFFFFFF
EMPTY, PARTIAL, COMPLETE = 0, 1, 2


@cuda.jit
def hillis_steele(x, out):
    temp = cuda.shared.array((2, THREADS), int32)
    t = cuda.threadIdx.x
    pout, pin = 0, 1
    temp[pout, t] = x[cuda.grid(1)]
    cuda.syncthreads()
    offset = 1
    while offset < THREADS:
        pout = 1 - pout
        pin = 1 - pout
        if t >= offset:
            temp[pout, t] = temp[pin, t] + temp[pin, t - offset]
        else:
            temp[pout, t] = temp[pin, t]
        cuda.syncthreads()
        offset *= 2
    out[cuda.grid(1)] = temp[pout, t]


def scan_of_hillis_and_steele(launch):
    x = np.random.default_rng(1).integers(-9, 9, 3 * THREADS).astype(int32)
    out = np.full_like(x, 999)
    launch(hillis_steele, 3, THREADS, x, out)
    return out, np.cumsum(x.reshape(3, -1), axis=1).ravel()


@cuda.jit
def blelloch(x, out):
    temp = cuda.shared.array(TWICE, int32)
    t = cuda.threadIdx.x
    n = 2 * THREADS
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
            temp[ai], temp[bi] = temp[bi], temp[ai] + temp[bi]
        d *= 2
    cuda.syncthreads()
    out[2 * t] = temp[2 * t]
    out[2 * t + 1] = temp[2 * t + 1]


def scan_of_blelloch(launch):
    x = np.random.default_rng(2).integers(0, 9, 2 * THREADS).astype(int32)
    out = np.full_like(x, -1)
    launch(blelloch, 1, THREADS, x, out)
    return out, np.cumsum(x) - x


@cuda.jit(device=True)
def warp_scan(value):
    lane = cuda.laneid
    for i in range(5):
        other = cuda.shfl_up_sync(FULL, value, 1 << i)
        if lane >= 1 << i:
            value += other
    return value


@cuda.jit
def block_scan(x, out, sums):
    warps = cuda.shared.array(32, int32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    lane = t & 31
    warp = t >> 5
    value = warp_scan(x[i] if i < x.size else 0)
    if lane == 31:
        warps[warp] = value
    cuda.syncthreads()
    if warp == 0:
        whole = warp_scan(warps[lane] if lane < cuda.blockDim.x // 32 else 0)
        cuda.syncwarp()
        warps[lane] = whole
    cuda.syncthreads()
    if warp > 0:
        value += warps[warp - 1]
    if i < x.size:
        out[i] = value
    if t == cuda.blockDim.x - 1:
        sums[cuda.blockIdx.x] = value


@cuda.jit
def add_offsets(out, offsets):
    i = cuda.grid(1)
    if cuda.blockIdx.x > 0 and i < out.size:
        out[i] += offsets[cuda.blockIdx.x - 1]


def scan_of_many_blocks(launch):
    x = np.random.default_rng(3).integers(0, 100, 1000)
    out, sums, offsets, rest = (np.full(n, -1) for n in (1000, 8, 8, 1))
    launch(block_scan, 8, 128, x, out, sums)
    launch(block_scan, 1, 32, sums, offsets, rest)
    launch(add_offsets, 8, 128, out, offsets)
    return [(out, np.cumsum(x)), (rest[0], x.sum())]


@cuda.jit
def chained_scan(x, out, prefix, ready):
    part = cuda.shared.array(THREADS, int32)
    before = cuda.shared.array(1, int32)
    t = cuda.threadIdx.x
    b = cuda.blockIdx.x
    part[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    if t == 0:
        for k in range(1, THREADS):
            part[k] += part[k - 1]
        if b > 0:
            while cuda.atomic.add(ready, b - 1, 0) == 0:
                pass
            cuda.threadfence()
            before[0] = prefix[b - 1]
        else:
            before[0] = 0
        prefix[b] = before[0] + part[THREADS - 1]
        cuda.threadfence()
        cuda.atomic.exch(ready, b, 1)
    cuda.syncthreads()
    out[cuda.grid(1)] = part[t] + before[0]


def scan_in_which_each_block_waits_for_the_one_before(launch):
    x = np.random.default_rng(4).integers(0, 100, 4 * THREADS).astype(int32)
    out, prefix, ready = np.full_like(x, -1), np.zeros(4, int32), np.zeros(4, int32)
    launch(chained_scan, 4, THREADS, x, out, prefix, ready)
    return out, np.cumsum(x)


@cuda.jit
def look_back(x, out, ticket, states, sums, prefixes):
    part = cuda.shared.array(THREADS, int32)
    shared = cuda.shared.array(2, int32)
    t = cuda.threadIdx.x
    if t == 0:
        shared[0] = cuda.atomic.add(ticket, 0, 1)
    cuda.syncthreads()
    b = shared[0]
    part[t] = x[b * THREADS + t]
    cuda.syncthreads()
    step = 1
    while step < THREADS:
        own = part[t - step] if t >= step else 0
        cuda.syncthreads()
        part[t] += own
        cuda.syncthreads()
        step *= 2
    if t == 0:
        total = part[THREADS - 1]
        sums[b] = total
        cuda.threadfence()
        cuda.atomic.exch(states, b, PARTIAL)
        before = 0
        k = b - 1
        while k >= 0:
            state = EMPTY
            while state == EMPTY:
                state = cuda.atomic.add(states, k, 0)
            cuda.threadfence()
            if state == COMPLETE:
                before += prefixes[k]
                break
            before += sums[k]
            k -= 1
        prefixes[b] = before + total
        cuda.threadfence()
        cuda.atomic.exch(states, b, COMPLETE)
        shared[1] = before
    cuda.syncthreads()
    out[b * THREADS + t] = part[t] + shared[1]


def scan_with_decoupled_look_back(launch):
    x = np.random.default_rng(5).integers(0, 100, 6 * THREADS).astype(int32)
    out = np.full_like(x, -1)
    ticket, states, sums, prefixes = (np.zeros(n, int32) for n in (1, 6, 6, 6))
    launch(look_back, 6, THREADS, x, out, ticket, states, sums, prefixes)
    return out, np.cumsum(x)


@cuda.jit
def segmented_scan(x, heads, out):
    values = cuda.shared.array(THREADS, int32)
    flags = cuda.shared.array(THREADS, int32)
    t = cuda.threadIdx.x
    values[t] = x[t]
    flags[t] = heads[t]
    cuda.syncthreads()
    step = 1
    while step < THREADS:
        value, flag = values[t], flags[t]
        if t >= step:
            if not flag:
                value += values[t - step]
            flag |= flags[t - step]
        cuda.syncthreads()
        values[t] = value
        flags[t] = flag
        cuda.syncthreads()
        step <<= 1
    out[t] = values[t]


def scan_by_segments(launch):
    rng = np.random.default_rng(6)
    x, heads = rng.integers(0, 9, THREADS), rng.random(THREADS) < 0.2
    out, expected, running = np.full(THREADS, -1), [], 0
    launch(segmented_scan, 1, THREADS, x, heads, out)
    for value, head in zip(x.tolist(), heads.tolist(), strict=True):
        running = value if head else running + value
        expected.append(running)
    return out, np.array(expected)


@cuda.jit
def running_maximum(x, out):
    t = cuda.grid(1)
    if t < x.shape[0]:
        best = x[t, 0]
        for j in range(x.shape[1]):
            best = max(best, x[t, j])
            out[t, j] = best


def running_maximum_of_rows(launch):
    x = np.random.default_rng(7).random((40, 30))
    out = np.zeros_like(x)
    launch(running_maximum, 2, 32, x, out)
    return out, np.maximum.accumulate(x, axis=1)


@cuda.jit
def compact_by_ballot(x, limit, out, count):
    start = cuda.shared.array(3, int32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    lane = t % 32
    keep = i < x.size and x[i] > limit
    votes = cuda.ballot_sync(FULL, keep)
    if lane == 0:
        start[t // 32] = cuda.popc(votes)
    cuda.syncthreads()
    if t == 0:
        total = 0
        for w in range(THREADS // 32):
            own = start[w]
            start[w] = total
            total += own
        start[THREADS // 32] = cuda.atomic.add(count, 0, total)
    cuda.syncthreads()
    if keep:
        below = cuda.popc(votes & ((1 << lane) - 1))
        out[start[THREADS // 32] + start[t // 32] + below] = x[i]


def compaction_by_ballots(launch):
    x = np.random.default_rng(8).random(300)
    out, count = np.zeros(300), np.zeros(1, int32)
    launch(compact_by_ballot, 5, THREADS, x, 0.6, out, count)
    return [(count[0], (x > 0.6).sum()), (np.sort(out[: count[0]]), np.sort(x[x > 0.6]))]


@cuda.jit
def aggregated_append(x, out, count):
    i = cuda.grid(1)
    if i < x.size and x[i] % 3 == 0:
        mask = cuda.activemask()
        leader = cuda.ffs(mask) - 1
        rank = cuda.popc(mask & cuda.lanemask_lt())
        place = 0
        if rank == 0:
            place = cuda.atomic.add(count, 0, cuda.popc(mask))
        place = cuda.shfl_sync(mask, place, leader)
        out[place + rank] = x[i]


def append_with_one_atomic_a_warp(launch):
    x = np.random.default_rng(9).permutation(200)
    out, count = np.full(200, -1), np.zeros(1, int32)
    launch(aggregated_append, 4, THREADS, x, out, count)
    return [(count[0], 67), (np.sort(out[:67]), np.arange(0, 200, 3))]


@cuda.jit
def flag_scan_scatter(x, flags, places, out):
    i = cuda.grid(1)
    if i < x.size and flags[i]:
        out[places[i]] = x[i]


def compaction_by_scan_and_scatter(launch):
    x = np.random.default_rng(10).integers(0, 50, 128)
    flags = (x % 2 == 0).astype(np.int64)
    scanned, total = np.zeros(128, np.int64), np.zeros(1, np.int64)
    out = np.full(int(flags.sum()), -1)
    launch(block_scan, 1, 128, flags, scanned, total)
    launch(flag_scan_scatter, 2, 64, x, flags, scanned - flags, out)
    return out, np.array([v for v in x.tolist() if v % 2 == 0])


@cuda.jit
def run_lengths(keys, starts, lengths, runs):
    i = cuda.grid(1)
    if i < keys.size and (i == 0 or keys[i] != keys[i - 1]):
        end = i + 1
        while end < keys.size and keys[end] == keys[i]:
            end += 1
        slot = cuda.atomic.add(runs, 0, 1)
        starts[slot] = i
        lengths[slot] = end - i


def runs_of_equal_keys(launch):
    keys = np.repeat(np.arange(20), np.random.default_rng(11).integers(1, 12, 20))
    starts, lengths, runs = np.zeros(20, int32), np.zeros(20, int32), np.zeros(1, int32)
    launch(run_lengths, -(-keys.size // 64), 64, keys, starts, lengths, runs)
    order = np.argsort(starts)
    grouped = [len(list(g)) for _, g in itertools.groupby(keys.tolist())]
    return [(runs[0], 20), (lengths[order], np.array(grouped))]
