"""Wrong kernels: threads of several blocks, atomics, fences, locks, and waits without an end."""

from numpy import float32, int32

from gemmlab import cuda
from tests.simt.suspicious import Trial, count, wrong, zeros

WRONG: list[Trial] = []


@cuda.jit(device=True)
def acquire(lock, i):
    while cuda.atomic.cas(lock, i, 0, 1) != 0:
        pass
    cuda.threadfence()


@cuda.jit(device=True)
def release(lock, i):
    cuda.threadfence()
    cuda.atomic.exch(lock, i, 0)


@wrong(WRONG, "global-race", "a sum is complete when the own addition is",
       2, 32, count(64), zeros(1), zeros(64))  # fmt: skip
def plain_read_of_a_sum(x, total, out):
    i = cuda.grid(1)
    cuda.atomic.add(total, 0, x[i])
    # right: cuda.cg.this_grid().sync()
    out[i] = x[i] / total[0]  # fault


@wrong(WRONG, "global-race", "block 0 begins first",
       4, 32, zeros(1, dtype=int32), zeros(1))  # fmt: skip
def counter_reset_by_block_0(counter, out):
    if cuda.grid(1) == 0:
        counter[0] = 0
    # right: cuda.cg.this_grid().sync()
    cuda.atomic.add(counter, 0, 1)  # fault


@wrong(WRONG, "divergent-barrier", "who has nothing to copy need not wait for the grid",
       2, 32, zeros(64))  # fmt: skip
def wait_for_the_grid_in_a_branch(x):
    i = cuda.grid(1)
    if i % 2 == 0:
        x[i] = i
        cuda.cg.this_grid().sync()  # fault, wrong
    # right: cuda.cg.this_grid().sync()
    if i % 2 == 0:
        x[i + 1] = x[i]


@wrong(WRONG, "global-race", "an atomic flag publishes what was stored before it",
       2, 32, zeros(1), zeros(1, dtype=int32), zeros(32))  # fmt: skip
def flag_without_fence(data, flag, out):
    t = cuda.threadIdx.x
    if cuda.blockIdx.x == 0:
        if t == 0:
            data[0] = 7
            # right: cuda.threadfence()
            cuda.atomic.exch(flag, 0, 1)
    else:
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
        out[t] = data[0]  # fault


@wrong(WRONG, "global-race", "an aligned store is as good as an atomic",
       2, 32, zeros(1, dtype=int32), zeros(32))  # fmt: skip
def flag_by_plain_store(flag, out):
    t = cuda.threadIdx.x
    if cuda.blockIdx.x == 0:
        if t == 0:
            # right: cuda.atomic.exch(flag, 0, 1)
            flag[0] = 1  # wrong
    else:
        out[t] = cuda.atomic.add(flag, 0, 0)  # fault


@wrong(WRONG, "global-race", "one fence, on the way in, is enough for a lock",
       2, 32, zeros(1, dtype=int32), zeros(1))  # fmt: skip
def lock_opened_without_fence(lock, total):
    acquire(lock, 0)
    total[0] += 1  # fault
    # right: cuda.threadfence()
    cuda.atomic.exch(lock, 0, 0)


@wrong(WRONG, "global-race", "each has a lock, so that all are locked out",
       2, 32, zeros(2, dtype=int32), zeros(1))  # fmt: skip
def a_lock_for_each_block(lock, total):
    # right: mine = 0
    mine = cuda.blockIdx.x  # wrong
    acquire(lock, mine)
    total[0] += 1  # fault
    release(lock, mine)


@wrong(WRONG, "global-race", "what is only read needs no lock",
       2, 32, zeros(1, dtype=int32), zeros(1), zeros(64))  # fmt: skip
def read_outside_of_the_lock(lock, total, out):
    i = cuda.grid(1)
    acquire(lock, 0)
    total[0] += 1
    # right: out[i] = total[0]
    release(lock, 0)
    out[i] = total[0]  # fault, wrong


@wrong(WRONG, "global-race", "turns are taken in order, so that memory is in order",
       2, 32, zeros(2, dtype=int32), zeros(1))  # fmt: skip
def ticket_lock_without_fence(tickets, total):
    mine = cuda.atomic.add(tickets, 0, 1)
    while cuda.atomic.add(tickets, 1, 0) != mine:
        pass
    total[0] += 1  # fault
    # right: cuda.threadfence()
    cuda.atomic.add(tickets, 1, 1)


@wrong(WRONG, "deadlock", "the order in which locks are taken does not matter",
       1, 2, zeros(2, dtype=int32), zeros(1, dtype=int32), zeros(1))  # fmt: skip
