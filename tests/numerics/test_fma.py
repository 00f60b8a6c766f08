"""The FMA rounds once, and a chain of them is one after the other."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from gemmlab.numerics import (
    FORMATS,
    fma,
    fma_chain,
)
from gemmlab.numerics.fma import sum_to_single


def exact_fma(a: float, b: float, c: float, rounding: str) -> float:
    """The rounding of the exact a·b + c to float32, in rational numbers."""
    x = Fraction(a) * Fraction(b) + Fraction(c)
    if x == 0:
        return 0.0
    e = abs(x).numerator.bit_length() - abs(x).denominator.bit_length()
    e = e if abs(x) >= Fraction(2) ** e else e - 1
    place = Fraction(2) ** (max(e, -126) - 23)
    units = abs(x) / place
    n = round(units) if rounding == "RN" else int(units)
    if n * place >= Fraction(2) ** 128:
        return math.copysign(FORMATS["float32"].largest if rounding == "RZ" else math.inf, x)
    return math.copysign(float(n * place), x)


def test_a_sum_is_rounded_once_to_float32_wherever_it_lies():
    """Between normal numbers, between subnormal ones, and below the least, next to a tie."""
    for tie in (1 + 2.0**-24, 2.0**-126 + 2.0**-150, 2.0**-149 + 2.0**-150, 2.0**-150):
        for little in (-tie * 2.0**-60, 0.0, tie * 2.0**-60):
            found = sum_to_single(np.array([tie]), np.array([little]))
            assert Fraction(float(found[0])) == nearest(Fraction(tie) + Fraction(little))


def nearest(x: Fraction) -> Fraction:
    """The float32 number nearest to a positive x below 2."""
    place = Fraction(2) ** max(-149, (0 if x >= 1 else -126) - 23)
    return round(x / place) * place


float32 = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(float32, float32, float32, st.sampled_from(["RN", "RZ"]))
@settings(max_examples=500, deadline=None)
def test_fma_rounds_once(a, b, c, rounding):
    assert float(fma(a, b, c, rounding)) == exact_fma(a, b, c, rounding)


@given(
    st.integers(-(2**24), 2**24),
    st.integers(-(2**24), 2**24),
    st.integers(-(2**24), 2**24),
    st.integers(-60, 60),
    st.sampled_from(["RN", "RZ"]),
)
@settings(max_examples=500, deadline=None)
def test_fma_near_cancellation_and_halves(a, b, c, gap, rounding):
    a, b, c = float(a), float(b), math.ldexp(c, gap)
    assert float(fma(a, b, c, rounding)) == exact_fma(a, b, c, rounding)


def test_fma_where_two_roundings_go_wrong():
    """The exact sum is just above a half between two float32; float64 has the half itself."""
    a, b, c = np.float32([2**-30 * (1 + 2**-23), 2**-30 * (1 + 2**-23), 1 + 2**-23])
    half = np.float32(2.0**-24)
    for tiny in (1, -1):
        got = fma(np.float32(tiny * 2.0**-40), np.float32(2.0**-40), np.float32(1), "RN")
        assert float(got) == 1.0
    got = float(fma(2**-12 * (1 + 2**-20), 2**-12 * (1 - 2**-20), c))
    assert got == exact_fma(2**-12 * (1 + 2**-20), 2**-12 * (1 - 2**-20), float(c), "RN")
    assert float(half) == 2.0**-24
    assert float(fma(a, b, c)) == exact_fma(float(a), float(b), float(c), "RN")


def test_fma_of_what_is_not_finite():
    assert np.isnan(fma(np.inf, 0.0, 1.0))
    assert np.isnan(fma(np.inf, 1.0, -np.inf))
    assert fma(2.0, 3.0, -np.inf) == -np.inf
    assert fma(2.0**100, 2.0**100, 0.0) == np.inf
    assert fma(2.0**100, 2.0**100, 0.0, "RZ") == np.finfo(np.float32).max


def test_fma_chain_is_one_fma_after_the_other():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 5, 30)).astype(np.float32)
    total = np.float32(0)
    for i in range(30):
        total = fma(a[2, i], b[2, i], total)
    assert fma_chain(a, b)[2] == total
    for i in range(30):
        total = fma(a[2, i], b[2, i], total, "RZ")
    assert fma_chain(a[2], b[2], fma_chain(a, b)[2], "RZ") == total
    with pytest.raises(ValueError, match=r"a has shape \(2,\) and b \(3,\)"):
        fma_chain([1, 2], [1, 2, 3])
