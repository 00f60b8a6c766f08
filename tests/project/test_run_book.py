"""`run.py book --pdf` and `--slides`: what is called, and in which order."""

import importlib.util
import os

import pytest

import run
from tests.support.paths import ROOT


@pytest.mark.parametrize(
    ("asked", "last", "sets"),
    [
        (["--pdf"], ("book.printed", "{site}", "{site}/../gemmlab.pdf"), ["book", "pdf"]),
        (["--slides", "06", "07"], ("book.slides", "{site}", "06", "07"), ["book"]),
    ],
)
def test_paper_and_slides_are_made_of_the_built_pages(monkeypatch, asked, last, sets):
    calls, installed = [], []
    monkeypatch.setattr(run, "set_up", installed.append)
    monkeypatch.setattr(run, "call", lambda *command: calls.append(command) or 0)
    assert run.main(["book", *asked]) == 0
    assert installed == sets
    site = ROOT / "book" / "_build" / "html"
    made = ["book.live", "sphinx", "sphinx", "book.live"]
    assert [command[1] for command in calls] == [*made, last[0]]
    assert [command[-1] for command in calls[1:3]] == [str(site), str(site / "zh")]
    given = [os.path.normpath(part.format(site=site)) for part in last]
    assert calls[-1] == ("-m", *given)
    assert importlib.util.find_spec(last[0])


def test_sphinx_given_something_builds_the_english_site_alone(monkeypatch):
    calls = []
    monkeypatch.setattr(run, "set_up", lambda _: None)
    monkeypatch.setattr(run, "call", lambda *command: calls.append(command) or 0)
    assert run.main(["book", "-n"]) == 0
    assert [command[1] for command in calls] == ["sphinx"]  # nothing is fetched for it
    assert os.environ["GEMMLAB_TRANSLATED"] == ""


def test_nothing_is_printed_of_pages_that_were_not_built(monkeypatch):
    calls = []
    monkeypatch.setattr(run, "set_up", lambda _: None)
    monkeypatch.setattr(run, "call", lambda *command: calls.append(command) or 2)
    assert run.main(["book", "--pdf"]) == 2
    assert "book.printed" not in [command[1] for command in calls]


def test_a_preview_is_the_whole_site_with_short_films(monkeypatch):
    calls = []
    monkeypatch.delenv("GEMMLAB_PREVIEW", raising=False)
    monkeypatch.setattr(run.os, "environ", dict(os.environ))
    monkeypatch.setattr(run, "set_up", lambda _: None)
    monkeypatch.setattr(run, "call", lambda *command: calls.append(command) or 0)
    assert run.main(["book", "--preview"]) == 0
    assert run.os.environ["GEMMLAB_PREVIEW"] == "1"
    assert [command[1] for command in calls] == ["book.live", "sphinx", "sphinx", "book.live"]
    assert "--preview" not in [*calls[1], *calls[2]]
