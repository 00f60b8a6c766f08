"""Errors of a kernel: the line, what to write instead, and the learner's own frames alone."""

import math
import os
import traceback

import numpy as np
import pytest
from numpy import float32

from gemmlab import cuda, simulate
from gemmlab.simt import HazardError, UnsupportedError
from tests.support.launches import line_of


def halved(v, by):
    return v[by] / 2  # inside


def calls_wrongly(x):
    x[0] = halved(x[1])  # fault


def calls_without_a_value(x):
    x[0] = halved(x[1], 0)  # fault


def intrinsic_wrongly(x):
    x[0] = cuda.shfl_sync(0xFFFFFFFF, x[0])  # fault


def atomic_wrongly(x):
    cuda.atomic.add(x, 1)  # fault


def no_dimension(x):
    i = cuda.grid()  # fault
    x[i] = 1


def no_type(x):
    s = cuda.shared.array(16)  # fault
    x[0] = s[0]


def no_type_of_a_local(x):
    s = cuda.local.array(16)  # fault
    x[0] = s[0]


def forgotten_axis(x):
    if cuda.threadIdx == 0:  # fault
        x[0] = 1


def unassigned(x):
    if x[0] > 5:
        v = 1
    x[1] = v + 1  # fault


def an_array_is_called(x):
    x[0] = x(1)  # fault


def a_number_is_indexed(x):
    v = x[0]
    x[0] = v[1]  # fault


def wrong_kind(x):
    x[0] = x[0] & 1  # fault


def in_a_loop(x):
    for k in range(3):
        while x[k] < 1:
            x[k] = math.floor(x[k]) << 2  # fault


def shape_stored(x):
    x[0] = x.shape  # fault


def root_of_an_array(x):
    x[0] = math.sqrt(x)  # fault


def length_of_a_number(x):
    x[0] = len(x[0])  # fault


def none_in_some(x):
    v = x[0] if cuda.threadIdx.x < 1 else None  # fault
    x[1] = v


@pytest.mark.parametrize(
    ("kernel", "error", "text"),
    [
        (root_of_an_array, TypeError, r"math\.sqrt takes numbers, not the array x; .* x\[i\]"),
        (length_of_a_number, TypeError, "a number has no length"),
        (none_in_some, TypeError, "is None in some threads"),
        (calls_wrongly, TypeError, r"halved takes 2 arguments \(v, by\), not 1"),
        (intrinsic_wrongly, TypeError, r"cuda\.shfl_sync takes 3 arguments \(mask, .*\), not 2"),
        (atomic_wrongly, TypeError, r"cuda\.atomic\.add takes 3 arguments \(array, .*\), not 2"),
        (no_dimension, TypeError, r"as in cuda\.grid\(1\)"),
        (no_type, TypeError, r"as in cuda\.shared\.array\(16, float32\)"),
        (no_type_of_a_local, TypeError, r"as in cuda\.local\.array\(16, float32\)"),
        (forgotten_axis, TypeError, r"cuda\.threadIdx is three numbers; write cuda\.threadIdx\.x"),
        (unassigned, NameError, "'v' is read before it is assigned; assign it above"),
        (an_array_is_called, TypeError, "x is the array x, and cannot be called"),
        (a_number_is_indexed, TypeError, "is no array, and has no elements"),
        (wrong_kind, TypeError, "use integers"),
        (in_a_loop, TypeError, "LShift of float64 and int64 is not defined; use integers"),
        (shape_stored, TypeError, "a tuple of 1 int64 is not a number"),
    ],
)
def test_an_error_names_its_line_and_shows_it_alone(kernel, error, text):
    with pytest.raises(error, match=text) as caught:
        simulate(kernel, 1, 1, np.zeros(32))
    line = line_of(kernel, "# fault")
    assert f"line {line}" in str(caught.value)
    here, *ours, last = traceback.extract_tb(caught.value.__traceback__)
    assert (last.filename, last.lineno, last.name) == (__file__, line, kernel.__name__)
    assert "# fault" in last.line
    assert here.filename == __file__
    places = {(os.path.basename(frame.filename), frame.name) for frame in ours}
    assert places == {("launch.py", "run")}  # of `told_at_the_kernel`
    assert caught.value.__suppress_context__


def test_a_device_function_and_its_caller_are_shown():
    with pytest.raises(TypeError, match="no array") as caught:
        simulate(calls_without_a_value, 1, 1, np.zeros(2))
    frames = traceback.extract_tb(caught.value.__traceback__)[-2:]
    assert [frame.name for frame in frames] == ["calls_without_a_value", "halved"]
    assert f"line {line_of(halved, '# inside')}: return v[by] / 2" in str(caught.value)


def races(x):
    x[0] = cuda.threadIdx.x  # fault


def test_a_hazard_is_raised_at_its_line():
    with pytest.raises(HazardError) as caught:
        simulate(races, 1, 32, np.zeros(4))
    assert traceback.extract_tb(caught.value.__traceback__)[-1].lineno == line_of(races, "# fault")


def big(x):
    s = cuda.shared.array((256, 256), float32)
    x[0] = s[0, 0]


def test_errors_before_the_kernel_runs_stay_as_they_are():
    with pytest.raises(ValueError, match="too large; use at most 1024") as caught:
        simulate(races, 1, 2000, np.zeros(4))
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "check"

    def unknown(x):
        x[0] = [1]

    with pytest.raises(UnsupportedError, match=r"use a tuple[\s\S]*, line \d+: x\[0\] = \[1\]"):
        simulate(unknown, 1, 1, np.zeros(1))
    with pytest.raises(ValueError, match="shared arrays of 262144 B"):
        simulate(big, 1, 1, np.zeros(1))
