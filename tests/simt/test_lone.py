"""Lanes that run one by one as functions of one thread: they do and tell what the machine's do."""

import gc
import weakref
from unittest import mock

import numpy as np
import pytest
from numpy import int32

from benchmarks.simulator.fuzz import lone
from benchmarks.simulator.work import lock_around_sum, lock_with_flag, recurrence
from gemmlab import cuda, simulate
from gemmlab.simt import HazardError
from gemmlab.simt.machine import fibers
from gemmlab.simt.machine.loops import Loops
from gemmlab.simt.machine.machine import Machine
from tests.support.launches import line_of

pytestmark = pytest.mark.measuring  # locks of all kinds are in `test_fibers`, too


def numbers(*shape):
    return np.zeros(shape, int32)


@pytest.mark.parametrize("seed", range(16))
def test_random_kernels_tell_the_same_both_ways(seed, tmp_path):
    different, _ = lone.differences(seed, str(tmp_path))
    assert different == []


def test_many_random_kernels_run_to_their_end(tmp_path):
    assert sum(lone.differences(seed, str(tmp_path))[1] for seed in range(300, 304)) >= 3


# Locks and waits of many kinds: x is what the lock protects, or what is handed on


def by_exchange(lock, x):
    while cuda.atomic.exch(lock, 0, 1) != 0:
        pass
    cuda.threadfence()
    x[0] += 1
    cuda.threadfence()
    cuda.atomic.exch(lock, 0, 0)


def by_looking_first(lock, x):
    """Test, then test and set: the first loop only loads."""
    while True:
        while cuda.atomic.max(lock, 0, 0) != 0:
            pass
        if cuda.atomic.cas(lock, 0, 0, 1) == 0:
            break
    cuda.threadfence()
    x[0] += 1
    cuda.threadfence()
    cuda.atomic.exch(lock, 0, 0)


def by_ticket(lock, x):
    mine = cuda.atomic.add(lock, 0, 1)
    while cuda.atomic.add(lock, 1, 0) != mine:
        pass
    cuda.threadfence()
    x[0] += 1
    cuda.threadfence()
    cuda.atomic.add(lock, 1, 1)


def with_flag(lock, x):
    waiting = True
    while waiting:
        if cuda.atomic.cas(lock, 0, 0, 1) == 0:
            cuda.threadfence()
            x[0] += 1
            cuda.threadfence()
            cuda.atomic.exch(lock, 0, 0)
            waiting = False


def at_most_so_often(lock, x):
    """A spin with a bound: what changes in a turn is its number."""
    for _ in range(1000):
        if cuda.atomic.cas(lock, 0, 0, 1) == 0:
            cuda.threadfence()
            x[0] += 1
            cuda.threadfence()
            cuda.atomic.exch(lock, 0, 0)
            break


def in_turns_of_a_loop(lock, x):
    for turn in range(3):
        while cuda.atomic.compare_and_swap(lock, 0, 1) != 0:
            cuda.nanosleep(10)
        cuda.threadfence()
        x[turn] += 1
        cuda.threadfence()
        cuda.atomic.exch(lock, 0, 0)


def one_element_in_each_turn(lock, x):
    """What a turn loads anew is counted once for its loop."""
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:
        pass
    cuda.threadfence()
    total = 0
    for _ in range(3):
        total += x[1]
    x[0] += 1 + total
    cuda.threadfence()
    cuda.atomic.exch(lock, 0, 0)


def backwards(lock, x):
    """Each lane waits for the one after it, of its warp or of the next block."""
    i = cuda.grid(1)
    if i < x.size - 1:
        while cuda.atomic.add(lock, i + 1, 0) == 0:
            pass
        cuda.threadfence()
        x[i] = x[i + 1] + 1
    else:
        x[i] = 1
    cuda.threadfence()
    cuda.atomic.exch(lock, i, 1)


LOCKS = [by_exchange, by_looking_first, by_ticket, with_flag, at_most_so_often]


