"""Formats: limits, bits and words, rounding, units in the last place."""

import math
from bisect import bisect_right
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemmlab.numerics import (
    FORMATS,
    ROUNDINGS,
    decode,
    encode,
    fields,
    round_to,
    ulp,
)
from gemmlab.problem import DTYPES

SMALL = ["float16", "bfloat16", "tf32"]


def all_words(dtype: str) -> np.ndarray:
    """Every bit pattern of a format of at most 19 bits."""
    if dtype == "tf32":
        return np.arange(2**19, dtype=np.uint32) << 13
    return np.arange(2**16, dtype=np.uint16)


def positive(dtype: str) -> list[Fraction]:
    """Every finite number ≥ 0, in order, by the definition of the format."""
    e, f = FORMATS[dtype].exponent_bits, FORMATS[dtype].fraction_bits
    bias = 2 ** (e - 1) - 1
    numbers = []
    for field in range(2**e - 1):
        for t in range(2**f):
            if field:
                numbers.append((1 + Fraction(t, 2**f)) * Fraction(2) ** (field - bias))
            else:
                numbers.append(Fraction(t, 2**f) * Fraction(2) ** (1 - bias))
    return numbers


# ------------------------------------------------------------------------------------------ formats


@pytest.mark.parametrize("dtype", FORMATS)
def test_unit_roundoff_is_that_of_the_problem(dtype):
    assert FORMATS[dtype].unit_roundoff == DTYPES[dtype].unit_roundoff


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_limits_are_those_of_numpy(dtype):
    form, info = FORMATS[dtype], np.finfo(dtype)
    assert (form.largest, form.smallest_normal, form.smallest) == tuple(
        float(x) for x in (info.max, info.smallest_normal, info.smallest_subnormal)
    )
    assert form.precision == info.nmant + 1


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_positive_number_of_16_bits(dtype):
    numbers = positive(dtype)
    decoded = decode(np.arange(len(numbers), dtype=np.uint16), dtype)
    assert [Fraction(float(x)) for x in decoded] == numbers


@pytest.mark.parametrize("dtype", SMALL)
def test_bits_and_back(dtype):
    words = all_words(dtype)
    numbers = decode(words, dtype)
    real = ~np.isnan(numbers)
    assert np.array_equal(encode(numbers[real], dtype), words[real])
    assert np.array_equal(
        round_to(numbers, dtype).view(f"u{numbers.itemsize}")[real],
        numbers.view(f"u{numbers.itemsize}")[real],
    )
    sign, exponent, fraction = fields(numbers[real], dtype)
    form = FORMATS[dtype]
    e, f = form.exponent_bits, form.fraction_bits
    assert np.array_equal((((sign << e) | exponent) << f) | fraction, words[real] >> form.padding)
    assert [part.max() for part in (sign, exponent, fraction)] == [1, 2**e - 1, 2**f - 1]
    nan = 2 ** (e + 1) * 2**f  # as many NaN as there are fractions, less one, of either sign
    assert (~real).sum() == nan // 2**e - 2


def test_encode_takes_only_numbers_of_the_format():
    with pytest.raises(ValueError, match=r"0.1 is not a float16 number; round it first: round_to"):
        encode([1.0, 0.1], "float16")
    with pytest.raises(ValueError, match="1.001953125 is not a bfloat16 number"):
        encode(np.float32(1 + 2**-9), "bfloat16")
    with pytest.raises(ValueError, match="65536.0 is not a float16 number"):
        encode(65536.0, "float16")
    with pytest.raises(TypeError, match="bits are integers, not float64"):
        decode(1.0, "float16")
    for dtype in SMALL:
        with pytest.raises(ValueError, match=f"is not a {dtype} number"):
            encode(1 + 2.0 ** -FORMATS[dtype].precision, dtype)  # one bit too many


@pytest.mark.parametrize("dtype", FORMATS)
def test_nan_is_a_number_of_every_format(dtype):
    for nan in (np.nan, np.float64([np.nan]), np.float16(np.nan)):
        assert np.isnan(decode(encode(nan, dtype), dtype)).all()


