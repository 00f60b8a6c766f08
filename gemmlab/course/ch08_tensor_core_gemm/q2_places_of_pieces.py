"""Exercise 08.2: where the pieces of a row lie, so that no two below each other share banks."""

import numbers
from dataclasses import replace
from typing import Any

import numpy as np

from gemmlab.course.judging import FAILING, Diagnosis, Finding, Task, drawing, guard
from gemmlab.course.judging.source import short

PIECES = 8  # of 16 bytes in a row of 64 elements, and rows of an 8×8 matrix
CASES = tuple((row, piece) for row in range(2 * PIECES) for piece in range(PIECES))
FARTHEST = 500  # matrices further down, for the case that is drawn anew
AGAIN = 32  # cases that are asked for once more, in another order


def place_of(row, piece):
    """The place, 0 to 7, of a piece in its row."""
    # [answer] return ...
    return piece ^ row % 8
    # [end]


def judge(answer: Any) -> Finding:
    """The first case that is no place, then rows with a place taken twice, then rows that meet."""
    rng = drawing.generator()
    top = PIECES * int(rng.integers(2, FARTHEST))
    fresh = [(row, piece) for row in range(top, top + PIECES) for piece in range(PIECES)]
    again = [CASES[i] for i in rng.choice(len(CASES), AGAIN, replace=False)]
    every = (*CASES, *fresh, *again)
    found: dict[tuple[int, int], int] = {}
    for i, (case, outcome) in enumerate(zip(every, guard.attempts(answer, every), strict=False)):
        wrong = _no_place(case, outcome) or _another(case, outcome.value, found)
        if wrong:
            return wrong.anew if i >= len(CASES) else wrong
        found[case] = int(outcome.value)
    for first in (*range(0, 2 * PIECES, PIECES), top):
        places = np.array(
            [[found[row, piece] for piece in range(PIECES)] for row in range(first, first + PIECES)]
        )
        wrong = _taken_twice(places, first) or _meeting(places, first)
        if wrong and all(found[case] == case[1] for case in CASES):
            return replace(wrong, diagnosis="in-rows")
        if wrong:
            return wrong.anew if first == top else wrong
    checked = f"{len(CASES)} pieces of 16 rows, and the pieces of eight rows drawn anew"
    return Finding("passed", (("Checked", checked),))


def _no_place(case: tuple[int, int], outcome: guard.Outcome) -> Finding | None:
    """Find out why what one call returned is no place in a row; None where it is one."""
    called = (FAILING, f"place_of{case}")
    if outcome.fault:
        fault = outcome.fault
        return Finding(fault.diagnosis, (called, *fault.facts), fault.details)
    value = outcome.value
    if not isinstance(value, numbers.Real) or isinstance(value, (bool, np.bool_)):
        text = f"it returned {short(value)}; use a whole number from 0 to 7"
        return Finding("wrong-type", (called, ("Found", text)))
    result = ("Result", f"{short(value)}, where places are the whole numbers from 0 to 7")
    if value not in range(PIECES):
        whole = float(value).is_integer()
        return Finding("outside" if whole else "not-whole", (called, result))
    return None


def _another(
    case: tuple[int, int], value: Any, found: dict[tuple[int, int], int]
) -> Finding | None:
    """The finding for a call that returned something else before."""
    if found.get(case, value) == value:
        return None
    text = f"{short(value)}, and {found[case]} before"
    return Finding("wrong-values", ((FAILING, f"place_of{case}"), ("Result", text)))


def _taken_twice(places: np.ndarray, first: int) -> Finding | None:
    for row, of_row in enumerate(places):
        for piece in range(PIECES):
            same = np.flatnonzero(of_row == of_row[piece])
            if len(same) > 1:
                case = f"row {first + row}"
                pieces = " and ".join(map(str, same[:2]))
                fact = ("Result", f"pieces {pieces} are both in place {of_row[piece]}")
                return Finding("taken-twice", ((FAILING, case), fact))
    return None


def _meeting(places: np.ndarray, first: int) -> Finding | None:
    for piece, of_piece in enumerate(places.T):
        for row in range(PIECES):
            same = np.flatnonzero(of_piece == of_piece[row])
            if len(same) > 1:
                case = f"piece {piece} of the rows {first} to {first + PIECES - 1}"
                rows = ", ".join(map(str, first + same))
                fact = (
                    "Result",
                    f"rows {rows} have it in place {of_piece[row]}, in the same banks",
                )
                return Finding("rows-meet", ((FAILING, case), fact))
    return None


TASK = Task(
    name="08.2",
    title="Where does a piece lie?",
    section="chapter 08, Pieces that change places",
    asked="place_of(row, piece) says at which of the eight places of its row a piece lies.",
    prompt="""
    Rows of `As` have 64 elements: eight pieces of 16 bytes, and eight places for them. A place is
    four banks, the same four in every row. Write a rule `place_of(row, piece)`, a whole number from
    0 to 7, such that

    - each row has room for all its pieces: no two have the same place;
    - pieces of one number in rows 8q, 8q + 1, … 8q + 7, which one 8×8 matrix is made of, have eight
      different places.

    More than one rule does it. One needs a single operation, and no table.
    """,
    judge=judge,
    answers=(place_of,),
    diagnoses={
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "Piece 0 of row 0 may stay in place 0. Where may piece 0 of row 1 lie, and of row 2?",
            "```python\nreturn piece ... row % 8\n```",
        ),
        "wrong-type": Diagnosis(
            "A function of (row, piece) is asked for that returns one number.",
            "What does the function return? print() shows a number, but does not hand it over.",
            "```python\nreturn ...\n```",
        ),
        "outside": Diagnosis(
            "A row has eight places, 0 to 7, and this is none of them.",
            "What should follow the last place of a row?",
            "```python\nreturn (...) % 8\n```",
        ),
        "not-whole": Diagnosis(
            "A place is a whole number; / divides exactly, // drops the rest.",
            "What are 5 / 2 and 5 // 2?",
            "```python\n... // 2\n```",
        ),
        "in-rows": Diagnosis(
            "Every piece lies where it lay: pieces below each other have the same banks.",
            "Which argument does your rule leave out?",
            "```python\nreturn piece ... row % 8\n```",
        ),
        "taken-twice": Diagnosis(
            "Two pieces of one row have one place, and one of them overwrites the other.",
            "In the row that is named: which two values of piece give the same place?",
            "For a fixed row, the rule must be reversible: adding to piece is, multiplying by an "
            "even number is not.",
        ),
        "rows-meet": Diagnosis(
            "Some rows of one matrix have the piece in one place: their banks are the same.",
            "By how much do the rows that are named differ, and what does your rule make of that?",
            "Eight rows need eight different values of what is added to piece: row % ...",
        ),
    },
    praise="An exclusive or with the row's number is its own inverse, costs one instruction, and "
    "leaves no byte unused.",
)
