"""A chapter as the assignment of a grading tool, and its submissions judged in the tool's place.

Both `nbgrader` and `otter` run what is handed in beside what grades it. Here they get their source
from, and the points and reasons that they write down: no line of a submission runs in their
kernels.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemmlab.course import chapters, exercises
from gemmlab.course.grading import rubric
from gemmlab.course.grading.choices import SEED
from gemmlab.course.grading.judged import PASSED, Judged
from gemmlab.course.grading.processes import Grader
from gemmlab.course.grading.table import number


@dataclass(frozen=True)
class Outcome:
    """What a tool writes down of one exercise: points, and the state and the reason in words."""

    points: float
    passed: bool
    said: str


@dataclass(frozen=True)
class Assignment:
    """What a teacher has asked to be written, and how it is to be judged."""

    chapter: str
    folder: Path
    name: str
    notebook: dict[str, Any]
    seed: str
    rubric: str | None

    def cells(self) -> Iterator[tuple[dict[str, Any], str]]:
        """Each cell, and the exercise that is answered in it; an empty name in others."""
        for cell in self.notebook["cells"]:
            name = cell.get("id", "")
            exercise = f"{self.chapter}.{name.removeprefix('ex')}"
            yield cell, exercise if name.startswith("ex") and exercise in exercises.names() else ""

    def most(self, exercise: str) -> float:
        """The points of an exercise."""
        return _rubric(self.rubric).most(exercise)


def outcomes(
    content: bytes, asked: Sequence[str], seed: str = SEED, rubric_file: str | None = None
) -> dict[str, Outcome]:
    """Judge a submission: the outcome of each exercise of a chapter that is asked for.

    asked : the names of the cells that answer them, ``ex1`` and so on, which are the result's, too
    """
    points = _rubric(rubric_file)
    found = Grader(seed).one(content)
    by_cell = {f"ex{name.partition('.')[2]}": one for name, one in found.judged.items()}
    fault = found.fault or "the notebook does not check it"
    lacking = Judged("", "unreadable", "unreadable", fault)
    made = {}
    for name in asked:
        one = by_cell.get(name, lacking)
        given = points.given(one.exercise, one.stages, one.every) if one.every else 0.0
        told = f"{one.state}: {number(given)} of {number(points.most(one.exercise))} points"
        made[name] = Outcome(given, one.state == PASSED, f"{told}\n{one.reason}\n")
    return made


def _rubric(path: str | None) -> rubric.Rubric:
    return rubric.read(Path(path) if path else None)


def asked_for(tool: str, argv: Sequence[str] | None) -> Assignment:
    """What the command line of ``python -m gemmlab.course.grading.TOOL`` asks for."""
    parser = argparse.ArgumentParser(
        f"gemmlab.course.grading.{tool}",
        description=f"Write a chapter as an assignment of {tool}, which gemmlab judges.",
    )
    parser.add_argument("chapter", choices=sorted(chapters()))
    parser.add_argument("folder", type=Path, help=f"where {tool} finds it")
    parser.add_argument("--notebooks", type=Path, default=Path("notebooks"), help="the chapters")
    parser.add_argument("--seed", default=SEED, help="a text that decides what checks draw")
    parser.add_argument("--rubric", type=Path, help="points by stages, in TOML")
    options = parser.parse_args(argv)
    path = options.notebooks / f"{chapters()[options.chapter].removeprefix('ch')}.ipynb"
    own = options.rubric and str(options.rubric.resolve())
    _rubric(own)  # what is wrong with it is said now
    notebook = json.loads(path.read_text("utf-8"))
    return Assignment(options.chapter, options.folder, path.name, notebook, options.seed, own)
