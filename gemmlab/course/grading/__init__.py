"""Grading a class: notebooks become a table of points and reasons, ``gemmlab grade`` on a terminal.

    magics       the Python of a cell, without what IPython alone understands
    submission   a notebook as data: statements, and those that an answer needs
    allowed      the names that an answer may use, and those that reach out of it
    definitions  an answer's functions, made without running a line of them
    computed     the data that they refer to, computed in a copy
    walls        what the process that judges a notebook may reach, and how much it takes
    judged       the outcome of one exercise, and how it is found
    worker       the process that judges one notebook
    processes    many of them, and what they have found, kept to go on from
    students     whose notebook a file is
    rubric       points by stages
    likeness     answers that are alike
    choices      what one may choose
    table        a class's table, in text and as files
    report       pages with plots
    command      the verb
    in_place     another tool's submissions, judged here in its place
    nbgrader     a chapter as an assignment of nbgrader
    otter        a chapter as an assignment of otter-grader

What is submitted runs in copies that `judging` makes and nowhere else; what judges makes functions
of it from its text; only data goes between them, and from there to the table.

>>> from gemmlab import grading
>>> rows = grading.grade(["submissions"], seed="autumn")          # doctest: +SKIP
>>> rows[0].student, rows[0].exercise, rows[0].points             # doctest: +SKIP
('alice', '04.1', 1.0)
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gemmlab.course.grading.choices import SEED

if TYPE_CHECKING:
    from gemmlab.course.grading.table import Row


def verb(options: Namespace) -> int:
    """Do what ``gemmlab grade`` was asked for; the exit status."""
    from gemmlab.course.grading.command import run

    return run(options)


def grade(
    paths: Sequence[str | Path],
    seed: str = SEED,
    only: Sequence[str] = (),
    rubric: str | Path | None = None,
    workers: int | None = None,
) -> list[Row]:
    """Grade notebooks, and folders of them; a row for each student and exercise.

    seed : decides what checks draw; only : exercises or chapters, as "04.1" and "04"
    rubric : a file of points, as ``default.toml`` here; workers : processes at once
    """
    from gemmlab.course.grading.command import Work

    work = Work(list(map(Path, paths)), seed, tuple(only), rubric and Path(rubric), workers)
    return work.rows()
