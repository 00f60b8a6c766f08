"""Matrix instructions: each element is one dot product, on the architectures that have it."""

from fractions import Fraction

import numpy as np
import pytest

from gemmlab.numerics import (
    MMAS,
    TENSOR_CORES,
    fused_dot_add,
    mma,
    round_to,
)


@pytest.mark.parametrize("name", MMAS)
def test_mma_is_one_dot_product_for_each_element(name):
    i = MMAS[name]
    arch = i.last or "sm_90"
    rng = np.random.default_rng(3)
    a = round_to(rng.standard_normal((2, i.m, i.k)), i.dtype)
    b = round_to(rng.standard_normal((2, i.k, i.n)), i.dtype)
    c = round_to(rng.standard_normal((2, i.m, i.n)), i.out_dtype)
    d = mma(a, b, c, name, arch)
    assert d.shape == (2, i.m, i.n)
    vectors = a[1, 3], b[1, :, 5], c[1, 3, 5]
    assert d[1, 3, 5] == fused_dot_add(*vectors, dtype=i.dtype, out_dtype=i.out_dtype, arch=arch)


# The least architecture of each, typed a second time: PTX ISA 9.0, "mma" and "wmma.mma".
LEAST = {"m8n8k4": 70, "wmma.m16n16k16": 70, "m16n8k8.f32.f16": 75, "m16n8k8.f16.f16": 75}


@pytest.mark.parametrize("arch", TENSOR_CORES)
@pytest.mark.parametrize("name", MMAS)
def test_runs_from_its_least_architecture_on(name, arch):
    """On Tensor Cores; but m8n8k4 only Volta's and Turing's have."""
    i, number = MMAS[name], int(arch.removeprefix("sm_"))
    least = next((v for start, v in LEAST.items() if name.startswith(start)), 80)
    rng = np.random.default_rng(9)
    a, b = (round_to(rng.standard_normal(s), i.dtype) for s in ((i.m, i.k), (i.k, i.n)))
    c = round_to(rng.standard_normal((i.m, i.n)), i.out_dtype)
    if number < least:
        with pytest.raises(
            ValueError, match=f"{name} needs sm_{least} or newer, not arch='{arch}'"
        ):
            mma(a, b, c, name, arch)
        return
    core = fused_dot_add(a[:, None], b.T[None], c, dtype=i.dtype, out_dtype=i.out_dtype, arch=arch)
    if not name.startswith("m8n8k4") or number <= 75:
        assert np.array_equal(mma(a, b, c, name, arch), core)


def to_float32(x: Fraction) -> Fraction:
    """Rounded to nearest; x has no more bits than a float64 or is far from a tie."""
    return Fraction(float(np.float32(float(x))))


@pytest.mark.parametrize("out", ["float32", "float16"])
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_m8n8k4_runs_on_cuda_cores_where_tensor_cores_have_lost_it(arch, out):
    """Sums are rounded to nearest, in the order that the compiled code has."""
    name = "m8n8k4.f32.f16" if out == "float32" else "m8n8k4.f16.f16"
    rng = np.random.default_rng(8)
    a = rng.standard_normal((50, 8, 4)).astype(np.float16)
    b = rng.standard_normal((50, 4, 8)).astype(np.float16)
    c = rng.standard_normal((50, 8, 8)).astype(out)
    d = mma(a, b, c, name, arch)
    assert d.dtype == np.dtype(out)
    for at in ((0, 0, 0), (7, 3, 5), (49, 7, 7)):
        t, i, j = at
        p = [
            Fraction(float(x)) * Fraction(float(y))
            for x, y in zip(a[t, i], b[t, :, j], strict=True)
        ]
        start = Fraction(float(c[at]))
        if out == "float32":
            total = Fraction(0)
            for product in p:
                total = to_float32(total + product)
            total += start
        else:
            total = to_float32(start + to_float32(p[0] + p[1])) + to_float32(p[2] + p[3])
        assert d[at] == np.dtype(out).type(np.float32(float(total)))
    core = fused_dot_add(
        a[:, :, None, :], np.swapaxes(b, 1, 2)[:, None], c, arch=arch, out_dtype=out
    )
    assert out == "float16" or (core != d).any()


def test_special_values_of_m8n8k4_on_cuda_cores():
    a, b, c = (
        np.zeros((8, 4), np.float16),
        np.zeros((4, 8), np.float16),
        np.zeros((8, 8), np.float32),
    )
    a[0, 0], b[0, 0], c[1], c[2] = np.inf, 1, np.nan, -0.0
    d = mma(a, b, c, "m8n8k4.f32.f16", "sm_90").view(np.uint32)
    assert d[0, 0] == 0x7F800000
    assert (d[0, 1:] == 0x7FFFFFFF).all()  # infinity times zero
    assert (d[1] == 0x7FFFFFFF).all()
    assert (d[2:] == 0).all()  # −0 and the +0 of the chain
    half = mma(a, b, c.astype(np.float16), "m8n8k4.f16.f16", "sm_90").view(np.uint16)
    assert (half[1] == 0x7FFF).all()
    zero = mma(
        -np.abs(a[1:2].repeat(8, 0)),
        np.abs(b[:, 1:2].repeat(8, 1)),
        np.full((8, 8), -0.0),
        "m8n8k4.f16.f16",
        "sm_90",
    )
    assert (zero.view(np.uint16) == 0x8000).all()  # nothing but −0


def test_mma_refuses():
    a, b, c = np.zeros((16, 16)), np.zeros((16, 8)), np.zeros((16, 8))
    with pytest.raises(
        ValueError, match=r"m16n8k16.f32.f16 needs sm_80 or newer, not arch='sm_75'"
    ):
        mma(a, b, c, "m16n8k16.f32.f16", "sm_75")
    with pytest.raises(ValueError, match=r"A has shape \(16, 8\); m16n8k16.f32.f16 needs"):
        mma(a[:, :8], b, c)
    with pytest.raises(ValueError, match="instruction='m16n8k32' is not known; use one of m8n8k4"):
        mma(a, b, c, "m16n8k32")
