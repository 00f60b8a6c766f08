"""Rows, the class's tables, files for other systems, and pages."""

import csv
import datetime
import io
import os

import pytest

from gemmlab.course.grading import report, table
from gemmlab.course.grading.judged import Judged
from gemmlab.course.grading.processes import Found
from gemmlab.course.grading.rubric import Rubric, read
from gemmlab.course.grading.students import Handed, handed_in

EVERY = ("contract", "small", "cases")
NAMES = ["01.1", "01.2"]


def judged(exercise, diagnosis, stages=(), **more):
    state = "passed" if diagnosis == "passed" else "not passed"
    return Judged(exercise, state, diagnosis, f"because {diagnosis}", stages, EVERY, **more)


def found(*outcomes):
    return Found([o.exercise for o in outcomes], {o.exercise: o for o in outcomes})


def day(number):
    return datetime.datetime(2026, 12, number, tzinfo=datetime.UTC)


def rows(*pairs, rubric=None):
    return table.rows([h for h, _ in pairs], [f for _, f in pairs], NAMES, rubric or read())


ANNA, BEN = Handed("a.ipynb", "anna", "11", when=day(1)), Handed("b.ipynb", "=ben", when=day(9))
RIGHT = found(judged("01.1", "passed", EVERY), judged("01.2", "passed", EVERY, like="x"))
HALF = found(judged("01.1", "transposed", EVERY[:2]), judged("01.2", "passed", EVERY, like="x"))
CLASS = (ANNA, RIGHT), (BEN, HALF)


def test_a_row_for_each_student_and_exercise():
    got = [(r.student, r.exercise, r.points, r.most) for r in rows(*CLASS)]
    assert got == [("=ben", "01.1", 0.5, 1), ("=ben", "01.2", 1, 1),
                   ("anna", "01.1", 1, 1), ("anna", "01.2", 1, 1)]  # fmt: skip


def test_what_is_missing_or_unreadable_has_its_row():
    got = rows((ANNA, Found(fault="no notebook")), (BEN, found(judged("01.1", "passed", EVERY))))
    assert [(r.student, r.judged.state) for r in got] == [
        ("=ben", "passed"), ("=ben", "missing"), ("anna", "unreadable"), ("anna", "unreadable"),
    ]  # fmt: skip
    assert sum(r.points for r in got) == 1


def test_equal_answers_of_two_students_are_to_be_looked_at():
    looks = {(r.student, r.exercise): r.look for r in rows(*CLASS) if r.look}
    assert set(looks) == {("anna", "01.2"), ("=ben", "01.2")}
    assert looks["anna", "01.2"].startswith("the same as =ben")


def test_late_work_has_a_part_of_its_points():
    late = Rubric(shares=read().shares, late=0.5, due=day(5))
    again = Handed("a2.ipynb", "anna", when=day(9))
    best = rows((ANNA, HALF), (again, RIGHT), rubric=late)
    assert [(r.points, r.late, r.attempts) for r in best] == [(0.5, False, 2), (1, False, 2)]
    alone = rows((again, RIGHT), rubric=late)
    assert [(r.points, r.late) for r in alone] == [(0.5, True), (0.5, True)]


def test_the_last_attempt_counts_where_the_rubric_says_so():
    again = Handed("a2.ipynb", "anna", when=day(9))
    wrong = found(judged("01.1", "transposed", EVERY[:1]), judged("01.2", "passed", EVERY))
    last = Rubric(shares=read().shares, attempts="last")
    assert rows((ANNA, RIGHT), (again, wrong), rubric=last)[0].points < 1
    assert [r.points for r in rows((ANNA, RIGHT), (again, wrong))] == [1, 1]
    assert [r.points for r in rows((ANNA, RIGHT), (again, found()), rubric=last)] == [1, 1]


def test_the_exercises_of_a_class_are_those_of_the_chapters_that_half_of_it_has():
    every = ["01.1", "01.2", "02.1"]
    of = [Found(["01.1"]), Found(["01.1", "02.1"]), Found(["01.2"]), Found(fault="no notebook")]
    assert table.exercises_of(of, [], every) == ["01.1", "01.2"]
    assert table.exercises_of(of, ["02.1"], every) == ["02.1"]


