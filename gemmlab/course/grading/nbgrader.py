"""A chapter as an assignment of nbgrader, which this library judges in nbgrader's place.

``python -m gemmlab.course.grading.nbgrader 04 COURSE`` writes a course's ``source/ch04`` and its
``nbgrader_config.py``. nbgrader then releases, collects and gives feedback as ever. Where it would
run a submission, `judge` hands it to the process that ``gemmlab grade`` uses, and writes points and
reasons into the locked cells: no line of a submission runs in nbgrader's own kernel.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gemmlab.course import chapters, exercises
from gemmlab.course.grading import rubric
from gemmlab.course.grading.judged import Judged
from gemmlab.course.grading.processes import SEED, Grader
from gemmlab.course.grading.table import number
from gemmlab.here import files

CONFIG = '''\
"""The configuration of a course: gemmlab judges where nbgrader would run a submission."""

from functools import partial

from nbgrader import preprocessors as pp

from gemmlab.course.grading import nbgrader

c = get_config()
c.CourseDirectory.course_id = {course!r}
judge = partial(nbgrader.judge, seed={seed!r}, rubric_file={rubric!r})
c.Autograde.autograde_preprocessors = [
    judge, pp.LimitOutput, pp.SaveAutoGrades, pp.AssignLatePenalties, pp.CheckCellMetadata
]
c.GenerateAssignment.preprocessors = [  # without ClearSolutions, which would empty the skeletons
    pp.IncludeHeaderFooter, pp.LockCells, pp.ClearOutput, pp.CheckCellMetadata, pp.ComputeChecksums,
    pp.SaveCells, pp.CheckCellMetadata,
]
'''
END = "-points"  # the name of the locked cell of ex1 is ex1-points


def source(notebook: dict[str, Any], chapter: str, points: rubric.Rubric) -> dict[str, Any]:
    """A chapter's notebook as nbgrader's source: answers in cells of their own, checks locked."""
    cells = []
    for cell in notebook["cells"]:
        name = cell.get("id", "")
        exercise = f"{chapter}.{name.removeprefix('ex')}"
        if not name.startswith("ex") or exercise not in exercises.names():
            cells.append(cell)
            continue
        *code, check = "".join(cell["source"]).rstrip().split("\n")
        answer = {**cell, "source": "\n".join(code).rstrip(), "outputs": []}
        locked = {**cell, "id": f"{name}{END}", "source": check, "outputs": []}
        answer["metadata"] = {"nbgrader": _marks(name, solution=True)}
        most = points.most(exercise)
        marks = _marks(locked["id"], grade=True, locked=True) | {"points": most}
        locked["metadata"] = {"nbgrader": marks}
        cells += [answer, locked]
    return {**notebook, "cells": cells}


def _marks(name: str, solution: bool = False, grade: bool = False, locked: bool = False) -> dict:
    return {
        "schema_version": 3, "grade_id": name, "task": False,
        "solution": solution, "grade": grade, "locked": locked,
    }  # fmt: skip


def judge(
    notebook: Any, resources: Any, seed: str = SEED, rubric_file: str | None = None
) -> tuple[Any, Any]:
    """Judge a submission, as a preprocessor of nbconvert: points and reasons become outputs."""
    points = rubric.read(Path(rubric_file) if rubric_file else None)
    found = Grader(seed).one(json.dumps(notebook).encode())
    by_cell = {f"ex{name.partition('.')[2]}{END}": one for name, one in found.judged.items()}
    for cell in notebook["cells"]:
        marks = cell.get("metadata", {}).get("nbgrader", {})
        if cell["cell_type"] != "code" or not marks.get("grade"):
            continue
        fault = found.fault or "the notebook does not check it"
        one = by_cell.get(marks["grade_id"]) or Judged("", "unreadable", "unreadable", fault)
        given = points.given(one.exercise, one.stages, one.every) if one.every else 0.0
        most = points.most(one.exercise)
        said = f"{one.state}: {number(given)} of {number(most)} points\n{one.reason}\n"
        cell["outputs"] = [
            _output("stream", name="stdout", text=said),
            _output("execute_result", data={"text/plain": repr(float(given))}, execution_count=1),
        ]
        cell["execution_count"] = 1
    return notebook, resources


def _output(kind: str, **more: Any) -> Any:
    from nbformat import v4

    return v4.new_output(kind, **more)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the source of an assignment into a course's folder."""
    parser = argparse.ArgumentParser("gemmlab.course.grading.nbgrader", description=__doc__)
    parser.add_argument("chapter", choices=sorted(chapters()))
    parser.add_argument("course", type=Path, help="folder of nbgrader's course")
    parser.add_argument("--notebooks", type=Path, default=Path("notebooks"), help="the chapters")
    parser.add_argument("--seed", default=SEED, help="a text that decides what checks draw")
    parser.add_argument("--rubric", type=Path, help="points by stages, in TOML")
    options = parser.parse_args(argv)
    name = chapters()[options.chapter].removeprefix("ch")
    path = options.notebooks / f"{name}.ipynb"
    made = source(json.loads(path.read_text("utf-8")), options.chapter, rubric.read(options.rubric))
    target = options.course / "source" / f"ch{options.chapter}" / path.name
    files.put(target, json.dumps(made, indent=1).encode())
    config = CONFIG.format(
        course=options.course.resolve().name,
        seed=options.seed,
        rubric=options.rubric and str(options.rubric.resolve()),
    )
    files.put(options.course / "nbgrader_config.py", config.encode())
    print(f"Written: {target}, {options.course / 'nbgrader_config.py'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
