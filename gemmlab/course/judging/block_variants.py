"""One block of a Tensor Core, right and with a rule changed: the results of mistakes in 11.2."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np

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
) -> Callable[[list, list, float], float]:
    """The block with one rule changed, in rational numbers.

    kept : fraction bits, None: no alignment; cut, last : how terms and the sum are rounded
    bits : significant bits of the result; in_units : the unit is forgotten in the sum
    normalised : exponents of the products themselves; zeros_count : a zero has exponent e(y)
    zero_c_counts : c = 0 has an exponent; c_sets, c_cut, c_added : whether c takes part in the
    largest exponent, is cut off, and is in the sum; products_cut : whether products are cut off
    sum_cut : the sum is cut off in their place; half_products : products are rounded to float16
    """

    def run(a: list[float], b: list[float], c: float) -> float:
        pairs = [(Fraction(x), Fraction(y)) for x, y in zip(a, b, strict=True)]
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
            last_term = unit * cut(last_term / unit)
        total = sum(terms) + last_term
        if sum_cut:
            total = unit * cut(total / unit)
        if in_units:
            total /= unit
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
