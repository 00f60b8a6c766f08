"""Variables that only some lanes have assigned, and functions that return in some lanes alone."""
# ruff: noqa: B007, F821, F841 (the linter sees what the simulator is to find)

import ast

import numpy as np
import pytest
from numpy import float32

from gemmlab import cuda, simulate
from gemmlab.simt import HazardError
from gemmlab.simt.syntax.assigned import unsure
from tests.support.launches import line_of

WARP = 0xFFFFFFFF


def arrays():
    return (np.arange(64) % 5 - 2).astype(np.int64), np.zeros(64, np.int64)


# Wrong: some lanes read what they have not assigned


def in_a_branch(x, y):
    i = cuda.grid(1)
    if x[i] > 0:
        v = x[i]
    y[i] = v  # fault


def in_one_way_of_three(x, y):
    i = cuda.grid(1)
    if x[i] > 0:
        v = 1
    elif x[i] < 0:
        v = -1
    y[i] += v  # fault


def behind_a_return(x, y):
    i = cuda.grid(1)
    if x[i] == 1:
        y[i] = 7
        return
    if x[i] > -2:
        v = x[i]
    y[i] = v  # fault


def updated(x, y):
    i = cuda.grid(1)
    if x[i] > 0:
        v = 0
    v += 1  # fault
    y[i] = v


def after_a_loop(x, y):
    i = cuda.grid(1)
    for v in range(x[i]):
        y[i] += v
    y[i] = v  # fault


def after_a_break(x, y):
    i = cuda.grid(1)
    n = 0
    while True:
        if n == x[i]:
            v = n
            break
        n += 1
        if n == 4:
            break
    y[i] = v  # fault


def in_the_first_turn(x, y):
    i = cuda.grid(1)
    for k in range(2):
        if k == 1:
            y[i] = v  # fault
        if x[i] > 0 or k == 1:
            v = x[i] + k


def in_a_condition(x, y):
    i = cuda.grid(1)
    if x[i] > 0:
        v = x[i]
    y[i] = 1 if i % 2 == 0 or v > 0 else 0  # fault


def as_an_index(x, y):
    i = cuda.grid(1)
    if x[i] > 0:
        v = i
    y[v] = 1  # fault


def of_a_tuple(x, y):
    i = cuda.grid(1)
    if x[i] > 0:
        u, v = i, 1
    u = 0
    y[i] = u + v  # fault


def an_array(x, y):
    i = cuda.grid(1)
    if x[i] > 0:
        v = cuda.local.array(2, np.int64)
        v[0] = 1
    y[i] = v[0]  # fault


def in_a_function_of_its_own(x, y):
    i = cuda.grid(1)

    def above(value):
        if value > 0:
            v = value
        return v  # fault

    y[i] = above(x[i])


def of_the_function_around(x, y):
    i = cuda.grid(1)
    if x[i] > 0:
        v = x[i]

    def more(value):
        return value + v  # fault

    y[i] = more(1)


def in_a_lambda(x, y):
    i = cuda.grid(1)
    if x[i] > 0:
        v = x[i]
    more = lambda value: value + v  # fault # noqa: E731
    y[i] = more(1)


def in_a_warp(x, y):
    i = cuda.grid(1)
    if i % 32 != 3:
        v = x[i]
    y[i] = cuda.shfl_xor_sync(WARP, v, 1)  # fault


WRONG = [
    *(in_a_branch, in_one_way_of_three, behind_a_return, updated, after_a_loop, after_a_break),
    *(in_the_first_turn, in_a_condition, as_an_index, of_a_tuple, an_array),
    *(in_a_function_of_its_own, of_the_function_around, in_a_lambda, in_a_warp),
]


@pytest.mark.parametrize("kernel", WRONG)
def test_a_read_by_lanes_that_have_not_assigned_is_a_hazard(kernel):
    report = simulate(kernel, 2, 32, *arrays(), on_hazard="collect")
    (hazard,) = report.hazards
    assert hazard.kind == "uninitialised-read"
    assert "# fault" in hazard.code
    with pytest.raises(HazardError, match="reads (v, which it has not|lane 3 in cuda.shfl_xor)"):
        simulate(kernel, 2, 32, *arrays())


