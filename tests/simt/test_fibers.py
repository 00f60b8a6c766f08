"""Lanes that wait for other lanes: locks, signals between blocks, chains, and deadlocks."""

import threading

import numpy as np
import pytest
from numpy import int32, int64, uint8

from gemmlab import cuda, simulate
from gemmlab.simt import HazardError
from tests.support.launches import line_of


def numbers(*shape):
    return np.zeros(shape, int32)


@cuda.jit(device=True)
def acquire(lock, i):
    while cuda.atomic.cas(lock, i, 0, 1) != 0:
        pass
    cuda.threadfence()


@cuda.jit(device=True)
def release(lock, i):
    cuda.threadfence()
    cuda.atomic.exch(lock, i, 0)


def spin_lock(lock, x):
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:
        cuda.nanosleep(20)
    cuda.threadfence()
    x[0] += 1
    cuda.threadfence()
    cuda.atomic.exch(lock, 0, 0)


def spin_lock_of_functions(lock, x):
    acquire(lock, 0)
    x[0] += 1
    release(lock, 0)


def shared_lock(x):
    lock = cuda.shared.array(2, int32)
    if cuda.threadIdx.x < 2:
        lock[cuda.threadIdx.x] = 0
    cuda.syncthreads()
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:
        pass
    cuda.threadfence()
    x[cuda.blockIdx.x] += 1
    cuda.threadfence()
    cuda.atomic.exch(lock, 0, 0)


def ticket_lock(tickets, x):
    mine = cuda.atomic.add(tickets, 0, 1)
    while cuda.atomic.add(tickets, 1, 0) != mine:
        pass
    cuda.threadfence()
    x[0] += 1
    cuda.threadfence()
    cuda.atomic.add(tickets, 1, 1)


def backoff_lock(lock, x):
    pause, tries = 1, 0
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:
        cuda.nanosleep(pause)
        pause = min(2 * pause, 256)
        tries += 1
    cuda.threadfence()
    x[0] += 1
    cuda.threadfence()
    cuda.atomic.exch(lock, 0, 0)


def lock_of_thread_0(lock, x):
    if cuda.threadIdx.x == 0:
        while cuda.atomic.cas(lock, 0, 0, 1) != 0:
            pass
        cuda.threadfence()
    cuda.syncthreads()
    x[cuda.threadIdx.x] += 1
    cuda.threadfence()
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        cuda.threadfence()
        cuda.atomic.exch(lock, 0, 0)


@pytest.mark.parametrize("kernel", [spin_lock, spin_lock_of_functions])
@pytest.mark.parametrize(("grid", "block"), [(1, 1), (1, 5), (3, 64), (2, 40)])
def test_a_spin_lock_lets_every_thread_in(kernel, grid, block):
    lock, x = numbers(1), numbers(1)
    assert simulate(kernel, grid, block, lock, x).hazards == []
    assert (x[0], lock[0]) == (grid * block, 0)


def test_a_spin_lock_that_counts_its_turns():
    x = numbers(1)
    assert simulate(backoff_lock, 1, 3, numbers(1), x).hazards == []
    assert x[0] == 3


def test_a_lock_in_shared_memory():
    x = numbers(3)
    assert simulate(shared_lock, 3, 40, x).hazards == []
    assert x.tolist() == [40, 40, 40]


def test_a_ticket_lock():
    tickets, x = numbers(2), numbers(1)
    assert simulate(ticket_lock, 3, 32, tickets, x).hazards == []
    assert x[0] == tickets[0] == tickets[1] == 96


def test_a_lock_taken_by_one_thread_for_its_block():
    x = numbers(64)
    assert simulate(lock_of_thread_0, 5, 64, numbers(1), x).hazards == []
    assert (x == 5).all()


def signal(flag, data, out, producer):
    if cuda.blockIdx.x == producer:
        data[cuda.threadIdx.x] = cuda.threadIdx.x + 1
        cuda.threadfence()
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            cuda.threadfence()
            cuda.atomic.exch(flag, 0, 1)
    else:
        if cuda.threadIdx.x == 0:
            while cuda.atomic.add(flag, 0, 0) == 0:
                pass
            cuda.threadfence()
        cuda.syncthreads()
        out[cuda.blockIdx.x, cuda.threadIdx.x] = data[cuda.threadIdx.x]


