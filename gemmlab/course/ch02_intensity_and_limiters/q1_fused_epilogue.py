"""Exercise 02.1: bias, ReLU and residual in one kernel, judged by the bytes that it asks for."""

from dataclasses import replace
from typing import Any

import numpy as np

from gemmlab.course.judging import (
    Diagnosis,
    Finding,
    Task,
    arrays_on_trial as trial,
    drawing,
    matrices,
    timed,
)
from gemmlab.course.judging.launches import Launch
from gemmlab.device import RECORDED, device
from gemmlab.model.transactions import SECTOR
from gemmlab.simt import Report, cuda
from gemmlab.tiling import WARP

# (rows, width, threads of a block), smallest first; the traffic of the last one is counted.
CASES = ((1, 1, 1), (2, 2, 4), (1, 5, 2), (3, 5, 4), (5, 3, 8), (7, 33, 32), (32, 64, 128))
_ROWS, _WIDTH, _ = CASES[-1]
FLOAT = np.dtype(np.float32).itemsize
BUDGET = 4  # elements for each element of Y: one of X, of bias and of R loaded, one of Y stored
SPARE = 1.01  # times the bytes and sectors may be asked for: one print of an element is free
IN_TURNS = 1.75  # times as many requests: more than branches for both signs of a sum make
PARAMETERS = ["X", "bias", "R", "Y"]
FINE = 100  # elements, from which on cases have numbers of 18 bits that end in 1/32


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


def _example() -> Launch:
    """A launch that keeps an H200 busy."""
    x, r, y = (np.zeros(1 << 24, np.float32) for _ in range(3))
    return Launch((), (1 << 16,), (256,), (x, np.zeros(1 << 12, np.float32), r, y))


EXAMPLE = timed.Example(
    PARAMETERS,
    _example,
    "4096 rows of 4096",
    3 * FLOAT * (1 << 24) / device(RECORDED).dram_bandwidth,
)


def judge(answer: Any) -> Finding:
    """Check values and hazards on every case, the traffic of the largest, and cases drawn anew."""
    arrays = trial.Arrays(answer, PARAMETERS, _launch, _wrong)
    largest = arrays.first_wrong(CASES)
    found = largest if isinstance(largest, Finding) else _traffic(*largest)
    if found.diagnosis == "passed":
        found = arrays.wrong_anew(_drawn_anew()) or found
    return timed.beside(found, answer, build_epilogue, EXAMPLE)


def _drawn_anew() -> list[tuple[int, int, int]]:
    """Sizes beyond those of all cases: in both directions, then in one alone."""
    rng = drawing.generator()
    rows, width, long, high, narrow = (
        int(rng.integers(least, 3 * least // 2)) for least in (150, 150, 40_000, 20_000, 2)
    )
    return [(rows, width, 128), (1, long, 128), (high, narrow, 64)]


def _launch(sizes: tuple[int, int, int], rng: np.random.Generator) -> tuple[str, Launch]:
    """A case in words, and its launch."""
    rows, width, block = sizes
    size = rows * width
    grid = -(-size // block)
    case = f"X is {rows}×{width}, blocks of {block} threads, as many as it takes: {grid}"
    # Numbers of both signs; every sum is exact.
    x, r = (rng.integers(-20, 20, size).astype(np.float32) for _ in range(2))
    bias = rng.permutation(np.arange(1, width + 1)).astype(np.float32)
    if size > FINE:
        x, r, bias = (rng.integers(-(2**17), 2**17, a.size) / np.float32(32) for a in (x, r, bias))
        x, r, bias = (a.astype(np.float32) for a in (x, r, bias))
    elif size > 1:
        x[0], x[-1], r[-1] = -30, -30, -7  # so that max(0, …) has its say in every case but one
    return case, Launch((), (grid,), (block,), (x, bias, r, np.full(size, np.nan, np.float32)))


def _wrong(case: str, launch: Launch, report: Report) -> Finding | None:
    """Find what is wrong with the result of a launch."""
    x, bias, r, y = launch.arguments
    found = trial.hazard(report, case) or trial.different("Y", steps(x, bias, r), y, case)
    if found and found.diagnosis == "wrong-values":
        return replace(found, diagnosis=_why(x, bias, r, y))
    return found


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
        "whole-numbers-only": steps(np.trunc(x), bias, r),
        "whole-numbers-only, of bias": steps(x, np.trunc(bias), r),
        "whole-numbers-only, of R": steps(x, bias, np.trunc(r)),
    }
    for diagnosis, result in instead.items():
        if np.array_equal(y, result):
            return diagnosis.partition(",")[0]
    expected = steps(x, bias, r)
    if nearly := trial.rounded(expected, y):
        return nearly
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
    sectors = counters["global_load_sectors"] + counters["global_store_sectors"]
    requests = counters["global_load_requests"] + counters["global_store_requests"]
    facts = (
        ("Values", f"right in all {len(CASES)} cases and in three drawn anew, with no hazard"),
        ("Case", case),
        ("Bytes that threads asked for", f"{loaded + stored:,} B; budget {budget:,} B"),
        ("Of these", f"{loaded:,} B loaded, {stored:,} B stored; {again:,} B of Y read again"),
        ("Sectors", f"{sectors:,}; budget {budget // SECTOR:,}"),
        ("Requests of warps", f"{requests:,}; budget {BUDGET * size // WARP:,}"),
        ("Stored by one thread", f"{most} elements at most; there is a thread for each"),
    )
    details = {"asked": loaded + stored, "budget": budget, "again": again, "stored": most}
    if again or stored > FLOAT * size:
        return Finding("through-memory", facts, details)
    if loaded + stored > SPARE * budget:
        return Finding("loaded-again", facts, details)
    if most > 1:
        return Finding("few-threads-work", facts, details)
    if requests > IN_TURNS * BUDGET * size / WARP:
        return Finding("lanes-in-turns", facts, details)
    if sectors > IN_TURNS * budget / SECTOR:
        return Finding("not-coalesced", facts, details)
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
    one of R, and stores one of Y. `q1.check(build_epilogue)` counts the bytes, and predicts how
    long an H200 takes for 4096 rows of 4096.
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
            "The result is right, but it stops in Y on the way: a step stores there what the next "
            "one takes up.",
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
        "lanes-in-turns": Diagnosis(
            "The result is right, but the lanes of a warp work in turns: each branch is executed "
            "for a part of them.",
            "Which condition differs between the lanes of one warp, and what do both branches do?",
            "Load and store outside of the branch; choose between two values inside of it.",
        ),
        "not-coalesced": Diagnosis(
            "The result is right, but neighbouring lanes ask for elements that lie apart: each "
            "sector is fetched for a few of its bytes.",
            "Which element does lane 0 of a warp take, and which one lane 1?",
            "```python\ni = cuda.grid(1)    # neighbours take neighbours\n```",
        ),
        "low-precision": Diagnosis(
            "The results are nearly right: they are rounded to 11 bits on the way.",
            "Which dtype has each value between X and Y?",
            "```python\nbiased = X[i] + ...    # float32, as X is\n```",
        ),
        "whole-numbers-only": Diagnosis(
            "Fractions are cut off on the way: a value is made a whole number.",
            "Where does an int() stand, or an array of whole numbers?",
            "```python\nbiased = X[i] + ...    # float32, as X is\n```",
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
