"""Exercise 02.3: a linear layer for a small batch, whose weights are loaded once."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy import float32

from gemmlab.course.judging import Diagnosis, Finding, Task, matrices
from gemmlab.course.judging import arrays_on_trial as trial
from gemmlab.simt import Report, cuda

# (outputs, inputs, batch, threads of a block), smallest first; the last one's traffic is counted.
CASES = (
    (1, 1, 1, 1),
    (1, 2, 1, 1),
    (2, 2, 2, 2),
    (3, 2, 4, 2),
    (5, 9, 1, 4),
    (9, 7, 3, 8),
    (64, 32, 8, 32),
)
FLOAT = np.dtype(np.float32).itemsize


def build_layer(batch):
    """The kernel that computes Y ← WX, one row of Y for each thread."""

    def kernel(W, X, Y):
        row = cuda.grid(1)
        outputs, inputs = W.shape
        if row < outputs:
            acc = cuda.local.array(batch, float32)  # the sums of this row, one for each column
            # Set them to 0, use each weight for all of them, and store them.
            # [answer]
            for j in range(batch):
                acc[j] = 0
            for p in range(inputs):
                weight = W[row, p]
                for j in range(batch):
                    acc[j] += weight * X[p, j]
            for j in range(batch):
                Y[row, j] = acc[j]
            # [end]

    return kernel


def judge(answer: Any) -> Finding:
    """Check values and hazards on every case and a fresh one; bytes by array of the largest."""
    rng = np.random.default_rng()
    anew = (*(int(x) for x in rng.integers(10, 16, 2)), 5, 8)
    largest = trial.of_cases(partial(_one, answer), CASES, anew)
    return largest if isinstance(largest, Finding) else _traffic(*largest)


def _one(
    answer: Any, sizes: tuple[int, int, int, int], seed: int
) -> tuple[Report | None, Finding | None, str]:
    """Make one launch: its report, what is wrong with it, and the case in words."""
    outputs, inputs, batch, block = sizes
    rng = np.random.default_rng(seed)
    grid = -(-outputs // block)
    case = f"W is {outputs}×{inputs}, X is {inputs}×{batch}; blocks of {block} threads: {grid}"
    # Whole numbers: every sum is exact.
    w, x = (
        rng.integers(1, 12, shape).astype(np.float32)
        for shape in ((outputs, inputs), (inputs, batch))
    )
    y, expected = np.full((outputs, batch), np.nan, np.float32), w @ x
    kernel = trial.Kernel(answer, ["W", "X", "Y"], (batch,))
    report = trial.launch(kernel, (grid,), (block,), case, w, x, y)
    if isinstance(report, Finding):
        return None, report, case
    found = trial.hazard(report, case) or trial.different("Y", expected, y, case)
    if found and found.details.get("kind") == "uninitialised-read":
        found = replace(found, diagnosis="sums-not-cleared")
    elif found and found.diagnosis == "wrong-values":
        found = replace(found, diagnosis=_why(w, x, y))
    return report, found, case


def _why(w: np.ndarray, x: np.ndarray, y: np.ndarray) -> str:
    """Name the mistake that gives just this result, else the pattern of what is wrong."""
    expected = w @ x
    if np.isnan(y[~(y == expected)]).all():
        return "not-written"
    instead = {
        "last-product-only": w[:, -1:] @ x[-1:],
        "product-missing": w[:, 1:] @ x[1:],
        "product-missing at the end": w[:, :-1] @ x[:-1],
        "columns-added-up": np.repeat(expected.sum(axis=1, keepdims=True), y.shape[1], axis=1),
        "columns-added-up so far": np.cumsum(expected, axis=1),
    }
    for diagnosis, result in instead.items():
        if np.array_equal(y, result):
            return diagnosis.split()[0]
    return matrices.pattern(expected, y)


def _traffic(report: Report, case: str) -> Finding:
    """Whether each weight is loaded once, sums stay in registers, and each thread has a row."""
    outputs, inputs, batch, _ = CASES[-1]
    loaded = {x: int(report.shares.of("load", x).sum()) // FLOAT for x in ("W", "X", "Y")}
    stores = report.counters["global_store_bytes"] // FLOAT
    sums = loaded["Y"] + report.counters["global_atomic_bytes"] // FLOAT
    most = int(report.shares.of("store", "Y").max()) // FLOAT
    weights, uses = outputs * inputs, outputs * inputs * batch
    facts = (
        ("Values", f"right in all {len(CASES)} cases and in one drawn anew, with no hazard"),
        ("Case", case),
        ("Weights loaded", f"{loaded['W']:,}; budget {weights:,}, each once"),
        ("Elements of X loaded", f"{loaded['X']:,}; one for each FMA: {uses:,}"),
        ("Elements of Y", f"{stores:,} stored, {sums:,} read again; Y has {outputs * batch:,}"),
        ("Stored by one thread", f"{most} elements at most; a row has {batch}"),
    )
    details = {"weights": loaded["W"], "budget": weights, "uses": loaded["X"], "stored": most}
    if sums or stores > outputs * batch:
        return Finding("sums-in-memory", facts, details)
    if loaded["W"] > weights:
        return Finding("weights-loaded-again", facts, details)
    if loaded["X"] > uses:
        return Finding("inputs-loaded-again", facts, details)
    if most > batch:
        return Finding("few-threads-work", facts, details)
    return Finding("passed", facts, details)


_OUTPUTS, _INPUTS, _BATCH, _ = CASES[-1]

TASK = Task(
    name="02.3",
    title="A batch shares its weights",
    section="chapter 02, How large must a batch be?",
    asked="build_layer(batch) returns a kernel (W, X, Y) that computes Y ← WX, one row of Y a "
    "thread, and loads each weight once.",
    prompt=f"""
    W is outputs×inputs, X is inputs×batch, Y is outputs×batch; `batch` is a number that is known
    when the kernel is built. Each thread computes one row of Y, all `batch` elements of it.

    The kernel above takes one column after the other and loads every weight `batch` times. Load
    each weight once, and use it for all columns before the next. The thread needs as many sums as
    there are columns: `cuda.local.array(batch, float32)` holds them, in registers if all its
    indices are known to the compiler. It holds anything at first, so set the sums to 0.

    The budget for {_OUTPUTS}×{_INPUTS} weights and a batch of {_BATCH}: {_OUTPUTS * _INPUTS:,}
    loads of W, and nothing of Y is read. Check it with `q3.check(build_layer)`.
    """,
    judge=judge,
    answers=(build_layer,),
    diagnoses={
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "What should a thread do with W[row, p] before it goes on to p + 1?",
            "```python\nfor p in range(inputs):\n    weight = W[row, p]\n"
            "    for j in range(batch):\n        acc[j] += ...\n```",
        ),
        "weights-loaded-again": Diagnosis(
            "The result is right, but each weight is loaded for one column after the other.",
            "Which of your two loops, over p and over j, is the outer one?",
            "```python\nfor p in range(inputs):\n    weight = W[row, p]    # once\n"
            "    for j in ...:\n        ...\n```",
        ),
        "inputs-loaded-again": Diagnosis(
            "The result is right, but elements of X are loaded more often than FMAs use them.",
            "How many products does one element of X take part in, in one thread?",
            "```python\nacc[j] += weight * X[p, j]    # batch products for each p, no more\n```",
        ),
        "sums-in-memory": Diagnosis(
            "The result is right, but the sums are kept in Y: each step reads and writes it.",
            "Where does acc[j] live, and where does Y[row, j]?",
            "```python\nacc[j] += ...    # inside the loop over p\n"
            "Y[row, j] = acc[j]    # after it, once\n```",
        ),
        "few-threads-work": Diagnosis(
            "The result is right, but some threads compute several rows of Y and others none.",
            "How many rows has Y, and how many threads does the launch have?",
            "```python\nrow = cuda.grid(1)    # this thread's row, and no other\n```",
        ),
        "sums-not-cleared": Diagnosis(
            "The sums hold anything at first, and are added to before they are set.",
            "What is in acc[j] when the first product is added to it?",
            "```python\nfor j in range(batch):\n    acc[j] = ...\n```",
        ),
        "last-product-only": Diagnosis(
            "Y holds the last product of each sum: each step replaces the one before.",
            "What does acc[j] hold after the second step?",
            "```python\nacc[j] ... weight * X[p, j]\n```",
        ),
        "product-missing": Diagnosis(
            "Each sum lacks its first or its last product.",
            "Which values does p take, and how many columns has W?",
            "```python\nfor p in range(inputs):    # 0 to inputs - 1\n```",
        ),
        "columns-added-up": Diagnosis(
            "Products of several columns land in one sum.",
            "How many sums does a thread need for a batch of 3, and which one does X[p, 2] go to?",
            "```python\nacc[...] += weight * X[p, j]\n```",
        ),
        "outside": Diagnosis(
            "An index is larger than the array is long.",
            "Which of W, X and Y is indexed by p, and in which place?",
            "```python\nacc[j] += W[row, ...] * X[..., j]\n```",
        ),
        "two-writers": Diagnosis(
            "Two threads are in charge of the same row.",
            "Which part of the thread's place is missing from your row?",
            "```python\nrow = cuda.grid(1)\n```",
        ),
        "not-written": Diagnosis(
            "Some elements of Y are never stored.",
            "How many elements of its row does your thread store?",
            "```python\nfor j in range(batch):\n    Y[row, j] = ...\n```",
        ),
    },
    praise="Each weight was loaded once and used for the whole batch: the intensity at the weights "
    "grows with the batch. Chapter 6 does the same in both directions.",
)
