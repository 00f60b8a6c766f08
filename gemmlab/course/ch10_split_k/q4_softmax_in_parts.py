"""Exercise 10.4: a sum that is weighted by a softmax, in parts that are merged."""

import math
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from gemmlab.course.judging import DRAWN_ANEW, FAILING, Diagnosis, Finding, Task, drawing, guard
from gemmlab.course.judging.source import short

NOTHING = (-np.inf, 0.0, 0.0)  # the sums of no element
EXACT = 1e-9  # relative error of what is compared

Sums = tuple[float, float, float]  # the largest score, the weights, the weighted values

# Lists of scores and values: one, several, equal ones, scores whose exponentials are no float64.
LISTS = (
    ([0.0], [3.0]),
    ([1.0, 1.0], [2.0, 4.0]),
    ([0.0, 1.0, -2.0], [1.0, -1.0, 5.0]),
    ([-3.25, -1.5], [0.5, 2.0]),
    ([800.0, 801.0], [1.0, 3.0]),
    ([-900.0, -901.5, -900.5], [2.0, -2.0, 7.0]),
    ([], []),
    ([-1000.0, 1000.0], [1.0, 2.0]),
)
SHOWN = 8  # elements of a list in a verdict
LONG = 300  # elements of a list that is drawn for each check
# Largest scores that differ by some, while the smaller one's part still counts.
APART = (
    ((6.0, 1.0, 1.0), (0.0, 1.0, 100.0)),
    ((0.5, 2.0, -3e4), (13.25, 1.5, 2.0)),
    ((-4.0, 1.0, 1e9), (21.0, 3.0, -5.0)),
)


def part(scores, values):
    """The sums of one part: the largest score, Σ exp(s − largest), Σ exp(s − largest)·v."""
    # [answer] return ...
    largest = max(scores, default=-np.inf)
    weights = [np.exp(s - largest) for s in scores]
    return largest, sum(weights), sum(w * v for w, v in zip(weights, values, strict=True))
    # [end]


def merge(one, other):
    """The sums of both parts together, from the sums of each."""
    # [answer] return ...
    largest = max(one[0], other[0])
    if largest == -np.inf:
        return one
    first, second = np.exp(one[0] - largest), np.exp(other[0] - largest)
    return largest, first * one[1] + second * other[1], first * one[2] + second * other[2]
    # [end]


def _part(scores: list[float], values: list[float]) -> Sums:
    """The right result of `part`, which an answer cannot replace."""
    if not scores:
        return NOTHING
    s, v = np.array(scores), np.array(values)
    weights = np.exp(s - s.max())
    return float(s.max()), float(weights.sum()), float(weights @ v)


def _pairs(lists: Any) -> list[tuple[Sums, Sums]]:
    sums = [_part(*each) for each in lists]
    return [(one, other) for one in sums for other in sums if np.isfinite(_gap(one, other))] + [
        (NOTHING, NOTHING),
        *((one, NOTHING) for one in sums),
        *((NOTHING, one) for one in sums),
        *APART,
        *((other, one) for one, other in APART),
    ]


def _gap(one: Sums, other: Sums) -> float:
    """The distance of two largest scores; 0 where a part has none, which is tried by itself."""
    return one[0] - other[0] if np.isfinite(one[0] + other[0]) else np.inf


def _merged(one: Sums, other: Sums) -> Sums:
    """The right result of `merge`."""
    largest = max(one[0], other[0])
    if largest == -np.inf:
        return NOTHING
    a, b = np.exp(one[0] - largest), np.exp(other[0] - largest)
    return largest, float(a * one[1] + b * other[1]), float(a * one[2] + b * other[2])


def _plain_part(scores: list[float], values: list[float]) -> Sums:
    weights = np.exp(np.array(scores))
    return max(scores, default=-np.inf), float(weights.sum()), float(weights @ np.array(values))


PART_INSTEAD: dict[str, Callable[..., Any]] = {
    "not-shifted": _plain_part,
    "divided": lambda s, v: (*_part(s, v)[:2], _part(s, v)[2] / max(_part(s, v)[1], 1e-300)),
    "values-not-weighted": lambda s, v: (*_part(s, v)[:2], sum(v)),
}
MERGE_INSTEAD: dict[str, Callable[..., Any]] = {
    "not-rescaled": lambda x, y: (max(x[0], y[0]), x[1] + y[1], x[2] + y[2]),
    "largest-added": lambda x, y: (x[0] + y[0], x[1] + y[1], x[2] + y[2]),
    "second-not-rescaled": lambda x, y: (
        max(x[0], y[0]), *(_scale(x, y) * a + b for a, b in zip(x[1:], y[1:], strict=True))
    ),
    "weights-alone": lambda x, y: (*_merged(x, y)[:2], x[2] + y[2]),
    "upside-down": lambda x, y: (
        max(x[0], y[0]),
        *(
            a / _scale(x, y) + b / _scale(y, x)
            for a, b in zip(x[1:], y[1:], strict=True)
        ),
    ),
}  # fmt: skip


