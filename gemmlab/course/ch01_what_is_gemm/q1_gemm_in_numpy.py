"""Exercise 01.1: GEMM in NumPy, with α, β and what β = 0 means."""

from dataclasses import replace
from typing import Any

import numpy as np

from gemmlab.course.judging import Diagnosis, Finding, Task, drawing, guard, matrices
from gemmlab.course.judging.integrity import Unreadable
from gemmlab.course.judging.matrices import Case, Run, case
from gemmlab.course.judging.source import short

CASES = (
    case(1, 1, 1),
    case(1, 1, 1, alpha=2, beta=-1),
    case(1, 2, 3),
    case(3, 1, 2, alpha=2, beta=-3),
    case(2, 2, 2, alpha=-1, beta=0.5),
    case(2, 2, 2, alpha=0, beta=2),
    case(3, 3, 3),
    case(4, 3, 5, alpha=2),
    case(5, 7, 3, alpha=2, beta=-3),
    Case(matrices.Gemm(3, 4, 17, 2, 1), large=True),
)


def gemm(alpha, A, B, beta, C):
    """alpha·A·B + beta·C, as a new array."""
    # [answer] return ...
    product = alpha * (A @ B)
    if beta == 0:
        return product
    return product + beta * C
    # [end]


def judge(answer: Any) -> Finding:
    """Try every case, smallest first; then those with beta = 0 again, with a C that cannot be read.

    Results are plain arrays, and arguments are compared, by `guard`.
    """
    cases = (*CASES, matrices.drawn_anew(CASES), *_far())
    operands = [each.operands() for each in cases]
    given = [
        (each.problem.alpha, a, b, each.problem.beta, c)
        for each, (a, b, c) in zip(cases, operands, strict=True)
    ]
    runs: list[Run] = []
    errors: list[Finding] = []
    for each, known, outcome in zip(cases, operands, guard.attempts(answer, given), strict=False):
        p = each.problem
        found = outcome.fault or _contract(outcome.value, known.c.shape)
        if found is None:
            runs.append(Run(each, known, outcome.value.astype(np.float64)))
            continue
        facts = (each.fact, *found.facts)
        details = {"shape": (p.m, p.n, p.k), **found.details}
        stopped = replace(found, facts=facts, details=details)
        if found.diagnosis != "raises":
            return stopped
        errors.append(stopped)
    failing = [run for run in runs if run.wrong.any()]
    known = [run for run in runs if not run.case.anew]
    explained = any(run.wrong.any() for run in known)
    cause = matrices.explain(known, TASK.diagnoses) if explained else "known-cases-only"
    # An error says less than wrong values whose cause is known: A * B has both.
    if errors and (cause not in TASK.diagnoses or not failing):
        return errors[0]
    if not failing:
        return _reads_c(answer, cases, given)
    facts, details = matrices.first_wrong(failing[0])
    return Finding(cause, facts, details)


def _far() -> list[Case]:
    """Cases drawn anew, with one size that is far larger than in all others: it costs little."""
    rng = drawing.generator()
    far = (int(x) for x in rng.integers(300, 600, 3))
    shapes = zip((next(far), 2, 3), (3, next(far), 2), (2, 3, next(far)), strict=True)
    return [
        Case(matrices.Gemm(*shape, 1.5, 0.5), seed=int(rng.integers(1 << 30)), anew=True)
        for shape in shapes
    ]


def _reads_c(answer: Any, cases: tuple[Case, ...], given: list[tuple]) -> Finding:
    """Whether a right answer touches C where beta is 0: there, memory that cannot be read."""
    unread = [each for each in cases if each.problem.beta == 0]
    blocked = [
        (alpha, a, b, beta, Unreadable(c.shape, c.dtype))
        for alpha, a, b, beta, c in given
        if beta == 0
    ]
    outcomes = guard.attempts(answer, blocked)
    for each, outcome in zip(unread, outcomes, strict=False):
        if outcome.fault:
            facts = (
                each.fact,
                ("Found", "the values are right, but elements of C are read on the way"),
            )
            return Finding("beta-zero-reads-c", facts, {"case": str(each)})
    return Finding("passed", (("Checked", f"{len(cases)} cases, each exactly"),))


def _contract(value: Any, shape: tuple[int, ...]) -> Finding | None:
    """Say why a result cannot be compared; None where it can."""
    if value is Ellipsis:
        return Finding("not-attempted", (("Found", "the answer still returns ..."),))
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiu":
        text = f"it returned {short(value)}; use an array of numbers"
        return Finding("wrong-type", (("Found", text),))
    if value.shape != shape:
        text = f"the result has shape {value.shape}; C is {shape}"
        return Finding("wrong-shape", (("Found", text),), {"result_shape": value.shape})
    return None


