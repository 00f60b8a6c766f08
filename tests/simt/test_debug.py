"""Kernels with debug=True raise where Python does, as Numba's manual says; others go on."""

import numpy as np
import pytest
from numpy import complex64, float32, float64, int32

from gemmlab.simt import cuda


def quotient(x, y, out):
    i = cuda.grid(1)
    out[i] = x[i] / y[i]


def floor(x, y, out):
    i = cuda.grid(1)
    out[i] = x[i] // y[i]


def rest(x, y, out):
    i = cuda.grid(1)
    out[i] = x[i] % y[i]


def guarded(x, y, out):
    i = cuda.grid(1)
    if y[i] != 0:
        out[i] = x[i] // y[i]


def unset(kind):
    return np.array([2, 3, 4], kind), np.array([1, 0, 2], kind), np.zeros(3, kind)


@pytest.mark.parametrize(
    ("kernel", "kind", "message"),
    [
        (quotient, float64, "^division by zero"),
        (quotient, int32, "^division by zero"),
        (quotient, complex64, "^complex division by zero"),
        (floor, int32, "^integer division by zero"),
        (floor, float32, "^division by zero"),
        (rest, int32, "^integer modulo by zero"),
        (rest, float32, "^modulo by zero"),
    ],
)
def test_a_division_by_0_raises_and_nothing_is_stored(kernel, kind, message):
    x, y, out = unset(kind)
    with pytest.raises(ZeroDivisionError, match=message) as caught:
        cuda.jit(debug=True, opt=False)(kernel)[1, 3](x, y, out)
    assert "[block (0), thread (1)]" in str(caught.value)
    assert f"line {kernel.__code__.co_firstlineno + 2}: " in str(caught.value)
    assert not out.any()


@pytest.mark.parametrize(
    ("kernel", "options"),
    [
        (quotient, {}),
        (floor, {"debug": False}),
        (guarded, {"debug": True, "opt": False}),
        (quotient, {"debug": True, "opt": False, "fastmath": True}),
    ],
)
def test_without_it_or_where_no_lane_divides_by_0_nothing_is_raised(kernel, options):
    x, y, out = unset(float32)
    cuda.jit(**options)(kernel)[1, 3](x, y, out)
    assert out[2] == 2
