"""Local arrays that some lanes swap or choose: each lane works on its own."""

import numpy as np
import pytest
from numpy import float32, float64

from gemmlab import cuda, simulate
from tests.support.launches import hazards, line_of
from tests.support.one_thread import one_by_one


def swapped_per_lane(n, out):
    i = cuda.grid(1)
    a = cuda.local.array(2, float32)
    b = cuda.local.array(2, float32)
    a[0], a[1] = 1, 10 + i
    b[0], b[1] = 2, 20 + i
    for _ in range(int(n[i])):
        a, b = b, a
        a[1] += 100
    out[0, i], out[1, i] = a[0], b[0]
    out[2, i], out[3, i] = a[1], b[i % 2]


def chosen_in_a_branch(n, out):
    i = cuda.grid(1)
    a = cuda.local.array(3, float32)
    b = cuda.local.array(3, float32)
    c = cuda.local.array(3, float32)
    for k in range(3):
        a[k], b[k], c[k] = k, 10 * k, 100 * k
    p = a
    if n[i] > 1:
        p = b
        if n[i] > 2:
            p = c
    p[1] += 7
    q = p if i % 3 == 0 else a
    q[i % 3] += 1
    out[0, i], out[1, i] = a[1], b[1]
    out[2, i], out[3, i] = p[i % 3], q[2]


def second(rows, k):
    return rows[1, k]


def rows_and_devices(n, out):
    i = cuda.grid(1)
    a = cuda.local.array((2, 2), float32)
    b = cuda.local.array((2, 2), float32)
    for k in range(4):
        a[k // 2, k % 2] = k
        b[k // 2, k % 2] = -k
    p = a
    while n[i] > p.shape[0]:
        p = b
        break
    row = p[1]
    row[0] += 50
    out[0, i], out[1, i] = second(p, 0), row[1]
    out[2, i], out[3, i] = a[1, 0], p.size


@pytest.mark.parametrize("kernel", [swapped_per_lane, chosen_in_a_branch, rows_and_devices])
@pytest.mark.parametrize(("grid", "block"), [(1, 1), (1, 33), (3, 8)])
def test_each_lane_has_its_own_choice(kernel, grid, block):
    n = np.random.default_rng(3).integers(0, 5, 40)
    expected, out = np.full((2, 4, 40), -1, np.float32)
    one_by_one(kernel, grid, block, n, expected)
    assert simulate(kernel, grid, block, n, out).hazards == []
    np.testing.assert_array_equal(out, expected)


def unset_in_one(n, out):
    i = cuda.grid(1)
    a = cuda.local.array(3, float32)
    b = cuda.local.array(3, float32)
    a[0] = 1
    p = a
    if n[i] > 1:
        p = b
    out[0, i] = p[0]  # here


def test_unset_elements_of_the_chosen_array_are_found():
    n = np.arange(8)
    (hazard,) = hazards(unset_in_one, 1, 8, n, np.zeros((1, 8), np.float32))
    assert (hazard.kind, hazard.line) == ("uninitialised-read", line_of(unset_in_one, "# here"))
    assert (hazard.array, hazard.count) == ("b", 6)


def two_types(n, out):
    a = cuda.local.array(3, float32)
    b = cuda.local.array(3, float64)
    p = a
    if n[cuda.grid(1)] > 1:
        p = b
    p[0] = 1


def two_spaces(n, out):
    a = cuda.local.array(3, float32)
    b = cuda.shared.array(3, float32)
    p = a if n[cuda.grid(1)] > 1 else b
    p[0] = 1


@pytest.mark.parametrize(("kernel", "text"), [(two_types, "type"), (two_spaces, "one array in")])
def test_arrays_that_are_no_choice(kernel, text):
    with pytest.raises(TypeError, match=text):
        simulate(kernel, 1, 8, np.arange(8), np.zeros(8))
