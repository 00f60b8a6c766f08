"""Tutorials: what kernels call and loop over, and the host's half."""

import math

import numpy as np
import pytest

from gemmlab import simulate
from gemmlab.simt import cuda
from gemmlab.simt.cuda import types

RNG = np.random.default_rng(7)


# ----------------------------------------------------------------------------------------- language


@cuda.jit(device=True)
def polar(x, y=0.0):
    return math.hypot(x, y), math.atan2(y, x)


@cuda.jit
def to_polar(points, out):
    i = cuda.grid(1)
    if i < points.shape[0]:
        (out[i, 0], angle), flat = polar(points[i, 0], points[i, 1]), polar(points[i, 0])
        out[i, 1] = angle + 0 * flat[0]


def test_device_functions_that_return_tuples():
    points = RNG.standard_normal((40, 2))
    out = np.zeros((40, 2))
    to_polar[2, 32](points, out)
    np.testing.assert_allclose(out[:, 0], np.hypot(*points.T))
    np.testing.assert_allclose(out[:, 1], np.arctan2(points[:, 1], points[:, 0]))


def smallest_factor(n):
    i = 2
    while i * i <= n:
        if n % i == 0:
            break
        i += 1
    else:
        i = n
    return i


@cuda.jit
def factors(numbers, out, found):
    t = cuda.grid(1)
    if t >= numbers.size:
        return
    n = numbers[t]
    i = 2
    while i * i <= n:
        if n % i == 0:
            break
        i += 1
    else:
        i = n
    out[t] = i
    for k, prime in enumerate((2, 3, 5, 7), 1):
        if n == 12:
            return
        if n == 13:
            continue
        if n % prime == 0:
            found[t] = k
            break
    else:
        found[t] = -1


def test_loops_with_break_continue_return_and_else():
    numbers = np.arange(2, 100)
    out, found = np.zeros((2, 98), int)
    factors[2, 64](numbers, out, found)
    assert out.tolist() == [smallest_factor(n) for n in numbers]
    ranks = {2: 1, 3: 2, 5: 3, 7: 4}
    expected = [next((r for p, r in ranks.items() if n % p == 0), -1) for n in numbers.tolist()]
    expected[12 - 2], expected[13 - 2] = 0, -1
    assert found.tolist() == expected


@cuda.jit
def side_by_side(a, b, out):
    total = 0
    for i, (x, y) in enumerate(zip(a, b)):  # noqa: B905
        total += i * x * y
    for size in a.shape:
        total += size
    out[()] = total


def test_zip_and_enumerate():
    a, b, out = np.arange(5), np.arange(1, 7), np.zeros((), int)
    side_by_side[1, 1](a, b, out)
    assert out == sum(i * x * y for i, (x, y) in enumerate(zip(a, b, strict=False))) + 5


@cuda.jit
def without_dimensions(factor, out):
    out[cuda.grid(1)] = factor[()]


def test_an_array_without_dimensions():
    out = np.zeros(64)
    without_dimensions[2, 32](np.array(3.0), out)
    assert (out == 3).all()


@cuda.jit
def special(x, out):
    i = cuda.grid(1)
    if i < x.size:
        mantissa, exponent = math.frexp(x[i])
        fraction, whole = math.modf(x[i])
        out[0, i] = math.ldexp(mantissa, exponent)
        out[1, i] = fraction + whole
        out[2, i] = math.erf(x[i]) + math.erfc(x[i])
        out[3, i] = math.lgamma(x[i])
        out[4, i] = abs(complex(x[i], 1.0))


def test_functions_of_math_that_numpy_has_not():
    x, out = RNG.random(40) * 5, np.zeros((5, 40))
    special[2, 32](x, out)
    lgamma = [math.lgamma(v) for v in x]
    np.testing.assert_allclose(out, [x, x, np.ones(40), lgamma, np.hypot(x, 1)])


# ---------------------------------------------------------------------------------- the host's half


def scaled(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= FACTOR * OFFSETS[i]


FACTOR, OFFSETS = 2.0, np.array([1.0, 2.0, 3.0])


def test_names_are_those_of_the_first_launch(monkeypatch):
    kernel = cuda.jit("void(float64[:])")(scaled)
    results = []
    for _ in range(2):
        x, y = cuda.to_device(np.ones((2, 3)))
        kernel.forall(3)(x)
        simulate(scaled, 1, 3, y)
        results.append((x.copy_to_host().tolist(), y.copy_to_host().tolist()))
        monkeypatch.setitem(globals(), "FACTOR", 10.0)
        OFFSETS[0] = 5.0
    OFFSETS[0] = 1.0
    assert results == [([2, 4, 6], [2, 4, 6]), ([2, 4, 6], [50, 20, 30])]


def test_arrays_are_copied_to_the_device_and_back():
    x = np.arange(4.0)
    on_device = cuda.to_device(x)
    twice = cuda.device_array_like(on_device)
    again = cuda.device_array(4, dtype=np.float64)

    @cuda.jit((types.float64[:], types.float64[:]))
    def double(x, y):
        y[cuda.grid(1)] = 2 * x[cuda.grid(1)]

    double[1, 4, cuda.stream()](on_device, twice)
    cuda.synchronize()
    host = cuda.pinned_array(4)
    assert twice.copy_to_host(host) is host
    assert host.tolist() == [0, 2, 4, 6]
    assert x.tolist() == [0, 1, 2, 3]
    again.copy_to_device(host)
    cuda.to_device(x, to=twice)
    copies = again.copy_to_host().tolist(), twice.copy_to_host().tolist()
    assert copies == (host.tolist(), x.tolist())
    with pytest.raises(TypeError, match=r"use \[grid, block\]"):
        double[4](on_device, twice)


@cuda.jit
def talk(x):
    i = cuda.grid(1)
    if x[i] > 1:
        print("thread", i, "has", x[i], (i, i > 2))


def test_print_writes_a_line_for_each_thread(capsys):
    talk[2, 2](np.array([1, 2, 3, 0.5]))
    assert capsys.readouterr().out.splitlines() == [
        "thread 1 has 2.000000 (1, False)",
        "thread 2 has 3.000000 (2, False)",
    ]
