"""Right answers in unusual notebooks have their points, and students their own rows."""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from gemmlab.course.grading import allowed, definitions, submission
from gemmlab.course.grading.command import _content
from gemmlab.course.grading.judged import judged
from gemmlab.course.grading.processes import Found, Grader
from gemmlab.course.grading.students import handed_in, printable
from gemmlab.here import files
from tests.course.grading.notebooks import cells
from tests.course.grading.unusual import ALL, CHECK, IMPORTS, UNUSUAL

RIGHT = (1.6666666666666667, 22, 8)


def answers(*codes, check=CHECK):
    found = submission.read(cells(IMPORTS, *codes, check))
    assert not found.fault_of("06.3")
    return definitions.Definitions(found, found.checks["06.3"]).answers()


def values(functions):
    wavefronts, registers, side = functions
    return wavefronts(2, 3, 8), registers(2, 3, 8), side(2, 8)


@pytest.mark.parametrize("name", UNUSUAL)
def test_an_unusual_notebook_has_the_answers_that_were_meant(name):
    assert values(answers(*UNUSUAL[name])) == pytest.approx(RIGHT)


@pytest.mark.parametrize(
    "check", [f"%time v = {CHECK}", f"assert {CHECK}.passed", f"%%time\n{CHECK}"]
)
def test_a_check_may_stand_in_a_line_of_its_own_kind(check):
    assert values(answers(ALL, check=check)) == pytest.approx(RIGHT)


def test_an_unusual_notebook_passes():
    whole = cells(IMPORTS, *UNUSUAL["imports that are tried"], CHECK)
    assert judged(submission.read(whole), "06.3", "key").state == "passed"


@pytest.mark.parametrize(
    "line", ["from typing import types", "import typing as t; t.types", "t = eval", "open('x')"]
)
def test_an_answer_meets_a_fence_where_it_runs(line, monkeypatch):
    monkeypatch.setattr(allowed, "reaching", lambda node: iter(()))
    run, *_ = answers(ALL, f"def wavefronts(*a):\n    {line}\n")
    with pytest.raises((AttributeError, ImportError, NameError)):
        run()


def test_what_takes_many_steps_is_computed_apart(monkeypatch):
    monkeypatch.setattr(definitions, "STEPS", 1000)
    many = "X = [[0 for a in range(64)] for b in range(64)]"
    found = submission.read(cells(IMPORTS, many, ALL.replace("return", "X; return"), CHECK))
    made = definitions.Definitions(found, found.checks["06.3"])
    made._bind(found.statements[2])
    assert [*made.missing] == ["X"]


def test_many_names_and_lambdas_are_read_in_a_moment():
    many = "\n".join(f"def a{i}(): return a{i - 1}, a{i - 2}" for i in range(2, 1500))
    table = "X = [" + "lambda: 0, " * 1500 + "]"
    wide = "def side(f, s):\n    a1499, X\n    return max(1, -int(-f * s // 2))\n"
    steps = answers("a0 = a1 = 0", many, table, ALL, wide)
    assert values(steps) == pytest.approx(RIGHT)


# --------------------------------------------------------------------------------- files and names


def test_what_is_no_file_of_the_student_is_a_row_that_says_so(tmp_path):
    (tmp_path / "anna.ipynb").write_bytes(cells(IMPORTS))
    (tmp_path / "link.ipynb").symlink_to("anna.ipynb")
    (tmp_path / "nowhere.ipynb").symlink_to("nothing")
    (tmp_path / "loop.ipynb").symlink_to("loop.ipynb")
    os.mkfifo(tmp_path / "queue.ipynb")
    (tmp_path / "folder.ipynb").mkdir()
    handed = handed_in([tmp_path])
    assert [one.student for one in handed] == ["anna", "link", "loop", "nowhere", "queue"]
    read = Grader("seed", start=("-c", "pass"))._read
    faults = {one.student: read(partial(_content, one.path, False)).fault for one in handed[1:]}
    assert faults.pop("queue") == "the file cannot be read: it is no file"
    assert {*faults.values()} == {
        "the file cannot be read: it is a link to another file; hand in the notebook itself"
    }
    assert _content(tmp_path / "link.ipynb", True) == cells(IMPORTS)


def test_two_students_of_one_name_have_a_row_each(tmp_path):
    for name in ("wangli_111_9_04", "wangli_222_9_04", "lee_3_9_04", "lee_LATE_3_9_04-1"):
        (tmp_path / f"{name}.ipynb").touch()
    found = [one.student for one in handed_in([tmp_path])]
    assert found == ["lee", "lee", "wangli (111)", "wangli (222)"]


def test_a_name_is_text_of_one_line():
    assert printable("a\nb\x1b[31m") == "a\\nb\\x1b[31m"
    assert printable("al\udcffice") == "al\\udcffice"
    assert printable("Jose\u0301") == "Jos\u00e9"
    assert printable("\u674e\u96f7 \U0001f600 <b>,") == "\u674e\u96f7 \U0001f600 <b>,"


def test_a_file_of_a_far_year_is_late_and_no_fault(tmp_path):
    path = tmp_path / "a.ipynb"
    path.touch()
    os.utime(path, (1 << 40, 1 << 40))
    assert handed_in([tmp_path])[0].when.year >= 2400


def test_the_same_notebook_of_two_students_is_kept_at_once(tmp_path, no_sync):
    found = Found(asked=["06.3"])
    with ThreadPoolExecutor(8) as pool:
        tries = [pool.submit(files.put, tmp_path / "one.json", found.data) for _ in range(200)]
    assert [one.result() for one in tries] == [None] * 200


def test_half_a_character_is_kept():
    assert b"ud800" in Found(fault="\ud800").data
