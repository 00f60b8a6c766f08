"""Notes on lines: what is no hazard, but worth knowing."""

import numpy as np

from gemmlab import cuda, simulate
from tests.support.launches import line_of


def before_me(x, y):
    i = cuda.grid(1)
    y[i] = x[i - 1] + x[-1 - i] + x[-1]


def quotient(x, y):
    i = cuda.grid(1)
    y[i] = 7 // x[i]


def both(x, y):
    i = cuda.grid(1)
    y[i] = 7 // x[i - 31]


def test_a_negative_index_in_some_lanes_and_a_division_by_zero_are_notes():
    x, y = np.arange(32), np.zeros(32, np.int64)
    (note,) = simulate(before_me, 1, 32, x, y).notes
    assert "thread (0) uses x[-1], which is counted from the end" in note.message
    assert (note.line, note.count) == (line_of(before_me, "x[i - 1]"), 1)
    (note,) = simulate(quotient, 1, 32, x, y).notes
    assert "thread (0) divides an integer by 0" in note.message
    assert simulate(quotient, 1, 32, x + 1, y).notes == ()
    notes = simulate(both, 1, 32, x[::-1].copy(), y).notes
    assert [(n.kind, n.count) for n in notes] == [("negative-index", 31), ("division-by-zero", 1)]
