"""Error measures, the bounds of errors, and running sums."""

import math
from fractions import Fraction

import numpy as np
import pytest

from gemmlab import numerics
from gemmlab.numerics import (
    fma_chain,
    fma_chain_bound,
    fused_dot_add,
    tensor_core_bound,
)

# ------------------------------------------------------------------------------------------- errors


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


# ------------------------------------------------------------------------------------- running sums


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
