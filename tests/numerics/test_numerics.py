"""Formats and roundings, the FMA, splits and error correction, error measures."""

import math
from bisect import bisect_right
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemmlab import numerics
from gemmlab.numerics import (
    FORMATS,
    POLICIES,
    ROUNDINGS,
    Policy,
    decode,
    emulated_matmul,
    encode,
    fields,
    fma,
    fma_chain,
    fma_chain_bound,
    fused_dot_add,
    round_to,
    split,
    split_range,
    tensor_core_bound,
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


# ----------------------------------------------------------------------------------------- formats


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


# ---------------------------------------------------------------------------------------- rounding


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


# --------------------------------------------------------------------------------------------- FMA


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


# ------------------------------------------------------------------------------------------ errors


def test_error_measures():
    reference = np.array([[1.0, -2.0], [0.0, 4.0]])
    assert numerics.max_relative_error(reference, reference) == 0
    result = reference + np.array([[0.0, 0.5], [0.0, 0.0]])
    assert numerics.max_relative_error(result, reference) == 0.25
    assert numerics.forward_error(result, reference) == pytest.approx(0.5 / np.sqrt(21))
    a, b = np.array([[1.0, 1.0], [2.0, 2.0]]), np.array([[2.0, 1.0], [-2.0, 3.0]])
    assert numerics.backward_error(result, reference, a, b) == 0.125
    for sign in (1, -1):
        c = np.full((2, 2), sign * 4.0)
        assert numerics.backward_error(result, reference, a, b, c) == 0.0625


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_infinitely_wrong(bad):
    ones = np.ones((1, 1))
    assert numerics.max_relative_error([[bad]], ones) == np.inf
    assert numerics.forward_error([[bad]], ones) == np.inf
    assert numerics.backward_error([[bad]], ones, ones, ones) == np.inf
    assert numerics.max_relative_error([1.0], [0.0]) == np.inf
    with pytest.raises(ValueError, match=r"shape \(1,\), the reference \(2,\)"):
        numerics.forward_error([1.0], [1.0, 2.0])


@pytest.mark.parametrize("k", [3, 16, 17, 1000])
def test_bounds_are_what_their_formulas_say(k):
    """In rational numbers, for an H200: blocks of 16 products, 25 bits."""
    u = Fraction(1, 2**24)
    assert fma_chain_bound(k) == pytest.approx(float(k * u / (1 - k * u)), rel=1e-14)
    blocks = math.ceil(k / 16)
    for out, last in (("float32", Fraction(1, 2**23)), ("float16", Fraction(1, 2**11))):
        delta = Fraction(min(k, 16) + 1, 2**25) + last
        bound = tensor_core_bound(k, out_dtype=out)
        assert bound == pytest.approx(float((1 + delta) ** blocks - 1), rel=1e-12)
    delta = Fraction(min(k, 16) + 1, 2**25) + Fraction(1, 2**23)
    bound = tensor_core_bound(k, outside=True)
    assert bound == pytest.approx(float((1 + delta) * (1 + u) ** blocks - 1), rel=1e-12)


def test_bounds_hold_and_tell_the_orders_apart():
    """RN is far below its bound; RZ of positive numbers is biased, and comes close to it."""
    rng = np.random.default_rng(1)
    k = 1024
    a, b = np.abs(rng.standard_normal((2, 200, k))).astype(np.float16)
    exact = (a.astype(np.float64) * b).sum(axis=1)
    zero = np.float32(0)
    chain = fma_chain(a.astype(np.float32), b.astype(np.float32))
    inside = fused_dot_add(a, b, zero)
    outside = np.zeros(200, np.float32)
    for i in range(0, k, 16):
        outside += fused_dot_add(a[:, i : i + 16], b[:, i : i + 16], zero)
    errors = [np.max(np.abs(x - exact) / exact) for x in (chain, inside, outside)]
    bounds = [
        fma_chain_bound(k),
        tensor_core_bound(k),
        tensor_core_bound(k, outside=True),
    ]
    assert all(e <= b for e, b in zip(errors, bounds, strict=True))
    assert errors[2] < errors[1] / 4
    assert np.all(inside <= exact)  # toward zero, always
    assert fma_chain_bound(2**24) == np.inf


# ---------------------------------------------------------------------------------- splits and TCEC


@pytest.mark.parametrize(
    ("dtype", "scale"), [("float16", 2.0**11), ("float16", 1.0), ("tf32", 1.0), ("bfloat16", 1.0)]
)
def test_split_keeps_twice_the_precision_in_its_range(dtype, scale):
    rng = np.random.default_rng(2)
    least, largest = split_range(dtype, scale)
    p = FORMATS[dtype].precision
    exponents = rng.uniform(np.log2(least), np.log2(min(largest, 2.0**126)), 20000)
    x = (2.0**exponents * rng.choice([-1, 1], 20000)).astype(np.float32)
    x = x[(np.abs(x) >= least) & (np.abs(x) <= largest)]
    parts = split(x, dtype, scale)
    assert np.max(np.abs(parts.value - x) / np.abs(x)) <= 2.0 ** (-2 * p)
    encode(parts.high, dtype)
    encode(parts.low, dtype)
    # Half an octave below the range the promise is broken for some numbers.
    below = (least * rng.uniform(0.3, 0.5, 20000)).astype(np.float32)
    error = np.abs(split(below, dtype, scale).value - below) / below
    assert np.max(error) > 2.0 ** (-2 * p)


def test_scale_moves_the_low_part_into_range():
    assert split_range(scale=2.0**11)[0] == 2.0**-14
    assert split_range(scale=1.0)[0] == 2.0**-3
    assert split_range()[1] == 65504.0
    assert np.isinf(split(1e6).high)


@pytest.mark.parametrize("scale", [2.0**11, 1.0])
def test_both_parts_of_a_split_are_rounded_once(scale):
    """To nearest: float16 with ties to even, as NumPy does; TF32 with ties away from zero."""
    rng = np.random.default_rng(7)
    low_bits = rng.choice([0, 1, 0x0FFF, 0x1000, 0x1001, 0x1FFF], 20000) + (
        rng.integers(0, 2**10, 20000) << 13
    )
    x = np.ldexp(1 + low_bits / 2.0**23, rng.integers(-26, 16, 20000)).astype(np.float32)
    x = x[x < 65504] * rng.choice([-1, 1], np.count_nonzero(x < 65504)).astype(np.float32)
    parts = split(x, "float16", scale)
    assert np.array_equal(parts.high, x.astype(np.float16))
    rest = (x.astype(np.float64) - parts.high) * scale
    assert np.isfinite(parts.low).all()
    assert np.array_equal(parts.low, rest.astype(np.float16))

    def nearest_tf32(value: np.ndarray) -> np.ndarray:
        words = value.astype(np.float32).view(np.uint32)
        return ((words + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)

    parts = split(x, "tf32", scale)
    assert np.array_equal(parts.high, nearest_tf32(x))
    assert np.array_equal(parts.low, nearest_tf32((x.astype(np.float64) - parts.high) * scale))


def test_no_low_part_overflows_where_the_high_one_does_not():
    x = np.float32(65488)  # halfway between the two largest numbers of float16
    assert float(split(x).value) == 65488
    assert emulated_matmul([[x]], np.float32([[1]]))[0, 0] == 65488


def test_split_refuses():
    with pytest.raises(ValueError, match="dtype='float32': use one of float16, bfloat16, tf32"):
        split(1.0, "float32")
    with pytest.raises(ValueError, match="0.1 is not a float32 number"):
        split(0.1)


def operands(kind: str, k: int = 512) -> tuple:
    rng = np.random.default_rng(3)
    if kind == "normal":
        return rng.standard_normal((16, k), np.float32), rng.standard_normal((k, 16), np.float32)
    return rng.random((16, k), np.float32), rng.random((k, 16), np.float32)


def error(policy: Policy, a: np.ndarray, b: np.ndarray, arch: str = "sm_90") -> float:
    reference = a.astype(np.float64) @ b.astype(np.float64)
    return numerics.backward_error(emulated_matmul(a, b, policy, arch), reference, a, b)


@pytest.mark.parametrize("kind", ["normal", "uniform"])
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_order_of_the_policies(kind, arch):
    """Correction with RN outside reaches float32, Markidis does not, plain float16 is far off."""
    a, b = operands(kind)
    e = {name: error(policy, a, b, arch) for name, policy in POLICIES.items()}
    assert e["tcec_fp16"] < 2 * e["simt"]
    assert e["tcec_tf32"] < 2 * e["simt"]
    assert e["tcec_fp16"] < e["markidis"] / 2
    assert e["markidis"] < e["fp16"] / 5
    assert e["fp16"] < 2.0**-11


def test_each_part_of_the_newer_scheme_is_needed():
    a, b = operands("uniform")
    full = POLICIES["tcec_fp16"]
    small = (a * np.float32(2.0**-9), b * np.float32(2.0**-9))
    assert error(full, a, b) < error(Policy(outside=False), a, b) / 2
    assert error(full, *small) < error(Policy(scale=1.0), *small) / 2
    # What is left out does not matter here.
    assert error(full, a, b) == pytest.approx(error(Policy(products=4), a, b), rel=0.5)


def test_policies_agree_with_float64_where_all_is_exact():
    rng = np.random.default_rng(4)
    a = rng.integers(-2, 3, (5, 37)).astype(np.float32)
    b = rng.integers(-2, 3, (37, 3)).astype(np.float32)
    for policy in POLICIES.values():
        assert np.array_equal(emulated_matmul(a, b, policy), a @ b)


def test_exponent_range_of_the_float16_split():
    a = np.full((1, 16), 1e5, np.float32)
    assert not np.isfinite(emulated_matmul(a, a.T, POLICIES["tcec_fp16"])).any()
    assert error(POLICIES["tcec_tf32"], a, a.T) < 1e-6
    tiny = np.full((1, 16), 1.1e-6, np.float32)
    assert error(POLICIES["tcec_fp16"], tiny, tiny.T) > 1e-5
    assert error(POLICIES["tcec_tf32"], tiny, tiny.T) < 1e-6


def test_inputs_where_the_older_scheme_is_better():
    """(1 + d)(1 − d) − 1 = −d²: the product of the low parts, which the newer scheme leaves out."""
    d = np.float32(2.0**-12)
    a, b = np.float32([[1 + d, -1]]), np.float32([[1 - d], [1]])
    assert emulated_matmul(a, b, POLICIES["markidis"])[0, 0] == -(2.0**-24)
    assert emulated_matmul(a, b, POLICIES["tcec_fp16"])[0, 0] == 0.0
    assert error(POLICIES["markidis"], a, b) < error(POLICIES["tcec_fp16"], a, b)
    assert emulated_matmul(a, b, Policy(products=4))[0, 0] == -(2.0**-24)


def test_matmul_refuses():
    a = np.zeros((2, 3), np.float32)
    with pytest.raises(ValueError, match=r"A has shape \(2, 3\) and B \(2, 3\); use \(m, k\)"):
        emulated_matmul(a, a)
    with pytest.raises(ValueError, match="is not a float32 number"):
        emulated_matmul(np.full((2, 3), 0.1), a.T)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"products": 2}, "products=2: use 1, 3 or 4"),
        ({"scale": 1000.0}, "scale=1000.0 is not a power of two"),
        ({"scale": 0.0}, "scale=0.0 is not a power of two"),
        ({"instruction": "m16n8k16.f16.f16"}, "does not accumulate in float32"),
        ({"instruction": "fma"}, "instruction='fma' is not known"),
    ],
)
def test_policy_refuses(change, message):
    with pytest.raises(ValueError, match=message):
        Policy(**change)


