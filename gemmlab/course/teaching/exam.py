"""An exam: questions drawn by a seed, and a separate sheet of their answers.

The same chapters, seed and number give the same exam, to the byte, on every machine.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from gemmlab.course.teaching.questions import KINDS, Kind, Question

TRIES = 200  # to draw sizes that make another question


class Exam(NamedTuple):
    """Two sheets in Markdown: what learners get, and what the teacher keeps."""

    questions: str
    answers: str


def fitting(chapters: Sequence[str]) -> list[Kind]:
    """The kinds of questions of these chapters; ValueError for a chapter that has none."""
    having = sorted({number for kind in KINDS for number in kind.chapters})
    for number in chapters:
        if number not in having:
            raise ValueError(
                f"no question is drawn for chapter {number!r}; use {', '.join(having)}"
            )
    return [kind for kind in KINDS if {*kind.chapters} & {*chapters}]


def drawn(chapters: Sequence[str], seed: str, count: int) -> list[Question]:
    """So many different questions: every kind once before one comes again.

    Raises ValueError for a chapter without questions.
    """
    kinds = fitting(chapters)
    draw = random.Random(f"{','.join(chapters)}\n{seed}")
    chosen: list[Kind] = []
    while len(chosen) < count:
        chosen += draw.sample(kinds, len(kinds))
    found: list[Question] = []
    for kind in sorted(chosen[:count], key=KINDS.index):
        for _ in range(TRIES):
            one = kind.make(draw)
            if one not in found:
                break
        else:
            raise ValueError(f"{count} questions are more than there are; ask for fewer")
        found.append(one)
    return found


def exam(chapters: Sequence[str], seed: str, count: int) -> Exam:
    """Draw both sheets; ValueError for a chapter without questions."""
    questions = drawn(chapters, seed, count)
    names = ", ".join(chapters)
    sheet = [f"# Questions on chapters {names}\n", "Name: ______________________\n"]
    answers = [f"# Answers: chapters {names}, seed {seed!r}\n"]
    for number, one in enumerate(questions, 1):
        sheet.append(f"## {number}. {one.title}\n\n{one.text}\n")
        answers.append(f"## {number}. {one.title}\n\n{one.answer}\n")
    return Exam("\n".join(sheet), "\n".join(answers))