def test_what_to_teach_next_week():
    got = rows(*CLASS)
    assert table.next_week(got) == [(1, "01.1", "transposed")]
    assert table.next_week(rows((ANNA, found(judged("01.1", "reaches-out"))))) == []
    text = table.told(got)
    assert "01.1: 1 of 2 transposed" in text
    assert "01.2  2 passed" in text
    assert "anna" in text


def lines(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_files_of_the_table():
    got = rows(*CLASS)
    plain = lines(table.plain_csv(got, "HW"))
    assert [row["points"] for row in plain] == ["0.5", "1", "1", "1"]
    assert plain[0]["student"] == "'=ben"  # no formula
    assert plain[0]["reason"] == "because transposed"
    first, ben, anna = lines(table.canvas_csv(got, "HW 4"))
    assert list(first)[:5] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
    assert (first["Student"], first["HW 4"]) == ("    Points Possible", "2")
    assert (anna["ID"], anna["HW 4"], ben["HW 4"]) == ("11", "2", "1.5")
    ben, anna = lines(table.moodle_csv(got, "HW 4"))
    assert (anna["Identifier"], anna["Grade"], anna["Maximum Grade"]) == (
        "Participant 11",
        "2",
        "2",
    )
    assert "01.1: 0.5 of 1, transposed" in ben["Feedback comments"]
    assert len(lines(table.seconds_csv(got))) == 4
    assert "seconds" not in plain[0]


def test_an_outcome_goes_through_a_file(tmp_path):
    assert Found.of(RIGHT.data) == RIGHT
    for wrong in (b"[]", b"{}", RIGHT.data.replace(b'"passed"', b'"best"')):
        with pytest.raises((ValueError, KeyError, TypeError)):
            Found.of(wrong)


def test_pages_of_a_class_need_no_network_and_hold_no_markup_of_students(tmp_path):
    evil = judged("01.1", "wrong-type", code="<script>alert(1)</script>")
    got = rows((ANNA, RIGHT), (Handed("c", "<b>eve</b>/.."), found(evil)), (BEN, HALF))
    first = report.write(tmp_path, got, "HW <4>")
    pages = {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()}
    assert first.name == "index.html"
    assert len(pages) == 4
    assert first.read_text("utf-8").count("<svg role") == 2
    for text in pages.values():
        assert "<script" not in text
        assert "<b>eve" not in text
        assert 'src="' not in text
    assert "because transposed" in next(t for n, t in pages.items() if n.startswith("ben-"))
    before = pages
    report.write(tmp_path, got, "HW <4>")
    assert {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()} == before


# --------------------------------------------------------------------------------- students


@pytest.mark.parametrize(
    ("files", "named", "students"),
    [
        (["anna.ipynb", "ben.ipynb"], ["."], ["anna", "ben"]),
        (
            ["anna/04.ipynb", "ben/hw/04.ipynb", "ben/.ipynb_checkpoints/04.ipynb"],
            ["."],
            ["anna", "ben"],
        ),
        (["anna/04.ipynb", "ben/04.ipynb"], ["anna/04.ipynb", "ben/04.ipynb"], ["anna", "ben"]),
        (["doejane_LATE_12_34_ch04.ipynb", "roe_13_35_ch04.ipynb"], ["."], ["doejane", "roe"]),
        (["Jane Doe_77_assignsubmission_file_/04.ipynb"], ["."], ["Jane Doe"]),
    ],
)
def test_whose_a_notebook_is(tmp_path, files, named, students):
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    got = handed_in([tmp_path / name for name in named])
    assert [one.student for one in got] == students


def test_names_of_canvas_and_moodle_tell_numbers_and_lateness(tmp_path):
    for name in ("doejane_LATE_12_34_ch04", "roe_13_35_ch04"):
        (tmp_path / f"{name}.ipynb").write_text("{}")
    late, other = handed_in([tmp_path])
    assert (late.number, late.late, other.number, other.late) == ("12", True, "13", False)
    os.utime(other.path, (0, 0))
    other = handed_in([tmp_path])[1]
    assert not other.is_late(day(1))
    assert handed_in([tmp_path])[0].is_late(None)


def test_no_notebook_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="there is no notebook in"):
        handed_in([tmp_path])
    with pytest.raises(ValueError, match=r"there is no .*x.ipynb"):
        handed_in([tmp_path / "x.ipynb"])
