"""Jupyter Book's settings say what those of `run.py book` say; tests/browser builds with both."""

import re

import yaml

from tests.support.paths import ROOT

BOOK = ROOT / "book"
TOC = yaml.safe_load((BOOK / "_toc.yml").read_text("utf-8"))
ONE = yaml.safe_load((BOOK / "_config.yml").read_text("utf-8"))
TWO = yaml.safe_load((BOOK / "myst.yml").read_text("utf-8"))


def files(pages: list[dict], key: str) -> list[str]:
    """The files and patterns of a table of contents, in order, without their endings."""
    found = []
    for page in pages:
        name = page.get("file") or page.get("glob") or page.get("pattern") or ""
        found += [re.sub(r"\.(md|ipynb)$", "", name)] * bool(name)
        for inner in (key, "sections"):
            found += files(page.get(inner, []), key)
    return found


def test_the_first_takes_all_settings_from_conf():
    """So that there is one place for them: `book/jupyter_book_1.py` takes them over."""
    assert set(ONE) == {"title", "author", "only_build_toc_files", "sphinx"}
    assert ONE["sphinx"] == {"local_extensions": {"jupyter_book_1": "."}}
    conf = (BOOK / "conf.py").read_text("utf-8")
    assert f'project = "{ONE["title"]}"\n' in conf
    assert f'author = "{ONE["author"]}"\n' in conf


def test_the_second_has_the_pages_of_the_first():
    wanted = [TOC["root"], *files(TOC["parts"], "chapters")]
    assert files(TWO["project"]["toc"], "children") == wanted
    assert TWO["project"]["title"] == ONE["title"]
    for plugin in TWO["project"]["plugins"]:
        assert (BOOK / plugin).is_file()


def test_the_glossary_is_a_list_that_both_read():
    """A blank line before each term, and its definition after a colon."""
    listed = (BOOK / "glossary.md").read_text("utf-8").split(":::{glossary}\n")[1].split("\n:::")[0]
    for block in listed.split("\n\n"):
        term, definition, *further = block.split("\n")
        assert not term.startswith((":", " "))
        assert definition.startswith(": ")
        assert all(line.startswith("  ") for line in further)
