"""Wrong kernels: lanes of a warp that are taken to run together."""

from numpy import float32, int32

from gemmlab import cuda
from tests.simt.suspicious import Trial, count, wrong, zeros

FULL = 0xFFFFFFFF
WRONG: list[Trial] = []


@wrong(WRONG, "shared-race", "the last warp of a reduction runs in lock-step",
       1, 32, count(64), zeros(1))  # fmt: skip
def last_warp_without_syncwarp(x, out):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t], s[t + 32] = x[t], x[t + 32]
    half = 32
    while half > 0:
        if t < half:
            s[t] += s[t + half]  # fault
        # right: cuda.syncwarp()
        half //= 2
    if t == 0:
        out[0] = s[0]


@wrong(WRONG, "shared-race", "a line is executed by the lanes of a warp at once",
       1, 32, count(48), zeros(32))  # fmt: skip
def reads_and_writes_in_one_line(x, out):
    s = cuda.shared.array(48, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    if t < 16:
        s[t + 32] = x[t + 32]
    cuda.syncwarp()
    # right: above = s[t + 16]
    # right: cuda.syncwarp()
    # right: s[t] += above
    s[t] += s[t + 16]  # fault, wrong
    cuda.syncwarp()
    out[t] = s[t]


@wrong(WRONG, "shared-race", "syncwarp is for the lanes that read",
       1, 32, count(32), zeros(32))  # fmt: skip
def mask_of_the_readers_alone(x, out):
    s = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    # right: cuda.syncwarp()
    if t < 16:
        cuda.syncwarp(0x0000FFFF)  # wrong
        out[t] = s[t + 16]  # fault


@wrong(WRONG, "global-race", "lanes that are neighbours in the warp wait for each other",
       1, 32, count(32), zeros(32))  # fmt: skip
def mask_that_leaves_out_one(x, out):
    t = cuda.threadIdx.x
    out[t] = x[t]
    # right: cuda.syncwarp()
    if t < 31:  # wrong
        cuda.syncwarp(0x7FFFFFFF)  # wrong
    above = out[(t + 1) % 32]  # fault
    cuda.syncwarp()
    out[t] += above


@wrong(WRONG, "shared-race", "a shuffle orders shared memory",
       1, 32, count(32), zeros(32))  # fmt: skip
def shuffle_for_a_barrier(x, out):
    s = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    total = cuda.shfl_xor_sync(FULL, x[t], 1)
    # right: cuda.syncwarp()
    out[t] = total + s[t ^ 3]  # fault


@wrong(WRONG, "shared-race", "a vote orders shared memory",
       1, 32, count(32), zeros(32))  # fmt: skip
def vote_for_a_barrier(x, out):
    s = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    # right: cuda.syncwarp()
    if cuda.all_sync(FULL, x[t] >= 0):
        out[t] = s[31 - t]  # fault


@wrong(WRONG, "shared-race", "syncwarp orders the warps of a block",
       1, 64, count(64), zeros(64))  # fmt: skip
def syncwarp_for_syncthreads(x, out):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    # right: cuda.syncthreads()
    cuda.syncwarp()  # wrong
    out[t] = s[63 - t]  # fault


@wrong(WRONG, "divergent-barrier", "the full mask is always right",
       1, 32, count(32), zeros(32))  # fmt: skip
def full_mask_in_a_branch(x, out):
    t = cuda.threadIdx.x
    if t < 16:
        # right: out[t] = cuda.shfl_xor_sync(0xFFFF, x[t], 1)
        out[t] = cuda.shfl_xor_sync(FULL, x[t], 1)  # fault, wrong


@wrong(WRONG, "uninitialised-read", "a lane that is not in the mask has its value still",
       1, 32, count(32), zeros(32))  # fmt: skip
def shuffle_from_outside_the_mask(x, out):
    t = cuda.threadIdx.x
    if t < 16:
        # right: out[t] = cuda.shfl_sync(0xFFFF, x[t], (t + 1) % 16)
        out[t] = cuda.shfl_sync(0xFFFF, x[t], t + 1)  # fault, wrong


@wrong(WRONG, "divergent-barrier", "a ballot asks the lanes that are there",
       1, 32, count(32), zeros(32, dtype=int32))  # fmt: skip
def ballot_in_a_branch(x, out):
    t = cuda.threadIdx.x
    # right: bits = cuda.ballot_sync(FULL, x[t] > 20)
    bits = 0  # wrong
    if x[t] > 10:  # wrong
        bits = cuda.ballot_sync(FULL, x[t] > 20)  # fault, wrong
    out[t] = cuda.popc(bits)


@wrong(WRONG, "divergent-barrier", "lanes leave a loop of shuffles when they are done",
       1, 32, count(32), zeros(32))  # fmt: skip
def shuffles_in_a_loop_of_different_length(x, out):
    t = cuda.threadIdx.x
    value = x[t]
    # right: for turn in range(5):
    for turn in range(t % 5):  # wrong
        value += cuda.shfl_xor_sync(FULL, value, 1 << turn)  # fault
    out[t] = value


@wrong(WRONG, "divergent-barrier", "the guard at the edge is for shuffles, too",
       2, 32, count(50), zeros(2))  # fmt: skip
def guard_around_a_reduction(x, out):
    i = cuda.grid(1)
    # right: value = x[i] if i < x.size else float32(0)
    # right: if True:
    if i < x.size:  # wrong
        value = x[i]  # wrong
        for step in (16, 8, 4, 2, 1):
            value += cuda.shfl_down_sync(FULL, value, step)  # fault
        if cuda.laneid == 0:
            out[cuda.blockIdx.x] = value


@wrong(WRONG, "shared-race", "sums of warps are there when the first warp comes for them",
       1, 128, count(128), zeros(1))  # fmt: skip
def sums_of_warps_without_barrier(x, out):
    s = cuda.shared.array(4, float32)
    t = cuda.threadIdx.x
    value = x[t]
    for step in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(FULL, value, step)
    if t % 32 == 0:
        s[t // 32] = value
    # right: cuda.syncthreads()
    if t == 0:
        out[0] = s[0] + s[1] + s[2] + s[3]  # fault


@wrong(WRONG, "shared-race", "one lane raises the flag for its warp, which runs together",
       1, 64, zeros(64))  # fmt: skip
def flag_raised_for_a_warp(out):
    s = cuda.shared.array(32, float32)
    flag = cuda.shared.array(1, int32)
    t = cuda.threadIdx.x
    if t == 0:
        flag[0] = 0
    cuda.syncthreads()
    if t < 32:
        s[t] = t
        cuda.threadfence_block()
        # right: cuda.syncwarp()
        if t == 0:
            cuda.atomic.exch(flag, 0, 1)
    else:
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
        cuda.threadfence_block()
        out[t] = s[t - 32] + s[31]  # fault


@wrong(WRONG, "global-race", "one lane has seen the flag, so its neighbours may go on",
       2, 32, zeros(1), zeros(1, dtype=int32), zeros(64))  # fmt: skip
def flag_seen_for_a_warp(data, flag, out):
    t = cuda.threadIdx.x
    if cuda.blockIdx.x == 0:
        if t == 0:
            data[0] = 7
            cuda.threadfence()
            cuda.atomic.exch(flag, 0, 1)
    elif t < 4:
        if t == 1:
            while cuda.atomic.add(flag, 0, 0) == 0:
                pass
            cuda.threadfence()
        # right: cuda.syncwarp(0b1111)
        out[t] = data[0]  # fault
