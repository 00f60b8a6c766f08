"""Exercise 01.3: a product that loads a column of A and a row of B at a time, each once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from gemmlab.course.judging import FAILING, Diagnosis, Finding, Task, drawing, guard, matrices
from gemmlab.course.judging.source import short

# (m, n, k), smallest first.
CASES = ((1, 1, 1), (2, 3, 1), (2, 3, 4), (5, 2, 3), (4, 4, 4), (7, 6, 9))


@dataclass
class Loads:
    """What is loaded of A and B, in order: room is for one column of A and one row of B.

    steps : of each of both, those of which something was loaded; counts : elements of each
    largest : elements of one load of each; kept : whether a step began while another still lacked
    its column or its row, or was come back to
    """

    steps: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))
    counts: list[int] = field(default_factory=lambda: [0, 0])
    largest: list[int] = field(default_factory=lambda: [0, 0])
    kept: bool = False

    def note(self, which: int, steps: np.ndarray) -> None:
        """Note a load from A (0) or B (1), of whose elements each belongs to a step."""
        self.counts[which] += steps.size
        self.largest[which] = max(self.largest[which], steps.size)
        mine, other = self.steps[which], self.steps[1 - which]
        for step in dict.fromkeys(steps.ravel().tolist()):
            if mine[-1:] == [step]:
                continue
            half_done = set(mine) ^ set(other)
            self.kept = self.kept or step in mine or bool(half_done - {step})
            mine.append(step)


class Watched:
    """A matrix that hands out copies of what is loaded from it."""

    def __init__(self, shape: tuple[int, int], load: Callable[[Any], Any]) -> None:
        self.shape = shape
        self._load = load

    def __getitem__(self, index: Any) -> Any:
        return self._load(index)

    @classmethod
    def of(cls, which: int, shape: tuple[int, int], seed: int, noted: Loads) -> Watched:
        """A (which = 0), whose columns are steps, or B (1), whose rows are."""
        values, steps = _values(which, shape, seed), np.indices(shape)[1 - which]

        def load(index: Any) -> Any:
            part = values[index]
            noted.note(which, np.asarray(steps[index]))
            return part.copy()

        return cls(shape, load)


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
    """Check values and loads on every case, and on four drawn anew: no size may be special."""
    rng = drawing.generator()
    m, n, k = (int(x) for x in rng.integers(3, 12, 3))
    far = int(rng.integers(300, 600))
    anew = (m, n, k), (far, 2, 3), (2, far, 3), (3, 2, far)
    seeds = (*range(len(CASES)), *(int(x) for x in rng.integers(1 << 30, size=len(anew))))
    given = [(*case, seed) for case, seed in zip((*CASES, *anew), seeds, strict=True)]
    watched = partial(_watched, answer)
    watched.__code__ = getattr(answer, "__code__", None)  # an error's line is one of the answer's
    for case, outcome in zip(given, guard.attempts(watched, given), strict=False):
        found = _one(case, outcome)
        if found is not None:
            return found if case[:3] in CASES else found.anew
    return Finding(
        "passed",
        (("Checked", f"{len(given)} shapes, each exactly, each element loaded once"),),
    )


def _values(which: int, shape: tuple[int, int], seed: int) -> np.ndarray:
    """A or B: each product matters, a few are 0, and each sum is exact, also in float32.

    A has odd multiples of 1/512, beyond what eleven bits hold, and B small whole numbers.
    """
    rng = np.random.default_rng((seed, which))
    sizes = (
        (2 * rng.integers(512, 2048, shape) + 1) / 512 if which == 0 else rng.integers(1, 5, shape)
    )
    values = sizes * rng.choice([-1.0, 1.0], shape)
    if min(shape) > 3:
        values[rng.integers(shape[0]), rng.integers(shape[1])] = 0
    return values


def _watched(answer: Any, m: int, n: int, k: int, seed: int) -> tuple[Any, ...]:
    """The result, and what was loaded for it."""
    noted = Loads()
    left = Watched.of(0, (m, k), seed, noted)
    right = Watched.of(1, (k, n), seed, noted)
    result = answer(left, right)
    return result, *noted.counts, *noted.largest, noted.kept


def _one(case: tuple[int, int, int, int], outcome: guard.Outcome) -> Finding | None:
    """Find what is wrong with one call; None where nothing is."""
    m, n, k, seed = case
    facts: tuple[tuple[str, str], ...] = ((FAILING, f"m={m}, n={n}, k={k}"),)
    if outcome.fault:
        return replace(outcome.fault, facts=(*facts, *outcome.fault.facts))
    result, of_a, of_b, column, row, kept = outcome.value
    loaded = of_a + of_b
    found = _wrong(result, _values(0, (m, k), seed), _values(1, (k, n), seed), facts)
    if found is not None:
        return found
    facts += (
        ("Elements loaded", f"{loaded}; A and B have {loads(m, n, k)}"),
        ("Most elements at once", f"{column} of A, a column has {m}; {row} of B, a row has {n}"),
    )
    details = {"shape": (m, n, k), "loaded": loaded, "largest": (column, row)}
    if column > m or row > n:
        return Finding("too-much-at-once", facts, details)
    if loaded > loads(m, n, k):
        return Finding("loaded-again", facts, details)
    if loaded < loads(m, n, k):
        return Finding("not-loaded", facts, details)
    return Finding("kept-for-later", facts, details) if kept else None


def _wrong(result: Any, a: np.ndarray, b: np.ndarray, facts: tuple) -> Finding | None:
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
    nearly = np.abs(result - expected).max() < a.shape[1] / 50 or np.array_equal(
        result, np.trunc(a) @ b
    )
    cause = "last-step-only" if last else "low-precision" if nearly else ""
    cause = cause or matrices.pattern(expected, result)
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
        "kept-for-later": Diagnosis(
            "The result is right, but columns of A or rows of B are kept until others are there: "
            "there is room for one of each.",
            "How many columns of A does your program hold when row 1 of B arrives?",
            "```python\nfor p in range(k):\n    ... A[:, p] ... B[p, :]    # and forget both\n```",
        ),
        "low-precision": Diagnosis(
            "Fractions or bits get lost on the way: something is a whole number, or float16.",
            "In which dtype do a column, a row and C live?",
            "```python\nC = np.zeros((m, n))    # as the skeleton has it\n```",
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