TASK = Task(
    name="01.1",
    title="GEMM in NumPy",
    section="chapter 01, What is a GEMM?",
    asked="gemm(alpha, A, B, beta, C) returns alpha·A·B + beta·C as a new array.",
    prompt="""
    Write `gemm(alpha, A, B, beta, C)`: return $\\alpha A B + \\beta C$ as a new array, for $A$ of
    m×k, $B$ of k×n and $C$ of m×n. The arguments stay as they are. As in BLAS, $\\beta = 0$ means
    that **C is not read**: it may hold anything, NaN included.

    `q1.check(gemm)` tries shapes of all kinds on whole numbers, where the result is exact.
    """,
    judge=judge,
    answers=(gemm,),
    diagnoses={
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "Which operator of NumPy is the matrix product, and what has to happen for beta = 0?",
            "```python\nproduct = alpha * (A @ B)\nif beta == 0:\n    return ...\nreturn ...\n```",
        ),
        "beta-dropped": Diagnosis(
            "The term beta·C is missing.",
            "What does C contribute to the result where beta is not 0?",
            "```python\nreturn alpha * (A @ B) + ...\n```",
        ),
        "alpha-dropped": Diagnosis(
            "The product is not multiplied by alpha.",
            "Which of the two terms does alpha scale?",
            "```python\nreturn ... * (A @ B) + beta * C\n```",
        ),
        "alpha-scales-c": Diagnosis(
            "alpha multiplies the whole sum; it belongs to the product alone.",
            "Multiply your formula out: what stands before C?",
            "```python\nreturn alpha * (...) + beta * C\n```",
        ),
        "beta-zero-reads-c": Diagnosis(
            "C is read although beta is 0, and 0 · NaN is NaN.",
            "What is 0 · NaN, and what may C hold before anything was written to it?",
            "```python\nif beta == 0:\n    return ...\n```",
        ),
        "elementwise": Diagnosis(
            "A * B multiplies element by element; it is not the matrix product.",
            "Where is the sum over k in your formula?",
            "```python\nproduct = A ... B    # one operator, and it is not *\n```",
        ),
        "transposed": Diagnosis(
            "The rows of B are used as if they were its columns.",
            "Which index of A and which of B run together in the sum?",
            "C[i, j] = Σ_p A[i, p] · B[…, …]",
        ),
        "operands-swapped": Diagnosis(
            "The product is taken as B·A; matrices do not commute.",
            "Which matrix gives the rows of the result?",
            "```python\nproduct = ... @ B\n```",
        ),
        "sum-over-n": Diagnosis(
            "The sum runs over n terms; it has k, the columns of A.",
            "How many columns has A, and how many has B?",
            "```python\nfor p in range(A.shape[...]):\n```",
        ),
        "sum-over-m": Diagnosis(
            "The sum runs over m terms; it has k, the columns of A.",
            "How many columns has A, and how many rows?",
            "```python\nfor p in range(A.shape[...]):\n```",
        ),
        "low-precision": Diagnosis(
            "Sums are kept in a format with 11 significant bits, which cannot hold them.",
            "In which dtype does each intermediate result live?",
            "Leave the dtype to NumPy: float32 times float32 is float32.",
        ),
        "whole-numbers-only": Diagnosis(
            "Fractions get lost on the way: matrices or factors are cut to whole numbers.",
            "Which value is a whole number on the way from A and B to the result?",
            "Leave the dtype to NumPy: float32 times float32 is float32.",
        ),
        "always-nan": Diagnosis(
            "The sum starts from NaN instead of 0.",
            "What does an array hold right after np.empty?",
            "```python\nresult = np.zeros(...)\n```",
        ),
        "arguments-changed": Diagnosis(
            "An argument is used as the place for the result.",
            "Which statement writes into an array that the caller owns?",
            "Build a new array: `x = x + y` makes one, `x += y` and `x[...] = y` do not.",
        ),
        "wrong-shape": Diagnosis(
            "The result does not have the rows of A and the columns of B.",
            "Which sizes does a product of m×k and k×n have?",
            "```python\nm, n = A.shape[...], B.shape[...]\n```",
        ),
    },
    praise="alpha scales the product, beta scales C, and beta = 0 leaves C unread.",
)
