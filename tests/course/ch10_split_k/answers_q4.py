"""Answers to exercise 10.4."""

import math

import numpy as np

from gemmlab.course.ch10_split_k.q4_softmax_in_parts import LISTS, _pairs, merge, part
from tests.course.answers import Wrong, edited, fooling, for_ever, from_the_judge, table

FIRST, SECOND = "first * one[1] + second * other[1]", "first * one[2] + second * other[2]"
FACTORS = "first, second = np.exp(one[0] - largest), np.exp(other[0] - largest)"
EMPTY = "    if largest == -np.inf:\n        return one\n"


def _of_arrays(scores, values):
    if not len(scores):
        return -np.inf, 0.0, 0.0
    s, v = np.array(scores), np.array(values)
    w = np.exp(s - s.max())
    return s.max(), w.sum(), w @ v


def _one_by_one(scores, values):
    """A part as it is met, element by element."""
    sums = -math.inf, 0.0, 0.0
    for s, v in zip(scores, values, strict=True):
        sums = _smaller_into_larger(sums, (s, 1.0, v))
    return sums


def _smaller_into_larger(one, other):
    if other[0] > one[0]:
        one, other = other, one
    if other[1] == 0:
        return one
    factor = math.exp(other[0] - one[0])
    return [one[0], one[1] + factor * other[1], one[2] + factor * other[2]]


def _nan_to_zero(one, other):
    with np.errstate(invalid="ignore"):
        largest = np.maximum(one[0], other[0])
        factors = np.nan_to_num(np.exp(np.array([one[0], other[0]]) - largest))
    return largest, factors @ [one[1], other[1]], factors @ [one[2], other[2]]


RIGHT = {
    "arrays": (_of_arrays, merge),
    "one by one": (_one_by_one, _smaller_into_larger),
    "without a branch": (_of_arrays, _nan_to_zero),
}


def _dropped(gap):
    """Lines of `merge` that leave out a part whose largest score is lower by more than `gap`."""
    return f"if abs(one[0] - other[0]) > {gap}:\n        return max(one, other)\n    "


def _part(misconception, diagnosis, *edits):
    return Wrong(misconception, diagnosis, (edited(part, *edits), merge))


def _merge(misconception, diagnosis, *edits):
    return Wrong(misconception, diagnosis, (part, edited(merge, *edits)))


WRONG = {
    "no shift": _part("exp is exp", "not-shifted", ("np.exp(s - largest)", "np.exp(s)")),
    "averages": _part(
        "a part has a softmax of its own", "divided",
        ("return largest, sum(weights), sum(w * v for w, v in zip(weights, values, strict=True))",
         "total = sum(w * v for w, v in zip(weights, values, strict=True))\n"
         "    return largest, sum(weights), total / (sum(weights) or 1)"),
    ),
    "plain values": _part(
        "weights come at the end", "values-not-weighted",
        ("sum(w * v for w, v in zip(weights, values, strict=True))", "sum(values)"),
    ),
    "empty list": _part(
        "there is always one", "raises", ("max(scores, default=-np.inf)", "max(scores)")
    ),
    "added": _merge(
        "sums are added", "not-rescaled",
        (FIRST, "one[1] + other[1]"), (SECOND, "one[2] + other[2]"),
    ),
    "the first alone": _merge(
        "the second is the larger", "second-not-rescaled",
        (FIRST, "first * one[1] + other[1]"), (SECOND, "first * one[2] + other[2]"),
    ),
    "weights alone": _merge(
        "values are no exponentials", "weights-alone", (SECOND, "one[2] + other[2]")
    ),
    "all added": _merge(
        "three sums", "largest-added",
        ("return largest, " + FIRST + ", " + SECOND,
         "return one[0] + other[0], one[1] + other[1], one[2] + other[2]"),
    ),
    "reciprocal": _merge(
        "a larger score makes weights larger", "upside-down",
        (FACTORS, "first, second = np.exp(largest - one[0]), np.exp(largest - other[0])"),
    ),
    "nothing and nothing": _merge("a part is never empty", "empty-part", (EMPTY, "")),
    "nothing is zero": _part(
        "a sum of nothing is 0", "empty-part", ("default=-np.inf", "default=0.0")
    ),
    "beyond 5 nothing counts": _merge(
        "exp(-5) is small", "smaller-dropped", (FACTORS, _dropped(5) + FACTORS)
    ),
    "beyond 20 nothing counts": _merge(
        "exp(-20) is nothing", "smaller-dropped", (FACTORS, _dropped(20) + FACTORS)
    ),
    "a whole score": _part(
        "scores are whole numbers", "right-in-part",
        ("largest = max(scores, default=-np.inf)",
         "largest = int(max(scores)) if scores else -np.inf"),
    ),
    "100 elements at most": _part(
        "parts are short", "known-cases-only",
        ("for s in scores]", "for s in scores[:100]]"), ("zip(weights, values, strict=True)",
                                                          "zip(weights, values)"),
    ),
    "a gap": _merge("one of two is enough", "not-attempted",
                    ("return largest, " + FIRST + ", " + SECOND, "return ...")),
    "two numbers": _merge("the largest is known", "wrong-type",
                          ("return largest, " + FIRST, "return " + FIRST)),
}  # fmt: skip


def _smallest(scores, values):
    """Relative to the least score, which overflows where scores differ much."""
    least = min(scores, default=-np.inf)
    weights = [np.exp(min(s - least, 700)) for s in scores]
    return least, sum(weights), sum(w * v for w, v in zip(weights, values, strict=True))


def _factor_of_the_gap(one, other):
    """One exponential for both, which overflows where the scores are far apart."""
    if one[1] == 0:
        return other
    if other[1] == 0:
        return one
    with np.errstate(all="ignore"):
        f = np.exp(other[0] - one[0])
        back = 1 / max(f, 1.0)
        sums = (one[1] + f * other[1]) * back, (one[2] + f * other[2]) * back
    return max(one[0], other[0]), *sums


FOOLING = {
    "one exponential": fooling("scores are close", "right-in-part", part, _factor_of_the_gap),
    "parts by heart": fooling(
        "the cases are in the package", "known-cases-only",
        table(part, LISTS, (0.0, 0.0, 0.0)), merge,
    ),
    "pairs by heart": fooling(
        "the cases are in the package", "known-cases-only",
        part, table(merge, _pairs(LISTS), (0.0, 0.0, 0.0)),
    ),
    "the judge's": fooling("a caller knows", "wrong-type", part, from_the_judge),
    "the least score": fooling("any score will do", "right-in-part", _smallest, merge),
    "merges for ever": fooling("nobody can stop it", "never-ends", part, for_ever),
}  # fmt: skip