def test_the_hazard_names_the_first_lane_and_counts_them():
    x, y = arrays()
    (hazard,) = simulate(in_a_branch, 2, 32, x, y, on_hazard="collect").hazards
    assert hazard.message == "thread (0) reads v, which it has not assigned [block (0), thread (0)]"
    assert hazard.count == (x <= 0).sum()


@cuda.jit(device=True)
def sign(v):
    if v > 0:
        return 1
    if v < 0:
        return -1


@cuda.jit(device=True)
def root(v):
    if v < 0:
        return
    return v**0.5


def uses_all_signs(x, y):
    i = cuda.grid(1)
    y[i] = sign(x[i])  # fault


def uses_all_roots(x, y):
    i = cuda.grid(1)
    r = root(x[i])  # fault
    y[i] = r


@pytest.mark.parametrize(("kernel", "name"), [(uses_all_signs, "sign"), (uses_all_roots, "root")])
def test_a_function_that_returns_in_some_lanes_alone(kernel, name):
    (hazard,) = simulate(kernel, 2, 32, *arrays(), on_hazard="collect").hazards
    assert (hazard.kind, hazard.line) == ("uninitialised-read", line_of(kernel, "# fault"))
    assert f"uses the value of {name}, which returns none there" in hazard.message


def test_a_function_that_returns_in_no_lane():
    x, y = arrays()
    (hazard,) = simulate(uses_all_signs, 2, 32, 0 * x, y, on_hazard="collect").hazards
    assert (hazard.kind, hazard.count) == ("uninitialised-read", 64)


def lane_by_lane(x, y):
    i = cuda.grid(1)
    while cuda.atomic.cas(y, 0, 0, 1) != 0:
        pass
    if x[i] > 0:
        v = 1
    cuda.threadfence()
    cuda.atomic.exch(y, 0, 0)
    cuda.atomic.add(y, 1, v)  # fault


def test_lanes_that_run_one_by_one():
    (hazard,) = simulate(lane_by_lane, 1, 32, *arrays(), on_hazard="collect").hazards
    line = line_of(lane_by_lane, "# fault")
    assert (hazard.kind, hazard.line) == ("uninitialised-read", line)


def test_a_variable_that_nobody_has_assigned_is_an_error():
    x, y = arrays()
    with pytest.raises(NameError, match="'v' is read before it is assigned"):
        simulate(in_a_branch, 2, 32, np.minimum(x, 0), y)


# Right: only lanes that have assigned it read a variable


def under_the_same_condition(x, y):
    i = cuda.grid(1)
    if x[i] > 0:
        v = x[i]
    cuda.syncthreads()
    if x[i] > 0:
        y[i] = v


def under_a_narrower_condition(x, y):
    i = cuda.grid(1)
    if x[i] > 0:
        v = x[i]
    y[i] = v if x[i] > 1 else 0
    y[i] += 1 if x[i] > 1 and v > 1 else 0


def by_two_conditions(x, y):
    i = cuda.grid(1)
    if x[i] > 0:
        v = 1
    if x[i] <= 0:
        v = 2
    y[i] = v


def kept_from_the_turn_before(x, y):
    i = cuda.grid(1)
    for k in range(3):
        if k > 0:
            y[i] += last
        last = x[i] + k


def the_variable_of_a_loop(x, y):
    i = cuda.grid(1)
    for k in range(abs(x[i]) + 1):
        pass
    y[i] = k


def found_by_break(x, y):
    i = cuda.grid(1)
    for k in range(4):
        if k == x[i]:
            v = k
            break
    else:
        v = -1
    y[i] = v


def left_by_those_without(x, y):
    i = cuda.grid(1)
    if x[i] > 0:
        v = x[i]
    if x[i] <= 0:
        return
    y[i] = v


