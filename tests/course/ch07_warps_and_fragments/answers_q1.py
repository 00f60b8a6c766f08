"""Answers to exercise 07.1."""

import os

import numpy as np

from gemmlab.course.ch07_warps_and_fragments import q1_register_rule as register_rule
from gemmlab.course.ch07_warps_and_fragments.q1_register_rule import CASES, A, column_of, row_of
from gemmlab.course.judging import source
from tests.course.answers import (
    Agrees,
    Wrong,
    cell,
    edited,
    fooling,
    for_ever,
    in_order,
)


def row_by_steps(lane, x):
    """The step of each bit, summed up."""
    steps = {2: 1, 3: 2, 4: 4}
    row = sum(step for bit, step in steps.items() if lane >> bit & 1)
    if x & 2:
        row += 8
    return row


def column_by_divmod(lane, x):
    _, pair = divmod(lane, 4)
    quadrant, odd = divmod(x % 8, 2)
    return odd + pair + pair + [0, 0, 8, 8][quadrant]


def column_by_digits(lane, x):
    bits = f"{x:04b}"[1] + f"{lane:05b}"[3:] + f"{x:04b}"[3]
    return int(bits, 2)


RIGHT = {
    "bits": (
        lambda lane, x: (lane >> 2) | ((x & 2) << 2),
        lambda lane, x: ((lane & 3) << 1) | (x & 1) | ((x & 4) << 1),
    ),
    "cases, and the library": (
        lambda lane, x: lane // 4 + (8 if x in (2, 3, 6, 7, 10, 11, 14, 15) else 0),
        lambda lane, x: A.element(lane, x)[1],
    ),
    "steps, and divmod": (row_by_steps, column_by_divmod),
    "NumPy, and binary digits": (
        lambda lane, x: np.array([0, 0, 8, 8] * 4)[x] + np.int32(lane // 4),
        column_by_digits,
    ),
}

ROW = "lane // 4 + 8 * (x // 2 % 2)"
COLUMN = "2 * (lane % 4) + x % 2 + 8 * (x // 4 % 2)"


def row(misconception, diagnosis, new):
    return Wrong(misconception, diagnosis, (edited(row_of, (ROW, new)), column_of))


def column(misconception, diagnosis, new):
    return Wrong(misconception, diagnosis, (row_of, edited(column_of, (COLUMN, new))))


ROW_SKELETON = cell(source.skeleton(row_of), {})["row_of"]
COLUMN_SKELETON = cell(source.skeleton(column_of), {})["column_of"]

WRONG = {
    "the row alone": Wrong("one at a time", "half-done", (row_of, COLUMN_SKELETON)),
    "the column alone": Wrong("one at a time", "half-done", (ROW_SKELETON, column_of)),
    "printed": Wrong("print is return", "wrong-type", (lambda lane, x: print(end=""), column_of)),
    "divided": row("/ is //", "not-whole", "lane / 4 + 8 * (x // 2 % 2)"),
    "rows of the lane alone": row("a lane has one row", "one-half-only", "lane // 4"),
    "the left half": column("a lane has two columns", "one-half-only", "2 * (lane % 4) + x % 2"),
    "row by bit 2": row("bits can be read off x0", "halves-exchanged", ROW.replace("2 %", "4 %")),
    "row by bit 0": row("x1 is below x0", "halves-exchanged", "lane // 4 + 8 * (x % 2)"),
    "column by bit 1": column(
        "x2 is right of x0", "halves-exchanged", "2 * (lane % 4) + x % 2 + 8 * (x // 2 % 2)"
    ),
    "rows without end": row("every bit counts", "copies", "lane // 4 + 8 * (x // 2)"),
    "columns without end": column("16 registers, 16 columns", "copies", COLUMN[:-5] + ")"),
    "no pairs": column("a register is a column", "pairs", "lane % 4 + x % 2 + 8 * (x // 4 % 2)"),
    "first of a pair": column("x1 is a copy", "pairs", "2 * (lane % 4) + 8 * (x // 4 % 2)"),
    "every fourth": column("lanes are columns", "pairs", "lane % 4 + 8 * (x // 4 % 2)"),
    "a lane a row": row("a lane owns a row", "owns-a-row", "lane"),
    "two lanes a row": row("32 lanes, 16 rows", "owns-a-row", "lane // 2"),
    "16 lanes": row("32 lanes, 16 rows, twice", "owns-a-row", "lane % 16"),
    "left to right": column("a lane owns a row", "owns-a-row", "x"),
    "row is column": row("i runs to the right", "row-and-column", COLUMN),
    "column is row": column("j runs down", "row-and-column", ROW),
    "the number": row("the table holds rows", "index", f"16 * ({ROW}) + {COLUMN}"),
    "the number again": column("the table holds columns", "index", f"16 * ({ROW}) + {COLUMN}"),
    "zero": row("lanes are alike", "constant", "0"),
    "a place": row("a place is a pair", "wrong-type", "(lane // 4, x)"),
    "an unknown name": row("the lane is i", "raises", "i // 4"),
}


def by_heart(function, lanes, registers):
    """Knows the results of some lanes and registers, and answers 0 for the others."""
    known = {(p, x): function(p, x) for p in range(lanes) for x in range(registers)}
    return lambda lane, x: known.get((lane, x), 0)


def replaces_the_reference(lane, x):
    register_rule._row = register_rule.PARTS[0].right = lambda lane, x: 0
    return 0


FOOLING = {
    "rows in order": fooling(
        "the check asks in order", "known-cases-only", in_order(row_of, CASES), column_of
    ),
    "columns in order": fooling(
        "the check asks in order", "known-cases-only", row_of, in_order(column_of, CASES)
    ),
    "for ever": fooling("nobody can stop it", "never-ends", for_ever, column_of),
    "equals everything": fooling(
        "the result compares itself", "wrong-type", lambda lane, x: Agrees(0), column_of
    ),
    "a generator": fooling("yield is return", "wrong-type", lambda lane, x: (yield 0), column_of),
    "lane 0 by heart": fooling(
        "what was read off is enough", "right-in-part", by_heart(row_of, 1, 16), column_of
    ),
    "x0 to x7 by heart": fooling(
        "the other eight are copies", "copies-forgotten", row_of, by_heart(column_of, 32, 8)
    ),
    "rows of x0 to x7": fooling(
        "the other eight are copies", "copies-forgotten", by_heart(row_of, 32, 8), column_of
    ),
    "a list of eight": fooling(
        "eight registers are all",
        "raises",
        row_of,
        lambda lane, x: 2 * (lane % 4) + [0, 1, 0, 1, 8, 9, 8, 9][x],
    ),
    "in the other order": fooling("the check sorts it out", "row-and-column", column_of, row_of),
    "replaces the reference": fooling(
        "the reference is a name", "raises", replaces_the_reference, column_of
    ),
    "ends the process": fooling(
        "no verdict is a pass", "exits", lambda lane, x: os._exit(0), column_of
    ),
    "an array": fooling(
        "an array of one is a number",
        "wrong-type",
        lambda lane, x: np.array([row_of(lane, x)]),
        column_of,
    ),
    "True and False": fooling(
        "True is 1", "wrong-type", lambda lane, x: row_of(lane, x) or False, column_of
    ),
}
