"""The check of large results: right kernels pass, one wrong element is found."""

from dataclasses import replace

import numpy as np
import pytest

from gemmlab import Gemm
from gemmlab.formats import round_to, to_memory
from gemmlab.measure.backends import checking
from gemmlab.measure.backends.checking import check
from gemmlab.problem import LAYOUTS

PROBLEM = Gemm(300, 260, 130, alpha=0.5, beta=-1.7)


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch):
    monkeypatch.setattr(checking, "REFERENCE_FLOPS", 0)
    monkeypatch.setattr(checking, "CHUNK", 5000)  # several parts of each matrix


def blas(problem, operands):
    """What a right kernel makes of it, in the problem's own format."""
    (alpha, beta), (a, b, c) = problem.scalars(), problem.oriented(operands)
    out = alpha * (a @ b)
    return out + beta * c if problem.beta else out


def spoilt(change):
    """A kernel that is right but for `change`, made in place to its result."""

    def compute(problem, operands):
        out = blas(problem, operands)
        change(out)
        return out

    return compute


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("scalars", [(1.0, 0.0), (0.5, -1.7), (-3.0, 2.0), (0.0, 1.0)])
def test_right_results_pass(layout, scalars):
    alpha, beta = scalars
    problem = replace(PROBLEM, alpha=alpha, beta=beta, layout=layout)
    error, how = check(problem, blas, problem.operands())
    assert error <= problem.tolerance
    assert how == (
        "4 normal probes and 32 rows, float64; 4 exact probes of 20 bits on whole numbers"
    )


def test_c_is_not_read_for_beta_zero():
    problem = replace(PROBLEM, beta=0.0)
    a, b, c = problem.operands()
    c[:] = np.nan
    assert check(problem, blas, (a, b, c)).error <= problem.tolerance


def test_small_problems_are_compared_element_by_element(monkeypatch):
    monkeypatch.setattr(checking, "REFERENCE_FLOPS", PROBLEM.flops)
    operands = PROBLEM.operands()
    error, how = check(PROBLEM, blas, operands)
    assert error == PROBLEM.error(blas(PROBLEM, operands), operands)
    assert how == "every element, float64"


def test_the_kernel_sees_the_operands_themselves_last():
    seen = []

    def compute(problem, operands):
        seen.append(operands)
        return blas(problem, operands)

    operands = PROBLEM.operands()
    check(PROBLEM, compute, operands)
    assert seen[-1] is operands
    assert len(seen) == 2


@pytest.mark.parametrize("where", [(0, 0), (299, 259), (123, 77)])
@pytest.mark.parametrize("by", [1, -1, 0.5, 2.0**-12])
def test_one_element_that_is_slightly_wrong_is_found(where, by):
    def change(out):
        out[where] += by

    assert check(PROBLEM, spoilt(change), PROBLEM.operands()).error == np.inf


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_result_that_is_not_finite_always_fails(value):
    def change(out):
        out[-1, -1] = value

    for problem in (PROBLEM, replace(PROBLEM, dtype="float16")):
        assert check(problem, spoilt(change), problem.operands()).error == np.inf


def a_term_less(problem, operands):
    a, b, c = operands
    return blas(replace(problem, k=problem.k - 1), (a[:, :-1], b[:-1], c))


def rows_swapped(problem, operands):
    return blas(problem, operands)[[1, 0, *range(2, problem.m)]]


def beta_dropped(problem, operands):
    return blas(replace(problem, beta=0.0), operands)


def a_tile_left_out(problem, operands):
    out = blas(problem, operands)
    out[64:80, 96:112] = 0
    return out


def the_first_row_everywhere(problem, operands):
    return np.repeat(blas(problem, operands)[:1], problem.m, axis=0)


@pytest.mark.parametrize(
    "wrong",
    [a_term_less, rows_swapped, beta_dropped, a_tile_left_out, the_first_row_everywhere],
    ids=lambda f: f.__name__,
)
def test_wrong_kernels_are_found(wrong):
    assert check(PROBLEM, wrong, PROBLEM.operands()).error == np.inf


def test_normal_probes_find_what_whole_numbers_hide():
    """Ten bits of the significand are enough for small whole numbers, not for others."""

    def coarse(problem, operands):
        a, b, c = (x.astype(np.float16).astype(np.float32) for x in operands)
        return blas(problem, (a, b, c))

    error = check(PROBLEM, coarse, PROBLEM.operands()).error
    assert PROBLEM.tolerance < error < 1


