"""Threads that wait for threads: locks, queues, tables, pools, barriers made of atomics."""

import numpy as np
from numpy import int32, int64

from gemmlab import cuda

SLOTS = 128
FREE = -1


@cuda.jit
def spin_lock(lock, total):
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:
        pass
    cuda.threadfence()
    total[0] += cuda.grid(1)
    cuda.threadfence()
    cuda.atomic.exch(lock, 0, 0)


def lock_that_spins(launch):
    lock, total = np.zeros(1, int32), np.zeros(1, int64)
    launch(spin_lock, 2, 32, lock, total)
    return [(total[0], 64 * 63 // 2), (lock[0], 0)]


@cuda.jit
def lock_of_a_block(lock, total):
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        while cuda.atomic.compare_and_swap(lock, 0, 1) == 1:
            pass
        cuda.threadfence()
        total[0] += cuda.blockIdx.x + 1
        cuda.threadfence()
        cuda.atomic.exch(lock, 0, 0)
    cuda.syncthreads()


def lock_taken_by_one_thread_of_a_block(launch):
    lock, total = np.zeros(1, int32), np.zeros(1, int64)
    launch(lock_of_a_block, 12, 32, lock, total)
    return total[0], 78


@cuda.jit
def lock_with_a_flag(locks, keys, least, count):
    i = cuda.grid(1)
    if i >= keys.size:
        return
    k = keys[i] % locks.size
    done = False
    while not done:
        if cuda.atomic.cas(locks, k, 0, 1) == 0:
            cuda.threadfence()
            least[k] = min(least[k], keys[i])
            count[k] += 1
            cuda.threadfence()
            cuda.atomic.exch(locks, k, 0)
            done = True


def locks_of_buckets_with_a_flag(launch):
    keys = np.random.default_rng(1).integers(0, 1000, 100)
    locks, least, count = np.zeros(8, int32), np.full(8, 9999), np.zeros(8, int32)
    launch(lock_with_a_flag, 2, 64, locks, keys, least, count)
    parts = [keys[keys % 8 == k] for k in range(8)]
    return [(least, np.array([p.min() for p in parts])), (count, np.array([len(p) for p in parts]))]


@cuda.jit
def ticket_lock(next_ticket, serving, order, taken):
    if cuda.threadIdx.x == 0:
        own = cuda.atomic.add(next_ticket, 0, 1)
        while cuda.atomic.add(serving, 0, 0) != own:
            pass
        cuda.threadfence()
        order[taken[0]] = own
        taken[0] += 1
        cuda.threadfence()
        cuda.atomic.add(serving, 0, 1)


def lock_with_tickets(launch):
    tickets, serving, taken = np.zeros(1, int32), np.zeros(1, int32), np.zeros(1, int32)
    order = np.full(10, -1)
    launch(ticket_lock, 10, 32, tickets, serving, order, taken)
    return [(order, np.arange(10)), (taken[0], 10)]


@cuda.jit
def work_queue(head, work, results):
    while True:
        item = cuda.atomic.add(head, 0, 1)
        if item >= work.size:
            break
        n = work[item]
        steps = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        results[item] = steps


def collatz(n):
    steps = 0
    while n != 1:
        n, steps = (3 * n + 1 if n % 2 else n // 2), steps + 1
    return steps


def queue_of_work(launch):
    work, head, results = np.arange(1, 91), np.zeros(1, int32), np.full(90, -1)
    launch(work_queue, 2, 32, head, work, results)
    return results, np.array([collatz(n) for n in range(1, 91)])


@cuda.jit
def work_queue_of_blocks(head, work, sums):
    item = cuda.shared.array(1, int32)
    while True:
        if cuda.threadIdx.x == 0:
            item[0] = cuda.atomic.add(head, 0, 1)
        cuda.syncthreads()
        own = item[0]
        cuda.syncthreads()
        if own >= work.shape[0]:
            return
        for i in range(cuda.threadIdx.x, work.shape[1], cuda.blockDim.x):
            cuda.atomic.add(sums, own, work[own, i])


def queue_from_which_blocks_take(launch):
    work, head, sums = np.random.default_rng(2).random((20, 70)), np.zeros(1, int32), np.zeros(20)
    launch(work_queue_of_blocks, 3, 32, head, work, sums)
    return sums, work.sum(axis=1)


@cuda.jit
def produce_and_consume(buffer, full, out):
    if cuda.blockIdx.x == 0:
        if cuda.threadIdx.x == 0:
            while cuda.atomic.add(full, 0, 0) == 0:
                pass
            cuda.threadfence()
        cuda.syncthreads()
        out[cuda.threadIdx.x] = buffer[cuda.threadIdx.x] * 2
    else:
        buffer[cuda.threadIdx.x] = 3 * cuda.threadIdx.x + 1
        cuda.threadfence()
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            cuda.atomic.exch(full, 0, 1)


def consumer_before_its_producer(launch):
    buffer, full, out = np.zeros(64, int32), np.zeros(1, int32), np.full(64, -1)
    launch(produce_and_consume, 2, 64, buffer, full, out)
    return out, 6 * np.arange(64) + 2


@cuda.jit
def insert(keys, table, counts):
    i = cuda.grid(1)
    if i < keys.size:
        key = keys[i]
        slot = key * 2654435761 % SLOTS
        while True:
            found = cuda.atomic.cas(table, slot, FREE, key)
            if found in (FREE, key):
                cuda.atomic.add(counts, slot, 1)
                break
            slot = (slot + 1) % SLOTS


def table_with_open_addresses(launch):
    keys = np.random.default_rng(3).integers(0, 60, 150)
    table, counts = np.full(SLOTS, FREE, int64), np.zeros(SLOTS, int32)
    launch(insert, 3, 64, keys, table, counts)
    used = np.flatnonzero(table != FREE)
    order = used[np.argsort(table[used])]
    expected, numbers = np.unique(keys, return_counts=True)
    return [(table[order], expected), (counts[order], numbers)]


@cuda.jit
def push(values, heads, following):
    i = cuda.grid(1)
    if i < values.size:
        following[i] = cuda.atomic.exch(heads, values[i] % heads.size, i)


@cuda.jit
def chain_lengths(heads, following, values, lengths, sums):
    k = cuda.grid(1)
    if k < heads.size:
        node = heads[k]
        while node != -1:
            lengths[k] += 1
            sums[k] += values[node]
            node = following[node]


def lists_with_a_head_for_each_bucket(launch):
    values = np.random.default_rng(4).integers(0, 500, 120)
    heads, following = np.full(7, -1), np.full(120, -9)
    lengths, sums = np.zeros(7, int32), np.zeros(7, int64)
    launch(push, 2, 64, values, heads, following)
    launch(chain_lengths, 1, 32, heads, following, values, lengths, sums)
    parts = [values[values % 7 == k] for k in range(7)]
    expected = [(len(p), p.sum()) for p in parts]
    return np.column_stack([lengths, sums]), np.array(expected)


@cuda.jit
def max_by_cas(x, best):
    i = cuda.grid(1)
    if i < x.size:
        old = cuda.atomic.cas(best, 0, 0, 0)
        while x[i] > old:
            seen = cuda.atomic.cas(best, 0, old, x[i])
            if seen == old:
                break
            old = seen


def maximum_by_compare_and_swap(launch):
    x, best = np.random.default_rng(5).integers(1, 10**6, 100), np.zeros(1, int64)
    launch(max_by_cas, 2, 64, x, best)
    return best[0], max(x.tolist())


@cuda.jit
def barrier_of_the_grid(x, arrived, y):
    i = cuda.grid(1)
    x[i] = i * i
    cuda.threadfence()
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(arrived, 0, 1)
        while cuda.atomic.add(arrived, 0, 0) < cuda.gridDim.x:
            pass
        cuda.threadfence()
    cuda.syncthreads()
    y[i] = x[x.size - 1 - i]


def barrier_of_the_grid_made_of_atomics(launch):
    x, arrived, y = np.zeros(128, int64), np.zeros(1, int32), np.full(128, -1)
    launch(barrier_of_the_grid, 4, 32, x, arrived, y)
    return y, np.arange(127, -1, -1) ** 2


@cuda.jit
def transfer(locks, balance, source, target, amount):
    i = cuda.grid(1)
    if i >= source.size:
        return
    first = min(source[i], target[i])
    second = max(source[i], target[i])
    done = first == second
    while not done:
        if cuda.atomic.cas(locks, first, 0, 1) == 0:
            if cuda.atomic.cas(locks, second, 0, 1) == 0:
                cuda.threadfence()
                balance[source[i]] -= amount[i]
                balance[target[i]] += amount[i]
                cuda.threadfence()
                cuda.atomic.exch(locks, second, 0)
                done = True
            cuda.atomic.exch(locks, first, 0)


def transfers_between_locked_accounts(launch):
    rng = np.random.default_rng(6)
    source, target, amount = (
        rng.integers(0, 10, 60),
        rng.integers(0, 10, 60),
        rng.integers(1, 9, 60),
    )
    balance, expected, locks = np.full(10, 100), np.full(10, 100), np.zeros(10, int32)
    launch(transfer, 2, 32, locks, balance, source, target, amount)
    np.subtract.at(expected, source, amount)
    np.add.at(expected, target, amount)
    return balance, expected


@cuda.jit
def claim(pool, top, out):
    i = cuda.grid(1)
    place = cuda.atomic.sub(top, 0, 1) - 1
    if place >= 0:
        out[i] = pool[place]
    else:
        cuda.atomic.add(top, 0, 1)


def pool_of_free_slots(launch):
    pool, top, out = np.arange(100, 150), np.array([50], int32), np.full(40, -1)
    launch(claim, 2, 20, pool, top, out)
    return [(np.sort(out), np.arange(110, 150)), (top[0], 10)]
