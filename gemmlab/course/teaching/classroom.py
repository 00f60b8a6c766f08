"""A class's folder: what is handed out, what stays with the teacher, and a plan.

Learners get ``hand_out``, with notebooks and GitHub's workflow, and nothing else. ``teacher`` has
the seed, the rubric, ``grade.sh`` and, later, answers and grades. ``class.toml`` says which
chapters the class has and where its files are, ``syllabus.md`` what fits into the time, and
``README.md`` has the commands.
"""

import contextlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemmlab.course import chapters
from gemmlab.course.grading import rubric
from gemmlab.course.teaching import syllabus
from gemmlab.course.teaching.chapter import notebook, path_of, read
from gemmlab.here import files

SETTINGS = "class.toml"
KEYS = ("chapters", "seed_file", "rubric")
SEED, RUBRIC, GRADE = "teacher/seed.txt", "teacher/rubric.toml", "teacher/grade.sh"

TOML = """\
# A class of this course. Its seed stands in the file that is named here, and nowhere else: cases
# that nobody has seen are drawn from it. Hand out the folder hand_out alone.

chapters = [{chapters}]
seed_file = "{seed}"
rubric = "{rubric}"
"""

SCRIPT = """\
#!/bin/sh
# Grade the notebooks in the class's folder submissions, or in the folder that is named.
there=$(realpath -- "${{1:-$(dirname -- "$0")/../submissions}}") || exit
cd -- "$(dirname -- "$0")/.." || exit
exec gemmlab grade "$there" --only {chapters} --seed-file {seed} \\
    --rubric {rubric} --csv teacher/grades.csv --html teacher/report
"""

README = """\
# A class: chapters {chapters}

1. Fill in the first cell of each notebook in `hand_out`: {whom}, {when}, {how}.
2. Hand out `hand_out`, and nothing else. For GitHub Classroom it is the template's content, with
   its workflow; put the course's address in place of {address} there.
3. Put what comes back into `submissions`, a folder or a notebook for each student, and run

       sh {grade}

   which is `gemmlab grade` with this class's chapters, seed and points. It writes
   `teacher/grades.csv` and `teacher/report`.
4. Points and the day from which work is late stand in `{rubric}`.
5. `gemmlab class answers .` in this folder writes the answers and what to say to mistakes.
6. In a clone of the course, `{slides}` makes slides of these chapters, one
   file each, with notes for the speaker (key n); they need no network.

`teacher` has the seed: whoever reads it knows the cases that answers are tried with. The folder is
its owner's alone.
`syllabus.md` says what fits into the time, and what to skip.
"""


@dataclass(frozen=True)
class Class:
    """What the file class.toml of a folder says, and where that is."""

    folder: Path
    chapters: tuple[str, ...]
    seed_file: Path
    rubric: Path


def chosen(text: str) -> tuple[str, ...]:
    """The chapters that a text such as "04,05" names; ValueError for another."""
    known = chapters()
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names or [text]:
        if name not in known:
            raise ValueError(f"there is no chapter {name!r}; use {', '.join(known)}")
    return tuple(name for name in known if name in names)


def new(
    folder: Path,
    names: Sequence[str],
    seed: str,
    hours: Sequence[int] = syllabus.HOURS,
    weeks: int | None = syllabus.WEEKS,
) -> list[Path]:
    """Write a class's folder, and return its files.

    Raises ValueError for a folder that is there, for one of no chapter, and for a seed that is not
    a line of text; nothing is written then.
    """
    if folder.exists() or folder.is_symlink():
        raise ValueError(f"{folder} is there already, and is left as it is; name a new folder")
    if not seed.strip() or seed != seed.strip() or not seed.isprintable():
        raise ValueError(
            f"seed={seed!r} is no line of text; use words such as 'autumn, group B', without "
            "spaces around them"
        )
    content = _content(names, seed, hours, weeks)
    folder.mkdir(parents=True)
    for name, text in content.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.parent.name == "teacher":
            with contextlib.suppress(OSError):
                path.parent.chmod(0o700)  # its owner's alone, where the system knows that
        files.put(path, text)
    return [folder / name for name in content]


def slides(names: Sequence[str]) -> str:
    """The command that makes slides of chapters: of their executed pages, which a clone builds."""
    return f"python3 run.py book --slides {' '.join(names)}"


