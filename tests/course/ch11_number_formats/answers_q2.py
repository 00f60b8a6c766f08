"""Answers to exercise 11.2."""

from fractions import Fraction
from math import floor, frexp, ldexp, trunc

import numpy as np

from gemmlab.course.ch11_number_formats.q2_tensor_core_block import CASES, block
from gemmlab.numerics import fused_dot_add
from tests.course.answers import Wrong, fooling, table, wrong


def whole_numbers(a, b, c):
    terms = [
        (Fraction(x) * Fraction(y), frexp(x)[1] + frexp(y)[1] - 2)
        for x, y in zip(a, b, strict=True)
    ]
    terms.append((Fraction(c), frexp(c)[1] - 1))
    exponents = [e for value, e in terms if value]
    if not exponents:
        return 0
    shift = max(exponents) - 25
    total = sum(int(value / Fraction(2) ** shift) for value, _ in terms)
    extra = max(0, abs(total).bit_length() - 24)
    sign = -1 if total < 0 else 1
    return ldexp(sign * (abs(total) >> extra), shift + extra)


def in_two_passes(a, b, c):
    products = [(x * y, frexp(x)[1] + frexp(y)[1] - 2) for x, y in zip(a, b, strict=True)]
    terms = [*products, (c, frexp(c)[1] - 1)]
    top = max((e for value, e in terms if value != 0.0), default=None)
    if top is None:
        return 0.0
    units = 0
    for value, _ in terms:
        units += trunc(ldexp(value, 25 - top))
    bits = abs(units).bit_length()
    drop = max(bits - 24, 0)
    sign = (units > 0) - (units < 0)
    return ldexp(sign * (abs(units) >> drop << drop), top - 25)


RIGHT = {
    "in two passes": (in_two_passes,),
    "the library": (
        lambda a, b, c: float(fused_dot_add(np.float16(a), np.float16(b), np.float32(c))),
    ),
    "whole numbers": (whole_numbers,),
}

CUT = "math.trunc(c / unit) + sum(math.trunc(x * y / unit) for x, y in pairs)"
LAST = "place * math.trunc(total / place)"


def of(misconception, diagnosis, *edits):
    return wrong(block, misconception, diagnosis, *edits)


def exact(a, b, c):
    return float(sum(Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True)) + Fraction(c))


def cuda_core(a, b, c):
    total = np.float32(c)
    for x, y in zip(a, b, strict=True):
        total = np.float32(float(total) + x * y)
    return float(total)


def c_last(a, b, c):
    total = np.float32(0)
    for x, y in [*zip(a, b, strict=True), (c, 1.0)]:
        total = np.float32(float(total) + x * y)
    return float(total)


def cut_once(a, b, c):
    total = exact(a, b, c)
    place = 2.0 ** (frexp(total)[1] - 24) if total else 1.0
    return place * trunc(total / place)


assert floor(-1.5) == -2  # what the wrong answer with // relies on