def _scale(x: Sums, y: Sums) -> np.float64:
    return np.exp(x[0] - max(x[0], y[0]))


def judge(of_part: Any, of_merge: Any) -> Finding:
    """Both functions on every case, and then all parts of a list that is drawn anew, merged."""
    rng = drawing.generator()
    drawn = [
        (list(map(float, rng.uniform(-5, 5, n) + at)), list(map(float, rng.uniform(-4, 4, n))))
        for n, at in ((3, 0), (4, 700), (2, 702), (5, 698), (LONG, -3))
    ]
    with np.errstate(all="ignore"):  # for what mistakes give
        return (
            _judge("part", of_part, LISTS, drawn, _part, PART_INSTEAD)
            or _judge("merge", of_merge, _pairs(LISTS), _pairs(drawn), _merged, MERGE_INSTEAD)
            or Finding("passed", (("Checked", f"{len(LISTS)} parts, {len(_pairs(LISTS))} pairs"),))
        )


def _judge(
    name: str, answer: Any, cases: Any, fresh: Any, reference: Callable, instead: dict
) -> Finding | None:
    every = [*cases, *fresh]
    got = []
    for i, outcome in enumerate(guard.attempts(answer, every)):
        anew = i >= len(cases)
        facts = ((DRAWN_ANEW if anew else FAILING, f"{name}{_shown(every[i])}"),)
        details = {"case": every[i], "function": name}
        if outcome.fault:
            found = outcome.fault
            if not _all_right(got, every, reference):
                break
            found = Finding(found.diagnosis, facts + found.facts, details | dict(found.details))
            return found.anew if anew else found
        if outcome.value is Ellipsis:
            return Finding("not-attempted", ((name, "still returns ..."),), details)
        sums = _sums(outcome.value)
        if sums is None:
            told = (("Found", f"it returned {short(outcome.value)}; use three numbers"),)
            return Finding("wrong-type", facts + told, details)
        got.append(sums)
    for i, (case, sums) in enumerate(zip(every, got, strict=False)):
        expected = reference(*case)
        if _near(sums, expected):
            continue
        anew = i >= len(cases)
        facts = (
            (DRAWN_ANEW if anew else FAILING, f"{name}{_shown(case)}"),
            ("Result", "expected {}, got {}".format(*_apart(expected, sums))),
        )
        details = {"case": case, "function": name, "expected": expected, "got": sums}
        if anew:
            return Finding("known-cases-only", facts, details)
        return Finding(_why(got, cases, reference, instead), facts, details)
    return None


def _all_right(got: list[Sums], every: list, reference: Callable) -> bool:
    return all(_near(sums, reference(*case)) for case, sums in zip(every, got, strict=False))


def _why(got: list[Sums], cases: Any, reference: Callable, instead: dict) -> str:
    """The mistake that explains the sums of all cases."""
    tried = list(zip(cases, got, strict=False))
    for name, wrong in instead.items():
        ordinary = [(case, sums) for case, sums in tried if _finite(wrong(*case))]
        if ordinary and all(_near(sums, wrong(*case)) for case, sums in ordinary):
            return name
    right = [_near(sums, reference(*case)) for case, sums in tried]
    finite = [case for (case, sums), ok in zip(tried, right, strict=True) if not ok]
    if all(_empty(case) for case in finite):
        return "empty-part"
    if instead is MERGE_INSTEAD and all(
        _near(sums, max(case)) for (case, sums), ok in zip(tried, right, strict=True) if not ok
    ):
        return "smaller-dropped"
    return "right-in-part" if any(right) else "wrong-values"


def _empty(case: tuple) -> bool:
    """Whether a case has a part without an element."""
    return any(len(x) == 0 or x[0] == -np.inf for x in case)


def _finite(sums: Sums) -> bool:
    return bool(np.isfinite(sums).all())