def _content(
    names: Sequence[str], seed: str, hours: Sequence[int], weeks: int | None
) -> dict[str, bytes]:
    """All files of a class, by their names in its folder."""
    every = [read(name) for name in names]
    listed = ",".join(names)
    quoted = ", ".join(f'"{name}"' for name in names)
    texts = {
        SETTINGS: TOML.format(chapters=quoted, seed=SEED, rubric=RUBRIC),
        "README.md": README.format(
            chapters=", ".join(names), whom=WHOM, when=WHEN,
            how=HOW, address=ADDRESS, grade=GRADE, rubric=RUBRIC,
            slides=slides(names),
        ),
        "syllabus.md": syllabus.told(every, hours, weeks),
        SEED: f"{seed}\n",
        RUBRIC: rubric.DEFAULT.read_text("utf-8"),
        GRADE: SCRIPT.format(chapters=listed, seed=SEED, rubric=RUBRIC),
        "hand_out/.github/workflows/grade.yml": workflow(names),
    }  # fmt: skip
    notebooks = dict(map(assignment, names))
    handed = {f"hand_out/{name}": content for name, content in notebooks.items()}
    return {name: text.encode() for name, text in texts.items()} | handed


def read_class(folder: Path) -> Class:
    """What a class's folder says of it; ValueError for a folder that is none."""
    path = folder / SETTINGS
    try:
        said = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ValueError(
            f"{folder} is no class: {path}: {error.strerror}; use a folder that `gemmlab class "
            f"new` wrote, or a chapter, {', '.join(chapters())}"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: no TOML: {error}") from None
    return _checked(folder, path, said)


def _checked(folder: Path, path: Path, said: Mapping[str, Any]) -> Class:
    for key in said:
        if key not in KEYS:
            raise ValueError(f"{path}: {key} is not known; use {', '.join(KEYS)}")
    for key in KEYS[1:]:
        if not isinstance(said.get(key), str):
            raise ValueError(f"{path}: {key}={said.get(key)!r}; use the name of a file")
    names = said.get("chapters")
    if not isinstance(names, list) or not names or any(n not in chapters() for n in names):
        raise ValueError(f"{path}: chapters={names!r}; use some of {', '.join(chapters())}")
    return Class(folder, tuple(names), folder / said["seed_file"], folder / said["rubric"])


# What a teacher fills in, in the first cell of each notebook.
WHOM, WHEN, HOW = "CLASS", "DAY AND TIME", "HOW TO HAND IT IN"
FIRST = f"""\
**Homework of {WHOM}**, due by **{WHEN}**.

Your own answers go where the skeletons have gaps. Each check says at once what it found; the grade
comes from the same checks, with cases of its own. Hand in this file, under its own name: {HOW}.
"""
ADDRESS = "ADDRESS-OF-THE-REPOSITORY"  # of this course, as on the page *Install*


def assignment(number: str) -> tuple[str, bytes]:
    """The name and the content of a chapter's notebook: no outputs, skeletons, a first cell."""
    content = notebook(number)
    first = {"cell_type": "markdown", "id": "homework", "metadata": {}, "source": FIRST}
    cells = [first]
    for cell in content["cells"]:
        if cell["cell_type"] == "code":
            cell |= {"outputs": [], "execution_count": None}
        cells.append(cell)
    made = {**content, "cells": cells}
    return path_of(number).name, (json.dumps(made, indent=1, ensure_ascii=False) + "\n").encode()


def workflow(chapters: Sequence[str]) -> str:
    """GitHub's workflow of an assignment: each push gets the table into the run's summary.

    It draws cases from the seed that everybody knows: whoever can push can read what a workflow
    reads. The teacher grades with the class's seed, elsewhere.
    """
    return WORKFLOW.replace("ADDRESS", ADDRESS).replace("CHAPTERS", ",".join(chapters))


WORKFLOW = """\
# Each push is graded, with cases that everybody may know: the table is in the run's summary.
# The class's marks come from the teacher's machine, with a seed that is not here.
name: grade
on: [push, workflow_dispatch]
permissions:
  contents: read
jobs:
  grade:
    runs-on: ubuntu-latest
    timeout-minutes: 30
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.13"
      - name: Install gemmlab
        run: python -m pip install "gemmlab[forecast,lab] @ git+ADDRESS"
      - name: Grade
        shell: bash
        run: |
          mkdir -p "$RUNNER_TEMP/in/$GITHUB_ACTOR"
          cp ./*.ipynb "$RUNNER_TEMP/in/$GITHUB_ACTOR/"
          status=0
          gemmlab grade "$RUNNER_TEMP/in" --only CHAPTERS --csv grades.csv > table.txt || status=$?
          { echo '```'; cat table.txt; echo '```'; } >> "$GITHUB_STEP_SUMMARY"
          exit "$status"
      - name: Keep the reasons
        if: always()
        uses: actions/upload-artifact@v4
        with:
          name: grades
          path: grades.csv
"""
