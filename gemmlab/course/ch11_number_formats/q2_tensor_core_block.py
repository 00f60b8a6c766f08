"""Exercise 11.2: one block of a Tensor Core, term by term."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from gemmlab.course.judging import Diagnosis, Finding, Task, drawing, functions_on_trial
from gemmlab.course.judging.source import short


def _case(c: float, *products: tuple[float, float]) -> tuple[list[float], list[float], float]:
    return [x for x, _ in products], [y for _, y in products], c


T, H = 2.0**-12, 2.0**-13  # T·H = 2^-25
# a, b, c: small ones first. No product or sum is subnormal, and c may be 0.
CASES = (
    _case(0.0, (1.0, 1.0)),
    _case(2.0, (3.0, 0.5)),
    _case(-1.0, (1.0, 1.0)),
    _case(0.0, (1.0, 1.0), (-1.0, 1.0)),
    _case(0.0, (0.0, 1.0)),
    _case(0.0, (0.0, 1024.0), (T, T)),
    _case(0.0, (H, 1.5 * H), (-H, H)),
    _case(1.0, (T, 1.5 * T)),
    _case(-1.0, (-T, 1.5 * T)),
    _case(0.0, (1.0, 1.0), (T, H), (-1.0, 1.0)),
    _case(0.0, (1.0, 1.0), (T, 1.5 * H), (-1.0, 1.0)),
    _case(0.0, (1.0, 1.0), (-T, 1.5 * H), (-1.0, 1.0)),
    _case(0.0, (1.0, 1.0), (T, 1.5 * H), (T, 1.5 * H), (-1.0, 1.0)),
    _case(0.0, (1.5, 1.5), (T, H), (-1.5, 1.5)),
    _case(0.0, (0.75, 0.75), (H, 0.5 * H), (-0.75, 0.75)),
    _case(2.0**-25, (1.5, 1.5), (-1.5, 1.5)),
    _case(1.5 * 2.0**-25, (1.0, 1.0), (-1.0, 1.0)),
    _case(-1.5 * 2.0**-25, (1.0, 1.0), (-1.0, 1.0)),
    _case(2.0**13, (2.0**-11, 1.0), (2.0**-12, 1.0), (-(2.0**13), 1.0)),
    _case(2048.0, (1.0, H), (1.0, H)),
    _case(2048.0, *[(3 * 2.0**-9, 2.0**-7)] * 6),
    _case(-0.25, *[(1.0 + i / 8, 0.5) for i in range(16)]),
    _case(2048.0, (1.0, H), (1.0, -3 * H), (1.5, H)),
    _case(0.3333333432674408, (0.333251953125, 1.0), (0.0999755859375, 0.0999755859375)),
)


def block(a, b, c):
    """The float32 that one block of a Hopper Tensor Core gives for c + Σ a_i·b_i."""

    def exponent(x):  # floor(log2 |x|)
        return math.frexp(x)[1] - 1

    # The largest exponent among the products that are not 0, e(a_i) + e(b_i), and c if it is not 0.
    # [answer]
    pairs = list(zip(a, b, strict=True))
    largest = [exponent(x) + exponent(y) for x, y in pairs if x and y]
    largest += [exponent(c)] if c else []
    if not largest:
        return 0.0
    unit = 2.0 ** (max(largest) - 25)
    # [end]

    # Each term, cut off to whole units, and the sum of all. Python's numbers hold it exactly.
    # [answer]
    total = unit * (math.trunc(c / unit) + sum(math.trunc(x * y / unit) for x, y in pairs))
    # [end]

    # The sum, rounded to 24 significant bits.
    # [answer]
    if total == 0:
        return 0.0
    place = 2.0 ** (exponent(total) - 23)
    return place * math.trunc(total / place)
    # [end]


# ---------------------------------------------------- what mistakes give, in rational numbers

KEPT = 25  # fraction bits of a Hopper Tensor Core: `numerics.tensor_core("sm_90").fraction_bits`


def _exponent(x: Fraction) -> int:
    return math.frexp(float(x))[1] - 1


def _nearest(x: Fraction) -> int:
    return round(x)


def variant(
    *,
    kept: int | None = KEPT,
    cut: Callable[[Fraction], int] = math.trunc,
    last: Callable[[Fraction], int] | None = math.trunc,
    bits: int = 24,
    normalised: bool = False,
    zeros_count: bool = False,
    zero_c_counts: bool = False,
    c_sets: bool = True,
    c_cut: bool = True,
    c_added: bool = True,
    products_cut: bool = True,
    sum_cut: bool = False,
    half_products: bool = False,
    in_units: bool = False,
    floor_c: bool = False,
    first: int | None = None,
) -> Callable[[list, list, float], float]:
    """The block with one rule changed, in rational numbers.

    kept : fraction bits, None: no alignment; cut, last : how terms and the sum are rounded
    bits : significant bits of the result; in_units : the unit is forgotten in the sum
    normalised : exponents of the products themselves; zeros_count : a zero has exponent e(y)
    zero_c_counts : c = 0 has an exponent; c_sets, c_cut, c_added : whether c takes part in the
    largest exponent, is cut off, and is in the sum; products_cut : whether products are cut off
    sum_cut : the sum is cut off in their place; half_products : products are rounded to float16
    floor_c : c is rounded down in place of cut off; first : how many of the products take part
    """

    def run(a: list[float], b: list[float], c: float) -> float:
        pairs = [(Fraction(x), Fraction(y)) for x, y in zip(a, b, strict=True)][:first]
        exponents = [
            _exponent(x * y) if normalised else _exponent(x) + _exponent(y)
            for x, y in pairs
            if (x and y) or zeros_count
        ]
        if (c or zero_c_counts) and (c_sets or not exponents):
            exponents.append(_exponent(Fraction(c)))
        if not exponents:
            return 0.0
        terms = [x * y for x, y in pairs]
        if half_products:
            terms = [Fraction(float(np.float16(float(x)))) for x in terms]
        unit = Fraction(1) if kept is None else Fraction(2) ** (max(exponents) - kept)
        if kept is not None and products_cut:
            terms = [unit * cut(x / unit) for x in terms]
        last_term = Fraction(c) if c_added else Fraction(0)
        if kept is not None and c_cut:
            last_term = unit * (math.floor if floor_c else cut)(last_term / unit)
        total = sum(terms) + last_term
        if sum_cut:
            total = unit * cut(total / unit)
        total /= unit if in_units else 1
        if total == 0 or last is None:
            return float(total)
        place = Fraction(2) ** (_exponent(total) - bits + 1)
        return float(place * last(total / place))

    return run


reference = variant()


def _one_by_one(a: list[float], b: list[float], c: float, c_last: bool = False) -> float:
    """IEEE: each product is added and the sum rounded to nearest."""
    terms = [Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True)]
    total = Fraction(0)
    for term in [*terms, Fraction(c)] if c_last else [Fraction(c), *terms]:
        total += term
        if total:
            place = Fraction(2) ** (_exponent(total) - 23)
            total = place * round(total / place)
    return float(total)


# What a mistake gives; of "one-by-one 2" only the first word is the diagnosis.
INSTEAD = {
    "nothing-lost": variant(kept=None, last=None),
    "one-by-one": _one_by_one,
    "one-by-one 2": partial(_one_by_one, c_last=True),
    "rounded-once-to-nearest": variant(kept=None, last=_nearest),
    "not-aligned": variant(kept=None),
    "not-aligned 2": variant(products_cut=False, c_cut=False, sum_cut=True),
    "products-not-cut": variant(products_cut=False),
    "products-rounded": variant(half_products=True),
    "last-to-nearest": variant(last=_nearest),
    "not-rounded-at-the-end": variant(last=None),
    "terms-to-nearest": variant(cut=_nearest),
    "terms-rounded-down": variant(cut=math.floor),
    "terms-rounded-down 2": variant(floor_c=True),
    **{f"products-left-out {n}": variant(first=n) for n in (4, 6, 8)},
    "products-normalised": variant(normalised=True),
    "zeros-count": variant(zeros_count=True),
    "zeros-count 2": variant(zero_c_counts=True),
    "c-forgotten": variant(c_added=False),
    "c-forgotten 2": variant(c_added=False, c_sets=False),
    "in-units": variant(in_units=True),
    "in-units 2": variant(in_units=True, last=None),
    "other-bits-at-the-end": variant(bits=23),
    "other-bits-at-the-end 2": variant(bits=25),
    "c-sets-no-exponent": variant(c_sets=False),
    "c-not-cut": variant(c_cut=False),
    "bits-of-another-core 23": variant(kept=23),
    "bits-of-another-core 24": variant(kept=24),
    "bits-of-another-core 26": variant(kept=26),
}


# ------------------------------------------------------------------------------------- the judge


def _show(value: Any) -> str:
    """An argument as text that can be pasted."""
    return repr(value)


def _drawn_anew() -> list[tuple[list[float], list[float], float]]:
    """Blocks of products of very different size."""
    rng = drawing.generator()
    found = []
    for _ in range(4):
        shape = 2, 16
        a, b = np.float16(rng.uniform(1, 2, shape) * 2.0 ** rng.integers(-7, 7, shape))
        c = float(np.float32(rng.normal()))
        found.append(([float(x) for x in a], [float(-x) for x in b], c))
    return found


def judge(answer: Any) -> Finding:
    """Try every case, and find the rule that explains a wrong result."""
    fresh = _drawn_anew()
    found = functions_on_trial.judge("block", answer, CASES, reference, INSTEAD, _show, fresh)
    if found is None:
        checked = f"{len(CASES)} blocks and {len(fresh)} drawn anew, each to the last bit"
        return Finding("passed", (("Checked", checked),))
    return replace(found, diagnosis=found.diagnosis.split()[0], facts=_to_the_last_bit(found))


def _to_the_last_bit(found: Finding) -> tuple[tuple[str, str], ...]:
    """The facts, with a result of which every digit is shown."""
    details = found.details
    if "got" not in details:
        return found.facts
    text = f"expected {details['expected']!r}, got {short(details['got'])}"
    return tuple((a, text if a == "Result" else b) for a, b in found.facts)


TASK = Task(
    name="11.2",
    title="One block of a Tensor Core",
    section="chapter 11, Inside the Tensor Core",
    asked="block(a, b, c) returns what one block of a Hopper Tensor Core gives for c + Σ a_i·b_i.",
    prompt="""
    `a` and `b` are lists of float16 numbers (as Python floats), `c` is a float32 number. Follow the
    rules of the section *Inside the Tensor Core*:

    1. the largest exponent $E$ among the products that are not zero, $e(a_i) + e(b_i)$, and $c$;
    2. every term cut off, toward zero, to a multiple of $2^{E - 25}$;
    3. their exact sum, rounded toward zero to 24 significant bits.

    Nothing is subnormal, infinite or NaN here, and Python's floats have bits enough for every
    step. A sum of zero is `0.0`. The check compares each result to the last bit.
    """,
    judge=judge,
    answers=(block,),
    diagnoses={
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "Which term decides how much of the others is kept?",
            "```python\nunit = 2.0 ** (E - 25)\ntotal = unit * (math.trunc(c / unit) + ...)\n```",
        ),
        "wrong-type": Diagnosis(
            "One number is asked for, also where the sum is zero.",
            "What does the function return at the end of each of its ways? print() shows a number, "
            "but does not hand it over.",
            "```python\nreturn place * math.trunc(...)\n```",
        ),
        "nothing-lost": Diagnosis(
            "The sum is exact: nothing is cut off or rounded.",
            "How many bits below the largest term does the Tensor Core keep?",
            "```python\nmath.trunc(x * y / unit)\n```",
        ),
        "one-by-one": Diagnosis(
            "The products are added one after the other, each sum rounded to nearest: that is a "
            "CUDA core.",
            "In a block, how many roundings of the sum are there?",
            "```python\ntotal = unit * (math.trunc(c / unit) + sum(...))\n```",
        ),
        "rounded-once-to-nearest": Diagnosis(
            "The exact sum is rounded once, to nearest; the terms are not aligned.",
            "What happens to a term that is 2^-30 of the largest?",
            "```python\nunit = 2.0 ** (max(...) - 25)\n```",
        ),
        "not-aligned": Diagnosis(
            "The exact sum is rounded toward zero; but each term is cut off before it is added.",
            "What happens to two terms of three quarters of a unit each?",
            "```python\nmath.trunc(x * y / unit)\n```",
        ),
        "products-not-cut": Diagnosis(
            "c is cut off, but the products are not; they are terms as c is.",
            "What is left of a product of three quarters of a unit?",
            "```python\nmath.trunc(x * y / unit)\n```",
        ),
        "products-rounded": Diagnosis(
            "The products are rounded to float16; a Tensor Core keeps all their bits.",
            "How many significant bits has the product of two float16 numbers?",
            "```python\nx * y    # exact, in Python's floats\n```",
        ),
        "in-units": Diagnosis(
            "The sum counts units; as a number it is so many times 2^(E - 25).",
            "What is one unit worth?",
            "```python\ntotal = unit * (...)\n```",
        ),
        "c-forgotten": Diagnosis(
            "c is not in the sum.",
            "Which terms does a block add, beside the products?",
            "```python\ntotal = unit * (math.trunc(c / unit) + ...)\n```",
        ),
        "other-bits-at-the-end": Diagnosis(
            "The sum is not rounded to 24 significant bits, but to one more or less.",
            "The first of 24 bits has the weight 2^exponent(total). Which weight has the last?",
            "```python\nplace = 2.0 ** (exponent(total) - ...)\n```",
        ),
        "last-to-nearest": Diagnosis(
            "The sum is rounded to nearest; a Tensor Core rounds float32 results toward zero.",
            "What is 1 + 1.5·2^-24 in a Tensor Core?",
            "```python\nplace * math.trunc(...)\n```",
        ),
        "not-rounded-at-the-end": Diagnosis(
            "The sum has more bits than a float32; it has to be rounded to 24.",
            "How many significant bits can the sum have, and how many has a float32?",
            "```python\nplace = 2.0 ** (exponent(total) - 23)\n```",
        ),
        "terms-to-nearest": Diagnosis(
            "Terms are rounded to the nearest unit; they are cut off.",
            "What is left of a term of three quarters of a unit?",
            "```python\nmath.trunc(x * y / unit)\n```",
        ),
        "products-left-out": Diagnosis(
            "Only the first products of the block are added.",
            "How many products has a block of a Hopper, and where does your loop end?",
            "```python\nfor x, y in zip(a, b, strict=True):\n```",
        ),
        "terms-rounded-down": Diagnosis(
            "Negative terms are rounded away from zero: // and floor do that.",
            "What are floor(-1.5) and trunc(-1.5)?",
            "```python\nmath.trunc(...)\n```",
        ),
        "products-normalised": Diagnosis(
            "The exponent of a product is taken from the product; the Tensor Core adds the "
            "exponents of its factors.",
            "What are the exponents of 1.5 and of 1.5 · 1.5?",
            "```python\nexponent(x) + exponent(y)\n```",
        ),
        "zeros-count": Diagnosis(
            "A zero takes part in the largest exponent: a product, or c.",
            "Which exponent has 0 · 1024, and what does exponent(0.0) return?",
            "```python\n[... for x, y in pairs if x and y]\n```",
        ),
        "c-sets-no-exponent": Diagnosis(
            "c does not take part in the largest exponent.",
            "What if c is the largest term?",
            "```python\nlargest += [exponent(c)] if c else []\n```",
        ),
        "c-not-cut": Diagnosis(
            "c is added as it is; it is a term like the products.",
            "What is left of a c that is 1.5 · 2^-25 of the largest product?",
            "```python\nmath.trunc(c / unit)\n```",
        ),
        "bits-of-another-core": Diagnosis(
            "The number of bits kept is not that of Hopper.",
            "How many fraction bits does `numerics.tensor_core('sm_90')` keep?",
            "```python\nunit = 2.0 ** (E - ...)\n```",
        ),
    },
    praise="One term decides what is kept of all the others, everything else is cut off, and the "
    "order of the products does not matter.",
)
