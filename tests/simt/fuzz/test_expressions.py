"""Typed expressions on the simulator have the bits that `numba.njit` gives them."""

import pytest

pytest.importorskip("numba")

import numba

from benchmarks.simulator.fuzz.expressions import Expression, differences, different

COUNT = 120  # more, on the command line: python -m benchmarks.simulator.fuzz.expressions 5000


def test_random_expressions_have_the_bits_of_numba():
    assert differences(COUNT, seed=0) == []


# The value of an `and` that does not end an `or` is that of its last part, and what written numbers
# decide is left out: so are the types of what is not reached.
BRANCHES = [
    "((f4 and u1) or int(g4)) % (abs(u8) > (i4 or i2))",
    "((i8 or f8) and u2) // 2",
    "((f4 and i8 and u4) or u8) >> 1 == 0",
    "(not u4) ** 5 // ((i4 or 2.0) and (i1 + 1))",
    "-1.5 // -(abs(i4) if (u8 or -1.5) else (u1 if u2 else -9223372036854775808))",
    "((-9223372036854775808 if 1 else 1.0) or (u2 // u1)) % (i2 & 0)",
    "(i4 if not (f8 and 0) else f4) * u8",
    "((f4 and 0) or i4) // 3",
    "(abs(round(g4)) + ~(True if 7 else i8)) / 101",
]


def test_types_of_what_branches_leave():
    assert different([Expression(text, numba.float64) for text in BRANCHES], seed=0) == []