@pytest.mark.parametrize("producer", [0, 3])
@pytest.mark.parametrize("lanes", [1 << 16, 64])
def test_a_consumer_waits_for_its_producer_whichever_block_is_first(monkeypatch, producer, lanes):
    monkeypatch.setattr("gemmlab.simt.launch.LANES", lanes)
    out = numbers(4, 64)
    report = simulate(signal, 4, 64, numbers(1), numbers(64), out, producer)
    assert report.hazards == []
    others = [b for b in range(4) if b != producer]
    assert (out[others] == np.arange(1, 65)).all()


def look_back(x, state, totals, sums, out, step):
    """A chained scan: each block adds what the blocks before it have published.

    state : 1 when a block's total is known, 2 when the sum up to it is
    """
    shared = cuda.shared.array(65, int64)
    t = cuda.threadIdx.x
    b = cuda.blockIdx.x if step > 0 else cuda.gridDim.x - 1 - cuda.blockIdx.x
    shared[t] = x[b * 64 + t]
    cuda.syncthreads()
    offset = 1
    while offset < 64:
        value = shared[t - offset] if t >= offset else 0
        cuda.syncthreads()
        shared[t] += value
        cuda.syncthreads()
        offset *= 2
    if t == 0:
        before = int64(0)
        totals[b] = shared[63]
        cuda.threadfence()
        cuda.atomic.max(state, b, 1)
        i = b - 1
        while i >= 0:
            known = cuda.atomic.add(state, i, 0)
            if known == 2:
                cuda.threadfence()
                before += sums[i]
                i = -1
            elif known == 1:
                cuda.threadfence()
                before += totals[i]
                i -= 1
        sums[b] = before + shared[63]
        cuda.threadfence()
        cuda.atomic.max(state, b, 2)
        shared[64] = before
    cuda.syncthreads()
    out[b * 64 + t] = shared[64] + shared[t]


@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize("lanes", [1 << 16, 192])
def test_a_chained_scan_with_look_back(monkeypatch, step, lanes):
    monkeypatch.setattr("gemmlab.simt.launch.LANES", lanes)
    x = np.random.default_rng(1).integers(-9, 9, 20 * 64)
    out = np.zeros_like(x)
    arrays = numbers(20), np.zeros(20, int64), np.zeros(20, int64)
    assert simulate(look_back, 20, 64, x, *arrays, out, step).hazards == []
    assert (out == x.cumsum()).all()


def philosophers(forks, meals, ordered):
    """Thread i eats with forks i and i + 1; in order, the lower one is taken first."""
    i = cuda.grid(1)
    n = meals.size
    left, right = i, (i + 1) % n
    if ordered and right < left:
        left, right = right, left
    while cuda.atomic.cas(forks, left, 0, 1) != 0:
        pass
    if not ordered:
        cuda.syncthreads()  # everybody holds a fork
    while cuda.atomic.cas(forks, right, 0, 1) != 0:
        pass
    meals[i] += 1
    cuda.atomic.exch(forks, right, 0)
    cuda.atomic.exch(forks, left, 0)


def test_philosophers_that_take_forks_in_order_all_eat():
    meals = numbers(12)
    assert simulate(philosophers, 3, 4, numbers(12), meals, True).hazards == []
    assert (meals == 1).all()


def test_philosophers_that_all_take_the_left_fork_starve():
    with pytest.raises(HazardError) as caught:
        simulate(philosophers, 1, 5, numbers(5), numbers(5), False)
    hazard = caught.value.hazard
    assert hazard.kind == "deadlock"
    assert "forks, right, 0, 1" in hazard.code
    assert "spins until forks[1] changes, which is 1" in hazard.message


def grid_barrier(arrived, x, out):
    """A barrier of all blocks by hand: each counts itself, and waits until all have."""
    i = cuda.grid(1)
    x[i] = i
    cuda.threadfence()
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        cuda.threadfence()
        cuda.atomic.add(arrived, 0, 1)
        while cuda.atomic.add(arrived, 0, 0) < cuda.gridDim.x:
            pass
        cuda.threadfence()
    cuda.syncthreads()
    out[i] = x[x.size - 1 - i]


@pytest.mark.parametrize("lanes", [1 << 16, 32])
def test_a_barrier_of_the_grid_by_hand(monkeypatch, lanes):
    monkeypatch.setattr("gemmlab.simt.launch.LANES", lanes)
    x, out = numbers(256), numbers(256)
    assert simulate(grid_barrier, 8, 32, numbers(1), x, out).hazards == []
    assert (out == np.arange(256)[::-1]).all()


