"""A loop without an end is told from one that is longer than the limit, where that is certain."""

import ast
import inspect
import textwrap

import numpy as np
import pytest
from numpy import complex64, float32, int64

from gemmlab import cuda, simulate
from gemmlab.simt.machine.endless import deciding


def nothing_at_all(x):
    while True:  # fault
        pass


def of_its_own(x):
    own = cuda.local.array(2, int64)
    own[0] = 1
    while own[0] > 0:  # fault
        own[0] = 1


def some_lanes(x):
    i = cuda.grid(1)
    n = 0
    while n < 40:  # fault
        if i > 3:
            n += 1


def device_loop(n):
    while n > 0:  # fault
        n = max(n, 2)
    return n


wait = cuda.jit(device=True)(device_loop)


def in_a_function(x):
    x[0] = wait(2)


@pytest.mark.parametrize("kernel", [nothing_at_all, of_its_own, some_lanes, in_a_function])
def test_a_turn_that_leaves_all_as_it_was_is_told_at_once(kernel):
    report = simulate(kernel, 1, 32, np.zeros(32), on_hazard="collect", max_steps=1 << 40)
    (hazard,) = report.hazards
    text = "thread (0) never leaves this loop: a turn of it leaves all variables and all memory"
    assert hazard.kind == "step-limit"
    assert text in hazard.message
    assert "# fault" in hazard.code


def counts_up(x):
    while True:
        x[cuda.grid(1)] += 1


def forgets(x, n):
    k = 0
    while k < n:
        x[cuda.grid(1)] += float32(n)


def halves(x, n):
    half = n
    while half >= 0:
        x[cuda.grid(1)] += 1
        if half > 0:
            half //= 2


def up_to_n(x, n):
    k = 0
    while k < n:
        x[cuda.grid(1)] += k
        k += 1


def until_larger(x, n):
    while x[cuda.grid(1)] < n:
        x[cuda.grid(1)] += 1


def flips(x, n):
    k, on = 0, True
    while on:
        k += 1
        if k == n:
            break
        x[cuda.grid(1)] += k


def orbits(x):
    c = complex64(0.3)
    slow = fast = complex64(0)
    while True:
        fast = fast * fast + c
        fast = fast * fast + c
        slow = slow * slow + c
        if slow == fast or fast.real**2 + fast.imag**2 > 1e30:
            break


def stopped(kernel, *args, steps=100):
    report = simulate(kernel, 1, 32, np.zeros(32), *args, on_hazard="collect", max_steps=steps)
    assert [h.kind for h in report.hazards] == ["step-limit"]
    return report.hazards[0].message


def test_what_decides_about_a_loop_and_stays_the_same_is_told():
    assert "never leaves this loop: nothing in it changes what it looks at" in stopped(counts_up)
    text = "never leaves this loop: k and n alone decide that, and are the same again"
    assert text in stopped(forgets, 5)
    text = "never leaves this loop: half alone decides that, and is the same again"
    assert text in stopped(halves, 7)


@pytest.mark.parametrize("kernel", [up_to_n, until_larger, flips])
def test_a_longer_loop_is_stopped_and_not_called_endless(kernel):
    text = "thread (0) was stopped after max_steps=100 turns of `while`; if this loop ends later, "
    assert text + "raise max_steps" in stopped(kernel, 150)
    x = np.zeros(32)
    assert simulate(kernel, 1, 32, x, 150, max_steps=151).hazards == []
    assert x.all()


def test_an_orbit_ends_within_more_turns():
    assert "was stopped after max_steps=5 turns" in stopped(orbits, steps=5)
    assert simulate(orbits, 1, 32, np.zeros(32)).hazards == []


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("while True:\n  x[0] += 1", set()),
        ("while True:\n  return", None),
        ("while True:\n  if x[0] > 0: break", None),
        ("while x[0] > 0:\n  pass", None),
        ("while a < b:\n  a = a + c\n  d = a", {"a", "b", "c"}),
        ("while a < 1:\n  if b: a += 1\n  b = f(c)", None),
        ("while a < 1:\n  for k in range(n):\n    a += k", {"a", "k", "n"}),
        ("while a < 1:\n  while b < 2:\n    b += 1\n    a = 2 if e else 3", {"a", "b", "e"}),
        ("while a < x.size:\n  if c > 0: continue\n  a += min(1, d)", {"a", "x", "c", "d"}),
        ("while a < x.shape[0]:\n  y[a] = 1", {"a", "x"}),
    ],
)
def test_the_variables_that_decide(body, names):
    source = "def f(x, n):\n" + textwrap.indent(body, "  ")
    assert deciding(ast.parse(source).body[0], 2) == names


def test_where_the_loops_are():
    source = ast.parse(textwrap.dedent(inspect.getsource(orbits)))
    assert deciding(source, 4) == {"fast", "slow", "c"}
    assert deciding(source, 3) is None
