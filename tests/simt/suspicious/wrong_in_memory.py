"""Wrong kernels: addresses, memory that nobody wrote, copies that are under way."""

import numpy as np
from numpy import float32, int16, int32, uint32

from gemmlab import cuda
from gemmlab.instructions import cp_async_16, cp_async_commit, cp_async_wait, load_v4, store_v4
from gemmlab.simt import cuda as host
from tests.simt.suspicious import Trial, count, wrong, zeros

WRONG: list[Trial] = []


def scratch():
    return host.device_array(64, np.float32)


@wrong(WRONG, "misaligned", "four elements can be loaded from anywhere",
       1, 15, count(64), zeros(64))  # fmt: skip
def wide_load_with_an_offset(x, out):
    t = cuda.threadIdx.x
    # right: store_v4(out, 4 * t, load_v4(x, 4 * t))
    store_v4(out, 4 * t, load_v4(x, 4 * t + 1))  # fault, wrong


@wrong(WRONG, "misaligned", "rows of any length begin at a multiple of 16 bytes",
       1, 32, count(32, 8), zeros(32, 8))  # fmt: skip
def wide_store_to_padded_rows(x, out):
    # right: s = cuda.shared.array((32, 12), float32, alignment=16)
    s = cuda.shared.array((32, 9), float32, alignment=16)  # wrong
    t = cuda.threadIdx.x
    store_v4(s, t, 0, load_v4(x, t, 0))  # fault
    cuda.syncwarp()
    store_v4(out, t, 0, load_v4(s, 31 - t, 0))


@wrong(WRONG, "async-not-waited", "what was committed has come",
       1, 32, count(32, 4), zeros(32, 4))  # fmt: skip
def copy_read_too_early(x, out):
    s = cuda.shared.array((32, 4), float32, alignment=16)
    t = cuda.threadIdx.x
    cp_async_16(s, t, 0, x, t, 0)
    cp_async_commit()
    # right: cp_async_wait(0)
    cuda.syncthreads()
    store_v4(out, t, 0, load_v4(s, 31 - t, 0))  # fault


@wrong(WRONG, "async-not-waited", "wait(1) waits for the first group and the second",
       1, 32, count(2, 32, 4), zeros(32, 4))  # fmt: skip
def copies_waited_for_but_one(x, out):
    s = cuda.shared.array((2, 32, 4), float32, alignment=16)
    t = cuda.threadIdx.x
    for stage in range(2):
        cp_async_16(s, stage, t, 0, x, stage, t, 0)
        cp_async_commit()
    # right: cp_async_wait(0)
    cp_async_wait(1)  # wrong
    cuda.syncthreads()
    store_v4(out, t, 0, load_v4(s, 1, 31 - t, 0))  # fault


@wrong(WRONG, "shared-race", "whoever waits for copies waits for those of others",
       1, 32, count(32, 4), zeros(32, 4))  # fmt: skip
def copies_of_others_without_barrier(x, out):
    s = cuda.shared.array((32, 4), float32, alignment=16)
    t = cuda.threadIdx.x
    cp_async_16(s, t, 0, x, t, 0)
    cp_async_commit()
    cp_async_wait(0)
    # right: cuda.syncthreads()
    store_v4(out, t, 0, load_v4(s, 31 - t, 0))  # fault


@wrong(WRONG, "index-overflow", "an index of a matrix fits where its rows and columns do",
       1, 32, zeros(64), zeros(64))  # fmt: skip
def product_in_int32(x, out):
    i = cuda.grid(1)
    # right: wide = i
    wide = int32(int32(i + 70000) * int32(65536))  # wrong
    out[i] = x[wide % 64 if wide < 0 else wide]  # fault


@wrong(WRONG, "index-overflow", "16 bits are enough for a lane",
       2, 32, zeros(64), zeros(64))  # fmt: skip
