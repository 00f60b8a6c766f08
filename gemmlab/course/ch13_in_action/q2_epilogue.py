"""Exercise 13.2: the tiled product whose epilogue adds a bias and rectifies, before it stores."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy import float32

from gemmlab.course.judging import Diagnosis, Finding, Task, kernels_on_trial, matrices, timed
from gemmlab.course.judging.diagnoses import KERNEL
from gemmlab.course.judging.kernels_on_trial import Form, Trial
from gemmlab.course.judging.launches import Launch
from gemmlab.course.judging.matrices import Case, case
from gemmlab.problem import Gemm
from gemmlab.simt import cuda
from gemmlab.tiling import Tiling

CASES = (
    case(3, 2, 1, tile=4),
    case(2, 2, 2, tile=2),
    case(2, 3, 5, tile=2),
    case(4, 4, 4, tile=4),
    case(5, 3, 7, tile=4),
    case(4, 4, 8, tile=4),
    Case(Gemm(3, 5, 17), tile=4, large=True),
    case(9, 6, 5, tile=4),
    case(16, 16, 16, tile=8),
)


def build_rectified(T):
    """The kernel C ← max(0, A·B + bias) for tiles of T×T elements; bias is m×1."""

    def kernel(A, B, bias, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        m, n = C.shape
        k = A.shape[1]
        x = cuda.threadIdx.x
        y = cuda.threadIdx.y
        row = cuda.blockIdx.y * T + y
        col = cuda.blockIdx.x * T + x

        acc = float32(0)
        for start in range(0, k, T):
            As[y, x] = A[row, start + x] if row < m and start + x < k else float32(0)
            Bs[y, x] = B[start + y, col] if start + y < k and col < n else float32(0)
            cuda.syncthreads()
            for p in range(T):
                acc += As[y, p] * Bs[p, x]
            cuda.syncthreads()

        # The epilogue: where there is an element of C, add the bias of its row to the sum, and
        # store 0 in place of what is negative.
        # [answer]
        if row < m and col < n:
            acc += bias[row, 0]
            C[row, col] = acc if acc > 0 else float32(0)
        # [end]

    return kernel


def _bias(of: Case) -> np.ndarray:
    """A bias for each row, as large as a sum, so that it decides about signs."""
    p = of.problem
    rng = np.random.default_rng(of.seed + p.m)
    drawn = rng.integers(1, 9, (p.m, 1)) * rng.choice([-1.0, 1.0], (p.m, 1))
    return (drawn + (np.float64(0.25) if of.large else 0)).astype(np.float32)


def _arguments(of: Case) -> tuple[np.ndarray, ...]:
    """A, B, the bias, and a C in which nothing is stored yet."""
    a, b, _ = of.operands()
    return a, b, _bias(of), np.full((of.problem.m, of.problem.n), np.nan, float32)


def _product(of: Case) -> np.ndarray:
    return of.problem.reference(of.operands())


def _layer(product: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """What C holds, by NumPy."""
    return np.maximum(product + bias, 0)


def _result(of: Case, after: tuple[Any, ...]) -> np.ndarray:
    """The product, plus what C differs from the layer by: the judge's reference is the product."""
    product = _product(of)
    return product + (after[-1] - _layer(product, _bias(of)))


def _telling(trial: Trial) -> str:
    """The diagnosis that C of a wrong trial speaks for."""
    of, c = trial.run.case, trial.launched.arguments[-1].astype(np.float64)
    product, bias = _product(of), _bias(of).astype(np.float64)
    steps = trial.run.steps
    across = np.resize(bias.ravel(), (1, c.shape[1]))
    instead = {
        "rectifier-forgotten": product + bias,
        "bias-forgotten": np.maximum(product, 0),
        "neither": product,
        "rectified-too-early": np.maximum(product, 0) + bias,
        "wrong-side-kept": np.minimum(product + bias, 0),
        "magnitude-kept": np.abs(product + bias),
        "one-bias-for-all": _layer(product, bias[:1]),
        "bias-of-column": _layer(product, across),
        "whole-numbers-only": _layer(product, np.trunc(bias)),
    }
    if steps > 1:
        instead["bias-each-step"] = _layer(product, steps * bias)
    for name, wrong in instead.items():
        if np.array_equal(c, wrong):
            return name
    return ""


