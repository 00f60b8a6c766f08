"""A league: right entries pass, and no trick does."""

import json
from dataclasses import replace

import pytest

from gemmlab import Tiling, worklog
from gemmlab.course.grading.processes import Grader
from gemmlab.course.worklog import judging
from gemmlab.course.worklog.entries import Entry
from gemmlab.course.worklog.judging import Judged
from gemmlab.course.worklog.league import Row, judge_text, ranked
from gemmlab.course.worklog.shapes import SHAPES
from tests.course.worklog.tricks import TRICKS, Trick


@pytest.fixture(autouse=True)
def no_forecast(monkeypatch):
    monkeypatch.setattr(judging, "lacking", lambda: "not in this test")


def entry(trick: Trick) -> Entry:
    untold = Judged("not-judged")
    return Entry("build", trick.source, Tiling.square(16), untold, grid=trick.grid)


@pytest.mark.parametrize("name", TRICKS)
def test_a_trick_does_not_pass(name):
    trick = TRICKS[name]
    found = judge_text(entry(trick), SHAPES[trick.shape], "here")
    assert (found.diagnosis, found.seconds) == (trick.diagnosis, {}), found
    assert found.facts


def test_the_kernel_that_tricks_change_passes():
    found = judge_text(entry(Trick("", "passed", ())), SHAPES["batched"], "here")
    assert found.diagnosis == "passed", found


@pytest.mark.measuring
def test_a_league_believes_nothing_that_a_file_says(tmp_path, monkeypatch):
    monkeypatch.setattr(Grader, "prepare", lambda grader: None)  # nothing comes to be predicted
    told = Judged("passed", seconds={"h200": 1e-9})
    logs = []
    for who, trick in (("<eve>", "half of the elements"), ("bob", "the course's kernel")):
        data = replace(entry(TRICKS[trick]), judged=told).data
        logs.append(tmp_path / who / "worklog-batched.json")
        logs[-1].parent.mkdir()
        logs[-1].write_text(json.dumps({"shape": "batched", "entries": [data]}))
    lines = []
    table = worklog.league(logs, tell=lines.append)
    assert lines[0] == f"seed {table.seed!r}: the same one judges the same way again"
    assert lines[1:] == [
        "1 of 1: <eve>, 1 build, not-all-of-c",
        "1 of 1: bob, 1 build, borrowed",
    ]
    assert {row.who: row.judged.diagnosis for row in table} == {
        "<eve>": "not-all-of-c",
        "bob": "borrowed",
    }
    assert "&lt;eve&gt;" in table._repr_html_()
    assert table.write(tmp_path / "t.csv").read_text("utf-8").startswith("shape,who,entry,verdict")


def test_the_faster_entry_stands_above_and_those_that_did_not_pass_below():
    rows = [
        Row(who, "skinny", 1, "mine", Judged(diagnosis, seconds=seconds))
        for who, diagnosis, seconds in (
            ("a", "floor-steps", {}),
            ("b", "passed", {"h200": 2.0}),
            ("c", "passed", {"h200": 1.0}),
        )
    ]
    far = replace(rows[1], judged=Judged("passed", depth=376)).cells
    assert far["verdict"] == "passed as far as k = 376"
    assert [row.who for row in ranked([*rows, replace(rows[0], shape="square")])] == [*"acba"]