def index_in_int16(x, out):
    i = cuda.grid(1)
    # right: at = int32(i * 1000)
    at = int16(i * 1000)  # wrong
    out[i] = x[at // 1000]  # fault


@wrong(WRONG, "index-overflow", "an unsigned index cannot be negative",
       1, 32, count(64), zeros(64))  # fmt: skip
def unsigned_index_below_zero(x, out):
    i = cuda.grid(1)
    # right: left = i - 1 if i > 0 else 0
    left = uint32(i) - uint32(1)  # wrong
    left = uint32(left)  # wrong
    out[i] = x[left]  # fault


@wrong(WRONG, "uninitialised-read", "an array on the device begins with zeros",
       1, 64, scratch, zeros(64))  # fmt: skip
def sum_in_an_array_that_nobody_set(sums, out):
    i = cuda.grid(1)
    # right: sums[i] = 0
    sums[i] += i  # fault
    out[i] = sums[i]


@wrong(WRONG, "uninitialised-read", "every second element is every element",
       1, 32, scratch, zeros(32))  # fmt: skip
def half_of_an_array_written(pairs, out):
    i = cuda.grid(1)
    pairs[2 * i] = i
    # right: pairs[2 * i + 1] = -i
    out[i] = pairs[2 * i] + pairs[2 * i + 1]  # fault


@wrong(WRONG, "uninitialised-read", "local arrays begin with zeros",
       1, 32, count(32), zeros(32))  # fmt: skip
def local_sums_not_set(x, out):
    sums = cuda.local.array(4, float32)
    t = cuda.threadIdx.x
    # right: sums[0] = sums[1] = sums[2] = sums[3] = 0
    for j in range(4):
        sums[j] += x[t]  # fault
    out[t] = sums[0] + sums[3]


@wrong(WRONG, "out-of-bounds", "row pointers have as many elements as rows",
       1, 32, count(32, dtype=int32), zeros(32))  # fmt: skip
def row_pointers_without_an_end(rows, out):
    i = cuda.grid(1)
    # right: end = rows[i + 1] if i + 1 < rows.size else rows.size
    end = rows[i + 1]  # fault, wrong
    out[i] = end - rows[i]


@wrong(WRONG, "out-of-bounds", "column indices count from 1, as in the file",
       1, 32, count(32, dtype=int32), count(32), zeros(32))  # fmt: skip
def column_indices_from_one(columns, x, out):
    i = cuda.grid(1)
    # right: out[i] = x[columns[i]]
    out[i] = x[columns[i] + 1]  # fault, wrong


@wrong(WRONG, "out-of-bounds", "the result of a transposition has the shape of its input",
       (2, 1), (16, 16), count(16, 32), zeros(32, 16))  # fmt: skip
def transposition_with_swapped_indices(x, out):
    column, row = cuda.grid(2)
    # right: out[column, row] = x[row, column]
    out[row, column] = x[row, column]  # fault, wrong


@wrong(WRONG, "out-of-bounds", "two of three dimensions have an edge",
       (2, 2, 2), (4, 4, 4), count(8, 8, 6), zeros(8, 8, 6))  # fmt: skip
def edge_of_the_third_dimension(x, out):
    i, j, k = cuda.grid(3)
    # right: if i < x.shape[0] and j < x.shape[1] and k < x.shape[2]:
    if i < x.shape[0] and j < x.shape[1]:  # wrong
        out[i, j, k] = x[i, j, k]  # fault


@wrong(WRONG, "out-of-bounds", "a loop with a stride ends where the array does",
       1, 32, count(100), zeros(100))  # fmt: skip
def ragged_pieces_of_four(x, out):
    t = cuda.threadIdx.x
    for j in range(4):
        # right: if 4 * t + j < x.size:
        if 4 * t < x.size + 4:  # wrong
            out[4 * t + j] = x[4 * t + j]  # fault


@wrong(WRONG, "out-of-bounds", "an index that wraps wraps as often as it has to",
       1, 32, count(4), zeros(32))  # fmt: skip
def index_far_below_zero(x, out):
    t = cuda.threadIdx.x
    # right: out[t] = x[-t % 4]
    out[t] = x[-t]  # fault, wrong


@wrong(WRONG, "out-of-bounds", "a table has an entry for every value",
       1, 32, count(32, dtype=int32), zeros(32))  # fmt: skip
def table_in_constant_memory(x, out):
    table = cuda.const.array_like(TABLE)
    t = cuda.threadIdx.x
    # right: out[t] = table[x[t] % 16]
    out[t] = table[x[t]]  # fault, wrong


TABLE = np.arange(16, dtype=np.float32)


@wrong(WRONG, "uninitialised-read", "what idle threads hold is never stored",
       1, 32, count(20), zeros(32))  # fmt: skip
def idle_lanes_take_part_in_a_sum(x, out):
    t = cuda.threadIdx.x
    own = cuda.local.array(1, float32)
    if t < x.size:
        own[0] = x[t]
    # right: else:
    # right:     own[0] = 0
    value = own[0] * float32(2)  # fault
    for step in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, step)
    if t == 0:
        out[0] = value


@wrong(WRONG, "uninitialised-read", "a threshold is at its default until somebody sets it",
       1, 32, count(32), zeros(32))  # fmt: skip
def branch_on_what_nobody_has_set(x, out):
    t = cuda.threadIdx.x
    limit = cuda.shared.array(1, float32)
    # right: if t == 0:
    # right:     limit[0] = 10
    # right: cuda.syncthreads()
    if x[t] > limit[0]:  # fault
        out[t] = 1
