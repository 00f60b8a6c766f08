"""Exercise 11.3: a float32 number as two float16 numbers."""

import numbers
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from gemmlab.course.judging import DRAWN_ANEW, FAILING, Diagnosis, Finding, Task, drawing, guard
from gemmlab.course.judging.source import short
from gemmlab.numerics import round_to

SCALE = 2048
ANEW = 32  # numbers drawn for each check
ALLOWED = 2.0**-21  # of |x|: what two significands of 11 bits leave, even if both are cut off
# float32 numbers whose high part is a normal float16, the plain ones first.
CASES = tuple(
    float(np.float32(x))
    for x in (
        1.0,
        0.1,
        3.14159265,
        -2.71828183,
        1 + 2.0**-11,  # halfway between two float16
        1 + 2.0**-10 + 2.0**-23,
        -1 / 3,
        0.0,
        1000.1,
        60000.12,
        -0.0123456789,
        2.0**-10 * 1.2345678,
        -(2.0**-13) * 1.7654321,
        2.0**-13 * 1.0001,
    )
)


def split(x):
    """The float16 numbers high and low with x ≈ high + low / 2048."""
    # The part that float16 can hold, then what is missing, times 2048.
    # [answer]
    high = np.float16(x)
    low = np.float16((x - float(high)) * 2048)
    return high, low
    # [end]


def judge(answer: Any) -> Finding:
    """The first number whose parts are no float16 numbers, or whose sum is too far away."""
    every = (*CASES, *_drawn_anew())
    pairs = []
    for x, outcome in zip(every, guard.attempts(answer, [(x,) for x in every]), strict=False):
        facts = ((_label(x), f"split({x!r})"),)
        details = {"case": (x,), "function": "split"}
        if outcome.fault:
            more = details | dict(outcome.fault.details)
            return Finding(outcome.fault.diagnosis, facts + outcome.fault.facts, more)
        pair = _numbers(outcome.value)
        if pair is None:
            if outcome.value is Ellipsis:
                return Finding("not-attempted", (("split", "still returns ..."),), details)
            told = (("Found", f"it returned {short(outcome.value)}; use two finite numbers"),)
            return Finding("wrong-type", facts + told, details)
        pairs.append(pair)
    for x, pair in zip(every, pairs, strict=True):
        facts = ((_label(x), f"split({x!r})"), ("Result", _shown(pair)))
        details = {"case": (x,), "function": "split", "got": pair}
        for name, part in zip(("high", "low"), pair, strict=True):
            if float(round_to(part, "float16")) != part:
                told = (("Not a float16", f"{name} = {part!r}"),)
                return Finding("not-float16", facts + told, details)
        if not _close(pair, x):
            error = abs(_value(pair) - Fraction(x)) / abs(Fraction(x)) if x else _value(pair)
            told = (("Error", f"{float(error):.2g} of |x|, where {ALLOWED:.2g} is allowed"),)
            why = _why(pairs) if x in CASES else "known-cases-only"
            return Finding(why, facts + told, details)
    checked = f"{len(CASES)} numbers and {ANEW} drawn anew, each within 2^-21"
    return Finding("passed", (("Checked", checked),))


def _drawn_anew() -> list[float]:
    """Numbers of the whole range, of either sign."""
    rng = drawing.generator()
    size, sign = rng.uniform(1, 2, ANEW), rng.choice([-1, 1], ANEW)
    return [float(np.float32(x)) for x in sign * size * 2.0 ** rng.integers(-13, 15, ANEW)]


def _label(x: float) -> str:
    return FAILING if x in CASES else DRAWN_ANEW


