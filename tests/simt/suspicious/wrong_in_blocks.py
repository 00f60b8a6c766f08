"""Wrong kernels: shared memory, and barriers that are missing or not for all."""

from numpy import float32, int32

from gemmlab import cuda
from tests.simt.suspicious import Trial, count, wrong, zeros

WRONG: list[Trial] = []


@wrong(WRONG, "shared-race", "the last step of a reduction needs no barrier",
       2, 64, count(128), zeros(2))  # fmt: skip
def last_step_without_barrier(x, out):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[cuda.grid(1)]
    half = 32
    while half > 0:
        cuda.syncthreads()
        if t < half:
            s[t] += s[t + half]
        half //= 2
    # right: cuda.syncthreads()
    if t == 63:
        out[cuda.blockIdx.x] = s[0]  # fault


@wrong(WRONG, "shared-race", "the barrier of each turn covers the load, too",
       2, 64, count(128), zeros(2))  # fmt: skip
def first_step_without_barrier(x, out):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[cuda.grid(1)]
    # right: cuda.syncthreads()
    half = 32
    while half > 0:
        if t < half:
            s[t] += s[t + half]  # fault
        cuda.syncthreads()
        half //= 2
    if t == 0:
        out[cuda.blockIdx.x] = s[0]


@wrong(WRONG, "shared-race", "two buffers need no barrier at all",
       1, 64, count(64), zeros(64))  # fmt: skip
def double_buffer_without_barrier(x, out):
    s = cuda.shared.array((2, 64), float32)
    t = cuda.threadIdx.x
    s[0, t] = x[t]
    cuda.syncthreads()
    for step in range(6):
        now, then = step % 2, 1 - step % 2
        s[then, t] = s[now, t] + s[now, (t + 1) % 64]  # fault
        # right: cuda.syncthreads()
    out[t] = s[0, t]


@wrong(WRONG, "shared-race", "the buffers are exchanged by themselves",
       1, 64, count(64), zeros(64))  # fmt: skip
def double_buffer_never_exchanged(x, out):
    s = cuda.shared.array((2, 64), float32)
    t = cuda.threadIdx.x
    s[0, t] = x[t]
    s[1, t] = 0
    for step in range(6):
        cuda.syncthreads()
        # right: now, then = step % 2, 1 - step % 2
        now, then = step // 6, step // 6  # wrong
        s[then, t] = s[now, t] + s[now, (t + 1) % 64]  # fault
    out[t] = s[0, t]


@wrong(WRONG, "uninitialised-read", "a halo begins at the last element of the tile",
       2, 32, count(68), zeros(64))  # fmt: skip
