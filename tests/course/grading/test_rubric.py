"""Points by stages, and a rubric that a teacher edits."""

import datetime
import inspect

import pytest

from gemmlab import exercises
from gemmlab.course.grading import rubric
from gemmlab.course.grading.judged import judged
from gemmlab.course.grading.rubric import STAGES, Rubric, RubricError, passed, read, stages_of
from gemmlab.course.grading.submission import read as read_notebook
from gemmlab.course.judging.verdict import DRAWN_ANEW, FAILING, Verdict
from tests.course.grading.notebooks import cells

KERNEL, FUNCTION = exercises.get("04.2").task, exercises.get("01.2").task


def verdict(diagnosis, facts=(), **details):
    return Verdict("04.2", diagnosis == "passed", diagnosis, facts, details)


def test_an_exercise_has_the_stages_that_make_sense_for_it():
    assert stages_of(FUNCTION) == ("contract", "small", "cases")
    assert stages_of(KERNEL) == ("contract", "small", "cases", "hazards", "budget")
    assert stages_of(exercises.get("06.2").task) == tuple(STAGES)


@pytest.mark.parametrize(
    ("given", "reached"),
    [
        (verdict("passed"), ("contract", "small", "cases", "hazards", "budget")),
        (verdict("not-attempted"), ()),
        (verdict("tampers"), ()),
        (verdict("wrong-type"), ()),
        (verdict("raises", ((FAILING, "m=1"),)), ()),
        (verdict("raises", ((FAILING, "m=9"),)), ("contract", "small")),
        (verdict("wrong-values", ((FAILING, "m=1"),)), ("contract",)),
        (verdict("wrong-values", ((FAILING, "m=9"),)), ("contract", "small")),
        (verdict("known-cases-only", ((DRAWN_ANEW, "m=77"),)), ("contract", "small")),
        (verdict("barrier-before-reading", ((FAILING, "m=1"),), kind="shared-race", index=(0, 0)),
         ("contract",)),
        (verdict("barrier-before-reading", ((FAILING, "m=1"),), kind="shared-race"),
         ("contract", "small")),
        (verdict("copy-not-coalesced"), ("contract", "small", "cases", "hazards")),
        (verdict("time-over-limit"), ("contract", "small", "cases", "hazards", "budget")),
    ],
)  # fmt: skip
def test_a_verdict_says_how_far_an_answer_came(given, reached):
    assert passed(given, KERNEL, ("m=1", "m=9")) == reached


CASES = ((1, 1, (1, 1)), (2, 3, (4, 4)))


@pytest.mark.parametrize(
    ("given", "small"),
    [
        (verdict("not-written", ((FAILING, "A is 1×1, block (1, 1)"),)), False),
        (verdict("not-written", ((FAILING, "A is 2×3, block (4, 4)"),)), True),
        (verdict("wrong-values", ((FAILING, "f(a)"),), case=(1, 1, (1, 1))), False),
        (verdict("wrong-values", ((FAILING, "f(b)"),), case=(2, 3, (4, 4))), True),
        (verdict("constant", ((FAILING, "f(b)"),), case=(2, 3, (4, 4))), False),
        (verdict("not-written", ((FAILING, "3 elements, T=2"),)), True),
        (verdict("not-finite", ((FAILING, "one warp"),)), False),
        (verdict("wrong-values", ((FAILING, "one warp"),)), True),
    ],
)
def test_small_is_for_what_is_right_in_the_smallest_case(given, small):
    assert ("small" in passed(given, KERNEL, CASES)) == small


@pytest.mark.parametrize("name", ["01.4", "02.4", "11.1"])
def test_the_same_number_in_every_case_has_no_part_of_them(name):
    answers = exercises.get(name).task.answers
    made = [f"def {a.__name__}{inspect.signature(a)}:\n    return 1" for a in answers]
    names = ", ".join(a.__name__ for a in answers)
    get = f"from gemmlab import exercises\nq = exercises.get({name!r})"
    found = judged(read_notebook(cells(get, *made, f"q.check({names})")), name, "key")
    assert (found.state, found.stages) == ("not passed", ("contract",))


def test_every_stage_of_the_table_is_some_exercise_s():
    own = {name for n in exercises.names() for name in exercises.get(n).task.diagnoses}
    assert own >= rubric.BUDGET
    assert own >= rubric.RACES - rubric.HAZARDS.keys()


def test_the_rubric_that_comes_along():
    given = read()
    every = stages_of(KERNEL)
    assert given.given("04.2", every, every) == 1
    assert given.given("04.2", ("contract", "small"), every) == pytest.approx(3 / 10)
    assert given.given("04.2", (), every) == 0
    assert (given.attempts, given.late, given.due) == ("best", 1, None)


def test_a_rubric_of_a_teacher(tmp_path):
    path = tmp_path / "rubric.toml"
    path.write_text(
        'points = 2\nattempts = "last"\nlate = 0.5\ndue = 2026-12-01T23:59:00\n'
        '[stages]\ncases = 1\n[exercises]\n"04.5" = 6\n'
    )
    given = read(path)
    assert (given.most("04.5"), given.most("04.1")) == (6, 2)
    assert given.given("04.1", ("contract", "small"), stages_of(KERNEL)) == 0
    assert given.due == datetime.datetime(2026, 12, 1, 23, 59).astimezone()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("points = 'many'", "points='many'; use a number from 0 on"),
        ("points = -1", "points=-1; use a number"),
        ("point = 1", "point is not known; use one of points, attempts"),
        ("[stages]\nspeed = 1", "stages.speed is not known; use one of contract, small"),
        ("[stages]\nsmall = 0", "no share; give one of contract"),
        (
            '[stages]\nsmall = 1\n[exercises]\n"99.1" = 1',
            "exercises.99.1 is not known; use one of 01.1",
        ),
        ("attempts = 'first'\n[stages]\nsmall = 1", "attempts='first'; use one of 'best', 'last'"),
        ("late = 2\n[stages]\nsmall = 1", "late=2.0 is a part"),
        ("due = 'soon'\n[stages]\nsmall = 1", "due='soon'; write a day"),
        ("stages = 3", "stages=3; write a table"),
        ("points = ", "no TOML"),
    ],
)
def test_a_wrong_rubric_quotes_the_value_and_lists_what_is_accepted(tmp_path, text, words):
    path = tmp_path / "rubric.toml"
    path.write_text(text)
    with pytest.raises(RubricError) as caught:
        read(path)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)


def test_shares_without_a_sum_give_nothing():
    assert Rubric(shares=dict.fromkeys(STAGES, 0.0)).given("01.2", (), ("small",)) == 0
