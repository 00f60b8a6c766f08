"""Answers to exercise 07.1."""

from gemmlab.exercises import source
from gemmlab.exercises.register_rule import CASES, A, column_of, row_of
from tests.support.exercise_answers.edits import Agrees, Wrong, cell, edited, fooling, for_ever


def row_by_bits(lane, x):
    return (lane >> 2) | ((x & 2) << 2)


def column_by_bits(lane, x):
    return ((lane & 3) << 1) | (x & 1) | ((x & 4) << 1)


def row_by_cases(lane, x):
    return lane // 4 + (8 if x in (2, 3, 6, 7, 10, 11, 14, 15) else 0)


def column_by_table(lane, x):
    return A.element(lane, x)[1]


RIGHT = {
    "bits": (row_by_bits, column_by_bits),
    "cases, and the library": (row_by_cases, column_by_table),
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


def in_order(function):
    """Hands out the results in the order in which the check asks for them."""
    results = iter([function(*case) for case in CASES])
    return lambda lane, x: next(results, 0)


FOOLING = {
    "in the order of the check": fooling(
        "the check asks in order", "known-cases-only", in_order(row_of), column_of
    ),
    "equals everything": fooling(
        "the result compares itself", "wrong-type", lambda lane, x: Agrees(0), column_of
    ),
    "for ever": fooling("nobody can stop it", "never-ends", for_ever, column_of),
    "columns in order": fooling(
        "the check asks in order", "known-cases-only", row_of, in_order(column_of)
    ),
    "a generator": fooling("yield is return", "wrong-type", lambda lane, x: (yield 0), column_of),
}
