"""The assignment: chapters as notebooks that learners get, and the workflow that runs beside them.

Nothing here knows the seed of a class: a learner reads all of it, and can change the workflow.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from gemmlab.course.teaching.chapter import notebook, path_of

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
