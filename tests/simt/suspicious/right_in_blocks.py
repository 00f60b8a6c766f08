"""Right kernels that look suspicious: shared memory, warps and addresses."""

import numpy as np
from numpy import float32, int32, uint32

from gemmlab import cuda
from gemmlab.instructions import cp_async_16, cp_async_commit, cp_async_wait, load_v4, store_v4
from gemmlab.simt import cuda as host
from tests.simt.suspicious import Trial, count, right, zeros

FULL = 0xFFFFFFFF
RIGHT: list[Trial] = []
x64 = count(64)


@right(RIGHT, "all threads of a block zero one element", 2, 64, zeros(2),
       result=[64, 64])  # fmt: skip
def all_zero_one_element(out):
    total = cuda.shared.array(1, int32)
    total[0] = 0
    cuda.syncthreads()
    cuda.atomic.add(total, 0, 1)
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        out[cuda.blockIdx.x] = total[0]


@right(RIGHT, "several threads set the flag of a block", 2, 64, count(128), zeros(2),
       result=[0, 1])  # fmt: skip
def any_by_stores_of_one_value(x, out):
    found = cuda.shared.array(1, int32)
    t = cuda.threadIdx.x
    if t == 0:
        found[0] = 0
    cuda.syncthreads()
    if x[cuda.grid(1)] > 90:
        found[0] = 1
    cuda.syncthreads()
    if t == 0:
        out[cuda.blockIdx.x] = found[0]


@right(RIGHT, "one barrier a turn for two buffers", 1, 64, x64, zeros(64),
       result=np.roll(x64, -6))  # fmt: skip
def double_buffer_one_barrier(x, out):
    s = cuda.shared.array((2, 64), float32)
    t = cuda.threadIdx.x
    s[0, t] = x[t]
    for step in range(6):
        cuda.syncthreads()
        s[1 - step % 2, t] = s[step % 2, (t + 1) % 64]
    out[t] = s[0, t]


@right(RIGHT, "a warp adds without a barrier of the block", 1, 32, x64, zeros(1),
       result=[x64.sum()])  # fmt: skip
def warp_sum_with_syncwarp(x, out):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t], s[t + 32] = x[t], x[t + 32]
    half = 32
    while half > 0:
        if t < half:
            s[t] += s[t + half]
        cuda.syncwarp()
        half //= 2
    if t == 0:
        out[0] = s[0]


@right(RIGHT, "each warp waits for itself alone", 1, 128, count(128), zeros(128),
       result=count(128) + np.arange(128) // 32)  # fmt: skip
def warps_apart(x, out):
    s = cuda.shared.array((4, 32), float32)
    warp, lane = cuda.threadIdx.x // 32, cuda.threadIdx.x % 32
    for _ in range(warp):
        s[warp, lane] = 1
        cuda.syncwarp()
        out[32 * warp + lane] += s[warp, 31 - lane]
        cuda.syncwarp()
    out[32 * warp + lane] += x[32 * warp + lane]


@right(RIGHT, "in place, between two barriers", 1, 64, x64, result=np.roll(x64, -1))
def neighbours_in_place(x):
    t = cuda.threadIdx.x
    value = x[(t + 1) % 64]
    cuda.syncthreads()
    x[t] = value


@right(RIGHT, "the two ends of an array are exchanged in place", 1, 32, x64, result=x64[::-1])
def ends_exchanged(x):
    i = cuda.grid(1)
    x[i], x[63 - i] = x[63 - i], x[i]


@right(RIGHT, "threads return before a barrier", 1, 64, x64, zeros(64),
       result=np.where(x64 < 40, 39 - x64, 0))  # fmt: skip
def early_return(x, out):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    if t >= 40:
        return
    s[t] = x[t]
    cuda.syncthreads()
    out[t] = s[39 - t]


@right(RIGHT, "a barrier in a branch", 3, 32, zeros(96),
       result=np.repeat([0, 1, 0], 32))  # fmt: skip
def barrier_in_a_branch_of_blocks(out):
    s = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    if cuda.blockIdx.x == 1:
        s[t] = 1
        cuda.syncthreads()
        out[cuda.grid(1)] = s[31 - t]


@right(RIGHT, "blocks wait a different number of times", 4, 32, count(4, dtype=int32), zeros(128),
       result=np.repeat([0, 1, 2, 3], 32))  # fmt: skip
def as_many_barriers_as_the_block_needs(turns, out):
    s = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    s[t] = 0
    for _ in range(turns[cuda.blockIdx.x]):
        cuda.syncthreads()
        value = s[(t + 1) % 32]
        cuda.syncthreads()
        s[t] = value + 1
    out[cuda.grid(1)] = s[t]


@right(RIGHT, "one array for two purposes", 1, 64, x64, zeros(64),
       result=2 * x64[::-1] + 1)  # fmt: skip
def shared_memory_used_again(x, out):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    value = s[63 - t]
    cuda.syncthreads()
    s[63 - t] = 2 * value
    cuda.syncthreads()
    out[t] = s[63 - t] + 1


@right(RIGHT, "two types in one dynamic memory", 1, 32, count(32), zeros(32),
       result=count(32)[::-1] + 1, shared_bytes=128)  # fmt: skip
def dynamic_memory_of_two_types(x, out):
    numbers = cuda.shared.array(0, float32)
    flags = cuda.shared.array(0, int32)
    t = cuda.threadIdx.x
    numbers[t] = x[t]
    cuda.syncthreads()
    value = numbers[31 - t]
    cuda.syncthreads()
    flags[t] = 1
    out[t] = value + flags[t]


@right(RIGHT, "odd and even phases", 1, 32, x64[::-1].copy(), zeros(64), result=x64)
def odd_even_sort(x, out):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t], s[t + 32] = x[t], x[t + 32]
    for phase in range(64):
        cuda.syncthreads()
        i = 2 * t + phase % 2
        if i < 63 and s[i] > s[i + 1]:
            s[i], s[i + 1] = s[i + 1], s[i]
    cuda.syncthreads()
    out[t], out[t + 32] = s[t], s[t + 32]