def two_locks_in_two_orders(lock, met, total):
    t = cuda.threadIdx.x
    # right: first = 0
    first = t  # wrong
    while cuda.atomic.cas(lock, first, 0, 1) != 0:
        pass
    # right: met[0] = 2
    cuda.atomic.add(met, 0, 1)  # wrong
    while cuda.atomic.add(met, 0, 0) < 2:
        pass
    while cuda.atomic.cas(lock, 1 - first, 0, 1) != 0:  # fault
        pass
    cuda.threadfence()
    total[0] += 1
    cuda.threadfence()
    cuda.atomic.exch(lock, 1 - first, 0)
    cuda.atomic.exch(lock, first, 0)


@wrong(WRONG, "deadlock", "who has the lock may take it again",
       1, 32, zeros(1, dtype=int32), zeros(1))  # fmt: skip
def lock_taken_twice(lock, total):
    if cuda.threadIdx.x == 3:
        acquire(lock, 0)
        while cuda.atomic.cas(lock, 0, 0, 1) != 0:  # fault, wrong
            pass  # wrong
        total[0] += 1
        release(lock, 0)


@wrong(WRONG, "deadlock", "the lock is opened on the way that most threads take",
       1, 32, zeros(1, dtype=int32), zeros(1))  # fmt: skip
def lock_kept_on_one_way(lock, total):
    t = cuda.threadIdx.x
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:  # fault
        pass
    cuda.threadfence()
    # right: total[0] += t != 5
    if t == 5:  # wrong
        return  # wrong
    total[0] += 1  # wrong
    release(lock, 0)


@wrong(WRONG, "deadlock", "the grid has one block more than there is",
       3, 32, zeros(1, dtype=int32), zeros(96))  # fmt: skip
def wait_for_one_too_many(arrived, out):
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(arrived, 0, 1)
        # right: while cuda.atomic.add(arrived, 0, 0) < cuda.gridDim.x:
        while cuda.atomic.add(arrived, 0, 0) <= cuda.gridDim.x:  # fault, wrong
            pass
    out[cuda.grid(1)] = 1


@wrong(WRONG, "deadlock", "each waits for its left neighbour, and the first for the last",
       4, 32, zeros(4, dtype=int32), zeros(4))  # fmt: skip
def chain_that_is_a_ring(ready, out):
    b = cuda.blockIdx.x
    if cuda.threadIdx.x == 0:
        # right: while b > 0 and cuda.atomic.add(ready, b - 1, 0) == 0:
        while cuda.atomic.add(ready, (b + 3) % 4, 0) == 0:  # fault, wrong
            pass
        out[b] = b
        cuda.atomic.exch(ready, b, 1)


@wrong(WRONG, "global-race", "a comparison protects the store behind it",
       2, 32, count(64), zeros(1))  # fmt: skip
def maximum_by_comparison(x, out):
    i = cuda.grid(1)
    # right: cuda.atomic.max(out, 0, x[i])
    if x[i] > out[0]:  # wrong
        out[0] = x[i]  # fault, wrong


@wrong(WRONG, "global-race", "the position that was counted up is the own one",
       2, 32, zeros(1, dtype=int32), zeros(64))  # fmt: skip
def position_read_after_the_count(counter, out):
    i = cuda.grid(1)
    # right: at = cuda.atomic.add(counter, 0, 1)
    cuda.atomic.add(counter, 0, 1)  # wrong
    at = counter[0]  # fault, wrong
    out[i] = at


@wrong(WRONG, "global-race", "a list has one head, so that its links are set one by one",
       2, 32, zeros(1, dtype=int32), zeros(64, dtype=int32))  # fmt: skip
def list_without_exchange(head, links):
    i = cuda.grid(1)
    # right: links[i] = cuda.atomic.exch(head, 0, i)
    links[i] = head[0]  # wrong
    head[0] = i  # fault, wrong


@wrong(WRONG, "global-race", "blocks run in the order of their numbers",
       4, 32, zeros(4), zeros(4))  # fmt: skip
def sum_of_the_block_before(sums, out):
    b = cuda.blockIdx.x
    if cuda.threadIdx.x == 0:
        sums[b] = b + 1
    # right: cuda.cg.this_grid().sync()
    if cuda.threadIdx.x == 0 and b > 0:
        out[b] = sums[b - 1]  # fault


@wrong(WRONG, "global-race", "syncthreads is a barrier of the grid",
       2, 32, zeros(64), zeros(64))  # fmt: skip
