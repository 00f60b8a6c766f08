"""Checking a kernel's result: every element where that is cheap, random probes where it is not.

The float64 reference of a large problem takes minutes on a CPU. Products of the matrices with a few
vectors take a second: C·x = αA·(B·x) + βC₀·x (R. Freivalds, Probabilistic machines can use less
running time, IFIP Congress 1977). A large problem is judged by all of these:

exact : on operands of small whole numbers, which float32 adds without rounding, C·x must be exactly
    right for vectors of random whole numbers below 2^b. Each probe misses a wrong element with
    probability 2^-b at most; the number of bits b, 20 or the most that keeps every sum below 2^53,
    is in the text that `check` gives.
rows : the error of every element in a few random rows, in the measure of `Gemm.error`.
normal : on the operands themselves, with vectors x of N(0, 1): row i of C·x − (αA·(B·x) + βC₀·x) is
    N(0, |E_i|²) for E_i the errors of the row, and is measured in |α||A_i||B| + |β||C₀_i|, which is
    not less than the norm of what `tolerance` allows (Cauchy-Schwarz, Frobenius norm of B). Errors
    of more than ten times that escape all `PROBES` with probability (0.08)^PROBES at most; a kernel
    whose errors are an eighth of it fails with less than 1.3e-15 for each row and probe.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gemmlab import Tiling
from gemmlab.formats import from_memory, number_format, to_memory
from gemmlab.kernels.kernel import Kernel
from gemmlab.problem import Gemm, Operands

REFERENCE_FLOPS = 2 * 1024**3  # above this, random probes instead of the whole reference
PROBES = 4
ROWS = 32  # compared with the reference, element by element
PERIOD = 1_000_003  # whole numbers that are drawn, a prime: they repeat in no row or column
MOST_BITS = 20  # of the whole numbers in a probe
CHUNK = 1 << 22  # elements that are held in float64 at once


class Check(NamedTuple):
    """The largest error that was found, in the measure of `Gemm.error`, and how it was sought."""

    error: float
    how: str


def check(
    problem: Gemm, compute: Callable[[Gemm, Operands], np.ndarray], operands: Operands
) -> Check:
    """Judge what `compute`, a kernel, makes of `problem` and `operands`.

    compute : (problem, operands) -> C (m, n); it is called with `operands` last

    The error is infinite for a result with a NaN or an infinity, or that an exact probe exposes.
    """
    if problem.flops <= REFERENCE_FLOPS:
        return Check(problem.error(compute(problem, operands), operands), "every element, float64")
    rng = np.random.default_rng(1)
    trial = whole_trial(problem)
    bits = 0 if trial is None else probe_bits(trial)
    exact = True
    if bits:
        whole = whole_operands(trial, rng)
        exact = _exact(trial, compute(trial, whole), whole, bits, rng)
    result = compute(problem, operands)
    how = f"{PROBES} normal probes and {min(ROWS, problem.m)} rows, float64" + (
        f"; {PROBES} exact probes of {bits} bits on whole numbers" if bits else ""
    )
    finite = _by_rows(lambda part: np.isfinite(part).all(), result, problem.out_dtype)
    if not exact or not all(finite):
        return Check(np.inf, how)
    return Check(
        max(_normal(problem, result, operands, rng), _rows(problem, result, operands, rng)), how
    )


def whole_trial(problem: Gemm) -> Gemm | None:
    """Give `problem` whole α and β whose sums of whole numbers are exact; None if none are.

    α and β become 2 and −3 where they are not small whole numbers; 0 and 1 stay what they are.
    """
    small = {"alpha": (problem.alpha, 2.0), "beta": (problem.beta, -3.0)}
    trial = replace(
        problem,
        **{
            name: value if value.is_integer() and abs(value) <= 4 else other
            for name, (value, other) in small.items()
        },
    )
    sums = number_format(trial.accumulate), number_format(trial.out_dtype)
    held = min(1 / form.unit_roundoff for form in sums)
    return trial if _largest(trial) < held else None


def _largest(trial: Gemm) -> int:
    """Bound every partial sum of elements between −2 and 2: 4k·max(1, |α|) + 2|β|."""
    return int(4 * trial.k * max(1.0, abs(trial.alpha)) + 2 * abs(trial.beta))


def probe_bits(trial: Gemm) -> int:
    """Count the bits of a probe's numbers that keep every sum below 2^53, `MOST_BITS` at most."""
    return max(0, min(MOST_BITS, 52 - (trial.n * _largest(trial)).bit_length()))