FORM = Form(("A", "B", "bias", "C"), _arguments, _result, _telling)
SIDE = 1024
EXAMPLE = timed.of_product(
    SIDE, SIDE, SIDE, "T = 16",
    lambda a, b, c: Launch(
        (16,), (SIDE // 16, SIDE // 16), (16, 16), (a, b, np.zeros((SIDE, 1), float32), c)
    ),
    ("A", "B", "bias", "C"),
)  # fmt: skip


def judge(answer: Any) -> Finding:
    """Check values and hazards on every case, then the usual budgets and that of the bias."""
    drawn = replace(matrices.drawn_anew(CASES), large=False)
    anew = replace(drawn, problem=replace(drawn.problem, alpha=1, beta=0))
    trials = kernels_on_trial.judge(answer, CASES, Tiling.square, form=FORM, anew=(anew,))
    if isinstance(trials, Finding):
        outside = trials.diagnosis == "tile-outside" and "bias[" in trials.details.get("code", "")
        return replace(trials, diagnosis="bias-outside") if outside else trials
    last = trials[-1]
    p = last.run.case.problem
    each = kernels_on_trial.FLOAT * p.m * p.n  # a thread loads the bias of its element once
    loaded = int(last.report.shares.of("load", "bias").sum())
    facts = (("Loaded from bias", f"{loaded} B; once for each element of C: {each} B"),)
    found = kernels_on_trial.within_budgets(trials, facts, of_c=each, also="C or the bias")
    if found.diagnosis == "c-again" and loaded > each:
        return replace(found, diagnosis="bias-again")
    return timed.beside(found, answer, build_rectified, EXAMPLE)


TASK = Task(
    name="13.2",
    title="A bias and a rectifier while they are at hand",
    section="chapter 13, Can it learn on your kernel?",
    asked="build_rectified(T) returns a kernel (A, B, bias, C) that stores max(0, A·B + bias), "
    "by tiles of T×T elements and with one store for each element of C.",
    prompt="""
    The loop over k is chapter 4's. Write what comes after it, the *epilogue*: `bias` is m×1, and
    element (row, col) of C is the sum plus `bias[row, 0]`, or 0 where that is negative.

    - Any m, n, k ≥ 1: a block may hang over the edge of C.
    - Each element of C is stored once and never loaded. The bias is added once, whatever k is, and
      a thread loads it once.
    """,
    judge=judge,
    answers=(build_rectified,),
    diagnoses={
        **KERNEL,
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "Where is the sum when the loop has ended, and which row does it belong to?",
            "```python\nif row < m and col < n:\n    acc += bias[...]\n    C[row, col] = ...\n```",
        ),
        "rectifier-forgotten": Diagnosis(
            "The bias is added, and negative results are stored as they are.",
            "What does the next layer see where the sum is −3?",
            "```python\nC[row, col] = acc if acc > 0 else ...\n```",
        ),
        "bias-forgotten": Diagnosis(
            "The product is rectified without its bias.",
            "Which parameter of the kernel do you not read?",
            "```python\nacc += bias[row, 0]\n```",
        ),
        "neither": Diagnosis(
            "C is the product alone.",
            "What is to happen to a sum between the loop and the store?",
            "```python\nacc += bias[row, 0]\nC[row, col] = acc if ... else float32(0)\n```",
        ),
        "rectified-too-early": Diagnosis(
            "The product is rectified first, and the bias is added to what is left.",
            "A sum of −3 with a bias of 5: what should C hold, and what does it?",
            "```python\nacc += ...    # first\nC[row, col] = acc if acc > 0 else ...\n```",
        ),
        "wrong-side-kept": Diagnosis(
            "What is negative is kept, and what is positive becomes 0.",
            "Is max(0, 2) your result for 2?",
            "```python\nC[row, col] = acc if acc > 0 else ...\n```",
        ),
        "magnitude-kept": Diagnosis(
            "A negative sum is stored with its sign changed.",
            "What is max(0, −3)?",
            "```python\nC[row, col] = acc if acc > 0 else float32(0)\n```",
        ),
        "one-bias-for-all": Diagnosis(
            "Every row gets the bias of row 0.",
            "A row of C is an output of the layer. How many biases does the layer have?",
            "```python\nacc += bias[..., 0]\n```",
        ),
        "bias-of-column": Diagnosis(
            "The bias is that of the column: here a column is an image.",
            "Is an output of the layer a row of C or a column?",
            "```python\nacc += bias[row, 0]\n```",
        ),
        "bias-each-step": Diagnosis(
            "The bias is added in every step along k.",
            "How many steps does k = 8 take with T = 4, and how often is the bias added?",
            "After the loop, once: `acc += bias[row, 0]`.",
        ),
        "bias-outside": Diagnosis(
            "A bias is read that does not exist: threads beyond the edge of C have no row, and no "
            "column of `bias` but 0 is there.",
            "For the thread that is named: which index is too large?",
            "```python\nif row < m and col < n:\n    acc += bias[row, 0]\n```",
        ),
        "c-again": Diagnosis(
            "The result is right, but elements of C are loaded, or stored twice.",
            "How many of your statements name C[...], and which of them does one thread execute?",
            "```python\nC[row, col] = acc if acc > 0 else float32(0)    # once\n```",
        ),
        "bias-again": Diagnosis(
            "The result is right, but a thread loads its bias more than once.",
            "In which loop does `bias[…]` stand?",
            "```python\nacc += bias[row, 0]    # after the loop over k\n```",
        ),
    },
    praise="What used to be a launch of its own is one load and one comparison before a store that "
    "was made anyway.",
)
