"""Formats: limits, bits and words, rounding, units in the last place."""

import math
from bisect import bisect_right
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from gemmlab.formats import (
    BY_PTX,
    FORMATS,
    ROUNDINGS,
    decode,
    encode,
    fields,
    from_memory,
    number_format,
    round_to,
    to_memory,
    ulp,
)

EIGHT = ["float8_e5m2", "float8_e4m3fn"]
SMALL = ["float16", "bfloat16", "tf32", *EIGHT]
OF_NUMPY = ["float16", "float32", "float64"]


def all_words(dtype: str) -> np.ndarray:
    """Every bit pattern of a format of at most 19 bits."""
    if dtype == "tf32":
        return np.arange(2**19, dtype=np.uint32) << 13
    return np.arange(2**8 if dtype in EIGHT else 2**16, dtype=FORMATS[dtype].words)


@cache
def positive(dtype: str) -> list[Fraction]:
    """Every finite number ≥ 0, in order, by the definition of the format."""
    e, f = FORMATS[dtype].exponent_bits, FORMATS[dtype].fraction_bits
    bias = 2 ** (e - 1) - 1
    numbers = []
    # E4M3 has numbers in place of infinities: with all exponent bits, only all ones is NaN.
    for field in range(2**e - (dtype != "float8_e4m3fn")):
        for t in range(2**f - (field == 2**e - 1)):
            if field:
                numbers.append((1 + Fraction(t, 2**f)) * Fraction(2) ** (field - bias))
            else:
                numbers.append(Fraction(t, 2**f) * Fraction(2) ** (1 - bias))
    return numbers


# ------------------------------------------------------------------------------------------ formats


# Typed a second time: bytes in memory and bits of the significand, from IEEE 754-2019, table 3.5,
# and NVIDIA's A100 whitepaper, and arXiv:2209.05433; PTX's name.
KNOWN = {
    "float64": (8, 53, "f64"),
    "float32": (4, 24, "f32"),
    "tf32": (4, 11, "tf32"),
    "bfloat16": (2, 8, "bf16"),
    "float16": (2, 11, "f16"),
    "float8_e5m2": (1, 3, "e5m2"),
    "float8_e4m3fn": (1, 4, "e4m3"),
}


@pytest.mark.parametrize("dtype", FORMATS)
def test_size_and_precision_are_those_of_the_standard(dtype):
    form, (size, precision, ptx) = FORMATS[dtype], KNOWN[dtype]
    assert (form.bytes, form.precision, form.ptx) == (size, precision, ptx)
    assert form.memory.itemsize == size
    assert form.unit_roundoff == 2.0**-precision
    assert BY_PTX[ptx] is number_format(dtype) is form


def test_only_what_numpy_does_not_have_is_words_in_memory():
    types = {name: form.memory.name for name, form in FORMATS.items()}
    as_they_are = {name: name for name in OF_NUMPY}
    words = {"bfloat16": "uint16", **dict.fromkeys(EIGHT, "uint8")}
    assert types == {**as_they_are, "tf32": "float32", **words}


def test_an_unknown_format_is_quoted_by_the_name_of_its_argument():
    with pytest.raises(ValueError, match="accumulate='fp32' is not a known format; use one of fl"):
        number_format("fp32", "accumulate")
    for wrong in (None, np.float32, ["float32"]):
        with pytest.raises(ValueError, match="dtype=.* is not a known format"):
            number_format(wrong)


@pytest.mark.parametrize("dtype", OF_NUMPY)
def test_limits_are_those_of_numpy(dtype):
    form, info = FORMATS[dtype], np.finfo(dtype)
    assert (form.largest, form.smallest_normal, form.smallest) == tuple(
        float(x) for x in (info.max, info.smallest_normal, info.smallest_subnormal)
    )
    assert form.precision == info.nmant + 1


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", *EIGHT])
def test_every_positive_number_of_8_and_16_bits(dtype):
    numbers = positive(dtype)
    decoded = decode(np.arange(len(numbers), dtype=np.uint16), dtype)
    assert [Fraction(float(x)) for x in decoded] == numbers
    assert FORMATS[dtype].largest == numbers[-1]


@pytest.mark.parametrize("dtype", EIGHT)
def test_what_saturates_is_the_largest_number(dtype):
    """An H100's `cvt.rn.satfinite` gave the same for 4.5 million numbers."""
    most = FORMATS[dtype].largest
    x = [most, 1.07 * most, 1e9, -1e9, np.inf, -np.inf, np.nan, 0.1]
    got = round_to(x, dtype, saturate=True)
    wanted = [most, most, most, -most, most, -most, np.nan, float(round_to(0.1, dtype))]
    assert np.array_equal(got, wanted, equal_nan=True)
    assert np.isfinite(round_to(x[:6], dtype)).tolist() == [True, dtype == EIGHT[0], *[False] * 4]


