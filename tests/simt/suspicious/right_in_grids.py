"""Right kernels that look suspicious: threads of several blocks, atomics, fences and locks."""

import numpy as np
from numpy import float32, int32

from gemmlab import cuda
from tests.simt.suspicious import Trial, count, right, zeros

RIGHT: list[Trial] = []
x96 = count(96)


@cuda.jit(device=True)
def acquire(lock, i):
    while cuda.atomic.cas(lock, i, 0, 1) != 0:
        cuda.nanosleep(20)
    cuda.threadfence()


@cuda.jit(device=True)
def release(lock, i):
    cuda.threadfence()
    cuda.atomic.exch(lock, i, 0)


@right(RIGHT, "all blocks set one flag", 3, 32, x96, zeros(1), result=[1])
def any_of_the_grid(x, out):
    if x[cuda.grid(1)] % 2 == 0:
        out[0] = 1


@right(RIGHT, "many edges reach one node, with one number", 1, 64, count(64, dtype=int32),
       zeros(8, dtype=int32), result=[1] * 8)  # fmt: skip
def next_level_of_a_search(ends, level):
    level[ends[cuda.grid(1)] // 8] = 1


@right(RIGHT, "a plain read begins a loop of compare-and-swap", 3, 32, x96.astype(int32),
       zeros(1, dtype=int32), result=[x96.sum()])  # fmt: skip
def sum_by_compare_and_swap(x, total):
    i = cuda.grid(1)
    old = total[0]
    while True:
        expected = old
        old = cuda.atomic.cas(total, 0, expected, expected + x[i])
        if old == expected:
            break


@right(RIGHT, "a stack that all push to", 3, 32, zeros(96, dtype=int32),
       np.full(1, -1, int32), zeros(1), result=[96])  # fmt: skip
def stack_of_links(links, head, length):
    i = cuda.grid(1)
    while True:
        first = head[0]
        links[i] = first
        if cuda.atomic.cas(head, 0, first, i) == first:
            break
    cuda.cg.this_grid().sync()
    if i == 0:
        at = head[0]
        while at >= 0:
            length[0] += 1
            at = links[at]


@right(RIGHT, "a lock that threads spin for", 2, 32, zeros(1, dtype=int32), zeros(1),
       result=[64])  # fmt: skip
def spin_lock(lock, total):
    acquire(lock, 0)
    total[0] += 1
    release(lock, 0)


@right(RIGHT, "a lock tried in a loop, without waiting in it", 2, 32, zeros(1, dtype=int32),
       zeros(1), result=[64])  # fmt: skip
def lock_by_trying(lock, total):
    waits = True
    while waits:
        if cuda.atomic.cas(lock, 0, 0, 1) == 0:
            cuda.threadfence()
            total[0] += 1
            cuda.threadfence()
            cuda.atomic.exch(lock, 0, 0)
            waits = False


@right(RIGHT, "a lock for each element", 2, 32, zeros(4, dtype=int32), zeros(4), result=[16] * 4)
def locks_of_elements(lock, total):
    at = cuda.grid(1) % 4
    acquire(lock, at)
    total[at] += 1
    release(lock, at)


@right(RIGHT, "two locks, always in one order", 1, 4, zeros(2, dtype=int32), zeros(1), result=[4])
def two_locks_in_one_order(lock, total):
    acquire(lock, 0)
    acquire(lock, 1)
    total[0] += 1
    release(lock, 1)
    release(lock, 0)


@right(RIGHT, "turns by tickets", 2, 32, zeros(2, dtype=int32), zeros(1), result=[64])
def ticket_lock(tickets, total):
    mine = cuda.atomic.add(tickets, 0, 1)
    while cuda.atomic.add(tickets, 1, 0) != mine:
        pass
    cuda.threadfence()
    total[0] += 1
    cuda.threadfence()
    cuda.atomic.add(tickets, 1, 1)


@right(RIGHT, "a lock in shared memory", 2, 64, zeros(2), result=[64, 64])
def lock_in_shared_memory(out):
    lock = cuda.shared.array(1, int32)
    total = cuda.shared.array(1, float32)
    t = cuda.threadIdx.x
    if t == 0:
        lock[0], total[0] = 0, 0
    cuda.syncthreads()
    acquire(lock, 0)
    total[0] += 1
    release(lock, 0)
    cuda.syncthreads()
    if t == 0:
        out[cuda.blockIdx.x] = total[0]


@right(RIGHT, "a lock in shared memory with fences of the block", 2, 64, zeros(2),
       result=[64, 64])  # fmt: skip
def lock_with_fences_of_the_block(out):
    lock = cuda.shared.array(1, int32)
    if cuda.threadIdx.x == 0:
        lock[0] = 0
    cuda.syncthreads()
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:
        pass
    cuda.threadfence_block()
    out[cuda.blockIdx.x] += 1
    cuda.threadfence_block()
    cuda.atomic.exch(lock, 0, 0)


@right(RIGHT, "tickets in shared memory", 2, 32, zeros(2), result=[32, 32])
def ticket_lock_in_shared_memory(out):
    tickets = cuda.shared.array(2, int32)
    total = cuda.shared.array(1, float32)
    t = cuda.threadIdx.x
    if t < 2:
        tickets[t] = 0
    if t == 0:
        total[0] = 0
    cuda.syncthreads()
    mine = cuda.atomic.add(tickets, 0, 1)
    while cuda.atomic.add(tickets, 1, 0) != mine:
        pass
    total[0] += 1
    cuda.threadfence_block()
    cuda.atomic.add(tickets, 1, 1)
    cuda.syncthreads()
    if t == 0:
        out[cuda.blockIdx.x] = total[0]


@right(RIGHT, "a flag in shared memory, set and read by atomics", 1, 64, zeros(64),
       result=[7] * 32 + [0] * 32)  # fmt: skip
def message_from_warp_to_warp(out):
    flag = cuda.shared.array(1, int32)
    message = cuda.shared.array(1, float32)
    t = cuda.threadIdx.x
    if t == 0:
        flag[0] = 0
    cuda.syncthreads()
    if t == 32:
        message[0] = 7
        cuda.threadfence_block()
        cuda.atomic.exch(flag, 0, 1)
    if t < 32:
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
        out[t] = message[0]


@right(RIGHT, "each block waits for the one before", 4, 32, x96, zeros(4, dtype=int32), zeros(4),
       result=[496, 2016, 4560, 4560])  # fmt: skip
def chained_sums(x, ready, sums):
    s = cuda.shared.array(32, float32)
    t, b, i = cuda.threadIdx.x, cuda.blockIdx.x, cuda.grid(1)
    s[t] = x[i] if i < x.size else float32(0)
    cuda.syncthreads()
    if t == 0:
        total = float32(0)
        for j in range(32):
            total += s[j]
        if b > 0:
            while cuda.atomic.add(ready, b - 1, 0) == 0:
                pass
            cuda.threadfence()
            total += sums[b - 1]
        sums[b] = total
        cuda.threadfence()
        cuda.atomic.exch(ready, b, 1)


@right(RIGHT, "sums looked up from block to block, as far back as it takes", 4, 32,
       zeros(4, dtype=int32), zeros(4), zeros(4), result=[32, 64, 96, 128])  # fmt: skip
def decoupled_look_back(state, parts, sums):
    b = cuda.blockIdx.x
    if cuda.threadIdx.x == 0:
        parts[b] = 32
        cuda.threadfence()
        cuda.atomic.exch(state, b, 1)
        total, at = float32(32), b - 1
        while at >= 0:
            known = cuda.atomic.add(state, at, 0)
            if known == 2:
                total += sums[at]
                at = -1
            elif known == 1:
                total += parts[at]
                at -= 1
        sums[b] = total
        cuda.threadfence()
        cuda.atomic.exch(state, b, 2)


@right(RIGHT, "the last block reads what the others stored", 3, 32, x96, zeros(3),
       zeros(1, dtype=int32), zeros(1), result=[x96.sum()])  # fmt: skip
def last_block_adds(x, parts, done, out):
    is_last = cuda.shared.array(1, int32)
    t, b = cuda.threadIdx.x, cuda.blockIdx.x
    value = x[cuda.grid(1)]
    for step in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, step)
    if t == 0:
        parts[b] = value
        cuda.threadfence()
        is_last[0] = cuda.atomic.add(done, 0, 1) == cuda.gridDim.x - 1
    cuda.syncthreads()
    if is_last[0] and t == 0:
        out[0] = parts[0] + parts[1] + parts[2]


