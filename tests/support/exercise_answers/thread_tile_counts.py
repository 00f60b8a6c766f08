"""Answers to exercise 06.2."""

from fractions import Fraction
from math import gcd

import numpy as np

from gemmlab.exercises.thread_tile_counts import (
    TILES,
    WIDTHS,
    loads_per_fma,
    padding,
    registers,
)
from gemmlab.model.transactions import BANKS
from tests.support.exercise_answers.edits import Wrong, edited, fooling, for_ever, table

RIGHT = {
    "sides": (
        lambda tm, tn: 1 / tm + 1 / tn,
        lambda tm, tn: (tm + 1) * (tn + 1) - 1,
        lambda width: next(p for p in range(BANKS) if gcd(width + p, BANKS) == 1),
    ),
    "fractions": (
        lambda tm, tn: Fraction(tm + tn, tm * tn),
        lambda tm, tn: sum([tm * tn, tm, tn]),
        lambda width: next(
            p for p in (0, 1) if len({i * (width + p) % 32 for i in range(32)}) > 31
        ),
    ),
    "counted": (
        lambda tm, tn: sum(1 for _ in range(tm + tn)) / sum(tm for _ in range(tn)),
        lambda tm, tn: tn * tm + tn + tm,
        lambda width: 1 - width % 2,
    ),
}


def _loads(misconception, diagnosis, new):
    answer = edited(loads_per_fma, ("(tm + tn) / (tm * tn)", new))
    return Wrong(misconception, diagnosis, (answer, registers, padding))


def _registers(misconception, diagnosis, new):
    answer = edited(registers, ("tm * tn + tm + tn", new))
    return Wrong(misconception, diagnosis, (loads_per_fma, answer, padding))


def _padding(misconception, diagnosis, new):
    answer = edited(padding, ("0 if width % 2 == 1 else 1", new))
    return Wrong(misconception, diagnosis, (loads_per_fma, registers, answer))


WRONG = {
    "two": _loads("each FMA loads its operands", "nothing-shared", "2"),
    "for one p": _loads("per p is per FMA", "loads-of-the-tile", "tm + tn"),
    "two for the tile": _loads("one load serves all", "two-loads-a-tile", "2 / (tm * tn)"),
    "FMAs per load": _loads("more is better", "upside-down", "tm * tn / (tm + tn)"),
    "whole numbers": _loads("// divides", "whole-numbers-only", "(tm + tn) // (tm * tn)"),
    "sums": _registers("operands come from memory", "sums-alone", "tm * tn"),
    "operands": _registers("sums are in memory", "operands-alone", "tm + tn"),
    "products": _registers("a product is stored first", "products-kept", "2 * tm * tn + tm + tn"),
    "one": _padding("padding is one word", "always-one", "1"),
    "fill the line": _padding("aligned is good", "to-whole-lines", "-width % 32"),
    "odd rows": _padding("odd is bad", "even-is-right", "width % 2"),
    "four": _padding("rows of 16 bytes", "constant", "4"),
    "a gap": _padding("two of three are enough", "not-attempted", "..."),
}


FOOLING = {
    "loads by heart": fooling(
        "the cases are in the package",
        "known-cases-only",
        table(loads_per_fma, TILES),
        registers,
        padding,
    ),
    "registers by heart": fooling(
        "the cases are in the package",
        "known-cases-only",
        loads_per_fma,
        table(registers, TILES),
        padding,
    ),
    "padding by heart": fooling(
        "the cases are in the package",
        "known-cases-only",
        loads_per_fma,
        registers,
        table(padding, WIDTHS, 7),
    ),
    "for ever": fooling("nobody can stop it", "never-ends", for_ever, registers, padding),
    "an array": fooling(
        "an array is a number", "wrong-type", lambda tm, tn: np.array([1.0]), registers, padding
    ),
}
