"""The answers of chapter 11, found another way: by bits, and by sums of whole numbers."""

import math

import numpy as np
import pytest
from numpy import float16, float32

from gemmlab.course.ch11_number_formats import guesses as answers
from tests.support.integer_sums import ONE, on_cuda_cores, on_hopper


def bfloat16(x):
    """The numbers of float64 in [1, 2), cut to seven fraction bits."""
    return (x.view(np.uint64) & ~np.uint64((1 << 45) - 1)).view(np.float64)


def test_largest():
    assert answers.largest().number == float(np.uint16(0b0_11110_1111111111).view(float16))


def test_whole():
    words = np.arange(1000, dtype=float32).view(np.uint32)
    missing = np.flatnonzero(words & 0xFFFF)  # bfloat16 is the upper half of float32
    assert answers.whole().number == missing[0] - 1


def test_mean():
    x = np.random.default_rng(0).uniform(1, 2, 10**6)
    assert answers.mean().number == pytest.approx(128 * (bfloat16(x) - x).mean())


def test_bits():
    odd = np.arange(1, 2**11, 2)  # the significands whose last bit counts
    assert answers.bits().number == int(np.outer(odd, odd).max()).bit_length()


PRODUCTS = float16([1, 1]), float16([2**-13, 2**-13])
GAP = 2.0**-12  # of float32 from 2048 on


def test_cuda():
    total = float32(2048)
    for product in (2**-13, 2**-13):
        total += float32(product)
    assert answers.cuda().number == (float(total) - 2048) / GAP
    assert answers.cuda().number == (on_cuda_cores(*PRODUCTS, 2048 * ONE) / ONE - 2048) / GAP


def test_hopper():
    total, _, _ = on_hopper(*PRODUCTS, 2048 * ONE)
    assert answers.hopper().number == (total / ONE - 2048) / GAP


def positive():
    rng = np.random.default_rng(2)
    return [np.abs(rng.standard_normal((64, 4096))).astype(float16) for _ in range(2)]


def test_growth():
    a, b = positive()
    exact = (a.astype(float) * b).sum(axis=1)
    core, cuda = (
        np.abs(s / ONE / exact - 1).max() for s in (on_hopper(a, b)[0], on_cuda_cores(a, b))
    )
    assert answers.growth().number == pytest.approx(core / cuda)


def test_share():
    """By hand: a block cuts 8 units of the sum before it, and rounds off 1.5 of its own sum."""
    a, b = positive()
    cut = rounded = 0.0
    for row in a.astype(float) * b:
        ends = [math.fsum(row[: 16 * (i + 1)]) for i in range(len(row) // 16)]
        units = [2.0 ** (math.frexp(end)[1] - 1 - 25) for end in ends]
        cut += 8 * sum(units[:-1]) / ends[-1]
        rounded += 1.5 * sum(units) / ends[-1]
    assert answers.share().number == pytest.approx(cut / rounded)
    _, was_cut, was_rounded = on_hopper(a, b)
    assert answers.share().near(was_cut.sum() / was_rounded.sum(), answers.share().number)


def test_overflow():
    with np.errstate(over="ignore"):
        infinite = np.isinf(np.arange(65504, 65536).astype(float16))
        first = 65504 + int(infinite.argmax())
        assert not np.isinf(float16(math.nextafter(first, 0)))
    assert answers.overflow().number == first


def test_finite():
    half = [float(x) for x in (float16(60000), float16(1e-8))]
    far = 2.0**100
    with np.errstate(over="ignore"):
        results = [
            float32(float16(70000)),
            float32(half[0] * half[0]),
            float16(half[0] + half[0]),
            float32(half[1] * 10000),
            float32(far * 2.0**90 - far * 2.0**90),
            float32(far * 2.0**27 + far * 2.0**27),
        ]
    assert answers.finite().number == np.isfinite(np.array(results, float)).sum()


def test_eight():
    """In whole units, by floor: all numbers are positive."""
    _, (a, b) = answers._in_bytes()
    exact = (a.astype(float) * b).sum(axis=1)
    top = np.frexp(a.astype(float))[1] + np.frexp(b.astype(float))[1] - 2
    total = np.zeros(len(a))
    for start in range(0, 4096, 32):
        part = slice(start, start + 32)
        largest = np.maximum(top[:, part].max(axis=1), np.frexp(total)[1] - 1)
        unit = np.ldexp(1.0, largest - 13)
        products = a[:, part].astype(float) * b[:, part]
        total = np.floor(total / unit) + np.floor(products / unit[:, None]).sum(axis=1)
        total *= unit
        place = np.ldexp(1.0, np.frexp(total)[1] - 14)
        total = np.floor(total / place) * place
    assert answers.eight().number == pytest.approx(100 * (1 - total / exact).mean(), rel=1e-12)
