"""Loops: the limit of their steps, turns that are no spin, and the rest of long ones.

A long loop runs thread by thread from some turn on, and leaves and tells what lock-step does.
"""

from unittest import mock

import numpy as np
import pytest
from numpy import float32, int32, int64

from benchmarks.simulator.fuzz import loops
from gemmlab import cuda, simulate
from gemmlab.simt.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32
from gemmlab.simt.numbers.arithmetic import fma
from gemmlab.simt.threads import rest


def numbers(*shape):
    return np.zeros(shape, int32)


def long_loop(x):
    for i in range(2000):
        if i % 1000 == 0:
            x[0] += 1


def test_a_for_loop_over_a_range_may_be_of_any_length():
    x = numbers(1)
    assert simulate(long_loop, 1, 1, x, max_steps=10).hazards == []
    assert x[0] == 2


def steps_in_a_loop(x):
    for i in range(200):
        while x[0] <= i:
            x[0] += 1


def test_each_while_has_the_limit_of_steps_for_itself():
    x = numbers(1)
    assert simulate(steps_in_a_loop, 1, 1, x, max_steps=2).hazards == []
    assert x[0] == 200


def adds_in_both_branches(x):
    """Stores that the compiler makes one; a turn changes no variable."""
    i = cuda.threadIdx.x
    while x[i] < 40:
        if i % 2 == 0:
            x[i] += 1
        else:
            x[i] += 2


def test_stores_in_both_branches_are_a_change():
    x = numbers(32)
    assert simulate(adds_in_both_branches, 1, 32, x).hazards == []
    assert (x == 40).all()


def computes(x):
    """No spin: what changes is a variable, and the memory that it reads is its own."""
    value, turns = 1.0, 0
    while turns < 1100:
        value = 0.5 * (value + x[0] / value)
        turns += 1
    x[0] = value


def test_a_loop_that_computes_is_no_spin():
    x = np.array([2.0])
    simulate(computes, 1, 1, x)
    assert x[0] == pytest.approx(2**0.5)


def told(kernel, grid, block, *args, **options):
    """What a launch leaves in arrays, and tells."""
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    report = simulate(kernel, grid, block, *copies, on_hazard="collect", **options)
    arrays = [a.tobytes() for a in copies if isinstance(a, np.ndarray)]
    return arrays, report.hazards, report.notes, report.by_file


def ran(kernel, grid, block, *args, compiled=rest.as_it_is, **options):
    """Whether loops ran thread by thread, which must give what lock-step gives.

    compiled : what stands for Numba's compiler, which takes its time
    """
    before, done, run = told(kernel, grid, block, *args, **options), [], rest.run

    def seen(*given):
        found = run(*given)
        done.append(found is not None)
        return found

    times = {"ALONE": 0, "CALLED": 0, "TOGETHER": 0, "FIRST": 2}
    with mock.patch.multiple(rest, run=seen, _compiled=compiled, **times):
        assert told(kernel, grid, block, *args, **options) == before
    return any(done)


@pytest.mark.parametrize("seed", range(12))
def test_random_loops_tell_the_same_both_ways(seed, tmp_path):
    different, _ = loops.differences(seed, str(tmp_path))
    assert different == []


def test_most_random_loops_run_thread_by_thread(tmp_path):
    assert sum(loops.differences(seed, str(tmp_path))[1] for seed in (20, 21)) >= 5


def area(states, n, out):
    i = cuda.grid(1)
    inside = 0
    for _ in range(n):
        x = xoroshiro128p_uniform_float32(states, i)
        y = xoroshiro128p_uniform_float32(states, i)
        if x * x + y * y <= float32(1):
            inside += 1
    out[i] = 4 * inside / n


def test_random_numbers_of_many_threads():
    states = create_xoroshiro128p_states(96, 1).copy_to_host()
    assert ran(area, 3, 32, states, 30, np.zeros(96))


def collatz(x):
    i = cuda.grid(1)
    a = x[i] + 1
    for k in range(40):
        if a == 1:
            break
        a = a // 2 if a % 2 == 0 else 3 * a + 1
        x[i] = k


def test_threads_compiled_by_numba():
    pytest.importorskip("numba")
    assert ran(collatz, 3, 32, np.arange(96), compiled=rest._compiled)


def recurrence(x, y):
    state = 1
    for i in range(x.size):
        state = (state * 1664525 + x[i]) & 0xFFFFFFFF
        y[i] = state


def test_a_long_loop_of_one_thread_asks_for_it_itself():
    x, done, run = np.arange(3000), [], rest.run

    def seen(*given):
        done.append(run(*given) is not None)
        return None  # so that it is asked for again, and lock-step goes on

    with mock.patch.object(rest, "ALONE", 1e-4), mock.patch.object(rest, "run", seen):
        simulate(recurrence, 1, 1, x, np.zeros_like(x))
    assert done


def test_counts_of_one_thread():
    x = np.arange(500)
    assert ran(recurrence, 1, 1, x, np.zeros_like(x))


def read_before_it_is_written(x, y):
    own = cuda.shared.array(4, np.int64)
    unused = own[0] + 1  # noqa: F841 (it decides nothing, which is found by trying again)
    state = 1
    for i in range(x.size):
        state = (state * 1664525 + x[i]) & 0xFFFFFFFF
        y[i] = state


