"""Whole products made of warp instructions: what they are, and how good."""

import numpy as np
import pytest

from benchmarks.hardware.check import bits
from benchmarks.hardware.probes import products
from gemmlab import numerics
from tests.support.chained import chained


def simulated(name):
    return products.simulated(products.gemms()[name])


def same_bits(x, y):
    assert x.dtype == y.dtype
    assert np.array_equal(bits(x), bits(y))


@pytest.mark.parametrize(
    ("name", "instruction"),
    [
        ("pipelined", "m16n8k16.f32.f16"),
        ("in_half", "m16n8k16.f16.f16"),
        ("by_wmma", "m16n8k16.f32.f16"),
    ],
)
def test_the_simulator_has_the_bits_of_the_emulator(name, instruction):
    a, b, c = products.gemms()[name].operands
    start = c.copy() if name == "by_wmma" else np.zeros_like(c)
    same_bits(simulated(name), chained(a, b, start, instruction))


def test_three_products_of_parts_are_as_good_as_float32():
    a, b, _ = products.gemms()["corrected"].operands
    exact = a.astype(float) @ b.T.astype(float)
    scale = np.abs(a).astype(float) @ np.abs(b.T)
    half_a, half_b = (x.astype(np.float16).astype(float) for x in (a, b))
    single = numerics.fma_chain(a[:, None], b[None])
    worst = {
        name: float((np.abs(c - exact) / scale).max())
        for name, c in (
            ("parts", simulated("corrected")), ("float32", single), ("float16", half_a @ half_b.T)
        )
    }  # fmt: skip
    assert worst["parts"] < worst["float32"]
    assert worst["parts"] < 1e-3 * worst["float16"]
