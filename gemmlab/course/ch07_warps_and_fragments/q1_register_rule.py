"""Exercise 07.1: the row and the column that a register holds of WMMA's A, from its number."""

from typing import Any

from gemmlab.course.judging import Diagnosis, Finding, Task, functions_on_trial
from gemmlab.course.judging.functions_on_trial import Part
from gemmlab.instructions import layout

A = layout("wmma.m16n16k16", "A", arch="sm_90", major="row")
CASES = sorted(((lane, x) for lane in range(32) for x in range(16)), key=lambda c: (sum(c), c))


def row_of(lane, x):
    """The row of A that register x of `lane` holds an element of."""
    # A whole number from 0 to 15.
    # [answer]
    return lane // 4 + 8 * (x // 2 % 2)
    # [end]


def column_of(lane, x):
    """The column of A that register x of `lane` holds an element of."""
    # A whole number from 0 to 15.
    # [answer]
    return 2 * (lane % 4) + x % 2 + 8 * (x // 4 % 2)
    # [end]


def _row(lane: int, x: int) -> int:
    return int(A.element(lane, x)[0])


def _column(lane: int, x: int) -> int:
    return int(A.element(lane, x)[1])


# What a mistake gives.
ROWS_INSTEAD = {
    "one-half-only": lambda lane, x: lane // 4,
    "halves-exchanged": lambda lane, x: lane // 4 + 8 * (x // 4 % 2),
    "halves-exchanged 2": lambda lane, x: lane // 4 + 8 * (x % 2),
    "copies": lambda lane, x: lane // 4 + 8 * (x // 2),
    "copies-forgotten": lambda lane, x: _row(lane, x) if x < 8 else 0,
    "owns-a-row": lambda lane, x: lane,
    "owns-a-row 2": lambda lane, x: lane % 16,
    "owns-a-row 3": lambda lane, x: lane // 2,
    "row-and-column": _column,
    "index": lambda lane, x: 16 * _row(lane, x) + _column(lane, x),
}
COLUMNS_INSTEAD = {
    "one-half-only": lambda lane, x: 2 * (lane % 4) + x % 2,
    "halves-exchanged": lambda lane, x: 2 * (lane % 4) + x % 2 + 8 * (x // 2 % 2),
    "copies": lambda lane, x: 2 * (lane % 4) + x % 2 + 8 * (x // 4),
    "copies-forgotten": lambda lane, x: _column(lane, x) if x < 8 else 0,
    "pairs": lambda lane, x: lane % 4 + x % 2 + 8 * (x // 4 % 2),
    "pairs 2": lambda lane, x: 2 * (lane % 4) + 8 * (x // 4 % 2),
    "pairs 3": lambda lane, x: lane % 4 + 8 * (x // 4 % 2),
    "owns-a-row": lambda lane, x: x,
    "row-and-column": _row,
    "index": lambda lane, x: 16 * _row(lane, x) + _column(lane, x),
}
PARTS = (Part(row_of, _row, ROWS_INSTEAD), Part(column_of, _column, COLUMNS_INSTEAD))


def judge(row: Any, column: Any) -> Finding:
    """The first register whose row is wrong, then the first whose column is."""
    return functions_on_trial.judge_parts(PARTS, (row, column), CASES, "registers")


TASK = Task(
    name="07.1",
    title="The rule behind the numbers",
    section="chapter 07, Find the mapping yourself",
    asked="row_of(lane, x) and column_of(lane, x) say which element of A register x of a lane "
    "holds after wmma.load on an H200.",
    prompt="""
    Turn what you read off into a rule: `row_of(lane, x)` and `column_of(lane, x)`, whole numbers
    from 0 to 15, for lanes 0 to 31 and registers x0 to x15, with arithmetic only.

    Each *bit* of `lane` and of `x` adds a fixed step to the row or to the column, or nothing. So
    look at pairs that differ in one bit: lanes 0 and 1, lanes 0 and 4, x0 and x1, x0 and x2. The
    check tries all 512 registers.
    """,
    judge=judge,
    answers=(row_of, column_of),
    diagnoses={
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "From lane 0 to lane 4, what changes: the row or the column, and by how much?",
            "```python\nreturn lane // 4 + ...    # row\n```",
        ),
        "half-done": Diagnosis(
            "One of the two functions is written, and right.",
            "Which bits of lane and x has the first function used? The others are left.",
            "```python\nreturn lane // 4 + 8 * (...)    # row\n"
            "return 2 * (lane % 4) + ...    # column\n```",
        ),
        "wrong-type": Diagnosis(
            "Two functions of (lane, x) are asked for, each of which returns one number.",
            "What does each function return? print() shows a number, but does not hand it over.",
            "```python\nreturn lane // 4 + ...\n```",
        ),
        "not-whole": Diagnosis(
            "The result is not a whole number; / divides exactly, // drops the rest.",
            "What are 5 / 4 and 5 // 4?",
            "```python\nlane // 4\n```",
        ),
        "one-half-only": Diagnosis(
            "The lane's part is right, but the register adds nothing: one lane holds elements of "
            "two rows, eight apart, and of two groups of columns, eight apart.",
            "Read lane 0 again: by how much do x2 and x4 differ from x0?",
            "```python\n... + 8 * (x // ... % 2)\n```",
        ),
        "halves-exchanged": Diagnosis(
            "A bit of x adds 8 in the wrong direction: one bit goes down, another to the right.",
            "Which element does x2 of lane 0 hold, and which x4?",
            "```python\n... + 8 * (x // 2 % 2)    # row\n... + 8 * (x // 4 % 2)    # column\n```",
        ),
        "copies": Diagnosis(
            "The result leaves the matrix: a higher bit of x is counted too.",
            "What do x8 to x15 hold, compared with x0 to x7?",
            "```python\nx // 2 % 2    # one bit\n```",
        ),
        "copies-forgotten": Diagnosis(
            "x0 to x7 are right, and x8 to x15 are not: they hold the same elements once more.",
            "Which element do x8 and x0 of one lane hold?",
            "x8 differs from x0 in one bit of x, which adds nothing: no rule needs to name it.",
        ),
        "pairs": Diagnosis(
            "x0 and x1 are neighbours of a row, so that the columns of neighbouring lanes are two "
            "apart.",
            "Which columns do x0 and x1 of lane 0 hold, and which those of lane 1?",
            "```python\nreturn 2 * (lane % 4) + x % 2 + ...\n```",
        ),
        "owns-a-row": Diagnosis(
            "A lane does not hold a row from left to right: four lanes share one.",
            "Which lanes hold elements of row 0?",
            "```python\nreturn lane // 4 + ...    # row\n```",
        ),
        "row-and-column": Diagnosis(
            "Row and column are exchanged.",
            "The element 1 of the table: in which row does it lie, and in which column?",
            "Divide the element's number by 16: the quotient is the row, the remainder the column.",
        ),
        "index": Diagnosis(
            "That is the element's number, 16 · row + column; its parts are asked for.",
            "Which row does element 37 lie in?",
            "```python\nreturn lane // 4 + ...    # row\n```",
        ),
    },
    praise="Five bits of the lane and three of the register place 256 elements; the fourth bit of "
    "the register changes nothing, so that each element is there twice.",
)
