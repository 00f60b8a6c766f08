"""More of Python in kernels: arguments, records, names of numbers, functions inside."""

import cmath
import operator
from collections import namedtuple
from enum import IntEnum

import numpy as np
import pytest
from numpy import float32, int32, uint64

from gemmlab import cuda, simulate
from gemmlab.simt import UnsupportedError
from tests.support.launches import hazards, line_of

Point = namedtuple("Point", ["x", "y", "weight"])
ORIGIN = Point(1, 2, 0.5)


class Mode(IntEnum):
    ADD = 1
    SUB = 2


def outcome(kernel, *args, shape=32, dtype=np.float64, threads=32):
    out = np.zeros(shape, dtype)
    assert simulate(kernel, 1, threads, *args, out).hazards == []
    return out


def large(out):
    out[0] = 0xFFFFFFFFFFFFFFFF >> 60
    out[1] = uint64(0xDEADBEEFDEADBEEF) & 0xFF
    out[2] = 2**64 - 1 > 2**63
    out[3] = 2**-2
    out[4] = int32(-1) ** -3
    out[5] = 2.0**-3
    out[6] = 3 ** int32(4)
    out[7], out[8] = divmod(-7, 3)
    out[9] = 18446744073709551615 // 3 % 1000
    q, r = divmod(7.5, 2)
    out[10] = 10 * q + r


def test_large_numbers_powers_and_divmod():
    out = outcome(large, threads=1)
    assert out[:11].tolist() == [15, 0xEF, 1, 0.25, -1, 0.125, 81, -3, 2, 205, 31.5]


def members(x, scale, out):
    i = cuda.threadIdx.x
    if scale is None:
        out[i] = 1 if i in (1, 3, 5) else 0
    else:
        out[i] = scale * (2 if i not in (1, 3, 5) else 1)
    factor = 1 if scale is None else scale + 1
    if scale is not None and scale > 0:
        factor = 2 * factor
    out[i] += 100 * factor + x[i]


def without_scale(x, out):
    members(x, None, out)


@pytest.mark.parametrize("scale", [None, 0, 3])
def test_none_and_membership(scale):
    x = np.arange(32.0)
    expected = []
    for i in range(32):
        if scale is None:
            value = (i in (1, 3, 5)) + 100
        else:
            value = scale * (2 - (i in (1, 3, 5)))
            value += 100 * (scale + 1) * (2 if scale > 0 else 1)
        expected.append(value + i)
    found = outcome(without_scale, x) if scale is None else outcome(members, x, scale)
    assert found.tolist() == expected


def test_none_is_no_argument_of_a_kernel():
    """Numba-CUDA compiles such a kernel, and then does not launch it."""
    with pytest.raises(TypeError, match=r"argument scale=None is a NoneType; kernels take NumPy"):
        outcome(members, np.arange(32.0), None)


def tuples(both, p, mode, out):
    i = cuda.threadIdx.x
    (first, second), n = both
    if i < n:
        value = first[i] * p.weight + p.x
        if mode == Mode.SUB:
            value -= second[i]
        elif mode == Mode.ADD:
            value += second[i]
        second[i] = value
        out[i] = value + ORIGIN.y
        made = Point(i, 2 * i, value)
        if i % 2 == 0:
            made = Point(-i, 0, value)
        out[i] += made.x + made.y


def test_tuples_named_tuples_and_enumerations():
    a, b = np.arange(32.0), np.ones(32)
    out = outcome(tuples, ((a, b), 20), Point(5, 6, 2.0), Mode.SUB)
    i = np.arange(20)
    np.testing.assert_array_equal(b[:20], 2 * i + 4)
    np.testing.assert_array_equal(out[:20], 2 * i + 4 + 2 + np.where(i % 2, 3 * i, -i))
    assert not out[20:].any()
    assert b[20:].tolist() == [1] * 12


def complexes(z, out):
    i = cuda.threadIdx.x
    v = z[i] * z[i] + complex(1, 2)
    z[i] = v.conjugate() if False else v
    out[i] = abs(v) + v.real - z[i].imag + abs(cmath.exp(1j * i))


def test_complex_arrays():
    z = (np.arange(32) - 3 + 1j * np.arange(32)).astype(np.complex64)
    v = z * z + np.complex64(1 + 2j)
    out = outcome(complexes, z)
    np.testing.assert_array_equal(z, v)
    np.testing.assert_allclose(out, abs(v) + v.real - v.imag + 1, rtol=1e-6)


PARTICLE = np.dtype([("mass", np.float32), ("id", np.int32), ("x", np.float64)], align=True)