# ----------------------------------------------------------------------------------------- rounding


def nearest(x: Fraction, numbers: list[Fraction], rounding: str, step: Fraction) -> Fraction | None:
    """The rounding of x ≥ 0 by looking at all numbers; None stands for infinity."""
    i = bisect_right(numbers, x)
    below, above = numbers[i - 1], numbers[i] if i < len(numbers) else None
    if rounding == "RZ" or below == x:
        return below
    upper = numbers[-1] + step if above is None else above
    middle = (below + upper) / 2
    tie_up = rounding == "RNA" or (i - 1) % 2 == 1
    return above if x > middle or (x == middle and tie_up) else below


def interesting(dtype: str) -> list[float]:
    """Numbers of the format, halves between them, and next to the halves."""
    form = FORMATS[dtype]
    some = [0.0, form.smallest, form.smallest_normal, 1.0, form.largest, 1.5, 2**form.emax * 1.25]
    some += [1 + ulp(1.0, dtype) * k for k in (1, 2, 3)]
    out = []
    for x in some:
        half = float(ulp(x, dtype)) / 2
        for y in (x, x + half, x - half, x + half * 3):
            out += [y, np.nextafter(y, np.inf), np.nextafter(y, -np.inf)]
    return [float(x) for x in out if x >= 0]


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_rounding_by_looking_at_all_numbers(dtype, rounding):
    numbers = positive(dtype)
    step = numbers[-1] - numbers[-2]
    for x in interesting(dtype):
        wanted = nearest(Fraction(x), numbers, rounding, step)
        wanted = math.inf if wanted is None else float(wanted)
        assert float(round_to(x, dtype, rounding)) == wanted, (x, rounding)
        assert float(round_to(-x, dtype, rounding)) == -wanted


@given(st.floats(width=64))
@settings(max_examples=500, deadline=None)
def test_float16_and_float32_round_as_numpy_does(x):
    for dtype in ("float16", "float32"):
        with np.errstate(over="ignore"):
            wanted = np.float64(x).astype(dtype)
        got = round_to(x, dtype)
        assert got.dtype == wanted.dtype
        assert np.array_equal(got, wanted, equal_nan=True)
        assert np.signbit(got) == np.signbit(wanted) or np.isnan(x)


@given(st.floats(width=32, allow_nan=False), st.sampled_from(SMALL), st.sampled_from(ROUNDINGS))
@settings(max_examples=500, deadline=None)
def test_a_rounding_is_within_one_ulp_and_of_the_format(x, dtype, rounding):
    got = round_to(x, dtype, rounding)
    encode(got, dtype)
    assert rounding != "RZ" or np.isfinite(got) == np.isfinite(x)
    if np.isfinite(got) and abs(x) <= FORMATS[dtype].largest:
        limit = ulp(x, dtype) * (1 if rounding == "RZ" else 0.5)
        assert abs(float(got) - x) <= limit
        assert rounding != "RZ" or abs(float(got)) <= abs(x)


@pytest.mark.parametrize("dtype", FORMATS)
def test_every_nan_becomes_one_of_the_format(dtype):
    nans = np.uint32([0x7F800001, 0x7FFFFFFF, 0xFF800001, 0xFFC00000]).view(np.float32)
    rounded = round_to(nans, dtype)
    assert np.isnan(rounded).all()
    assert np.isnan(decode(encode(rounded, dtype), dtype)).all()


def test_what_rounding_refuses():
    with pytest.raises(ValueError, match="rounding='up' is not known; use one of RN, RZ, RNA"):
        round_to(1.0, "float16", "up")
    with pytest.raises(ValueError, match="dtype='fp16' is not a known format; use one of float32"):
        round_to(1.0, "fp16")


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_ulp_is_that_of_numpy(dtype):
    x = np.array([1.0, 1.5, 2.0, 0.1, 60000.0, 6e-8, 0.0], dtype)
    assert np.array_equal(ulp(x, dtype), np.spacing(x).astype(np.float64))
    assert np.isnan(ulp(np.inf, dtype))