def test_normal_probes_alone_find_a_wrong_row(monkeypatch):
    """Outside the rows that are compared element by element, and without whole numbers."""
    monkeypatch.setattr(checking, "whole_trial", lambda problem: None)
    monkeypatch.setattr(checking, "_rows", lambda *arguments: 0.0)

    def change(out):
        out[200] *= 1.01

    error, how = check(PROBLEM, spoilt(change), PROBLEM.operands())
    assert PROBLEM.tolerance < error < np.inf
    assert how == "4 normal probes and 32 rows, float64"


def test_the_error_is_that_of_the_compared_rows():
    problem = replace(PROBLEM, m=20)  # all of them
    operands = problem.operands()
    whole = problem.error(blas(problem, operands), operands)
    assert check(problem, blas, operands).error == pytest.approx(whole)


def test_formats_that_round_whole_numbers_are_not_probed_with_them():
    problem = replace(PROBLEM, dtype="float16", out_dtype="float16")
    assert "exact" in check(replace(problem, k=8), blas, replace(problem, k=8).operands()).how

    def summed_in_float32(problem, operands):
        wide = [x.astype(np.float32) for x in operands]
        return blas(replace(problem, dtype="float32", out_dtype="float32"), wide).astype(np.float16)

    problem = replace(problem, k=1000)
    error, how = check(problem, summed_in_float32, problem.operands())
    assert error <= problem.tolerance
    assert "exact" not in how


FORMATS = [
    ("float16", "bfloat16"),
    ("float16", "float16"),
    ("bfloat16", "float32"),
    ("bfloat16", "bfloat16"),
    ("float32", "bfloat16"),
    ("tf32", "float32"),
]


@pytest.mark.parametrize("k", [8, 1300], ids=["exact probes too", "normal probes alone"])
@pytest.mark.parametrize(("dtype", "out"), FORMATS)
def test_every_format_of_operands_and_results(dtype, out, k):
    """Where the sums of whole numbers fit into the format of C, one wrong element is found."""
    problem = replace(PROBLEM, k=k, dtype=dtype, accumulate="float32", out_dtype=out)

    def rounded(problem, operands, factor=1.0):
        result = problem.reference(operands)
        result[123] *= factor
        return to_memory(round_to(result, out), out)

    error, how = check(problem, rounded, problem.operands())
    assert error <= problem.tolerance
    assert ("exact" in how) == (k == 8 or out == "float32")

    def wrong(problem, operands):
        return rounded(problem, operands, factor=1.5)

    assert check(problem, wrong, problem.operands()).error > problem.tolerance


def test_whole_numbers_are_drawn_in_the_format_and_sums_fit_the_narrowest():
    for dtype, out in FORMATS:
        trial = Gemm(40, 50, 8, dtype=dtype, out_dtype=out)
        whole = checking.whole_operands(trial, np.random.default_rng(1))
        trial.check_operands(whole)
        assert all(set(np.unique(x)) == {-2, -1, 0, 1, 2} for x in trial.values(whole))
    for accumulate, out, fits in (
        *[("float32", "float32", True), ("float16", "float32", False)],
        *[("float32", "float16", False), ("float32", "bfloat16", False)],
    ):
        trial = Gemm(8, 8, 1000, dtype="float16", accumulate=accumulate, out_dtype=out)
        assert (checking.whole_trial(trial) is not None) == fits


def test_sums_of_probes_stay_exact():
    for n in (1, 256, 16384, 1 << 22):
        for k in (1, 16384, 1 << 20):
            trial = checking.whole_trial(Gemm(1, n, k, alpha=-4, beta=4))
            largest = 16 * k + 8
            if trial is None:
                assert largest >= 1 << 24
                continue
            bits = checking.probe_bits(trial)
            assert bits == 20 or n * largest << (bits + 2) > 1 << 53
            assert n * largest << bits <= 1 << 53


def test_whole_scalars_replace_others_and_keep_zero_and_one():
    trial = checking.whole_trial(Gemm(8, 8, 8, alpha=0.3, beta=1e9))
    assert (trial.alpha, trial.beta) == (2.0, -3.0)
    trial = checking.whole_trial(Gemm(8, 8, 8, alpha=1.0, beta=0.0))
    assert (trial.alpha, trial.beta) == (1.0, 0.0)
