"""The answers of chapter 12, found another way: in float16, by sums and by counts."""

import numpy as np
import pytest

from gemmlab import Gemm, Tiling, kernels, run
from gemmlab.course.ch12_tcec import guesses as answers
from gemmlab.numerics import fma_chain, running_sums


def numbers(k, positive=False):
    """The chapter's operands, in float32."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((8, k)), rng.standard_normal((k, 8))
    if positive:
        a, b = np.abs(a), np.abs(b)
    return a.astype(np.float32), b.astype(np.float32)


def by_norm(c, a, b):
    exact = a.astype(float) @ b
    return np.linalg.norm(c - exact) / np.linalg.norm(exact)


def in_fp32(a, b):
    return fma_chain(a[:, None], b.T[None])


def halves(x):
    high = x.astype(np.float16)
    return high, (x - high.astype(np.float32)).astype(np.float16)


def test_limit():
    assert answers.limit().number == pytest.approx(989.4 / 3 / 66.9, abs=0.05)


def test_rounded():
    a, b = numbers(1024)
    rounded = a.astype(np.float16).astype(float) @ b.astype(np.float16).astype(float)
    times = by_norm(rounded, a, b) / by_norm(in_fp32(a, b), a, b)
    assert answers.rounded().number == pytest.approx(times, rel=0.01)  # the sums hardly count


def test_naive():
    a, b = numbers(1024, positive=True)
    (ah, al), (bh, bl) = halves(a), halves(b)
    left = [x.reshape(8, -1, 16) for x in (al, al, ah, ah)]  # four products after each other
    right = [x.T.reshape(8, -1, 16) for x in (bl, bh, bl, bh)]
    order = (np.stack(left, 2).reshape(8, -1), np.stack(right, 2).reshape(8, -1))
    (total,) = running_sums(order[0][:, None], order[1][None], [4096], "inside")
    times = by_norm(total, a, b) / by_norm(in_fp32(a, b), a, b)
    assert answers.naive().number == pytest.approx(times, rel=1e-6)


def test_inside():
    a, b = numbers(1024, positive=True)
    (ah, _), (bh, _) = halves(a), halves(b)
    (main,) = running_sums(ah[:, None], bh.T[None], [1024], "inside")
    ah, bh = ah.astype(float), bh.astype(float)
    corrections = ((a - ah) @ bh + ah @ (b - bh)).astype(np.float32)
    outside = np.zeros((8, 8), np.float32)  # of parts to nearest
    for p in range(0, 1024, 16):
        outside += (ah[:, p : p + 16] @ bh[p : p + 16]).astype(np.float32)
    wrong = [by_norm(total + corrections, a, b) for total in (main, outside)]
    assert answers.inside().number == pytest.approx(wrong[0] / wrong[1], rel=0.1)


def test_lowest():
    x = (1 + np.arange(2**13) * 2.0**-13 + 2.0**-23).astype(np.float32)  # each low part there is
    high, low = halves(x)
    worst = float(np.abs(low.astype(float) / high).max())
    assert 2.0 ** -(answers.lowest().number + 1) < worst**2 <= 2.0 ** -answers.lowest().number


def test_flush():
    a, b = numbers(4096)
    (ah, al), (bh, bl) = halves(a), halves(b)
    ah, al, bh, bl = (x.astype(float) for x in (ah, al, bh, bl))
    corrections = al @ bh + ah @ bl
    errors = {}
    for every in (1, 2, 4, 8, 16, 32, 64):
        rows = ah.astype(np.float16).reshape(8, 1, -1, 16 * every)
        columns = bh.astype(np.float16).T.reshape(1, 8, -1, 16 * every)
        (parts,) = running_sums(rows, columns, [16 * every], "inside")
        total = np.zeros((8, 8), np.float32)
        for part in np.moveaxis(parts, -1, 0):
            total += part.astype(np.float32)
        errors[every] = by_norm((total + corrections).astype(np.float32), a, b)
    assert min(errors, key=errors.get) == answers.flush().number


def test_tiny():
    rng = np.random.default_rng(1)

    def worst(exponent):
        x = (rng.uniform(1, 2, 4000) * 2.0**exponent).astype(np.float32)
        high, low = halves(x)
        return np.abs((high.astype(float) + low - x) / x).max()

    e = answers.tiny().number
    assert worst(e) <= 2.0**-22
    assert worst(e - 1) > 2.0**-22


def test_footprint():
    counted = []
    for kernel in (kernels.tcec_stored, kernels.tcec_registers):
        stages = kernel.default.stages
        tiling = Tiling((64, 64, 32), warp=(32, 32), thread=(4, 8), stages=stages)
        short, long = (run(kernel, Gemm(64, 64, k), "simulator", tiling=tiling) for k in (32, 64))
        ways = ("shared_load_wavefronts", "shared_store_wavefronts")
        counted.append(sum(long.counters[way] - short.counters[way] for way in ways))
    assert answers.footprint().number == counted[0] / counted[1]


def test_memory():
    assert answers.memory().number == round(4 * 8192 * 8192 * 2 / 1e6)