def _numbers(value: Any) -> tuple[float, float] | None:
    """Two finite numbers, or None where the value is something else."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        return None
    if any(isinstance(v, bool) or not isinstance(v, numbers.Real | np.floating) for v in value):
        return None
    pair = float(value[0]), float(value[1])
    return pair if np.isfinite(pair).all() else None


def _shown(pair: tuple[float, float]) -> str:
    return f"high = {pair[0]!r}, low = {pair[1]!r}"


def _value(pair: tuple[float, float], scale: float = SCALE) -> Fraction:
    return Fraction(pair[0]) + Fraction(pair[1]) / Fraction(scale)


def _close(pair: tuple[float, float], x: float, scale: float = SCALE) -> bool:
    return abs(_value(pair, scale) - Fraction(x)) <= Fraction(ALLOWED) * abs(Fraction(x))


def _half(x: float) -> float:
    return float(np.float16(x))


# What a mistake gives, as a test of all pairs against all numbers.
MISTAKES: dict[str, Callable[[tuple[float, float], float], bool]] = {
    "high-alone": lambda pair, x: pair == (_half(x), 0.0),
    "not-scaled": lambda pair, x: pair == (_half(x), _half(x - _half(x))),
    "scaled-too-late": lambda pair, x: pair == (_half(x), 2048 * _half(x - _half(x))),
    "wrong-sign": lambda pair, x: _close((pair[0], -pair[1]), x),
    "another-scale": lambda pair, x: any(_close(pair, x, 2.0**e) for e in (9, 10, 12, 13)),
    "exchanged": lambda pair, x: _close((pair[1], pair[0]), x),
    "high-missing": lambda pair, x: pair[0] == 0,
    "high-too-short": lambda pair, x: pair[0] == float(round_to(x, "bfloat16")),
}


def _why(pairs: list[tuple[float, float]]) -> str:
    """The mistake that explains the pairs of all `CASES`."""
    tried = list(zip(pairs, CASES, strict=False))
    for name, explains in MISTAKES.items():
        if all(explains(pair, x) for pair, x in tried):
            return name
    return "right-in-part" if any(_close(pair, x) for pair, x in tried) else "wrong-values"


TASK = Task(
    name="11.3",
    title="Two float16 for one float32",
    section="chapter 11, One more problem",
    asked="split(x) returns two float16 numbers, high and low, with x ≈ high + low / 2048.",
    prompt="""
    A float32 has 24 significant bits, and a float16 has 11. Carry `x` through the float16 inputs of
    a Tensor Core in **two** numbers: write `split(x)`, which returns `(high, low)`, both exactly
    representable in float16, with

    $$ x \\approx \\text{high} + \\text{low} / 2048, \\qquad |\\text{error}| \\le 2^{-21} |x|. $$

    `x` is the value of a float32, as a Python float, zero or from $2^{-13}$ to 60,001 in magnitude.
    `np.float16(…)` rounds to nearest. Python's floats hold every difference that you need exactly.
    The factor 2048 has a reason; the smallest numbers of the check show it.
    """,
    judge=judge,
    answers=(split,),
    diagnoses={
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "What is missing from np.float16(x), and how large can it be?",
            "```python\nhigh = np.float16(x)\nlow = np.float16(...)\nreturn high, low\n```",
        ),
        "wrong-type": Diagnosis(
            "Two finite numbers are asked for: return high, low.",
            "What does the function return? print() shows numbers, but does not hand them over.",
            "```python\nreturn high, low\n```",
        ),
        "not-float16": Diagnosis(
            "A part has more than 11 significant bits, or is beyond the range of float16.",
            "Which of your two numbers has not been rounded to float16?",
            "```python\nlow = np.float16(...)\n```",
        ),
        "high-alone": Diagnosis(
            "low is always 0: what rounding took away from x is lost.",
            "In which format is the difference computed? In float16 it is 0.",
            "```python\nlow = np.float16((x - float(high)) * ...)\n```",
        ),
        "not-scaled": Diagnosis(
            "low is the difference itself; it counts 2048 times: high + low / 2048.",
            "What does the statement divide low by?",
            "```python\nlow = np.float16((x - float(high)) * ...)\n```",
        ),
        "scaled-too-late": Diagnosis(
            "The difference is rounded to float16 before it is multiplied. Where it is small it is "
            "subnormal there, and loses its bits.",
            "What is the smallest normal float16, and how large is x - high where x is 2^-10?",
            "```python\nlow = np.float16(... * 2048)\n```",
        ),
        "wrong-sign": Diagnosis(
            "low has the wrong sign: it is what is missing from high, not what is too much.",
            "For x = 0.1, is high larger or smaller than x?",
            "```python\nx - float(high)\n```",
        ),
        "another-scale": Diagnosis(
            "low is multiplied by another power of two than 2048.",
            "What does the statement divide low by?",
            "```python\n(x - float(high)) * 2048\n```",
        ),
        "high-missing": Diagnosis(
            "high is always 0: low alone has 11 bits, and 24 are to be carried.",
            "Which float16 is nearest to x?",
            "```python\nhigh = np.float16(...)\n```",
        ),
        "high-too-short": Diagnosis(
            "high has the 8 significant bits of bfloat16: what is left is too much for low.",
            "How many significant bits has a float16, and how many are left of 24 for low?",
            "```python\nhigh = np.float16(...)    # 11 of the 24\n```",
        ),
        "exchanged": Diagnosis(
            "The two parts are exchanged: high comes first.",
            "Which of the two numbers is the larger one?",
            "```python\nreturn high, ...\n```",
        ),
    },
    praise="Two roundings, one after the other, keep 22 of 24 bits, and the factor keeps the "
    "second part out of the subnormals.",
)