WRONG = {
    "exact": Wrong("Tensor Cores are exact", "nothing-lost", (exact,)),
    "FMA by FMA": Wrong("a Tensor Core is many FMAs", "one-by-one", (cuda_core,)),
    "rounded once": Wrong(
        "one rounding, to nearest", "rounded-once-to-nearest",
        (lambda a, b, c: float(np.float32(exact(a, b, c))),),
    ),
    "cut once": Wrong("the sum is cut, the terms are not", "not-aligned", (cut_once,)),
    "to nearest at the end": of(
        "float32 is rounded to nearest", "last-to-nearest", (LAST, "place * round(total / place)")
    ),
    "26 bits": of("the sum fits", "not-rounded-at-the-end", (LAST, "total")),
    "terms to nearest": of(
        "terms are rounded", "terms-to-nearest", (CUT, CUT.replace("math.trunc", "round"))
    ),
    "floor": of(
        "// cuts off", "terms-rounded-down", (CUT, CUT.replace("math.trunc", "math.floor"))
    ),
    "exponent of the product": of(
        "products are normalised", "products-normalised",
        ("exponent(x) + exponent(y)", "exponent(x * y)"),
    ),
    "zeros": of("a zero is a term like others", "zeros-count", (" if x and y]", "]")),
    "c comes last": of(
        "products are summed first", "c-sets-no-exponent",
        ("[exponent(c)] if c else []", "[exponent(c)] if c and not largest else []"),
    ),
    "c whole": of("c is a float32 already", "c-not-cut", ("math.trunc(c / unit)", "c / unit")),
    "Volta": of("all generations are alike", "bits-of-another-core", ("- 25)", "- 23)")),
    "Ampere": of("all generations are alike", "bits-of-another-core", ("- 25)", "- 24)")),
    "one bit more": of(
        "two guard bits and a sticky bit", "bits-of-another-core", ("- 25)", "- 26)")
    ),
    "no c": of("c is added by somebody else", "c-forgotten", ("math.trunc(c / unit) + sum", "sum")),
    "no c at all": of(
        "c is added by somebody else", "c-forgotten", ("math.trunc(c / unit) + sum", "sum"),
        ("    largest += [exponent(c)] if c else []\n", ""),
    ),
    "a c of zero": of(
        "every number has an exponent", "zeros-count",
        ("[exponent(c)] if c else []", "[exponent(c)]"),
    ),
    "c last, in float32": Wrong("np.dot, and then c", "one-by-one", (c_last,)),
    "cut once, to units": of(
        "the sum is cut, the terms are not", "not-aligned",
        (CUT, "math.trunc((c + sum(x * y for x, y in pairs)) / unit)"),
    ),
    "c alone is cut": of(
        "products are exact", "products-not-cut",
        (CUT, "math.trunc(c / unit) + sum(x * y / unit for x, y in pairs)"),
    ),
    "products in float16": of(
        "a product has the format of its factors", "products-rounded",
        ("    pairs =",
         "    from gemmlab.numerics import round_to\n\n" "    def rounded(x, y):\n"
         "        return float(round_to(x * y, 'float16'))\n\n" "    pairs ="),
        (CUT, CUT.replace("x * y", "rounded(x, y)")),
    ),
    "units": of("the sum is in units", "in-units", ("total = unit * (", "total = (")),
    "23 bits": of("24 bits lie below the first", "other-bits-at-the-end", ("- 23)", "- 22)")),
    "25 bits": of("24 bits lie below the first", "other-bits-at-the-end", ("- 23)", "- 24)")),
    "exponents cut, not floored": of(
        "int() is floor()", "right-in-part",
        ("exponent(x) + exponent(y)", "int(math.log2(abs(x))) + int(math.log2(abs(y)))"),
    ),
    "nothing": of("nothing is a number", "wrong-type", (f"return {LAST}", "return None")),
}  # fmt: skip


def appends(a, b, c):
    a.append(c)
    b.append(1.0)
    return block(a, b, 0.0)


def sorts(a, b, c):
    result = block(a, b, c)
    a.sort()
    return result


def empties(a, b, c):
    total = block(a, b, c)
    while a:
        a.pop()
    return total


FOOLING = {
    "six products": wrong(
        block,
        "a block is short",
        "products-left-out",
        ("zip(a, b, strict=True)", "zip(a[:6], b[:6], strict=True)"),
    ),
    "c is rounded down": wrong(
        block,
        "// cuts off",
        "terms-rounded-down",
        ("math.trunc(c / unit)", "math.floor(c / unit)"),
    ),
    "c appended": fooling("c is one more product", "arguments-changed", appends),
    "a sorted": fooling("nobody looks at a again", "arguments-changed", sorts),
    "a emptied": fooling("nobody looks at a again", "arguments-changed", empties),
    "by heart": fooling("the cases are in the package", "known-cases-only", table(block, CASES)),
}