@right(RIGHT, "every thread fences, one arrives for its block", 3, 32, zeros(96),
       zeros(1, dtype=int32), zeros(96), result=x96[::-1])  # fmt: skip
def barrier_of_the_grid_by_hand(parts, arrived, out):
    i = cuda.grid(1)
    parts[i] = i
    cuda.threadfence()
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(arrived, 0, 1)
        while cuda.atomic.add(arrived, 0, 0) < cuda.gridDim.x:
            pass
    cuda.syncthreads()
    out[i] = parts[95 - i]


@right(RIGHT, "a message for another block", 2, 32, zeros(1), zeros(1, dtype=int32), zeros(32),
       result=[7] * 32)  # fmt: skip
def message_from_block_to_block(data, flag, out):
    t = cuda.threadIdx.x
    if cuda.blockIdx.x == 1:
        if t == 0:
            data[0] = 7
            cuda.threadfence()
            cuda.atomic.exch(flag, 0, 1)
    else:
        if t == 0:
            while cuda.atomic.add(flag, 0, 0) == 0:
                pass
        cuda.syncthreads()
        out[t] = data[0]


@right(RIGHT, "two arrays change their roles", 2, 32, count(64), zeros(64), result=np.roll(
    count(64), -3))  # fmt: skip
def ping_pong_in_the_grid(a, b):
    i = cuda.grid(1)
    for step in range(3):
        if step % 2 == 0:
            b[i] = a[(i + 1) % 64]
        else:
            a[i] = b[(i + 1) % 64]
        cuda.cg.this_grid().sync()


