"""A chapter as otter-grader's assignment, judged by this library in otter's place."""

import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from gemmlab.course.grading import otter
from gemmlab.course.grading.judged import Judged
from gemmlab.course.grading.processes import Found, Grader
from tests.course.grading.notebooks import FOOLS, asked, chapter, solution, submitted
from tests.support.paths import ROOT

FILE = "04_shared_memory_tiling.ipynb"


def test_a_chapter_stays_as_it_is_between_cells_that_say_what_is_asked():
    cells = otter.source(asked("04", "ours"))["cells"]
    own = [cell["source"] for cell in cells if cell["cell_type"] != "raw"]
    tests = [source for source in own if source == f"# HIDDEN\n{otter.FAILS}"]
    assert len(tests) == 5
    assert [source for source in own if source not in tests] == [
        cell["source"] for cell in json.loads(chapter("04"))["cells"]
    ]
    assert len({cell["id"] for cell in cells}) == len(cells)
    _, settings = cells[0]["source"].split("\n", 1)
    (plugin,) = json.loads(settings)["generate"]["plugins"]
    assert plugin == {otter.PLUGIN: {"seed": "ours", "rubric_file": None}}
    assert f"{otter.Judge.__module__}.{otter.Judge.__name__}" == otter.PLUGIN


class Notebook(dict):
    """What nbformat reads: a mapping of its own kind."""


def test_otter_gets_an_empty_notebook_in_an_empty_folder_and_then_points(tmp_path, monkeypatch):
    every = ("contract", "small", "cases")
    half = Judged("04.1", "not passed", "wrong-values", "C[0, 0] is 3", every[:2], every)
    seen = []

    def one(self, content):
        seen.append((self.seed, json.loads(content)))
        return Found(["04.1"], {"04.1": half})

    monkeypatch.setattr(Grader, "one", one)
    (tmp_path / "tests").mkdir()
    (tmp_path / "otter").mkdir()
    (tmp_path / "json.py").write_text("raise SystemExit", "utf-8")
    judge = otter.Judge(str(tmp_path / "answer.ipynb"), {}, {"seed": "ours"})
    left = judge.before_execution(Notebook(cells=["theirs"], metadata={"kernelspec": {}}))
    assert left["cells"] == []
    assert left["metadata"]["kernelspec"]["name"] == "python3"
    assert [path.name for path in tmp_path.iterdir()] == ["tests"]
    results = Results("ex1", "ex2")
    judge.after_grading(results)
    assert seen == [("ours", {"cells": ["theirs"], "metadata": {"kernelspec": {}}})]
    assert results.scores == {"ex1": 0.5, "ex2": 0.0}
    (case,) = results.results["ex1"].test_case_results
    assert not case.passed
    assert case.message == "not passed: 0.5 of 1 points\nC[0, 0] is 3\n"


class Results:
    """What otter hands to a plugin after grading: tests that have passed."""

    def __init__(self, *names):
        self.scores = dict.fromkeys(names, 1.0)
        self.results = {name: SimpleNamespace(test_case_results=[self.case()]) for name in names}

    def case(self):
        return SimpleNamespace(passed=True, message="", test_case=SimpleNamespace())

    def update_score(self, name, points):
        self.scores[name] = points


TOOL = shutil.which("otter")
FORGES = """\
import atexit, pickle, sys
raise SystemExit("the modules of a submission are imported")
"""


@pytest.mark.measuring
@pytest.mark.skipif(not TOOL, reason="otter-grader is not on the PATH: pip install otter-grader")
def test_the_real_tool_releases_and_grades(tmp_path):
    """Its environment needs otter-grader, ipykernel and numpy."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    python = str(Path(TOOL).with_name("python"))

    def run(*command):
        subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)

    made = [python, "-m", "gemmlab.course.grading.otter", "04", ".", "--seed", "ours"]
    run(*made, "--notebooks", str(ROOT / "notebooks"))
    run(TOOL, "assign", FILE, "dist")
    released = json.loads((tmp_path / "dist" / "student" / FILE).read_text("utf-8"))
    assert "ours" not in json.dumps(released["metadata"])
    (grader,) = (tmp_path / "dist" / "autograder").glob("*.zip")

    def graded(change, extra="", modules=()):
        handed = tmp_path / "handed.zip"
        with zipfile.ZipFile(handed, "w") as files:
            files.writestr(FILE, submitted(released, "04", change, extra))
            for name in modules:
                files.writestr(name, FORGES)
        run(TOOL, "run", "--autograder", str(grader), "--output-dir", ".", "handed.zip")
        tests = json.loads((tmp_path / "results.json").read_text("utf-8"))["tests"]
        return {test["name"]: (test["score"], test["output"]) for test in tests}

    def points(*given, **more):
        return [score for score, _ in graded(*given, **more).values()]

    assert points(lambda name, code: solution(name)) == [1] * 5
    assert points(lambda name, code: code) == [0] * 5
    assert points(lambda name, code: code, FOOLS, ["otter.py", "json.py", "numpy/__init__.py"]) == (
        [0] * 5
    )
    race = solution("04.1").replace("cuda.syncthreads()", "pass")
    of = {"04.1": race, "04.2": "def build(T:"}
    found = graded(lambda name, code: of.get(name, code))
    assert [score for score, _ in found.values()] == [0.3, 0, 0, 0, 0]
    assert "not passed: 0.3 of 1 points" in found["ex1"][1]
    assert "unreadable: 0 of 1 points" in found["ex2"][1]