def test_a_launch_that_is_perhaps_tried_again_stays_in_lock_step():
    """Its turns are counted, to be compared with those of the second time."""
    x = np.arange(500)
    assert not ran(read_before_it_is_written, 1, 1, x, np.zeros_like(x))
    assert ran(recurrence, 1, 1, x, np.zeros_like(x))


def summed_by_one(x, n):
    i = cuda.grid(1)
    x[i] = i
    if i >= 64:
        return
    cuda.syncthreads()
    if i == 1:
        total = 0.0
        for k in range(n):
            total += x[k % 64]
            x[k % 3] = total
        x[0] = total


def test_one_thread_after_a_barrier():
    assert ran(summed_by_one, 2, 64, np.zeros(128), 90)


def without_barrier(x, n):
    i = cuda.grid(1)
    x[i] = i
    if i == 70:
        for k in range(n):
            x[k % 64] += 1


def test_one_thread_that_needs_a_barrier_is_reported():
    assert not ran(without_barrier, 2, 64, np.zeros(128), 90)


@pytest.mark.parametrize("options", [{"contract": False}, {"shares": True}, {"trace": "k % 3"}])
def test_what_a_launch_is_asked_for(options):
    assert ran(summed_by_one, 2, 64, np.zeros(128), 20, **options) == ("contract" in options)


def neighbours(x, n):
    i = cuda.grid(1)
    for k in range(n):
        x[i] += k
        if k == 5:
            x[(i + 1) % x.size] = k


def test_threads_that_touch_each_others_elements_stay_in_lock_step():
    assert not ran(neighbours, 2, 32, np.zeros(64), 9)


def outside(x, n):
    i = cuda.grid(1)
    for k in range(n):
        x[i + k * 8] += 1


def test_an_index_outside_is_reported_in_lock_step():
    assert not ran(outside, 1, 1, np.zeros(40), 9)


def divided(x, n):
    for k in range(n):
        x[0] += 7 // (k - 5)


def narrow(x, n):
    a = int32(1)
    for _ in range(n):
        a = int32(a * 1000)
        x[0] = a


def unset(x, n):
    own = cuda.local.array(4, int64)
    for k in range(n):
        x[0] += own[k % 4]


@pytest.mark.parametrize("kernel", [divided, narrow, unset])
def test_what_lock_step_tells_of_is_left_to_it(kernel):
    assert not ran(kernel, 1, 1, np.zeros(1, np.int64), 9)


def endless(x):
    a = 1
    while a > 0:
        a = a % 7 + 1
    x[0] = a


@pytest.mark.parametrize("block", [1, 32])
def test_too_many_turns_are_reported(block):
    assert not ran(endless, 1, block, np.zeros(1, np.int64), max_steps=200)


def waits(x, out):
    i = cuda.grid(1)
    turns = 0
    while x[0] == 0:
        turns += 1
        if i == 1:
            x[0] = 1
    out[i] = turns


def test_lanes_that_wait_for_others_still_do():
    assert not ran(waits, 2, 1, np.zeros(1, np.int64), np.zeros(2, np.int64), max_steps=5000)


def logarithms(x, n):
    a = 1.5
    for _ in range(n):
        a = np.log(a + 2)
    x[0] = a


def with_barrier(x, n):
    for k in range(n):
        x[cuda.grid(1)] += k
        cuda.syncthreads()


@pytest.mark.parametrize("kernel", [logarithms, with_barrier])
def test_other_loops_stay_in_lock_step(kernel):
    assert not ran(kernel, 1, 1, np.zeros(32), 9)


def of_float32(x, n):
    i = cuda.grid(1)
    a = float32(0.02) * float32(i)
    for _ in range(n):
        a = a * a * float32(0.7) - a * float32(1.1) + float32(0.3)
    x[i] = a


@pytest.mark.parametrize("block", [1, 32])
def test_a_product_and_a_sum_of_float32_are_rounded_once(block):
    assert ran(of_float32, 1, block, np.zeros(32, np.float32), 200)


def test_the_sum_of_a_product_is_rounded_once():
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 32, (3, 3000), np.uint64).astype(np.uint32)
    a, b, c = bits.view(np.float32)
    with np.errstate(all="ignore"):
        c[:1000] = -a[:1000] * b[:1000]  # cancels
        mine = [rest._fma(*values) for values in zip(a, b, c, strict=True)]
        right = fma(a, b, c)
    np.testing.assert_array_equal(np.array(mine), right)


def test_the_same_program_leaves_lock_step_at_the_same_turn_anywhere():
    """What decides follows from counts: no clock, which differs from machine to machine."""
    asked = []

    def pays(m, seconds, before):
        asked.append((seconds, before))
        return False

    x = np.arange(400)
    for _ in range(2):
        with mock.patch.object(rest, "pays", pays):
            simulate(recurrence, 1, 1, x, np.zeros_like(x))
    first, again = asked[: len(asked) // 2], asked[len(asked) // 2 :]
    assert first == again
    # From turn 16 on, twice as late each time; what is left is less and less.
    assert len(first) == 5
    left, costs = [400 - 2**i + 1 for i in range(4, 9)], [seconds for seconds, _ in first]
    np.testing.assert_allclose(np.divide(costs, left), costs[0] / left[0], rtol=0.05)