def _sums(value: Any) -> Sums | None:
    """Three numbers, or None where the value is something else."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, tuple | list) or len(value) != 3:
        return None
    if any(isinstance(v, bool) or not isinstance(v, numbers.Real | np.floating) for v in value):
        return None
    return float(value[0]), float(value[1]), float(value[2])


def _near(sums: Sums, expected: Sums) -> bool:
    return all(
        x == y or (math.isfinite(y) and abs(x - y) <= EXACT * max(abs(y), 1e-30))
        for x, y in zip(sums, expected, strict=True)
    )


def _shown(values: Any, digits: int = 6) -> str:
    """Numbers, or the first of a list of them, in brackets."""
    return f"({', '.join(_text(v, digits) for v in values)})"


def _text(value: Any, digits: int) -> str:
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    some = ", ".join(f"{x:.6g}" for x in value[:SHOWN])
    return f"[{some}{', …' if len(value) > SHOWN else ''}]"


def _apart(expected: Sums, got: Sums) -> tuple[str, str]:
    """Both sums with as many digits as it takes to see that they differ."""
    texts = _shown(expected), _shown(got)
    return texts if texts[0] != texts[1] else (_shown(expected, 14), _shown(got, 14))


TASK = Task(
    name="10.4",
    title="Softmax in parts",
    section="chapter 10, Which other sums can be split?",
    asked="part(scores, values) and merge(one, other), each three numbers: the largest score, the "
    "sum of the weights, the sum of the weighted values.",
    prompt="""
    Attention weighs values by a softmax of scores: Σ exp(sᵢ)·vᵢ / Σ exp(sᵢ). With one query and
    many keys it is a tall reduction, and one SM would do it all. Split it: each block has a part of
    the scores and values.

    exp(801) is no float64, so that one subtracts the largest score first: numerator and denominator
    shrink by the same factor, and their quotient stays. But each part has a largest score of its
    own.

    - `part(scores, values)`: of one part `(largest, weights, total)`, with weights = Σ exp(s −
      largest) and total = Σ exp(s − largest)·v; for a part without elements (−inf, 0, 0);
    - `merge(one, other)`: the same three numbers of both parts together, from those of each alone.
      Merged in any order and grouping, total / weights is the result of the whole list.

    Scores lie anywhere from −1000 to 1000; nothing may overflow.
    """,
    judge=judge,
    answers=(part, merge),
    diagnoses={
        "not-attempted": Diagnosis(
            "A function still returns the gap of the skeleton.",
            "By which factor does exp(s − 3) differ from exp(s − 5)?",
            "```python\nlargest = max(one[0], other[0])\nfactor = np.exp(one[0] - ...)\n```",
        ),
        "not-shifted": Diagnosis(
            "The exponentials are those of the scores themselves, which overflow.",
            "What is exp(801), and what exp(801 − 801)?",
            "```python\nnp.exp(s - largest)\n```",
        ),
        "divided": Diagnosis(
            "The total is divided by the weights already. Quotients of parts cannot be added.",
            "Parts of one and of a hundred elements: how much should each quotient count?",
            "total = Σ exp(s − largest)·v; the division comes at the very end.",
        ),
        "values-not-weighted": Diagnosis(
            "The values are added without their weights.",
            "How much does a value count whose score is lower by 10?",
            "```python\nsum(np.exp(s - largest) * v for ...)\n```",
        ),
        "not-rescaled": Diagnosis(
            "The sums of the two parts are added as they are, but each is relative to the largest "
            "score of its own part.",
            "Part 1 has largest score 3 and part 2 has 5. By which factor is each weight of part 1 "
            "too large, once 5 is the largest?",
            "```python\nfactor = np.exp(one[0] - largest)\nweights = factor * one[1] + ...\n```",
        ),
        "second-not-rescaled": Diagnosis(
            "Only the first part is brought to the common largest score.",
            "What if the first part has the larger score?",
            "```python\nweights = np.exp(one[0] - largest) * one[1] + np.exp(...) * other[1]\n```",
        ),
        "weights-alone": Diagnosis(
            "The weights are brought to the common largest score, and the totals are not.",
            "Numerator and denominator have to be relative to the same score: are they?",
            "```python\ntotal = first * one[2] + ... * other[2]\n```",
        ),
        "smaller-dropped": Diagnosis(
            "The part with the smaller largest score is left out.",
            "How much do 1000 elements count together, whose scores are lower by 6?",
            "```python\nfactor = np.exp(one[0] - largest)    # small, and not 0\n```",
        ),
        "largest-added": Diagnosis(
            "The largest scores are added.",
            "What is the largest of the scores of both parts?",
            "```python\nlargest = max(..., ...)\n```",
        ),
        "upside-down": Diagnosis(
            "The factor is the reciprocal of the right one.",
            "The common largest score exceeds that of a part. Do its weights grow or shrink?",
            "```python\nnp.exp(one[0] - largest)    # at most 1\n```",
        ),
        "empty-part": Diagnosis(
            "All is right but for parts without elements: they have the largest score −inf, and "
            "−inf − (−inf) is NaN.",
            "What are the sums of no element, and what of two empty parts together?",
            "```python\nif largest == -np.inf:\n    return ...\n```",
        ),
    },
    praise="Partial results need not be sums: what splits is anything that merges in any order.",
)
