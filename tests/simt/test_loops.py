"""Loops of many turns: the limit of their steps, and turns that are no spin."""

import numpy as np
import pytest
from numpy import int32

from gemmlab import cuda, simulate


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