@right(RIGHT, "red and black in place", 2, 32, count(66), result=count(66))
def red_and_black(x):
    i = cuda.grid(1) + 1
    for colour in range(2):
        if i % 2 == colour:
            x[i] = (x[i - 1] + x[i + 1]) / 2
        cuda.cg.this_grid().sync()


@right(RIGHT, "two views of one array, side by side", 1, 32, count(64),
       result=[*range(32, 64), *range(32)])  # fmt: skip
def halves_exchanged_through_views(x):
    low, high = x[:32], x[32:]
    i = cuda.grid(1)
    low[i], high[i] = high[i], low[i]


@right(RIGHT, "overlapping views that are only read", 1, 63, count(64), zeros(63), result=[1] * 63)
def differences_of_overlapping_views(x, out):
    low, high = x[:-1], x[1:]
    i = cuda.grid(1)
    out[i] = high[i] - low[i]


@right(RIGHT, "what a thread has counted up it then reads", 1, 64, zeros(64), zeros(64),
       result=count(64))  # fmt: skip
def atomics_on_the_own_element(sums, out):
    i = cuda.grid(1)
    sums[i] = 0
    cuda.atomic.add(sums, i, i)
    out[i] = sums[i]


@right(RIGHT, "plain stores and atomics on one array", 1, 64, zeros(8, dtype=int32), zeros(8),
       result=[8] * 8)  # fmt: skip
def zeroed_then_counted_then_read(bins, out):
    t = cuda.threadIdx.x
    if t < 8:
        bins[t] = 0
    cuda.syncthreads()
    cuda.atomic.add(bins, t % 8, 1)
    cuda.syncthreads()
    if t < 8:
        out[t] = bins[t]


@right(RIGHT, "one atomic for a warp", 3, 32, zeros(1, dtype=int32), zeros(96),
       result=[1] * 48 + [0] * 48)  # fmt: skip
def one_atomic_for_a_warp(counter, out):
    t = cuda.threadIdx.x
    mask = cuda.ballot_sync(0xFFFFFFFF, t % 2 == 0)
    base = 0
    if t == 0:
        base = cuda.atomic.add(counter, 0, cuda.popc(mask))
    base = cuda.shfl_sync(0xFFFFFFFF, base, 0)
    if t % 2 == 0:
        out[base + cuda.popc(mask & ((1 << t) - 1))] = 1


@right(RIGHT, "slots of a table taken by compare-and-swap", 2, 32, zeros(128, dtype=int32),
       zeros(128), zeros(1), result=[64 * 65 / 2])  # fmt: skip
def hash_table(keys, values, total):
    i = cuda.grid(1)
    slot = (i * 7) % 16
    waits = True
    while waits:
        if cuda.atomic.cas(keys, slot, 0, i + 1) == 0:
            values[slot] = i + 1
            waits = False
        slot = (slot + 1) % 128
    cuda.cg.this_grid().sync()
    for j in range(i, 128, 64):
        if keys[j] > 0:
            cuda.atomic.add(total, 0, values[j])


@right(RIGHT, "a row of a matrix for each thread, read and written", 1, 32, count(32, 32),
       result=np.cumsum(count(32, 32), axis=1))  # fmt: skip
def running_sums_of_rows(x):
    i = cuda.grid(1)
    for j in range(1, x.shape[1]):
        x[i, j] += x[i, j - 1]


@right(RIGHT, "work taken from a queue", 2, 32, zeros(1, dtype=int32), zeros(200),
       result=[1] * 200)  # fmt: skip
def queue_of_work(following, out):
    at = cuda.atomic.add(following, 0, 1)
    while at < out.size:
        out[at] += 1
        at = cuda.atomic.add(following, 0, 1)
