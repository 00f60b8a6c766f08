"""A chapter as an assignment of nbgrader, which this library judges in nbgrader's place.

``python -m gemmlab.course.grading.nbgrader 04 COURSE`` writes a course's ``source/ch04`` and its
``nbgrader_config.py``. nbgrader then releases, collects and gives feedback as ever. Where it would
run a submission, `judge` hands it to the process that ``gemmlab grade`` uses, and writes points and
reasons into the locked cells: no line of a submission runs in nbgrader's own kernel.
"""

import json
import sys
from collections.abc import Sequence
from typing import Any

from gemmlab.course.grading.choices import SEED
from gemmlab.course.grading.in_place import Assignment, asked_for, outcomes
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


def source(made: Assignment) -> dict[str, Any]:
    """A chapter's notebook as nbgrader's source: answers in cells of their own, checks locked."""
    cells = []
    for cell, exercise in made.cells():
        if not exercise:
            cells.append(cell)
            continue
        name = cell["id"]
        *code, check = "".join(cell["source"]).rstrip().split("\n")
        answer = {**cell, "source": "\n".join(code).rstrip(), "outputs": []}
        locked = {**cell, "id": f"{name}{END}", "source": check, "outputs": []}
        answer["metadata"] = {"nbgrader": _marks(name, solution=True)}
        marks = _marks(locked["id"], grade=True, locked=True) | {"points": made.most(exercise)}
        locked["metadata"] = {"nbgrader": marks}
        cells += [answer, locked]
    return {**made.notebook, "cells": cells}


def _marks(name: str, solution: bool = False, grade: bool = False, locked: bool = False) -> dict:
    return {
        "schema_version": 3, "grade_id": name, "task": False,
        "solution": solution, "grade": grade, "locked": locked,
    }  # fmt: skip


def judge(
    notebook: Any, resources: Any, seed: str = SEED, rubric_file: str | None = None
) -> tuple[Any, Any]:
    """Judge a submission, as a preprocessor of nbconvert: points and reasons become outputs."""
    locked = {}
    for cell in notebook["cells"]:
        marks = cell.get("metadata", {}).get("nbgrader", {})
        if cell["cell_type"] == "code" and marks.get("grade"):
            locked[marks["grade_id"].removesuffix(END)] = cell
    content = json.dumps(notebook).encode()
    for name, one in outcomes(content, list(locked), seed, rubric_file).items():
        points = repr(float(one.points))
        locked[name]["outputs"] = [
            _output("stream", name="stdout", text=one.said),
            _output("execute_result", data={"text/plain": points}, execution_count=1),
        ]
        locked[name]["execution_count"] = 1
    return notebook, resources


def _output(kind: str, **more: Any) -> Any:
    from nbformat import v4

    return v4.new_output(kind, **more)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the source of an assignment into a course's folder."""
    made = asked_for("nbgrader", argv)
    target = made.folder / "source" / f"ch{made.chapter}" / made.name
    files.put(target, json.dumps(source(made), indent=1).encode())
    course = made.folder.resolve().name
    config = CONFIG.format(course=course, seed=made.seed, rubric=made.rubric)
    files.put(made.folder / "nbgrader_config.py", config.encode())
    print(f"Written: {target}, {made.folder / 'nbgrader_config.py'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