def whole_operands(trial: Gemm, rng: np.random.Generator) -> Operands:
    """Make A, B and C of whole numbers between −2 and 2, drawn once and repeated."""
    drawn = (to_memory(rng.integers(-2, 3, PERIOD), form) for form in trial.formats)
    return Operands(*(np.resize(x, s) for x, s in zip(drawn, trial.shapes, strict=True)))


def _exact(
    trial: Gemm, result: np.ndarray, operands: Operands, bits: int, rng: np.random.Generator
) -> bool:
    """Say whether `result` has whole numbers in range alone and passes every probe to the bit."""
    most = _largest(trial)
    if not all(
        _by_rows(
            lambda part: (part == np.rint(part)).all() and (np.abs(part) <= most).all(),
            result,
            trial.out_dtype,
        )
    ):
        return False
    x = rng.integers(0, 1 << bits, (trial.n, PROBES)).astype(np.float64)
    return np.array_equal(_times(result, trial.out_dtype, x), _expected(trial, operands, x))


def _normal(
    problem: Gemm, result: np.ndarray, operands: Operands, rng: np.random.Generator
) -> float:
    """Find the largest error of C·x, relative to the norms of the rows."""
    x = rng.standard_normal((problem.n, PROBES))
    found = _times(result, problem.out_dtype, x)
    difference = np.abs(found - _expected(problem, operands, x)).max(axis=1)
    a, b, c = map(_row_norms, problem.oriented(operands), problem.formats)
    scale = abs(problem.alpha) * a * np.linalg.norm(b)
    if problem.beta != 0:
        scale += abs(problem.beta) * c
    # 0 / 0 is a right zero; anything else over a zero scale is wrong by infinitely much.
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.where(difference == 0, 0.0, difference / scale).max())


def _rows(problem: Gemm, result: np.ndarray, operands: Operands, rng: np.random.Generator) -> float:
    """Find `Gemm.error` of a few rows of the result."""
    rows = np.sort(rng.choice(problem.m, min(ROWS, problem.m), replace=False))
    a, b, c = problem.oriented(operands)
    part = replace(problem, m=len(rows), layout="nn")
    worst = 0.0
    columns = max(1, CHUNK // problem.k)
    for j in range(0, problem.n, columns):
        some = slice(j, j + columns)
        piece = Operands(a[rows], b[:, some], c[rows, some])
        worst = max(worst, replace(part, n=piece.b.shape[1]).error(result[rows, some], piece))
    return worst


def _expected(problem: Gemm, operands: Operands, x: np.ndarray) -> np.ndarray:
    """Compute αA·(B·x) + βC·x in float64, (m, probes)."""
    a, b, c = problem.oriented(operands)
    out = problem.alpha * _times(a, problem.dtype, _times(b, problem.dtype, x))
    return out + problem.beta * _times(c, problem.out_dtype, x) if problem.beta != 0 else out


def _times(matrix: np.ndarray, form: str, x: np.ndarray) -> np.ndarray:
    """Compute matrix·x in float64."""
    return np.concatenate(_by_rows(lambda part: part @ x, matrix, form))


def _row_norms(matrix: np.ndarray, form: str) -> np.ndarray:
    """Compute the Euclidean norm of each row in float64."""
    return np.concatenate(_by_rows(lambda part: np.linalg.norm(part, axis=1), matrix, form))


def _by_rows(function: Callable[[np.ndarray], Any], matrix: np.ndarray, form: str) -> list:
    """Call `function` with the numbers of each group of rows, in float64.

    A group fits in memory; several are converted at once, since that takes longer than the GPU
    takes to multiply.
    """

    def of(first: int) -> Any:
        return function(from_memory(matrix[first : first + rows], form).astype(np.float64))

    rows = max(1, CHUNK // matrix.shape[1])
    with ThreadPoolExecutor() as pool:
        return list(pool.map(of, range(0, len(matrix), rows)))


def workspace(kernel: Kernel, problem: Gemm, tiling: Tiling | None) -> tuple[np.ndarray, ...]:
    """Make the arrays that the launches of a kernel share, beside A, B and C.

    They hold NaN: a launch that reads more of them than was stored gives a wrong result.
    """
    stated = kernel.workspace(problem, tiling)
    return tuple(np.full(shape, to_memory(np.nan, dtype)) for shape, dtype in stated)
