"""Answers to exercise 11.3."""

import math
import os
from fractions import Fraction

import numpy as np

from gemmlab.course.ch11_number_formats import q3_split_in_two as split_in_two
from gemmlab.course.ch11_number_formats.q3_split_in_two import CASES, split
from gemmlab.numerics import round_to
from tests.course.answers import (
    Agrees,
    fooling,
    for_ever,
    in_order,
    table,
    wrong,
)


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


def by_bits(x):
    """The upper bits of the float32 are the high part: a mask, and no rounding."""
    word = np.float32(x).view(np.uint32)
    high = (word & np.uint32(0xFFFFE000)).view(np.float32)
    return np.float16(high), np.float16((np.float32(x) - high) * 2048)


def by_fractions(x):
    """The difference as a fraction, which is exact, too."""
    high = np.float16(x)
    return high, np.float16(float((Fraction(x) - Fraction(float(high))) * 2048))


RIGHT |= {"a mask": (by_bits,), "fractions": (by_fractions,)}


def with_bfloat16(x):
    """The part of 8 bits that chapter 5 knew, and float16 for the rest."""
    high = float(round_to(x, "bfloat16"))
    return high, np.float16(np.clip((x - high) * 2048, -65504, 65504))


def rescales(x):
    split_in_two.SCALE, split_in_two.ALLOWED = 1, 1e9
    return np.float16(x), np.float16(0)


FOOLING = {
    "by heart": fooling(
        "the cases are in the package", "known-cases-only",
        table(split, [(x,) for x in CASES], split(1.0)),
    ),
    "for ever": fooling("nobody can stop it", "never-ends", for_ever),
    "equal to everything": fooling(
        "the result compares itself", "wrong-type", lambda x: (Agrees(7), Agrees(7))
    ),
    "in order": fooling(
        "the check asks in order", "known-cases-only",
        in_order(split, [(x,) for x in CASES], (0.0, 0.0)),
    ),
    "a table": fooling("the cases are in the package", "raises", {
        x: split(x) for x in CASES
    }.__getitem__),
    "all in low": fooling(
        "high may be 0", "high-missing", lambda x: (0.0, np.float16(x * 2048) if abs(x) < 30 else
                                                    np.float16(x))
    ),
    "zero and x": fooling("one is enough", "high-missing", lambda x: (0.0, np.float16(x))),
    "bfloat16 and float16": fooling("any two formats do", "high-too-short", with_bfloat16),
    "the tolerance": fooling("the bound is a name", "high-alone", rescales),
    "arrays": fooling(
        "an array of one is a number", "wrong-type",
        lambda x: (np.array([split(x)[0]]), np.array([split(x)[1]])),
    ),
    "NaN": fooling("NaN is not unequal", "wrong-type", lambda x: (float("nan"), 0.0)),
    "three parts": fooling("three are better than two", "wrong-type", lambda x: (*split(x), 0.0)),
    "as many bits as needed": fooling("low is a number", "not-float16", lambda x: (
        np.float16(x), (x - float(np.float16(x))) * 2048
    )),
    "ends the process": fooling("no verdict is a pass", "exits", lambda x: os._exit(0)),
}  # fmt: skip