@pytest.mark.parametrize(
    "kernel", [*LOCKS, in_turns_of_a_loop, one_element_in_each_turn, backwards]
)
@pytest.mark.parametrize(("grid", "block"), [(1, 3), (2, 18)])
def test_waits_of_many_kinds_are_the_same_both_ways(kernel, grid, block):
    n = grid * block
    x = numbers(n)
    arguments = numbers(n), x
    expected, _ = lone.outcome(kernel, grid, block, arguments, "lane")
    found, ended = lone.outcome(kernel, grid, block, arguments, "lone")
    assert ended == ["lone"]
    assert found == expected
    assert found[0][0] == []
    assert simulate(kernel, grid, block, *arguments).hazards == []
    assert x[0] == n


# When they run so


def grains(kernel, grid, block, *arguments, **options):
    """In which grains a launch has run to its end, or to its verdict."""
    seen, run = [], fibers.Fibers.run

    def noted(self):
        seen.append(self.grain.name)
        run(self)

    with mock.patch.object(fibers.Fibers, "run", noted):
        report = simulate(kernel, grid, block, *arguments, on_hazard="collect", **options)
    return seen, report


@pytest.mark.parametrize("kernel", [lock_around_sum, lock_with_flag])
def test_both_forms_of_a_lock_make_one_try_a_thread(kernel):
    x = np.arange(192)
    total = np.zeros(1, np.int64)
    seen, report = grains(kernel, 3, 64, numbers(1), x, total)
    assert seen == ["lone"]
    assert report.hazards == []
    assert total[0] == x.sum()
    assert report.instructions["inst_atomic"] == 2 * 6  # of each warp: to take it, to give it back


def of_many_locks(lock, x):
    """Locks of which each is asked for by few: all are taken together."""
    i = cuda.grid(1)
    waiting = True
    while waiting:
        if cuda.atomic.cas(lock, i % 8, 0, 1) == 0:
            cuda.threadfence()
            x[i % 8] += 1
            cuda.threadfence()
            cuda.atomic.exch(lock, i % 8, 0)
            waiting = False


def test_many_locks_stay_in_lock_step():
    x = numbers(8)
    seen, report = grains(of_many_locks, 4, 64, numbers(8), x)
    assert seen == []
    assert x.tolist() == [32] * 8
    assert report.hazards == []


def after_much_work(lock, x):
    """What all threads do together at first takes each of them long alone."""
    own = 0
    for i in range(500):
        own = (own * 5 + i) % 7
    waiting = True
    while waiting:
        if cuda.atomic.cas(lock, 0, 0, 1) == 0:
            cuda.threadfence()
            x[0] += 1 + own // 7
            cuda.threadfence()
            cuda.atomic.exch(lock, 0, 0)
            waiting = False


def test_threads_with_much_to_do_beside_stay_in_lock_step():
    x = numbers(1)
    seen, report = grains(after_much_work, 2, 64, numbers(1), x)
    assert seen == []
    assert x[0] == 128
    assert report.hazards == []


def with_a_barrier(lock, x):
    tile = cuda.shared.array(64, int32)
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:
        pass
    cuda.threadfence()
    x[64] += 1
    cuda.threadfence()
    cuda.atomic.exch(lock, 0, 0)
    tile[cuda.threadIdx.x] = x[cuda.threadIdx.x]
    cuda.syncthreads()
    x[cuda.threadIdx.x] = tile[63 - cuda.threadIdx.x]


def test_a_kernel_that_is_more_than_that_runs_on_the_machine():
    x = np.append(np.arange(64, dtype=int32), int32(0))
    seen, report = grains(with_a_barrier, 1, 64, numbers(1), x)
    assert seen == ["block", "group", "lane"]
    assert report.hazards == []
    assert x.tolist() == [*range(63, -1, -1), 64]