def test_a_barrier_of_more_blocks_than_a_gpu_holds_is_a_deadlock(monkeypatch):
    few = lambda *_: (4, "a small GPU")  # noqa: E731
    monkeypatch.setattr("gemmlab.simt.launch.held_at_once", few)
    for lanes in (32, 1 << 16):  # in lock-step all of them would be there
        monkeypatch.setattr("gemmlab.simt.launch.LANES", lanes)
        arrays = numbers(1), numbers(192), numbers(192)
        with pytest.raises(HazardError, match="a small GPU holds 4 such blocks at once: 2 do not"):
            simulate(grid_barrier, 6, 32, *arrays)
    assert simulate(grid_barrier, 4, 32, numbers(1), numbers(128), numbers(128)).hazards == []


@pytest.mark.parametrize(("static", "dynamic"), [(0, 9000), (9000, 0)])
def test_shared_memory_bounds_how_many_blocks_are_there(monkeypatch, static, dynamic):
    def waits(arrived):
        if static:
            cuda.shared.array(static, uint8)[cuda.threadIdx.x] = 0
        cuda.atomic.add(arrived, 0, 1)
        while cuda.atomic.add(arrived, 0, 0) < cuda.gridDim.x:  # fault
            pass

    held = lambda _, shared, gpu: (20_000 // max(shared, 2500), "a small GPU")  # noqa: E731
    monkeypatch.setattr("gemmlab.simt.launch.held_at_once", held)
    launch = {"shared_bytes": dynamic, "on_hazard": "collect"}
    (hazard,) = simulate(waits, 3, 1, numbers(1), **launch).hazards
    assert (hazard.kind, "# fault" in hazard.code) == ("deadlock", True)
    assert "a small GPU holds 2 such blocks at once: 1 do not begin" in hazard.message
    assert simulate(waits, 2, 1, numbers(1), **launch).hazards == []


# Wrong kernels


def never_released(lock, x):
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:  # fault
        pass
    cuda.threadfence()
    x[0] += 1


def opposite_order(locks, x):
    first = cuda.blockIdx.x
    acquire(locks, first)
    cuda.atomic.add(locks, 2, 1)
    while cuda.atomic.add(locks, 2, 0) < 2:  # both hold one
        pass
    acquire(locks, 1 - first)
    x[0] += 1
    release(locks, 1 - first)
    release(locks, first)


def nobody_signals(flag, x):
    if cuda.blockIdx.x == 1:
        while cuda.atomic.add(flag, 0, 0) == 0:  # fault
            pass
    elif x[0] > 0:
        cuda.atomic.exch(flag, 0, 1)


def waits_behind_a_barrier(flag, x):
    if cuda.threadIdx.x == 0:
        while cuda.atomic.add(flag, 0, 0) == 0:  # fault
            pass
    cuda.syncthreads()
    cuda.atomic.exch(flag, 0, 1)


@pytest.mark.parametrize(
    ("kernel", "grid", "block", "text"),
    [
        (never_released, 1, 2, r"until lock\[0\] changes, which is 1, and all other threads have"),
        (never_released, 2, 1, r"until lock\[0\] changes"),
        (nobody_signals, 2, 32, r"until flag\[0\] changes, which is 0, and all other threads have"),
        (waits_behind_a_barrier, 1, 64, r"thread \(1\) of block \(0\) waits at line "),
    ],
)
def test_a_wait_that_nobody_ends_is_a_deadlock(kernel, grid, block, text):
    report = simulate(kernel, grid, block, numbers(1), numbers(1), on_hazard="collect")
    (hazard,) = report.hazards
    assert (hazard.kind, hazard.line) == ("deadlock", line_of(kernel, "# fault"))
    with pytest.raises(HazardError, match=text):
        simulate(kernel, grid, block, numbers(1), numbers(1))


def test_locks_taken_in_opposite_order_are_a_deadlock():
    before = set(threading.enumerate())  # other tests of the process may have left theirs
    with pytest.raises(HazardError, match=r"deadlock: .* spins in line") as caught:
        simulate(opposite_order, 2, 1, numbers(3), numbers(1))
    assert caught.value.hazard.line == line_of(acquire.py_func, "while")
    assert not set(threading.enumerate()) - before


def no_fence(lock, x):
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:
        pass
    x[0] += 1  # fault
    cuda.atomic.exch(lock, 0, 0)


def test_a_lock_without_a_fence_is_a_race():
    report = simulate(no_fence, 2, 32, numbers(1), numbers(1), on_hazard="collect")
    assert {(h.kind, h.line) for h in report.hazards} == {
        ("global-race", line_of(no_fence, "# fault"))
    }


def barrier_for_some(lock, x):
    acquire(lock, 0)
    x[0] += 1
    release(lock, 0)
    if cuda.threadIdx.x < 3:
        cuda.syncthreads()  # fault
    x[1 + cuda.threadIdx.x] = cuda.syncthreads_count(cuda.threadIdx.x % 2)


def test_a_barrier_that_some_lanes_of_their_own_do_not_reach():
    x = numbers(9)
    report = simulate(barrier_for_some, 1, 8, numbers(1), x, on_hazard="collect")
    line = line_of(barrier_for_some, "# fault")
    assert ("divergent-barrier", line) in {(h.kind, h.line) for h in report.hazards}


def left_out_in_a_turn(lock, x):
    acquire(lock, 0)
    release(lock, 0)
    for k in range(3):
        if k != 1 or cuda.threadIdx.x >= 3:
            cuda.syncthreads()  # fault


def left_out_for_an_item(lock, x):
    acquire(lock, 0)
    release(lock, 0)
    for k in (0, 1, 2):
        if k != 1 or cuda.threadIdx.x >= 3:
            cuda.syncwarp()  # fault


@cuda.jit(device=True)
def meet():
    cuda.syncthreads()  # fault


def in_both_branches(lock, x):
    acquire(lock, 0)
    release(lock, 0)
    if cuda.threadIdx.x < 3:
        meet()
    else:
        meet()


@pytest.mark.parametrize("kernel", [left_out_in_a_turn, left_out_for_an_item, in_both_branches])
def test_a_barrier_is_not_that_of_another_turn_or_call(kernel):
    report = simulate(kernel, 1, 8, numbers(1), numbers(8), on_hazard="collect")
    assert {h.kind for h in report.hazards} == {"divergent-barrier"}
    assert all("# fault" in h.code for h in report.hazards)


# What fibers leave as it is


def test_counters_of_blocks_apart_are_those_of_lock_step():
    reports = [simulate(signal, 1, 64, numbers(1), numbers(64), numbers(1, 64), 0),
               simulate(signal, 2, 64, numbers(1), numbers(64), numbers(2, 64), 1)]  # fmt: skip
    line = line_of(signal, "data[cuda.threadIdx.x] = ")
    assert dict(reports[0].by_line[line]) == dict(reports[1].by_line[line])


def says(lock, x):
    print("before", cuda.grid(1))
    acquire(lock, 0)
    print("holds", cuda.grid(1))
    release(lock, 0)


def test_a_launch_that_runs_again_prints_once(capsys):
    simulate(says, 2, 2, numbers(1), numbers(1))
    lines = capsys.readouterr().out.splitlines()
    assert sorted(lines) == sorted(f"{w} {i}" for w in ("before", "holds") for i in range(4))


def test_a_launch_is_the_same_every_time():
    order = []
    for _ in range(3):
        out = numbers(96)
        report = simulate(tickets_in_order, 3, 32, numbers(2), out)
        order.append((out.tolist(), dict(report.counters), dict(report.instructions)))
    assert order[0] == order[1] == order[2]
    assert sorted(order[0][0]) == list(range(96))


def tickets_in_order(lock, out):
    acquire(lock, 0)
    out[cuda.grid(1)] = lock[1]
    lock[1] += 1
    release(lock, 0)


def fails_while_others_wait(flag, x):
    if cuda.threadIdx.x == 0:
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
    else:
        x[64] = 1  # fault


def test_a_hazard_of_one_lane_ends_those_that_wait():
    before = set(threading.enumerate())
    with pytest.raises(HazardError, match="out-of-bounds"):
        simulate(fails_while_others_wait, 1, 4, numbers(1), numbers(4))
    assert not set(threading.enumerate()) - before


def waits_for_a_lane_then_the_grid(flag, x, out):
    i = cuda.grid(1)
    x[i] = i
    if cuda.threadIdx.x == 5:
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
    if cuda.threadIdx.x == 6:
        cuda.atomic.exch(flag, 0, 1)
    cuda.cg.this_grid().sync()
    out[i] = x[x.size - 1 - i]


def test_lanes_that_have_waited_wait_for_the_whole_grid():
    x, out = numbers(64), numbers(64)
    simulate(waits_for_a_lane_then_the_grid, 2, 32, numbers(1), x, out)
    assert np.array_equal(out, np.arange(63, -1, -1))