def test_limits_of_fp8_are_those_that_were_published():
    """Source: arXiv:2209.05433, table 1."""
    limits = {
        name: (form.largest, form.smallest_normal, form.smallest)
        for name, form in FORMATS.items()
        if name in EIGHT
    }
    assert limits == {
        "float8_e4m3fn": (448, 2**-6, 2**-9),
        "float8_e5m2": (57344, 2**-14, 2**-16),
    }


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
    # As many NaN as there are fractions, less one, of either sign; without infinities one.
    assert (~real).sum() == (2 * (2**f - 1) if form.infinities else 2)


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
    with pytest.raises(ValueError, match="9007199254740993 is not a float64 number"):
        encode(2**53 + 1, "float64")


@pytest.mark.parametrize("dtype", FORMATS)
def test_decode_takes_only_words_of_the_format(dtype):
    bits = 8 * FORMATS[dtype].bytes
    for word in (-1, 2**bits, 2**70):
        with pytest.raises(ValueError, match=f"{word} is no word of {bits} bits; use 0 to"):
            decode(word, dtype)
        with pytest.raises(ValueError, match=f"{word} is no word of {bits} bits; use 0 to"):
            decode([word, 0], dtype)
    assert np.isnan(decode(2**bits - 1, dtype))


@given(st.floats(width=64))
@settings(max_examples=100, deadline=None)
def test_a_float64_is_its_own_bits(x):
    word = np.float64(x).view(np.uint64)
    assert encode(x, "float64") == word
    assert decode(word, "float64").view(np.uint64) == word
    sign, exponent, fraction = (int(part) for part in fields(x, "float64"))
    assert sign << 63 | exponent << 52 | fraction == word


@pytest.mark.parametrize("dtype", FORMATS)
def test_memory_and_back(dtype):
    form, rng = FORMATS[dtype], np.random.default_rng(0)
    x = round_to(rng.standard_normal((3, 5)), dtype)
    x[0, :3] = form.largest, -form.smallest, -np.inf if form.infinities else -form.largest
    there = to_memory(x, dtype)
    assert there.dtype == form.memory
    assert there.nbytes == form.bytes * x.size
    assert np.array_equal(there.view(f"u{form.bytes}"), encode(x, dtype))
    back = from_memory(there, dtype)
    assert back.dtype == form.carrier
    assert np.array_equal(back, x)
    if dtype != "float64":
        with pytest.raises(ValueError, match=f"0.1 is not a {dtype} number; round it first"):
            to_memory([0.1], dtype)


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
    some = [0.0, form.smallest, form.smallest_normal, 1.0, form.largest, 1.5, 2.0**form.emax * 1.25]
    some += [1 + ulp(1.0, dtype) * k for k in (1, 2, 3)]
    out = []
    for x in some:
        half = float(ulp(x, dtype)) / 2
        for y in (x, x + half, x - half, x + half * 3):
            out += [y, np.nextafter(y, np.inf), np.nextafter(y, -np.inf)]
    return [float(x) for x in out if x >= 0]


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", *EIGHT])
def test_rounding_by_looking_at_all_numbers(dtype, rounding):
    numbers = positive(dtype)
    step = numbers[-1] - numbers[-2]
    beyond = math.inf if FORMATS[dtype].infinities else math.nan
    for x in interesting(dtype):
        wanted = nearest(Fraction(x), numbers, rounding, step)
        wanted = beyond if wanted is None else float(wanted)
        got = [round_to(x, dtype, rounding), -round_to(-x, dtype, rounding)]
        assert np.array_equal(got, [wanted] * 2, equal_nan=True), (x, rounding)


@given(st.floats(width=64))
@settings(max_examples=100, deadline=None)
def test_formats_of_numpy_round_as_numpy_does(x):
    for dtype in OF_NUMPY:
        with np.errstate(over="ignore"):
            wanted = np.float64(x).astype(dtype)
        got = round_to(x, dtype)
        assert got.dtype == wanted.dtype
        assert np.array_equal(got, wanted, equal_nan=True)
        assert np.signbit(got) == np.signbit(wanted) or np.isnan(x)


@given(st.floats(width=32, allow_nan=False), st.sampled_from(SMALL), st.sampled_from(ROUNDINGS))
@settings(max_examples=100, deadline=None)
def test_a_rounding_is_within_one_ulp_and_of_the_format(x, dtype, rounding):
    got = round_to(x, dtype, rounding)
    encode(got, dtype)
    assert rounding != "RZ" or np.isfinite(got) == np.isfinite(x)
    assert np.isinf(got) <= FORMATS[dtype].infinities
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
    with pytest.raises(ValueError, match="dtype='fp16' is not a known format; use one of float64"):
        round_to(1.0, "fp16")


@given(st.floats(width=64), st.sampled_from(ROUNDINGS))
@settings(max_examples=100, deadline=None)
def test_a_float64_is_not_rounded(x, rounding):
    got = round_to(x, "float64", rounding)
    assert got.dtype == np.float64
    assert np.array_equal(got, x, equal_nan=True)
    assert np.signbit(got) == np.signbit(x) or np.isnan(x)


@pytest.mark.parametrize("dtype", OF_NUMPY)
def test_ulp_is_that_of_numpy(dtype):
    x = np.array([1.0, 1.5, 2.0, 0.1, 60000.0, 6e-8, 0.0], dtype)
    assert np.array_equal(ulp(x, dtype), np.spacing(x).astype(np.float64))
    assert np.isnan(ulp(np.inf, dtype))