def one_spins(lock, x):
    """One lane waits for nobody; the others meet at a barrier that it does not come to."""
    if cuda.threadIdx.x == 3:
        while cuda.atomic.add(lock, 0, 0) == 0:
            pass
    else:
        x[cuda.threadIdx.x] = 1
    cuda.syncthreads()


def never_given_back(lock, x):
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:
        pass
    x[cuda.grid(1)] = 1


def opposite_order(lock, x):
    i = cuda.threadIdx.x
    while cuda.atomic.cas(lock, i, 0, 1) != 0:
        pass
    cuda.atomic.add(lock, 2, 1)
    while cuda.atomic.add(lock, 2, 0) < 2:
        pass
    while cuda.atomic.cas(lock, 1 - i, 0, 1) != 0:
        pass
    x[i] = 1


def without_fence(lock, x):
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:
        pass
    x[0] += 1
    cuda.atomic.exch(lock, 0, 0)


def outside(lock, x):
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:
        pass
    x[cuda.grid(1) + 55] = 1
    cuda.atomic.exch(lock, 0, 0)


def too_wide(lock, x):
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:
        pass
    cuda.threadfence()
    x[0] += 1 << 30
    cuda.threadfence()
    cuda.atomic.exch(lock, 0, 0)


def counts_for_ever(lock, x):
    turns = 0
    while cuda.atomic.cas(lock, 0, 0, 1) != 0 or turns >= 0:
        turns += 1
    x[0] = turns


FAULTS = [one_spins, never_given_back, opposite_order, without_fence, outside, too_wide]


@pytest.mark.parametrize("kernel", [*FAULTS, counts_for_ever])
def test_faults_are_told_as_the_machine_tells_them(kernel, monkeypatch):
    """What a launch says that begins as a function is what one says that does not."""
    block = 2 if kernel is opposite_order else 12
    told = []
    for may in (True, False):
        if not may:
            monkeypatch.setattr(Loops, "may_be_lone", property(lambda _: False, lambda *_: None),
                                raising=False)  # fmt: skip
        arrays = numbers(3), numbers(64)
        report = simulate(kernel, 1, block, *arrays, on_hazard="collect", max_steps=200)
        told.append((report.hazards, report.notes, [a.tolist() for a in arrays]))
        assert report.hazards or kernel is too_wide
    assert told[0] == told[1]


def test_a_lock_that_is_never_given_back_is_a_deadlock():
    with pytest.raises(HazardError) as caught:
        simulate(never_given_back, 2, 20, numbers(1), numbers(40))
    assert caught.value.hazard.kind == "deadlock"
    assert caught.value.hazard.line == line_of(never_given_back, "while")
    assert "spins until lock[0] changes, which is 1" in caught.value.hazard.message


def test_those_who_watch_accesses_are_told_by_warps():
    """A launch that is traced, or whose bytes are counted by thread, runs on the machine."""
    seen, report = grains(by_ticket, 1, 32, numbers(2), numbers(1), shares=True)
    assert "lone" not in seen
    assert (report.shares.of("store", "x")[0] == 4).all()


@pytest.mark.parametrize("kernel", [lock_around_sum, lock_with_flag, recurrence])
def test_machines_go_at_once(kernel, monkeypatch):
    """No part of a machine refers to itself, or memory would be that of many batches."""
    made, init = [], Machine.__init__

    def noted(m, *args):
        init(m, *args)
        made.append(weakref.ref(m.loops))

    monkeypatch.setattr(Machine, "__init__", noted)
    gc.collect()
    gc.disable()
    try:
        if kernel is recurrence:
            simulate(kernel, 1, 1, np.arange(9), np.arange(9))
        else:
            simulate(kernel, 2, 64, numbers(1), np.arange(128), np.zeros(1, np.int64))
        ended = [loops for loops in made if loops() is None]
    finally:
        gc.enable()
    assert ended
    assert len(ended) >= len(made) - (kernel is not recurrence)  # the batch that was given up
