"""A chapter as nbgrader's assignment, judged by this library in nbgrader's place."""

import csv
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from gemmlab.course.grading import nbgrader
from gemmlab.course.grading.judged import Judged
from gemmlab.course.grading.processes import Found, Grader
from tests.course.grading.notebooks import FOOLS, asked, solution, submitted
from tests.support.paths import ROOT

FILE = "04_shared_memory_tiling.ipynb"


def source():
    return nbgrader.source(asked("04"))


def test_answers_have_cells_of_their_own_and_checks_are_locked():
    marks = {
        c["id"]: c["metadata"]["nbgrader"] for c in source()["cells"] if "nbgrader" in c["metadata"]
    }
    assert list(marks)[:4] == ["ex1", "ex1-points", "ex2", "ex2-points"]
    assert len(marks) == 10
    assert marks["ex1"]["solution"]
    assert not marks["ex1"]["locked"]
    assert marks["ex1-points"]["locked"]
    assert marks["ex1-points"]["points"] == 1
    by_id = {c["id"]: c["source"] for c in source()["cells"]}
    assert by_id["ex1-points"] == "q1.check(build)"
    assert "check" not in by_id["ex1"]


def test_points_and_reasons_become_what_the_locked_cells_print(monkeypatch):
    every = ("contract", "small", "cases")
    half = Judged("04.1", "not passed", "wrong-values", "C[0, 0] is 3", every[:2], every)
    monkeypatch.setattr(Grader, "one", lambda self, content: Found(["04.1"], {"04.1": half}))
    judged, _ = nbgrader.judge(source(), {}, "ours")
    cells = {c["id"]: c.get("outputs") for c in judged["cells"]}
    said, points = cells["ex1-points"]
    assert said["text"] == "not passed: 0.5 of 1 points\nC[0, 0] is 3\n"
    assert points["data"] == {"text/plain": "0.5"}
    assert cells["ex2-points"][1]["data"] == {"text/plain": "0.0"}


TOOL = shutil.which("nbgrader")


@pytest.mark.measuring
@pytest.mark.skipif(not TOOL, reason="nbgrader is not on the PATH: pip install nbgrader==0.9.6")
def test_the_real_tool_releases_grades_and_gives_feedback(tmp_path):
    """Its environment needs nbgrader and numpy."""
    tools = Path(TOOL).parent
    course = tmp_path / "course"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{tools}:{os.environ['PATH']}"}

    def run(*command):
        command = [str(tools / command[0]), *command[1:]]
        subprocess.run(command, cwd=course, env=environment, check=True, capture_output=True)

    course.mkdir()
    run("python", "-m", "gemmlab.course.grading.nbgrader", "04", ".", "--notebooks",
        str(ROOT / "notebooks"), "--seed", "ours")  # fmt: skip
    run("nbgrader", "generate_assignment", "ch04", "--create")
    hand_in(course, "alice", lambda name, code: solution(name))
    hand_in(course, "bob", lambda name, code: code)
    hand_in(course, "carol", lambda name, code: solution(name).replace("cuda.syncthreads()", "pass")
            if name == "04.1" else code)  # fmt: skip
    hand_in(course, "eve", lambda name, code: code, FOOLS)
    run("nbgrader", "autograde", "ch04", "--create")
    run("nbgrader", "generate_feedback", "ch04")
    run("nbgrader", "export", "--to", "grades.csv")
    with open(course / "grades.csv", newline="") as file:
        scores = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
    assert scores == {"alice": 5, "bob": 0, "carol": 0.3, "eve": 0}
    page = (course / "feedback" / "carol" / "ch04" / FILE.replace("ipynb", "html")).read_text(
        "utf-8"
    )
    assert "not passed: 0.3 of 1 points" in page
    assert "shared-race" in page


def hand_in(course, student, change, extra=""):
    notebook = json.loads((course / "release" / "ch04" / FILE).read_text("utf-8"))
    path = course / "submitted" / student / "ch04" / FILE
    path.parent.mkdir(parents=True)
    path.write_text(submitted(notebook, "04", change, extra), "utf-8")
