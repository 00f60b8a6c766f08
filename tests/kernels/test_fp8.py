"""Bytes with scales: the emulator's bits, counted as predicted, sums taken out in time."""

from collections import Counter

import numpy as np
import pytest

from gemmlab import Gemm, Tiling, kernels, simulate
from gemmlab.formats import from_memory, round_to
from gemmlab.instructions import host
from gemmlab.kernels.tensor_core.fp8_scaled import DEPTH
from gemmlab.measure.backends import gpu
from gemmlab.numerics import fused_dot_add
from tests.support.rungs import predicted

SMALL, WIDE = (Tiling(block=(128, n, DEPTH), stages=2) for n in (128, 256))
MEASURING = pytest.mark.measuring  # what takes long beside another that shows the same


def product(m, n, k, dtype="float8_e4m3fn", out_dtype="float32", **more):
    return Gemm(m, n, k, dtype=dtype, out_dtype=out_dtype, layout="nt", **more)


def scales(problem):
    """Scales of rows and of columns."""
    rng = np.random.default_rng(1)
    return (rng.uniform(0.5, 2, size).astype(np.float32) for size in (problem.m, problem.n))


def right(problem, operands, rows, columns, fast):
    """What Tensor Cores and FP32 units give, in the format of C."""
    a, b = (from_memory(x, problem.dtype) for x in operands[:2])
    total, step = np.zeros((problem.m, problem.n), np.float32), problem.k if fast else DEPTH
    for p in range(0, problem.k, step):
        part = a[:, None, p : p + step], b[None, :, p : p + step]
        total += fused_dot_add(*part, np.zeros_like(total), dtype=problem.dtype)
    total *= rows[:, None] * columns
    return round_to(problem.scalars()[0] * total, problem.out_dtype)


CASES = [
    # Rows and columns beyond C, a part of a stage, and a block of a pair that has no tile.
    (product(72, 136, 160, out_dtype="bfloat16"), SMALL, False),
    pytest.param(product(72, 136, 160), WIDE, True, marks=MEASURING),
    pytest.param(product(72, 56, 144, "float8_e5m2", "float16", alpha=2), SMALL, False,
                 marks=MEASURING),
]  # fmt: skip


@pytest.mark.parametrize(("problem", "tiling", "fast"), CASES, ids=str)
def test_it_has_the_emulators_bits_and_counts_as_predicted(problem, tiling, fast):
    operands, (rows, columns) = problem.operands(3), scales(problem)
    kernel, c = kernels.with_scales(rows, columns, fast=fast), problem.poisoned(operands.c)
    kernel.check(tiling)
    (blocks, _), (threads, _) = kernel.configure(problem, tiling)
    alpha, beta = problem.scalars()
    report = simulate(
        kernel.function(problem, tiling), blocks, threads, alpha,
        *kernel.operands(problem, tiling, *operands[:2]), beta, *kernel.result(problem, tiling, c),
        cluster=kernel.cluster, shared_bytes=kernel.shared_bytes(problem, tiling),
    )  # fmt: skip
    found = from_memory(c, problem.out_dtype)
    assert np.array_equal(found, right(problem, operands, rows, columns, fast))
    assert Counter(report.counters) == Counter(
        {name: n for name, n in predicted(kernel, problem, tiling).items() if n}
    )


def test_sums_that_are_taken_out_in_time_have_a_smaller_error():
    """Along k = 4096, as in `right`: by norm, against float64; each within what is its bound."""
    rng, k, form = np.random.default_rng(2), 4096, "float8_e4m3fn"
    a, b = (round_to(rng.standard_normal((150, k)), form) for _ in range(2))
    a[:50], b[:50] = abs(a[:50]), abs(b[:50])  # sums that grow lose most
    products = a.astype(np.float64) * b
    exact, scale = products.sum(1), np.abs(products).sum(1)
    zero = np.zeros(len(a), np.float32)
    fast = fused_dot_add(a, b, zero, dtype=form)
    total = zero.copy()
    for p in range(0, k, DEPTH):
        total += fused_dot_add(a[:, p : p + DEPTH], b[:, p : p + DEPTH], zero, dtype=form)
    errors = [
        np.linalg.norm(x[50:] - exact[50:]) / np.linalg.norm(exact[50:]) for x in (fast, total)
    ]
    assert errors[1] < 2e-4 < 1e-3 < errors[0]
    problem = product(128, 256, k)
    in_time, at_the_end = (kernels.with_scales(fast=x).tolerance(problem) for x in (False, True))
    assert np.max(np.abs(total - exact) / scale) < in_time < 0.018
    assert in_time < np.max(np.abs(fast - exact) / scale) < at_the_end


def test_what_it_refuses():
    with pytest.raises(ValueError, match="128×n×128 with n one of 128, 192, two stages"):
        kernels.fp8_scaled.choose(WIDE)
    assert kernels.with_scales(fast=True).choose(WIDE) is WIDE
    with pytest.raises(ValueError, match="rows have 72 B along k and 256 B in C; use sizes with"):
        kernels.fp8_scaled.function(product(64, 64, 72), SMALL)
    with pytest.raises(ValueError, match="takes operands in layout nt, not nn"):
        kernels.fp8_scaled.check_problem(Gemm(64, 64, 64, dtype="float8_e5m2", out_dtype="float32"))


@pytest.mark.gpu
@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_a_gpu_has_the_emulators_bits(dtype, fast):
    problem = product(264, 520, 400, dtype, alpha=0.5)
    operands, (rows, columns) = problem.operands(3), scales(problem)
    there = map(host.cuda().to_device, (rows, columns))
    kernel = kernels.with_scales(*there, fast=fast)
    runner = gpu.Runner(kernel, problem, kernel.default, gpu.Matrices(problem))
    found = runner.compute(problem, operands)
    assert np.array_equal(found, right(problem, operands, rows, columns, fast))
