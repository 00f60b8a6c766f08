"""Whole products made of warp instructions: the simulator's bits are those of an H200."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent / "hardware"))

import warp_gemms
from chained import chained

from gemmlab import numerics

NAMES = tuple(warp_gemms.gemms())
every = pytest.mark.parametrize("name", NAMES)


def simulated(name):
    return warp_gemms.simulated(warp_gemms.gemms()[name])


def same_bits(x, y):
    assert x.dtype == y.dtype
    assert x.shape == y.shape
    unsigned = f"u{x.itemsize}"
    assert np.array_equal(x.view(unsigned), y.view(unsigned))


@every
def test_the_simulator_has_the_bits_of_the_hardware(name):
    with np.load(warp_gemms.STORED) as stored:
        assert set(stored.files) == {"about", *NAMES}
        same_bits(simulated(name), stored[name])


@pytest.mark.gpu
@every
def test_this_gpu_has_the_bits_of_the_simulator(name):
    same_bits(warp_gemms.on_gpu(warp_gemms.gemms()[name]), simulated(name))


@pytest.mark.parametrize(
    ("name", "instruction"),
    [
        ("pipelined", "m16n8k16.f32.f16"),
        ("in_half", "m16n8k16.f16.f16"),
        ("by_wmma", "m16n8k16.f32.f16"),
    ],
)
def test_the_simulator_has_the_bits_of_the_emulator(name, instruction):
    a, b, c = warp_gemms.gemms()[name].operands
    start = c.copy() if name == "by_wmma" else np.zeros_like(c)
    same_bits(simulated(name), chained(a, b, start, instruction))


def test_three_products_of_parts_are_as_good_as_float32():
    a, b, _ = warp_gemms.gemms()["corrected"].operands
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
