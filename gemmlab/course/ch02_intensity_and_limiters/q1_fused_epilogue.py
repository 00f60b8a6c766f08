"""Exercise 02.1: bias, ReLU and residual in one kernel, judged by the bytes that it asks for."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gemmlab.course.judging import Diagnosis, Finding, Task, matrices
from gemmlab.course.judging import arrays_on_trial as trial
from gemmlab.simt import Report, cuda

# (rows, width, threads of a block), smallest first; the traffic of the last one is counted.
CASES = ((1, 1, 1), (2, 2, 4), (1, 5, 2), (3, 5, 4), (5, 3, 8), (7, 33, 32), (32, 64, 128))
_ROWS, _WIDTH, _ = CASES[-1]
FLOAT = np.dtype(np.float32).itemsize
BUDGET = 4  # elements for each element of Y: one of X, of bias and of R loaded, one of Y stored


def build_epilogue():
    """The kernel that computes Y ← max(0, X + bias) + R, row after row of bias.size elements."""

    def kernel(X, bias, R, Y):
        i = cuda.grid(1)
        # Where Y has an element i: all three steps, with nothing stored in between.
        # [answer]
        if i < Y.size:
            biased = X[i] + bias[i % bias.size]
            Y[i] = max(biased, 0) + R[i]
        # [end]

    return kernel


def judge(answer: Any) -> Finding:
    """Check values and hazards on every case and on one drawn anew; bytes of the largest."""
    rng = np.random.default_rng()
    anew = (int(rng.integers(8, 14)), int(rng.integers(15, 25)), 32)
    largest = trial.of_cases(partial(_one, answer), CASES, anew)
    return largest if isinstance(largest, Finding) else _traffic(*largest)


def _one(
    answer: Any, sizes: tuple[int, int, int], seed: int
) -> tuple[Report | None, Finding | None, str]:
    """Make one launch: its report, what is wrong with it, and the case in words."""
    rows, width, block = sizes
    rng = np.random.default_rng(seed)
    size = rows * width
    grid = -(-size // block)
    case = f"X is {rows}×{width}, blocks of {block} threads, as many as it takes: {grid}"
    # Whole numbers of both signs: every sum is exact.
    x, r = (rng.integers(-20, 20, size).astype(np.float32) for _ in range(2))
    bias = rng.permutation(np.arange(1, width + 1)).astype(np.float32)
    if size > 1:
        x[0], x[-1], r[-1] = -30, -30, -7  # so that max(0, …) has its say in every case but one
    y = np.full(size, np.nan, np.float32)
    expected = steps(x, bias, r)
    kernel = trial.Kernel(answer, ["X", "bias", "R", "Y"])
    report = trial.launch(kernel, (grid,), (block,), case, x, bias, r, y)
    if isinstance(report, Finding):
        return None, report, case
    found = trial.hazard(report, case) or trial.different("Y", expected, y, case)
    if found and found.diagnosis == "wrong-values":
        found = replace(found, diagnosis=_why(x, bias, r, y))
    return report, found, case


def steps(x: np.ndarray, bias: np.ndarray, r: np.ndarray) -> np.ndarray:
    """The result, by NumPy."""
    return np.maximum(x + np.resize(bias, x.size), 0) + r


def _why(x: np.ndarray, bias: np.ndarray, r: np.ndarray, y: np.ndarray) -> str:
    """Name the mistake that gives just this result, else the pattern of what is wrong."""
    across = np.resize(bias, x.size)
    instead = {
        "not-rectified": x + across + r,
        "rectified-too-late": np.maximum(x + across + r, 0),
        "rectified-too-early": np.maximum(x, 0) + across + r,
        "bias-dropped": np.maximum(x, 0) + r,
        "residual-dropped": np.maximum(x + across, 0),
        "rectified-the-wrong-way": np.minimum(x + across, 0) + r,
        "one-bias-for-all": np.maximum(x + bias[0], 0) + r,
        "bias-of-the-row": np.maximum(x + bias[np.arange(x.size) // bias.size % bias.size], 0) + r,
    }
    for diagnosis, result in instead.items():
        if np.array_equal(y, result):
            return diagnosis
    expected = steps(x, bias, r)
    if np.isnan(y[~(y == expected)]).all():
        return "not-written"
    return matrices.pattern(expected[None], y[None])


def _traffic(report: Report, case: str) -> Finding:
    """Whether each element moved once, with no stop in Y on the way, by all threads alike."""
    size, counters, shares = _ROWS * _WIDTH, report.counters, report.shares
    loaded, stored = counters["global_load_bytes"], counters["global_store_bytes"]
    budget = BUDGET * FLOAT * size
    atomic = counters["global_atomic_bytes"]  # read and written again
    again = int(shares.of("load", "Y").sum()) + atomic
    most = int(shares.of("store", "Y").max()) // FLOAT
    facts = (
        ("Values", f"right in all {len(CASES)} cases and in one drawn anew, with no hazard"),
        ("Case", case),
        ("Bytes that threads asked for", f"{loaded + stored:,} B; budget {budget:,} B"),
        ("Of these", f"{loaded:,} B loaded, {stored:,} B stored; {again:,} B of Y read again"),
        ("Stored by one thread", f"{most} elements at most; there is a thread for each"),
    )
    details = {"asked": loaded + stored, "budget": budget, "again": again, "stored": most}
    if again or stored > FLOAT * size:
        return Finding("through-memory", facts, details)
    if loaded + stored > budget:
        return Finding("loaded-again", facts, details)
    if most > 1:
        return Finding("few-threads-work", facts, details)
    return Finding("passed", facts, details)


TASK = Task(
    name="02.1",
    title="Three steps, one trip",
    section="chapter 02, What does a kernel cost that hardly computes?",
    asked="build_epilogue() returns a kernel (X, bias, R, Y) that computes "
    "Y ← max(0, X + bias) + R, each element moved once.",
    prompt=f"""
    What follows a product is its *epilogue*. Write one as a single kernel: add a bias, keep what is
    positive, add the residual R.

    $$ Y_i = \\max(0,\\; X_i + b_{{\\,i \\bmod w}}) + R_i $$

    X, R and Y lie in memory row after row, each row as long as the bias, $w$ = `bias.size`. The
    launch has a thread for each element, and a few more.

    The budget for {_ROWS} rows of {_WIDTH}: each thread loads one element of X, one of the bias and
    one of R, and stores one of Y. `q1.check(build_epilogue)` counts the bytes.
    """,
    judge=judge,
    answers=(build_epilogue,),
    diagnoses={
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "Which element of X, of the bias and of R does the thread of Y[i] need?",
            "```python\nif i < ...:\n    biased = X[i] + bias[...]\n    Y[i] = ...\n```",
        ),
        "through-memory": Diagnosis(
            "The result is right, but it stops in Y on the way: what was stored between two steps "
            "is loaded again by the next.",
            "Where does a value live between two statements if no array is named?",
            "```python\nbiased = X[i] + ...    # a variable: it stays in a register\n"
            "Y[i] = ...    # the only line that names Y[...]\n```",
        ),
        "loaded-again": Diagnosis(
            "The result is right, but elements are loaded that nobody needs, or more than once.",
            "How many different elements does one thread need, and how many does yours load?",
            "One of X, one of the bias, one of R: `bias[i % ...]`, with no loop.",
        ),
        "few-threads-work": Diagnosis(
            "The result is right, but some threads store several elements and others none.",
            "How many threads does the launch have, and how many elements has Y?",
            "```python\ni = cuda.grid(1)    # this thread's element, and no other\n```",
        ),
        "outside": Diagnosis(
            "A thread reads or writes beyond the end: the last block has threads too many, or the "
            "bias has fewer elements than X.",
            "How large may i be, and how large may an index into the bias be?",
            "```python\nif i < Y.size:\n    ... bias[i % ...] ...\n```",
        ),
        "two-writers": Diagnosis(
            "Two threads are in charge of the same element.",
            "Which of your threads stores the element that is named, beside its own?",
            "```python\nY[i] = ...    # i = cuda.grid(1), as it is\n```",
        ),
        "not-written": Diagnosis(
            "Some elements of Y are never stored.",
            "Which thread is in charge of the element that is named, and what stops it?",
            "```python\nif i < Y.size:\n    Y[i] = ...    # whatever the sign of the value\n```",
        ),
        "not-rectified": Diagnosis(
            "Negative sums stay negative: max(0, …) is left out.",
            "What should Y hold where X + bias is -3 and R is 5?",
            "```python\nY[i] = max(..., 0) + R[i]\n```",
        ),
        "rectified-too-late": Diagnosis(
            "max(0, …) covers the residual, too; R is added after it.",
            "What should Y hold where X + bias is -3 and R is -7?",
            "```python\nY[i] = max(X[i] + ..., 0) + ...\n```",
        ),
        "rectified-too-early": Diagnosis(
            "max(0, …) is taken of X alone; the bias belongs inside.",
            "What should Y hold where X is -3, the bias 5 and R 0?",
            "```python\nbiased = X[i] + ...\n... max(biased, 0) ...\n```",
        ),
        "rectified-the-wrong-way": Diagnosis(
            "What is negative is kept and what is positive is cut off.",
            "Which of min and max keeps a positive number when the other one is 0?",
            "```python\nY[i] = ...(biased, 0) + R[i]\n```",
        ),
        "bias-dropped": Diagnosis(
            "The bias is not added.",
            "Which of the four arrays does your line not name?",
            "```python\nbiased = X[i] + bias[...]\n```",
        ),
        "one-bias-for-all": Diagnosis(
            "Every element gets the first bias; each column has its own.",
            "Which column does element i stand in, if a row has bias.size elements?",
            "```python\nbias[i % ...]\n```",
        ),
        "bias-of-the-row": Diagnosis(
            "Each row gets one bias; it is each column that has its own.",
            "Do neighbours in X, i and i + 1, have the same bias?",
            "```python\nbias[i % ...]    # the column; i // ... would be the row\n```",
        ),
        "residual-dropped": Diagnosis(
            "R is not added.",
            "Which of the four arrays does your line not name?",
            "```python\nY[i] = max(biased, 0) + ...\n```",
        ),
    },
    praise="A value that stays in a register between two steps costs no bytes. For work that "
    "memory limits, the bytes are the time.",
)