@right(RIGHT, "pairs far from each other are exchanged", 1, 64, x64[::-1].copy(), zeros(64),
       result=x64)  # fmt: skip
def bitonic_sort(x, out):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    size = 2
    while size <= 64:
        step = size // 2
        while step > 0:
            cuda.syncthreads()
            other = t ^ step
            if other > t and (s[t] > s[other]) == (t & size == 0):
                s[t], s[other] = s[other], s[t]
            step //= 2
        size *= 2
    cuda.syncthreads()
    out[t] = s[t]


@right(RIGHT, "a scan in place, with two barriers", 1, 64, x64, zeros(64),
       result=np.cumsum(x64))  # fmt: skip
def scan_with_two_barriers(x, out):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    step = 1
    while step < 64:
        cuda.syncthreads()
        before = s[t - step] if t >= step else float32(0)
        cuda.syncthreads()
        s[t] += before
        step *= 2
    out[t] = s[t]


@right(RIGHT, "columns of padding that nobody writes or reads", 1, (32, 8), count(32, 32),
       zeros(32, 32), result=count(32, 32).T)  # fmt: skip
def padding_not_used(x, out):
    s = cuda.shared.array((32, 33), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    for row in range(ty, 32, 8):
        s[row, tx] = x[row, tx]
    cuda.syncthreads()
    for row in range(ty, 32, 8):
        out[row, tx] = s[tx, row]


@right(RIGHT, "half a warp shuffles", 1, 32, count(32), zeros(32),
       result=[*(x64[:16] + x64[:16].reshape(8, 2)[:, ::-1].ravel()), *[0] * 16])  # fmt: skip
def shuffle_of_half_a_warp(x, out):
    t = cuda.threadIdx.x
    if t < 16:
        out[t] = x[t] + cuda.shfl_xor_sync(0xFFFF, x[t], 1)


@right(RIGHT, "each half has its mask", 1, 32, count(32), zeros(32),
       result=np.arange(32) ^ 1)  # fmt: skip
def halves_that_wait_apart(x, out):
    s = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    if t < 16:
        cuda.syncwarp(0x0000FFFF)
        out[t] = s[t ^ 1]
    else:
        cuda.syncwarp(0xFFFF0000)
        out[t] = s[t ^ 1]


@right(RIGHT, "a shuffle among lanes that a vote has found", 1, 32, count(32), zeros(32),
       result=[21] * 21 + [0] * 11)  # fmt: skip
def mask_from_a_ballot(x, out):
    t = cuda.threadIdx.x
    small = x[t] < 21
    mask = cuda.ballot_sync(FULL, small)
    if small:
        out[t] = cuda.popc(mask) + cuda.shfl_sync(mask, t, 0)


@right(RIGHT, "the loop ends for all at once", 1, 64, x64, zeros(64), result=np.maximum(x64, 50))
def until_nobody_goes_on(x, out):
    t = cuda.threadIdx.x
    value = x[t]
    while cuda.syncthreads_or(int32(value < 50)):
        if value < 50:
            value += 1
    out[t] = value


@right(RIGHT, "what ends the loop lies in shared memory", 1, 64, x64, zeros(64),
       result=x64 + 7)  # fmt: skip
def loop_until_a_shared_flag(x, out):
    go_on = cuda.shared.array(1, int32)
    t = cuda.threadIdx.x
    value, turn = x[t], 0
    if t == 0:
        go_on[0] = 1
    cuda.syncthreads()
    while go_on[0]:
        cuda.syncthreads()
        value += 1
        turn += 1
        if t == 0 and turn == 7:
            go_on[0] = 0
        cuda.syncthreads()
    out[t] = value


@right(RIGHT, "-1 is the last element", 1, 32, count(32), zeros(32), result=np.roll(count(32), 1))
def index_that_wraps(x, out):
    i = cuda.grid(1)
    out[i] = x[i - 1]


@right(RIGHT, "a hash that overflows", 1, 32, x64, zeros(32, dtype=np.uint32),
       result=(np.arange(32, dtype=np.uint32) * np.uint32(2654435761)) >> 26)  # fmt: skip
def hash_that_overflows(x, out):
    i = cuda.grid(1)
    bucket = uint32(uint32(i) * uint32(2654435761)) >> uint32(26)
    if x[bucket] >= 0:
        out[i] = bucket


@right(RIGHT, "an array on the device that is written first", 1, 32,
       lambda: host.device_array(32, np.float32), zeros(32), result=np.arange(32) ** 2)  # fmt: skip
def written_before_it_is_read(squares, out):
    i = cuda.grid(1)
    squares[i] = i
    squares[i] *= i
    out[i] = squares[i]


@right(RIGHT, "half of an array is never written, nor read", 1, 32,
       lambda: host.device_array(64, np.float32), zeros(32), result=count(32))  # fmt: skip
def half_of_it_not_written(pairs, out):
    i = cuda.grid(1)
    pairs[2 * i] = i
    out[i] = pairs[2 * i]


@right(RIGHT, "a local array set in some turns", 1, 32, zeros(32), result=[3] * 32)
def local_array_set_where_it_is_read(out):
    values = cuda.local.array(8, float32)
    t = cuda.threadIdx.x
    first = t % 4
    for j in range(first, first + 3):
        values[j] = 1
    for j in range(first, first + 3):
        out[t] += values[j]


@right(RIGHT, "copies under way while others are read", 1, 32, count(4, 32, 4), zeros(32, 4),
       result=count(4, 32, 4)[:, ::-1].sum(axis=0))  # fmt: skip
def copies_ahead(x, out):
    s = cuda.shared.array((2, 32, 4), float32, alignment=16)
    t = cuda.threadIdx.x
    cp_async_16(s, 0, t, 0, x, 0, t, 0)
    cp_async_commit()
    for step in range(4):
        if step < 3:
            cp_async_16(s, (step + 1) % 2, t, 0, x, step + 1, t, 0)
        cp_async_commit()
        cp_async_wait(1)
        cuda.syncthreads()
        for j in range(4):
            out[t, j] += s[step % 2, 31 - t, j]
        cuda.syncthreads()


@right(RIGHT, "wide stores to rows with padding", 1, 32, count(32, 4), zeros(32, 4),
       result=count(32, 4)[::-1])  # fmt: skip
def wide_rows_with_padding(x, out):
    s = cuda.shared.array((32, 12), float32, alignment=16)
    t = cuda.threadIdx.x
    store_v4(s, t, 8, load_v4(x, t, 0))
    cuda.syncwarp()
    store_v4(out, t, 0, load_v4(s, 31 - t, 8))


@right(RIGHT, "cells of a diagonal need those of the one before", 1, 32, zeros(32, 32),
       result=[[min(i, j) + 1 for j in range(32)] for i in range(32)])  # fmt: skip
def diagonal_after_diagonal(out):
    j = cuda.threadIdx.x
    for diagonal in range(63):
        i = diagonal - j
        if i >= 0 and i < 32:
            out[i, j] = 1 + (out[i - 1, j - 1] if i > 0 and j > 0 else float32(0))
        cuda.syncthreads()


@right(RIGHT, "one thread works while the others wait", 1, 64, x64, zeros(64),
       result=np.full(64, x64.sum()))  # fmt: skip
def one_thread_adds_all(x, out):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    if t == 0:
        for j in range(1, 64):
            s[0] += s[j]
    cuda.syncthreads()
    out[t] = s[0]


@right(RIGHT, "idle threads compute from what nobody has written, and store nothing",
       1, 32, count(20), zeros(20), result=8 * count(20))  # fmt: skip
def idle_threads_compute_too(x, out):
    i = cuda.grid(1)
    own = cuda.local.array(1, float32)
    if i < x.size:
        own[0] = x[i]
    for _ in range(3):
        own[0] = own[0] * 2
    if i < x.size:
        out[i] = own[0]


@right(RIGHT, "a tile is full in its valid part alone, which alone is stored",
       1, (8, 8), 1 + count(5, 5), 1 + count(5, 5), zeros(5, 5),
       result=(1 + count(5, 5)) @ (1 + count(5, 5)))  # fmt: skip
def product_in_one_tile(a, b, out):
    A = cuda.shared.array((8, 8), float32)
    B = cuda.shared.array((8, 8), float32)
    j = cuda.threadIdx.x
    i = cuda.threadIdx.y
    n = a.shape[0]
    if i < n and j < n:
        A[i, j] = a[i, j]
        B[i, j] = b[i, j]
    cuda.syncthreads()
    total = float32(0)
    for k in range(n):
        total += A[i, k] * B[k, j]
    if i < n and j < n:
        out[i, j] = total


@right(RIGHT, "values of idle lanes are shuffled, and those who get them discard them",
       1, 32, count(20), zeros(19), result=[1] * 19)  # fmt: skip
def differences_in_a_warp(x, out):
    t = cuda.threadIdx.x
    own = cuda.shared.array(32, float32)
    if t < x.size:
        own[t] = x[t]
    cuda.syncwarp()
    value = own[t]
    after = cuda.shfl_down_sync(0xFFFFFFFF, value, 1)
    if t + 1 < x.size:
        out[t] = after - value
