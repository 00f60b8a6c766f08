"""Splits and products with error correction."""

from fractions import Fraction

import numpy as np
import pytest

from gemmlab import numerics
from gemmlab.numerics import (
    FORMATS,
    POLICIES,
    Policy,
    emulated_matmul,
    encode,
    split,
    split_range,
)


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
