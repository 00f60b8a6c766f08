"""Typed expressions on the simulator have the bits that `numba.njit` gives them."""

import pytest

pytest.importorskip("numba")

from tests.simt.fuzz.expressions import differences

COUNT = 120  # more, on the command line: python -m tests.simt.fuzz.expressions 5000


def test_random_expressions_have_the_bits_of_numba():
    assert differences(COUNT, seed=0) == []