def test_sum_of_fractions_is_the_reference():
    """The reference of `error` itself, in rational numbers."""
    a, b = operands("normal", 64)
    exact = sum(Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a[0], b[:, 0], strict=True))
    assert float(exact) == pytest.approx(
        float(a[0].astype(float) @ b[:, 0].astype(float)), rel=1e-13
    )


# ------------------------------------------------------------------------------------ running sums


@pytest.mark.parametrize("arch", ["sm_70", "sm_80", "sm_90"])
@pytest.mark.parametrize("way", numerics.ACCUMULATIONS)
def test_running_sums_stay_below_their_bound(way, arch):
    rng = np.random.default_rng(5)
    a, b = (np.abs(rng.standard_normal((30, 1024))).astype(np.float16) for _ in range(2))
    lengths = [16, 32, 96, 1024]
    sums = numerics.running_sums(a, b, lengths, way, arch=arch)
    products = a.astype(np.float64) * b
    for k, got in zip(lengths, sums, strict=True):
        exact = products[:, :k].sum(axis=1)
        assert np.max(np.abs(got - exact) / exact) <= numerics.accumulation(way).bound(k, arch=arch)
    assert sums.shape == (4, 30)


def test_running_sums_are_those_of_one_pass():
    rng = np.random.default_rng(6)
    a, b = (rng.standard_normal((5, 64)).astype(np.float16) for _ in range(2))
    sums = numerics.running_sums(a, b, [16, 64], "inside")
    assert np.array_equal(sums[-1], fused_dot_add(a, b, 0.0))
    chain = fma_chain(a.astype(np.float32), b.astype(np.float32))
    assert np.array_equal(numerics.running_sums(a, b, [3, 64], "cuda")[-1], chain)
    half = fused_dot_add(a, b, np.float16(0), out_dtype="float16")
    assert np.array_equal(numerics.running_sums(a, b, [16, 64], "float16")[-1], half)
    total = np.zeros(5, np.float32)
    for i in range(0, 64, 16):
        total += fused_dot_add(a[:, i : i + 16], b[:, i : i + 16], 0.0)
    assert np.array_equal(numerics.running_sums(a, b, [32, 64], "outside")[-1], total)


def test_running_sums_refuse():
    ones = np.ones(8, np.float16)
    with pytest.raises(ValueError, match=r"lengths=\[4, 4\] must ascend from 1 to at most 8"):
        numerics.running_sums(ones, ones, [4, 4], "inside")
    with pytest.raises(ValueError, match=r"lengths=\[9\] must ascend"):
        numerics.running_sums(ones, ones, [9], "inside")
    with pytest.raises(ValueError, match="accumulation='kahan' is not known; use one of cuda"):
        numerics.running_sums(ones, ones, [8], "kahan")
