"""Answers to exercise 11.3."""

import math
import os

import numpy as np

from gemmlab.exercises.split_in_two import CASES, split
from gemmlab.numerics import round_to
from tests.support.exercise_answers.edits import Agrees, fooling, for_ever, table, wrong


def by_library(x):
    high = float(round_to(x, "float16"))
    return high, float(round_to((x - high) * 2048, "float16"))


def by_cutting(x):
    """Both parts cut off in place of rounded."""
    if x == 0:
        return 0.0, 0.0
    place = 2.0 ** (math.frexp(x)[1] - 11)
    high = math.trunc(x / place) * place
    rest = (x - high) * 2048
    if rest == 0:
        return high, 0.0
    place = 2.0 ** max(math.frexp(rest)[1] - 11, -24)
    return high, math.trunc(rest / place) * place


def by_single(x):
    x = np.float32(x)
    high = x.astype(np.float16)
    return [high, ((x - high.astype(np.float32)) * np.float32(2048)).astype(np.float16)]


RIGHT = {"the library": (by_library,), "cutting": (by_cutting,), "float32": (by_single,)}

LOW = "np.float16((x - float(high)) * 2048)"


def of(misconception, diagnosis, *edits):
    return wrong(split, misconception, diagnosis, *edits)


WRONG = {
    "one is enough": of("float16 holds x", "high-alone", (LOW, "np.float16(0)")),
    "difference in float16": of(
        "a float16 minus a float16", "high-alone", (LOW, "np.float16(np.float16(x) - high)")
    ),
    "the difference": of("2048 is decoration", "not-scaled", (LOW, "np.float16(x - float(high))")),
    "rounded, then scaled": of(
        "the order is free",
        "scaled-too-late",
        (LOW, "np.float16(float(np.float16(x - float(high))) * 2048)"),
    ),
    "not rounded": of(
        "low may be a float32", "not-float16", (LOW, "np.float32((x - float(high)) * 2048)")
    ),
    "high not rounded": of("x is high", "not-float16", ("high = np.float16(x)", "high = x")),
    "too much": of("low is the error", "wrong-sign", (LOW, "np.float16((float(high) - x) * 2048)")),
    "1024": of("ten fraction bits", "another-scale", (LOW, "np.float16((x - float(high)) * 1024)")),
    "4096": of("twelve bits", "another-scale", (LOW, "np.float16((x - float(high)) * 4096)")),
    "low first": of("the order is free", "exchanged", ("return high, low", "return low, high")),
    "twice the same": of("two are better than one", "right-in-part", (LOW, "high")),
    "one number": of(
        "the sum is asked for", "wrong-type", ("return high, low", "return high + low")
    ),
    "a text": of(
        "bits are digits", "wrong-type", ("return high, low", "return str(high), str(low)")
    ),
    "divided by zero": of("x / x is 1", "raises", (LOW, "np.float16((x - float(high)) / x)")),
    "infinite": of(
        "2048 is small",
        "wrong-type",
        ("high = np.float16(x)", "high = np.float16('inf')"),
    ),
}


FOOLING = {
    "by heart": fooling(
        "the cases are in the package", "known-cases-only",
        table(split, [(x,) for x in CASES], otherwise=(0.0, 0.0)),
    ),
    "equals everything": fooling(
        "the result compares itself", "wrong-type", lambda x: (Agrees(x), Agrees(0))
    ),
    "for ever": fooling("nobody can stop it", "never-ends", for_ever),
    "ends the process": fooling("no verdict is a pass", "exits", lambda x: os._exit(0)),
}  # fmt: skip
