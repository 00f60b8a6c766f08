"""Exercise 01.3: a product that loads a column of A and a row of B at a time, each once."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gemmlab.course.judging import FAILING, Diagnosis, Finding, Task, guard, matrices
from gemmlab.course.judging.source import short

# (m, n, k), smallest first.
CASES = ((1, 1, 1), (2, 3, 1), (2, 3, 4), (5, 2, 3), (4, 4, 4), (7, 6, 9))


class Watched:
    """A matrix that hands out copies of what is loaded from it, and counts the elements."""

    def __init__(self, values: np.ndarray) -> None:
        self.shape = values.shape
        self.loaded = 0
        self.largest = 0  # elements of one load
        self._values = values

    def __getitem__(self, index: Any) -> Any:
        part = self._values[index]
        count = int(np.size(part))
        self.loaded += count
        self.largest = max(self.largest, count)
        return part.copy()


def product(A, B):
    """A·B, from one column of A and one row of B at a time."""
    m, k = A.shape
    n = B.shape[1]
    C = np.zeros((m, n))
    # [answer]
    for p in range(k):
        C += np.outer(A[:, p], B[p, :])
    # [end]
    return C


def loads(m: int, n: int, k: int) -> int:
    """Elements that A and B have."""
    return k * (m + n)


def judge(answer: Any) -> Finding:
    """Check values and loads on every case, and on one drawn anew."""
    rng = np.random.default_rng()
    m, n, k = (int(x) for x in rng.integers(3, 12, 3))
    cases = (*CASES, (m, n, k))
    seeds = (*range(len(CASES)), int(rng.integers(1 << 30)))
    given = [_operands(case, seed) for case, seed in zip(cases, seeds, strict=True)]
    watched = partial(_watched, answer)
    watched.__code__ = getattr(answer, "__code__", None)  # an error's line is one of the answer's
    for case, operands, outcome in zip(cases, given, guard.attempts(watched, given), strict=False):
        found = _one(case, operands, outcome)
        if found is not None:
            return found.anew if case is cases[-1] else found
    return Finding(
        "passed",
        (("Checked", f"{len(cases)} shapes, each exactly, each element loaded once"),),
    )


def _operands(case: tuple[int, int, int], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A and B of whole numbers, none of them 0: each product matters, and each sum is exact."""
    (m, n, k), rng = case, np.random.default_rng(seed)
    return tuple(rng.integers(1, 9, shape).astype(float) for shape in ((m, k), (k, n)))


def _watched(answer: Any, a: np.ndarray, b: np.ndarray) -> tuple[Any, int, int, int]:
    """The result, the elements loaded, and those of the largest load of A and of B."""
    left, right = Watched(a), Watched(b)
    result = answer(left, right)
    return result, left.loaded + right.loaded, left.largest, right.largest


def _one(case: tuple[int, int, int], operands: tuple, outcome: guard.Outcome) -> Finding | None:
    """Find what is wrong with one call; None where nothing is."""
    m, n, k = case
    facts: tuple[tuple[str, str], ...] = ((FAILING, f"m={m}, n={n}, k={k}"),)
    if outcome.fault:
        return replace(outcome.fault, facts=(*facts, *outcome.fault.facts))
    result, loaded, column, row = outcome.value
    found = _values(result, *operands, facts)
    if found is not None:
        return found
    facts += (
        ("Elements loaded", f"{loaded}; A and B have {loads(m, n, k)}"),
        ("Most elements at once", f"{column} of A, a column has {m}; {row} of B, a row has {n}"),
    )
    details = {"shape": case, "loaded": loaded, "largest": (column, row)}
    if column > m or row > n:
        return Finding("too-much-at-once", facts, details)
    if loaded > loads(m, n, k):
        return Finding("loaded-again", facts, details)
    return Finding("not-loaded", facts, details) if loaded < loads(m, n, k) else None


def _values(result: Any, a: np.ndarray, b: np.ndarray, facts: tuple) -> Finding | None:
    """Find what is wrong with the result; None where nothing is."""
    if not isinstance(result, np.ndarray) or result.dtype.kind not in "fiu":
        text = f"it returned {short(result)}; use an array of numbers"
        return Finding("wrong-type", (*facts, ("Found", text)))
    expected = a @ b
    if result.shape != expected.shape:
        text = f"the result has shape {result.shape}; C is {expected.shape}"
        return Finding("wrong-shape", (*facts, ("Found", text)))
    wrong = ~(result == expected)
    if not wrong.any():
        return None
    if not result.any():
        return Finding("not-attempted", (("Found", "C is still 0"),))
    i, j = (int(x) for x in np.argwhere(wrong)[0])
    where = f"C[{i}, {j}]: expected {expected[i, j]:g}, got {result[i, j]:g}"
    last = np.array_equal(result, np.outer(a[:, -1], b[-1]))
    cause = "last-step-only" if last else matrices.pattern(expected, result)
    return Finding(cause, (*facts, ("First wrong element", where)), {"index": (i, j)})


TASK = Task(
    name="01.3",
    title="Load once, use often",
    section="chapter 01, The same work, fewer loads",
    asked="product(A, B) returns A·B and loads each element of A and B once, at most a column of "
    "A or a row of B at a time.",
    prompt="""
    Write `product(A, B)`, which returns $AB$ as a new array. Suppose that there is room near the
    arithmetic for all of $C$, for **one column of $A$ and for one row of $B$**, and for no more.
    So load one of each per step, `A[...]` and `B[...]`, and use them for all that they are good
    for before you load the next.

    `q3.check(product)` counts the elements that you load. The three loops of the definition load
    $2mnk$; the budget is $k(m + n)$, each element once.
    """,
    judge=judge,
    answers=(product,),
    diagnoses={
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "Which products A[i, p] · B[p, j] need column p of A, and which need row p of B?",
            "```python\nfor p in range(k):\n    C += np.outer(..., ...)\n```",
        ),
        "loaded-again": Diagnosis(
            "The result is right, but elements are loaded more than once.",
            "In which order do your loops run, and which of them loads the same element again?",
            "Make the loop over p the outer one: column p of A meets row p of B once, and all "
            "m·n products of the two belong to this step.",
        ),
        "too-much-at-once": Diagnosis(
            "The result is right, but more is loaded at once than a column of A or a row of B.",
            "How many elements has A[:, p], and how many has what you load?",
            "```python\nA[:, p], B[p, :]\n```",
        ),
        "not-loaded": Diagnosis(
            "The result is right, but some elements were not loaded by A[...] and B[...].",
            "Where do the values of A and B in your sums come from?",
            "```python\ncolumn, row = A[:, p], B[p, :]\n```",
        ),
        "last-step-only": Diagnosis(
            "C holds the products of the last step alone: each step replaces the one before.",
            "What does C hold after the second step?",
            "```python\nC ... np.outer(A[:, p], B[p, :])\n```",
        ),
        "wrong-shape": Diagnosis(
            "The result does not have the rows of A and the columns of B.",
            "Which product of a column and a row is a matrix?",
            "```python\nnp.outer(A[:, p], B[p, :])    # m by n\n```",
        ),
    },
    praise="The arithmetic is the same, 2mnk. Each element is loaded once and used n or m times: "
    "this reuse is what every faster kernel of the course is about.",
)
