"""Answers to exercise 12.2."""

import math

from gemmlab.course.ch12_tcec.q2_split_footprint import (
    SMS,
    WARPS,
    _least,
    _passed,
    held,
    least,
    passed,
)
from tests.course.answers import Agrees, Wrong, edited, fooling, from_the_judge, in_order, table

BYTES, SUMS = "4 + 2 * 2 * 2 if stored else 4", "2 * m * n"


def in_words(m, n, k):
    return k * (m + n) / 32 + m * n / 16


def by_formula(flops, bandwidth, stored):
    wanted = (12 if stored else 4) * flops / (3 * bandwidth)
    return max(16, math.ceil(wanted / 16) * 16)


RIGHT = {
    "in one line": (
        lambda m, n, k, stored: (1 + 2 * bool(stored)) * 4 * k * (m + n),
        in_words,
        by_formula,
    ),
    "mixed": (passed, in_words, least),
}


def of_passed(misconception, diagnosis, *edits):
    return Wrong(misconception, diagnosis, (edited(passed, *edits), held, least))


def of_held(misconception, diagnosis, *edits):
    return Wrong(misconception, diagnosis, (passed, edited(held, *edits), least))


def of_least(misconception, diagnosis, *edits):
    return Wrong(misconception, diagnosis, (passed, held, edited(least, *edits)))


def _floor(flops, bandwidth, stored):
    return max(1, (12 if stored else 4) * flops // (48 * bandwidth)) * 16


WRONG = {
    "loaded only": of_passed("a store is free", "parts-once", (BYTES, "8 if stored else 4")),
    "halves throughout": of_passed(
        "all is float16", "half-words", (BYTES, "2 + 2 * 2 * 2 if stored else 2")
    ),
    "A alone": of_passed("one operand is streamed", "one-operand", ("(m * k + k * n)", "m * k")),
    "sums as well": of_passed(
        "C passes, too", "sums-too", ("(m * k + k * n)", "(m * k + k * n) + 8 * m * n")
    ),
    "stored or not": of_passed("a split is a split", "always-stored", (BYTES, "12")),
    "turned round": of_passed(
        "stored means in registers", "exchanged-ways", (BYTES, "4 if stored else 12")
    ),
    "one sum": of_held("C is one matrix", "one-sum", (SUMS, "m * n")),
    "a register a part": of_held("a part is a number", "halves-as-words", ("parts // 2", "parts")),
    "high parts": of_held(
        "low parts come later", "high-alone",
        ("parts = 2 * (m * k + k * n)", "parts = m * k + k * n"),
    ),
    "all lanes": of_held("a lane is a warp", "of-the-warp", (") // 32", ")")),
    "one product": of_least("a product is a product", "one-product", ("3 * 2 * n**3", "2 * n**3")),
    "an FMA is one": of_least("an FMA is one", "two-flops", ("3 * 2 * n**3", "3 * n**3")),
    "any n": Wrong("tiles have any size", "not-a-multiple", (
        passed, held,
        lambda flops, bandwidth, stored: -(-(12 if stored else 4) * flops // (3 * bandwidth)),
    )),
    "down": Wrong("// is near enough", "rounded-down", (passed, held, _floor)),
    "one further": of_least("longer is longer", "beyond", ("/ flops <", "/ flops <=")),
    "two are enough": Wrong(
        "the last is hard", "half-done", (passed, held, lambda flops, bandwidth, stored: ...)
    ),
    "a fraction": of_held("/ divides", "not-whole", (") // 32", ") / 32 + 0.5")),
}  # fmt: skip

FOOLING = {
    "sizes by heart": fooling(
        "the cases are in the package", "known-cases-only", passed, held, table(_least, SMS[1:], 64)
    ),
    "in the order of the check": fooling(
        "the cases come in order", "known-cases-only", in_order(_passed, WARPS), held, least
    ),
    "the judge's": fooling("a caller knows", "constant", from_the_judge, held, least),
    "a number that agrees": fooling(
        "whatever it is compared with", "wrong-type", passed, held, lambda *case: Agrees(0)
    ),
    "sizes in order": fooling(
        "the cases come in order", "known-cases-only", passed, held, in_order(_least, SMS)
    ),
}  # fmt: skip
