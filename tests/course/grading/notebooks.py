"""Notebooks as students hand them in: a chapter's own, with answers in their cells."""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from gemmlab import exercises
from gemmlab.course import chapters
from gemmlab.course.grading.in_place import Assignment
from gemmlab.course.judging import source
from tests.support.paths import ROOT

# At the top of a cell this replaces the judge, where what is handed in runs beside it, and exits.
FOOLS = """
from gemmlab.course.judging.exercise import Exercise, Verdict
Exercise.check = lambda self, *a: Verdict(self.task.name, True, "passed", ())
import os; os._exit(0)
"""


@cache
def chapter(number: str) -> str:
    """The text of a chapter's notebook."""
    name = chapters()[number].removeprefix("ch")
    return (ROOT / "notebooks" / f"{name}.ipynb").read_text("utf-8")


def code_of(answer: Callable) -> str:
    """The text of an answer of the corpus, as a student would write it."""
    return textwrap.dedent(inspect.getsource(answer))


def solution(exercise: str) -> str:
    """The text of the solution."""
    answers = exercises.get(exercise).task.answers
    return "\n\n\n".join(source.solution(answer) for answer in answers)


def notebook(
    number: str, answers: Mapping[str, str], extra: str = "", renamed: bool = False
) -> bytes:
    """A chapter with these answers, exercise -> code; the others are left as they are.

    extra : code of a cell after the chapter's imports; renamed : cells have other ids
    """
    found = json.loads(chapter(number))
    for i, cell in enumerate(found["cells"]):
        own = f"{number}.{cell.get('id', '').removeprefix('ex')}"
        if own in answers:
            *lines, check = "".join(cell["source"]).rstrip().splitlines()
            imports = [line for line in lines if line.startswith(("import ", "from "))]
            cell["source"] = "\n".join([*imports, answers[own], "", "", check])
        if cell.get("id") == "imports" and extra:
            cell["source"] = "".join(cell["source"]) + f"\n{extra}\n"
        if renamed:
            cell["id"] = f"c{i}"
    return json.dumps(found).encode()


def cells(*codes: str) -> bytes:
    """A notebook of these cells alone."""
    made = [{"cell_type": "code", "id": f"c{i}", "source": code} for i, code in enumerate(codes)]
    return json.dumps({"cells": made, "nbformat": 4, "nbformat_minor": 5, "metadata": {}}).encode()


def write(folder: Path, name: str, content: bytes) -> Path:
    """Hand in a notebook."""
    path = folder / f"{name}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def asked(number: str, seed: str = "gemmlab") -> Assignment:
    """A chapter as an assignment of another tool, before it is written in that tool's way."""
    return Assignment(number, Path(), "", json.loads(chapter(number)), seed, None)


def submitted(
    released: dict, number: str, change: Callable[[str, str], str], extra: str = ""
) -> str:
    """A notebook that a tool has released, with answers: `change` gets an exercise and its code.

    extra : code after the chapter's imports
    """
    found = json.loads(json.dumps(released))
    for cell in found["cells"]:
        name = cell["id"].removeprefix("ex")
        code = "".join(cell["source"])
        if name.isdigit():
            answer = change(f"{number}.{name}", code)
            *_, last = code.rstrip().splitlines()
            checks = ".check(" in last and answer != code
            cell["source"] = f"{answer}\n\n\n{last}" if checks else answer
        if cell["id"] == "imports":
            cell["source"] = code + extra
    return json.dumps(found)
