"""The first use of a term in a chapter leads to the glossary."""

import doctest
import re
from types import SimpleNamespace

import pytest

from tests.support.paths import ROOT

nodes = pytest.importorskip("docutils.nodes")
terms = pytest.importorskip("book.terms")


def document(*parts) -> nodes.document:
    made = nodes.Element()  # stands for a document
    made += parts
    return made


def glossary(*names: str) -> nodes.Element:
    found = [nodes.term("", name, ids=[f"term-{name.split(',')[0]}"]) for name in names]
    return document(*found)


def linked(*parts, names=("tile", "bank conflict", "stage", "wave")) -> list[tuple[str, str]]:
    """The words that become links in a chapter, and where they lead."""
    chapter = document(*parts)
    builder = SimpleNamespace(format="html", get_relative_uri=lambda *_: "../glossary.html")
    env = SimpleNamespace(get_doctree=lambda _: glossary(*names))
    before = chapter.astext()
    terms.link(SimpleNamespace(builder=builder, env=env), chapter, "notebooks/04")
    assert re.sub(r"\s+", " ", chapter.astext()) == re.sub(r"\s+", " ", before)
    return [(link.astext(), link["refuri"]) for link in chapter.findall(nodes.reference)]


def prose(text: str) -> nodes.paragraph:
    return nodes.paragraph("", *map(nodes.Text, re.split(r"(\n)", text)))


def test_the_first_use_alone_is_a_link():
    found = linked(prose("Tiles of a tile."), prose("A tile in a wave."))
    assert found == [
        ("Tiles", "../glossary.html#term-tile"),
        ("wave", "../glossary.html#term-wave"),
    ]


def test_a_term_may_go_on_in_the_next_line():
    assert [word for word, _ in linked(prose("no bank\nconflicts"))] == ["bank\nconflicts"]


def test_what_is_no_prose_has_no_links():
    code, heading = nodes.literal("", "tile"), nodes.title("", "A tile")
    cell = nodes.container("", prose("a wave"), classes=["cell"])
    assert linked(heading, nodes.paragraph("", "", code), cell, prose("tiled, microtile")) == []


def test_a_word_that_has_other_senses_has_none():
    assert linked(prose("On stage.")) == []


def test_the_words_left_out_are_entries_of_the_glossary():
    text = (ROOT / "book" / "glossary.md").read_text("utf-8")
    entries = {re.sub("[ ,]+", "-", name) for name in re.findall(r"(?m)^(.+)\n: ", text)}
    assert entries >= terms.COMMON


def test_examples_in_docstrings_are_right():
    assert doctest.testmod(terms).failed == 0
    assert doctest.testmod(terms).attempted > 0
