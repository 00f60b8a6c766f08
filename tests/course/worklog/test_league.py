"""A league: right entries pass, and no trick does."""

import pytest

from gemmlab import Tiling
from gemmlab.course.worklog import judging
from gemmlab.course.worklog.entries import Entry
from gemmlab.course.worklog.judging import Judged
from gemmlab.course.worklog.shapes import SHAPES
from gemmlab.course.worklog.worker import judge_text
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
