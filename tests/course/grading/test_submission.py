"""A notebook as data: what of it an answer needs."""

import json

import pytest

from gemmlab.course.grading import submission
from gemmlab.course.grading.submission import UnreadableError, read
from tests.course.grading.notebooks import cells, notebook

GET = "from gemmlab import exercises\nq = exercises.get('02.2')"


def needed(*codes):
    """The first lines of the statements that the check of 02.2 needs."""
    found = read(cells(*codes))
    kept, _ = found.needed(found.checks["02.2"])
    return [s.cell.source.splitlines()[s.node.lineno - 1] for s in kept]


def test_a_chapter_needs_its_imports_and_its_answers_alone():
    found = read(notebook("04", {}))
    assert list(found.checks) == ["04.1", "04.2", "04.3", "04.4", "04.5"]
    assert found.asked["04.2"] == {"q2"}
    kept, names = found.needed(found.checks["04.3"])
    assert [s.node.name for s in kept] == ["claims"]
    kept, names = found.needed(found.checks["04.1"])
    assert [type(s.node).__name__ for s in kept] == ["ImportFrom", "ImportFrom", "FunctionDef"]
    assert {"cuda", "float32", "build"} <= names


@pytest.mark.parametrize(
    ("codes", "kept"),
    [
        (["def f():\n    return g()", "def g():\n    return 1"], ["def f():", "def g():"]),
        (["def f():\n    return 1", "def f():\n    return 2"], ["def f():"]),
        (["x = 1", "def f(x):\n    return x"], ["def f(x):"]),
        (["x = 1", "y = x", "def f():\n    return y"], ["x = 1", "y = x", "def f():"]),
        (["def f():\n    return T", "T = {}", "T[0] = 1"], ["def f():", "T = {}", "T[0] = 1"]),
        (["L = []\nL.append(1)\nprint(L)", "def f():\n    return L"],
         ["L = []", "L.append(1)", "def f():"]),
        (["def f():\n    return 1", "f.cost = 3", "while True: pass"], ["def f():"]),
        (["def h():\n    return 3\nA = h()", "def h():\n    return 4\ndef f():\n    return A"],
         ["def h():", "A = h()", "def f():"]),
        (["for i in range(3):\n    S = i", "def f():\n    return S"],
         ["for i in range(3):", "def f():"]),
    ],
)  # fmt: skip
def test_what_is_needed_is_found_backwards(codes, kept):
    assert needed(GET, *codes, "q.check(f)") == kept


def test_the_last_check_counts_whatever_it_is_called():
    found = read(
        cells(
            GET,
            "other = q",
            "other.check(f)",
            "exercises.get('02.2').check(g)",
            "exercises.get('x')",
        )
    )
    assert found.checks["02.2"].at == 4
    assert list(found.checks) == ["02.2"]


def test_a_review_is_no_answer_to_an_exercise():
    answer = [GET, "def f():\n    return 1", "q.check(f)"]
    review = "review = exercises.review('02')\nreview.answer(1, 2, 3)  # review.check(f)"
    found = read(cells(*answer, review))
    assert list(found.checks) == ["02.2"]
    assert needed(*answer, review) == needed(*answer)
    assert len(read(notebook("06", {})).checks) == 3  # of a chapter that ends with one


def test_magics_are_left_out():
    found = read(cells("%matplotlib inline\n!ls\nx = 1\nx?", GET))
    assert not any(cell.fault for cell in found.cells)


def test_a_cell_that_is_no_python_costs_its_own_exercise():
    found = read(cells(GET, "r = exercises.get('02.3')", "def f(:\n    pass\nq.check(f)"))
    assert found.fault_of("02.2") == "cell 3, line 1: invalid syntax"
    assert found.fault_of("02.3") == ""


def test_an_answer_whose_last_version_is_no_python_is_not_judged_by_an_older_one():
    found = read(cells(GET, "def f():\n    return 1", "def f(:", "q.check(f)"))
    assert "cell 3" in found.fault_of("02.2")
    assert (
        read(cells(GET, "def f(:", "def f():\n    return 1", "q.check(f)")).fault_of("02.2") == ""
    )


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "no notebook"),
        (b"{not json", "no notebook"),
        (b"[1, 2]", "no list of cells"),
        (b'{"worksheets": []}', "no list of cells"),
        (b"\xff\xfe", "no notebook"),
        (b"[" * 200_000, "no notebook"),
        (json.dumps({"cells": [{"cell_type": "code", "source": [1]}]}).encode(), "no text"),
        (
            json.dumps({"cells": [{"cell_type": "code", "source": "x" * 2**21}]}).encode(),
            "1,048,576",
        ),
    ],
)
def test_what_is_no_notebook_says_why(content, why):
    with pytest.raises(UnreadableError, match=why):
        read(content)


def test_a_large_file_is_not_parsed(monkeypatch):
    monkeypatch.setattr(submission, "LARGEST", 10)
    with pytest.raises(UnreadableError, match="at most 10"):
        read(b" " * 11)