def moves(particles, out):
    i = cuda.grid(1)
    p = particles[i]
    p.x += p.mass * 2
    particles[i]["id"] = i * 10
    particles[i].mass = 0.5
    if i % 2:
        p = particles[i - 1]
    out[i] = particles["x"][i] + p["id"] * 0 + particles.size


def test_records():
    particles = np.zeros(32, PARTICLE)
    particles["mass"], particles["x"] = np.arange(32), 100
    report = simulate(moves, 1, 32, particles, out := np.zeros(32), on_hazard="collect")
    np.testing.assert_array_equal(particles["x"], 100 + 2 * np.arange(32))
    np.testing.assert_array_equal(particles["id"], 10 * np.arange(32))
    np.testing.assert_array_equal(particles["mass"], 0.5)
    np.testing.assert_array_equal(out, particles["x"] + 32)
    (race,) = report.hazards
    assert (race.kind, race.line) == ("global-race", line_of(moves, 'p["id"]'))
    assert "particles.id[" in race.message


def wrong_field(particles, out):
    out[0] = particles[0].speed


def whole_record(particles, out):
    particles[0] = out[0]


def test_records_have_their_own_messages():
    with pytest.raises(AttributeError, match="has no field 'speed'; use one of mass, id, x"):
        simulate(wrong_field, 1, 1, np.zeros(2, PARTICLE), np.zeros(1))
    with pytest.raises(TypeError, match=r"as in particles\[i\]\.mass"):
        simulate(whole_record, 1, 1, np.zeros(2, PARTICLE), np.zeros(1))


def inner(x, out):
    i = cuda.threadIdx.x
    shift = 10 * i

    def clipped(v, limit):
        if v > limit:
            return limit
        last = v + shift
        return last

    twice = lambda v: 2 * v  # noqa: E731
    out[i] = clipped(x[i], 20) + twice(clipped(5, 3))


def test_functions_inside_of_a_kernel():
    out = outcome(inner, np.arange(32.0))
    i = np.arange(32)
    np.testing.assert_array_equal(out, np.where(i > 20, 20, i + 10 * i) + 6)


@cuda.jit
def fills(out, i):
    out[i] = 2 * i


def calls_a_kernel(out):
    fills(out, cuda.threadIdx.x)


def test_a_kernel_that_a_kernel_calls_is_a_device_function():
    """As Numba-CUDA compiles it."""
    assert outcome(calls_a_kernel).tolist() == (2 * np.arange(32)).tolist()


def views(x, out):
    i = cuda.threadIdx.x
    flat = x.ravel()
    out[i] = flat[i] + x.T[i % 8, i // 8] + operator.mul(2, x.itemsize) + x.nbytes
    out[i] += x.dtype.type(3.7) + operator.lt(i, 4) + operator.neg(x.strides[0])


def test_views_and_operators():
    x = np.arange(32, dtype=np.int32).reshape(4, 8)
    np.testing.assert_array_equal(
        outcome(views, x), 2 * np.arange(32) + 8 + 128 + 3 + (np.arange(32) < 4) - 32
    )


def checked(x, out):
    i = cuda.threadIdx.x
    assert x[i] >= 0, "below zero"
    if x[i] > 100:
        raise ValueError("too large")
    out[i] = x[i]


def test_what_a_kernel_raises_names_the_thread():
    x = np.arange(64.0)
    out = np.zeros(64)
    simulate(checked, 1, 64, x, out)
    np.testing.assert_array_equal(out, x)
    x[7] = -1
    with pytest.raises(AssertionError, match=r"below zero.*block \(0\), thread \(7\)"):
        simulate(checked, 1, 64, x, out)
    x[7], x[40] = 7, 101
    with pytest.raises(ValueError, match=r"too large.*thread \(40\)"):
        simulate(checked, 1, 64, x, out)


def test_what_stays_refused():
    def something(x):
        x[0] = x.nothing

    with pytest.raises(UnsupportedError, match="arrays have .shape"):
        simulate(something, 1, 1, np.zeros(1))


def last_row(table, out):
    i = cuda.threadIdx.x
    row = table[i % 2][1:]
    out[i] = row[3] + float32(1)


def test_a_tuple_of_numbers_keeps_them():
    def extremes(pair, out):
        out[0], out[1] = max(pair), min(pair)
        out[2], out[3] = len(pair), out.ndim

    assert outcome(extremes, (1.5, 2.5, 2), threads=1)[:4].tolist() == [2.5, 1.5, 3, 1]

    def picks(pair, out):
        i = cuda.threadIdx.x
        out[i] = pair[i % 2]

    assert outcome(picks, (1.5, 2.5)).tolist() == [1.5, 2.5] * 16
    assert hazards(last_row, 1, 2, np.zeros((2, 5)), np.zeros(2)) == []