def syncthreads_for_the_grid(x, out):
    i = cuda.grid(1)
    x[i] = i
    # right: cuda.cg.this_grid().sync()
    cuda.syncthreads()  # wrong
    out[i] = x[63 - i]  # fault


@wrong(WRONG, "global-race", "an array can be reversed in place, each element by its thread",
       2, 32, count(64))  # fmt: skip
def reversed_in_place(x):
    i = cuda.grid(1)
    # right: if i < 32:
    # right:     x[i], x[63 - i] = x[63 - i], x[i]
    x[i] = x[63 - i]  # fault, wrong


@wrong(WRONG, "global-race", "two ends of one array are two arrays",
       1, 64, count(65))  # fmt: skip
def shifted_by_a_view(x):
    left, right = x[:-1], x[1:]
    i = cuda.grid(1)
    value = right[i]
    # right: cuda.syncthreads()
    left[i] = value  # fault


@wrong(WRONG, "global-race", "a red-black sweep needs one colour",
       2, 32, count(66))  # fmt: skip
def sweep_of_one_colour(x):
    i = cuda.grid(1) + 1
    # right: if i % 2 == 1:
    if i > 0:  # wrong
        x[i] = (x[i - 1] + x[i + 1]) / 2  # fault


@wrong(WRONG, "global-race", "a thread that writes two elements leaves them to itself",
       2, 32, zeros(65))  # fmt: skip
def two_elements_with_a_step_of_one(out):
    i = cuda.grid(1)
    out[i] = i
    out[i + 1] = -i  # fault, wrong
    # right: out[64] = 0


@wrong(WRONG, "global-race", "the stride of a loop over the grid is the block",
       2, 32, zeros(128))  # fmt: skip
def stride_of_the_block(out):
    # right: for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
    for i in range(cuda.grid(1), out.size, cuda.blockDim.x):  # wrong
        out[i] += i  # fault


@wrong(WRONG, "global-race", "each edge changes another node",
       1, 64, count(64, dtype=int32), zeros(8, dtype=int32))  # fmt: skip
def degrees_by_plain_addition(ends, degree):
    i = cuda.grid(1)
    # right: cuda.atomic.add(degree, ends[i] // 8, 1)
    degree[ends[i] // 8] += 1  # fault, wrong


@wrong(WRONG, "global-race", "kept elements only move to the left, so that they do no harm",
       1, 64, count(64), zeros(1))  # fmt: skip
def compaction_in_place(x, out):
    t = cuda.threadIdx.x
    value = x[t]
    at = t // 2
    # right: cuda.syncthreads()
    if t % 2 == 0:
        x[at] = value  # fault


@wrong(WRONG, "shared-race", "a lock in shared memory needs no fence",
       2, 64, zeros(2))  # fmt: skip
def shared_lock_without_fence(out):
    lock = cuda.shared.array(1, int32)
    total = cuda.shared.array(1, float32)
    t = cuda.threadIdx.x
    if t == 0:
        lock[0], total[0] = 0, 0
    cuda.syncthreads()
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:
        pass
    total[0] += 1  # fault
    # right: cuda.threadfence_block()
    cuda.atomic.exch(lock, 0, 0)
    cuda.syncthreads()
    if t == 0:
        out[cuda.blockIdx.x] = total[0]


@wrong(WRONG, "global-race", "a fence of the block is seen by other blocks",
       2, 32, zeros(1, dtype=int32), zeros(1))  # fmt: skip
def lock_with_a_fence_of_the_block(lock, total):
    acquire(lock, 0)
    total[0] += 1  # fault
    # right: cuda.threadfence()
    cuda.threadfence_block()  # wrong
    cuda.atomic.exch(lock, 0, 0)


@wrong(WRONG, "global-race", "the first thread of a block that comes speaks for all",
       3, 32, zeros(3), zeros(1, dtype=int32), zeros(1))  # fmt: skip
def arrival_before_the_block_is_done(parts, arrived, out):
    b, t = cuda.blockIdx.x, cuda.threadIdx.x
    is_last = cuda.shared.array(1, int32)
    if t == 31:
        parts[b] = b + 1
    cuda.threadfence()
    # right: cuda.syncthreads()
    cuda.syncwarp(1 << t)  # wrong
    if t == 0:
        is_last[0] = cuda.atomic.add(arrived, 0, 1) == cuda.gridDim.x - 1
    cuda.syncthreads()
    if is_last[0] and t == 0:
        out[0] = parts[0] + parts[1] + parts[2]  # fault