def one_lane_for_its_warp(x, y):
    i = cuda.grid(1)
    if i % 32 == 0:
        base = cuda.atomic.add(x, 0, 32)
    base = cuda.shfl_sync(WARP, base, 0)
    y[i] = base + i % 32


def some_signs(x, y):
    i = cuda.grid(1)
    sign(x[i])
    if x[i] != 0:
        y[i] = sign(x[i])
    y[i] += sign(x[i]) if x[i] > 0 else 0


def a_closure(x, y):
    i = cuda.grid(1)
    if x[i] > 0:
        v = x[i]

    def more(value):
        return value + v

    if x[i] > 0:
        y[i] = more(1)


def a_closure_that_comes_first(x, y):
    i = cuda.grid(1)

    def more(value):
        return value + v if value > 0 else 0

    if x[i] > 0:
        v = x[i]
    y[i] = more(min(x[i], 1))


def a_function_where_needed(x, y):
    i = cuda.grid(1)
    if cuda.blockDim.x == 32:

        def twice(value):
            return 2 * value

    y[i] = twice(x[i])


RIGHT = {
    under_the_same_condition: lambda x: np.maximum(x, 0),
    under_a_narrower_condition: lambda x: np.where(x > 1, x + 1, 0),
    by_two_conditions: lambda x: np.where(x > 0, 1, 2),
    kept_from_the_turn_before: lambda x: 2 * x + 1,
    the_variable_of_a_loop: np.abs,
    found_by_break: lambda x: np.where(x >= 0, x, -1),
    left_by_those_without: lambda x: np.maximum(x, 0),
    one_lane_for_its_warp: lambda x: np.arange(64) - 2,
    some_signs: lambda x: np.sign(x) + (x > 0),
    a_closure: lambda x: np.where(x > 0, x + 1, 0),
    a_closure_that_comes_first: lambda x: np.where(x > 0, x + 1, 0),
    a_function_where_needed: lambda x: 2 * x,
}


@pytest.mark.parametrize("kernel", RIGHT)
def test_a_read_by_lanes_that_have_assigned_is_none(kernel):
    x, y = arrays()
    right = RIGHT[kernel](x.copy())
    assert simulate(kernel, 2, 32, x, y).hazards == []
    assert y.tolist() == right.tolist()


@pytest.mark.parametrize(
    "kernel",
    [under_the_same_condition, under_a_narrower_condition, some_signs, a_closure_that_comes_first],
)
def test_code_that_no_lane_comes_to_reads_nothing(kernel):
    x, y = arrays()
    x[:] = -1
    assert simulate(kernel, 2, 32, x, y).hazards == []


def typed(x, y):
    i = cuda.grid(1)
    if x[i] > 0:
        v = float32(0.1)
    y[i] = v * float32(3) if x[i] > 0 else float32(0.1)


def test_a_value_that_no_lane_reads_changes_no_type():
    x, out = np.zeros(64, np.int64), np.zeros(64)
    simulate(typed, 2, 32, x, out)
    assert (out == np.float64(np.float32(0.1))).all()


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("if c:\n  v = 1\nelse:\n  v = 2\nuse(v)", set()),
        ("if c:\n  v = 1\nuse(v)", {"v"}),
        ("if c:\n  v = 1\nelse:\n  return\nuse(v)", set()),
        ("while True:\n  v = 1\n  if c:\n    break\nuse(v)", set()),
        ("while c:\n  v = 1\nuse(v)", {"v"}),
        ("for i in range(c):\n  v = 1\nuse(i)", {"i"}),
        ("for i in range(c):\n  if i:\n    break\nelse:\n  v = 1\nuse(v)", {"v"}),
        ("while True:\n  if c:\n    break\n  v = 1\nuse(v)", {"v"}),
    ],
)
def test_reads_of_what_is_sure_cost_nothing(body, names):
    """They are told beforehand, so that a kernel need not look."""
    text = "def kernel(c):\n" + "".join(f"  {line}\n" for line in body.splitlines())
    assert unsure(ast.parse(text).body[0]).names == names