def halo_off_by_one(x, out):
    s = cuda.shared.array(36, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    s[t + 2] = x[i + 2]
    if t < 2:
        s[t] = x[i]
        # right: s[t + 34] = x[i + 34]
        s[t + 33] = x[i + 33]  # wrong
    cuda.syncthreads()
    out[i] = s[t] + s[t + 1] + s[t + 2] + s[t + 3] + s[t + 4]  # fault


@wrong(WRONG, "shared-race", "only who loads the halo has to wait",
       2, 64, count(130), zeros(128))  # fmt: skip
def halo_without_barrier_for_all(x, out):
    s = cuda.shared.array(66, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    s[t + 1] = x[i + 1]
    if t == 0:
        s[0], s[65] = x[i], x[i + 65]
    # right: cuda.syncthreads()
    cuda.syncwarp()  # wrong
    out[i] = s[t] + s[t + 1] + s[t + 2]  # fault


@wrong(WRONG, "uninitialised-read", "the stride of a tile may differ between store and load",
       1, (16, 16), count(16, 16), zeros(16, 16))  # fmt: skip
def two_strides_of_one_tile(x, out):
    s = cuda.shared.array(16 * 17, float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    # right: s[ty * 17 + tx] = x[ty, tx]
    s[ty * 16 + tx] = x[ty, tx]  # wrong
    cuda.syncthreads()
    out[ty, tx] = s[tx * 17 + ty]  # fault


@wrong(WRONG, "uninitialised-read", "padding holds zeros",
       1, 32, count(32, 32), zeros(32))  # fmt: skip
def sum_over_the_padding(x, out):
    s = cuda.shared.array((32, 33), float32)
    t = cuda.threadIdx.x
    for row in range(32):
        s[row, t] = x[row, t]
    cuda.syncwarp()
    total = float32(0)
    # right: for column in range(32):
    for column in range(33):  # wrong
        total += s[t, column]  # fault
    out[t] = total


@wrong(WRONG, "shared-race", "reading and writing in one line is one step",
       1, 64, count(64), zeros(64))  # fmt: skip
def scan_in_place(x, out):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    step = 1
    while step < 64:
        cuda.syncthreads()
        before = s[t - step] if t >= step else float32(0)
        # right: cuda.syncthreads()
        s[t] += before  # fault
        step *= 2
    out[t] = s[t]


@wrong(WRONG, "shared-race", "up-sweep and down-sweep touch different elements",
       1, 32, count(64), zeros(64))  # fmt: skip
def sweeps_without_a_barrier_between(x, out):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[2 * t], s[2 * t + 1] = x[2 * t], x[2 * t + 1]
    step = 1
    while step < 64:
        cuda.syncthreads()
        if t < 32 // step:
            s[2 * step * (t + 1) - 1] += s[2 * step * (t + 1) - 1 - step]
        step *= 2
    if t == 0:
        s[63] = 0
    while step > 1:
        step //= 2
        # right: cuda.syncthreads()
        if t < 32 // step:
            left, right = 2 * step * (t + 1) - 1 - step, 2 * step * (t + 1) - 1
            s[left], s[right] = s[right], s[left] + s[right]  # fault
    cuda.syncthreads()
    out[t], out[t + 32] = s[t], s[t + 32]


@wrong(WRONG, "uninitialised-read", "shared memory is zero at the start",
       2, 64, count(128, dtype=int32), zeros(8, dtype=int32))  # fmt: skip
def histogram_not_zeroed(x, out):
    bins = cuda.shared.array(8, int32)
    t = cuda.threadIdx.x
    # right: bins[t % 8] = 0
    cuda.syncthreads()
    cuda.atomic.add(bins, x[cuda.grid(1)] % 8, 1)  # fault
    cuda.syncthreads()
    if t < 8:
        cuda.atomic.add(out, t, bins[t])


@wrong(WRONG, "shared-race", "who zeroes a bin is done before others add",
       2, 64, count(128, dtype=int32), zeros(8, dtype=int32))  # fmt: skip
def histogram_zeroed_without_barrier(x, out):
    bins = cuda.shared.array(8, int32)
    t = cuda.threadIdx.x
    if t < 8:
        bins[t] = 0
    # right: cuda.syncthreads()
    cuda.atomic.add(bins, (x[cuda.grid(1)] + 1) % 8, 1)  # fault
    cuda.syncthreads()
    if t < 8:
        cuda.atomic.add(out, t, bins[t])


@wrong(WRONG, "shared-race", "+= is one operation",
       1, 64, count(64, dtype=int32), zeros(8, dtype=int32))  # fmt: skip
def histogram_by_plain_addition(x, out):
    bins = cuda.shared.array(8, int32)
    t = cuda.threadIdx.x
    if t < 8:
        bins[t] = 0
    cuda.syncthreads()
    # right: cuda.atomic.add(bins, x[t] % 8, t)
    bins[x[t] % 8] += t  # fault, wrong
    cuda.syncthreads()
    if t < 8:
        out[t] = bins[t]


@wrong(WRONG, "shared-race", "atomics are done when they return, for everybody",
       1, 64, count(64, dtype=int32), zeros(8, dtype=int32))  # fmt: skip
def histogram_read_too_early(x, out):
    bins = cuda.shared.array(8, int32)
    t = cuda.threadIdx.x
    if t < 8:
        bins[t] = 0
    cuda.syncthreads()
    cuda.atomic.add(bins, x[t] % 8, 1)
    # right: cuda.syncthreads()
    if t < 8:
        out[t] = bins[t]  # fault


@wrong(WRONG, "shared-race", "a buffer is free when its values were stored to global memory",
       1, 64, count(2, 64), zeros(2, 64))  # fmt: skip
def buffer_used_again_too_early(x, out):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    for row in range(2):
        s[t] = x[row, t]  # fault
        cuda.syncthreads()
        out[row, t] = s[63 - t]
        # right: cuda.syncthreads()


@wrong(WRONG, "shared-race", "everybody sees at once what thread 0 writes",
       2, 64, count(128), zeros(128))  # fmt: skip
def broadcast_without_barrier(x, out):
    s = cuda.shared.array(1, float32)
    if cuda.threadIdx.x == 0:
        s[0] = x[cuda.blockIdx.x]
    # right: cuda.syncthreads()
    out[cuda.grid(1)] = s[0]  # fault


@wrong(WRONG, "shared-race", "one barrier a turn is enough for a broadcast",
       1, 64, count(5), zeros(64))  # fmt: skip
def broadcast_in_a_loop(x, out):
    s = cuda.shared.array(1, float32)
    t = cuda.threadIdx.x
    total = float32(0)
    for i in range(5):
        if t == 0:
            s[0] = x[i]  # fault
        cuda.syncthreads()
        total += s[0]
        # right: cuda.syncthreads()
    out[t] = total


@wrong(WRONG, "shared-race", "dynamic shared arrays lie one after the other",
       1, 32, count(32), zeros(32), shared_bytes=256)  # fmt: skip
def two_dynamic_arrays_in_one_place(x, out):
    a = cuda.shared.array(0, float32)
    # right: b = cuda.shared.array(0, float32)[32:]
    b = cuda.shared.array(0, float32)  # wrong
    t = cuda.threadIdx.x
    a[t] = x[t]
    b[31 - t] = 2 * x[t]  # fault
    cuda.syncthreads()
    out[t] = a[t] + b[t]


@wrong(WRONG, "shared-race", "only the outer loop of a bitonic sort needs a barrier",
       1, 64, count(64)[::-1].copy(), zeros(64))  # fmt: skip
def bitonic_sort_one_barrier(x, out):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    size = 2
    while size <= 64:
        cuda.syncthreads()
        step = size // 2
        while step > 0:
            # right: cuda.syncthreads()
            other = t ^ step
            if other > t and (s[t] > s[other]) == (t & size == 0):  # fault
                s[t], s[other] = s[other], s[t]
            step //= 2
        size *= 2
    cuda.syncthreads()
    out[t] = s[t]


@wrong(WRONG, "shared-race", "odd and even pairs are disjoint",
       1, 32, count(64)[::-1].copy(), zeros(64))  # fmt: skip
def odd_even_sort_without_barrier(x, out):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t], s[t + 32] = x[t], x[t + 32]
    cuda.syncthreads()
    for phase in range(64):
        i = 2 * t + phase % 2
        if i < 63 and s[i] > s[i + 1]:  # fault
            s[i], s[i + 1] = s[i + 1], s[i]
        # right: cuda.syncthreads()
    cuda.syncthreads()
    out[t], out[t + 32] = s[t], s[t + 32]


@wrong(WRONG, "shared-race", "the next piece of a vector may be loaded while others multiply",
       1, 64, count(64, 256), count(256), zeros(64))  # fmt: skip
def piece_of_a_vector_too_early(a, x, out):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    total = float32(0)
    for start in range(0, 256, 64):
        s[t] = x[start + t]  # fault
        cuda.syncthreads()
        for j in range(64):
            total += a[t, start + j] * s[j]
        # right: cuda.syncthreads()
    out[t] = total


@wrong(WRONG, "out-of-bounds", "the block is as large as it was",
       1, 64, count(64), zeros(64))  # fmt: skip
def array_for_half_the_block(x, out):
    # right: s = cuda.shared.array(64, float32)
    s = cuda.shared.array(32, float32)  # wrong
    t = cuda.threadIdx.x
    s[t] = x[t]  # fault
    cuda.syncthreads()
    out[t] = s[cuda.blockDim.x - 1 - t]


@wrong(WRONG, "out-of-bounds", "a tile that is not square is its own transpose",
       1, (32, 8), count(8, 32), zeros(32, 8))  # fmt: skip
def rows_and_columns_of_a_tile(x, out):
    # right: s = cuda.shared.array((32, 8), float32)
    s = cuda.shared.array((8, 32), float32)  # wrong
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    s[tx, ty] = x[ty, tx]  # fault
    cuda.syncthreads()
    out[tx, ty] = s[tx, ty]


@wrong(WRONG, "divergent-barrier", "threads with less work may wait less often",
       1, 64, count(64, dtype=int32), zeros(64))  # fmt: skip
def barrier_in_a_loop_of_different_length(lengths, out):
    t = cuda.threadIdx.x
    # right: for turn in range(64):
    for turn in range(lengths[t]):  # wrong
        out[t] += turn
        cuda.syncthreads()  # fault


@wrong(WRONG, "divergent-barrier", "a barrier in each branch is the same barrier",
       1, 64, zeros(64), zeros(64))  # fmt: skip
def barrier_in_both_branches(x, out):
    t = cuda.threadIdx.x
    x[t] = t
    # right: cuda.syncthreads()
    if t < 32:
        cuda.syncthreads()  # fault, wrong
        out[t] = x[t + 32]
    else:
        cuda.syncthreads()  # wrong
        out[t] = x[t - 32]


@wrong(WRONG, "divergent-barrier", "who leaves the loop need not wait any more",
       1, 64, count(64), zeros(64))  # fmt: skip
def one_leaves_before_the_barrier(x, out):
    t = cuda.threadIdx.x
    found = 0
    for turn in range(4):
        if x[t] == 5 and turn == 2:
            found = 1
            break  # wrong
        cuda.syncthreads()  # fault
    cuda.syncthreads()
    out[t] = found


@wrong(WRONG, "divergent-barrier", "whether anybody goes on is asked of those who go on",
       1, 64, count(64), zeros(64))  # fmt: skip
def vote_of_some(x, out):
    t = cuda.threadIdx.x
    # right: more = cuda.syncthreads_or(int32(x[t] > 3))
    more = 0  # wrong
    if x[t] > 3:  # wrong
        more = cuda.syncthreads_or(1)  # fault, wrong
    out[t] = more


@wrong(WRONG, "shared-race", "a barrier every second turn is enough",
       1, 64, count(64), zeros(64))  # fmt: skip
def barrier_every_second_turn(x, out):
    s = cuda.shared.array((2, 64), float32)
    t = cuda.threadIdx.x
    s[0, t] = x[t]
    cuda.syncthreads()
    for step in range(8):
        s[(step + 1) % 2, t] = s[step % 2, (t + 1) % 64]  # fault
        # right: cuda.syncthreads()
        if step % 2 == 1:  # wrong
            cuda.syncthreads()  # wrong
    out[t] = s[0, t]
