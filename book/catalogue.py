"""Bring the catalogues of translations up to date: ``python -m book.catalogue [--check]``.

A catalogue (`book/locale/LANGUAGE/LC_MESSAGES/gemmlab.po`) has each paragraph of the pages that are
translated, the titles of all pages, and the site's own words, each beside its translation. What has
changed since is marked `fuzzy` there, and shown in English until somebody has looked at it.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from babel.messages import Catalog
from babel.messages.extract import extract_from_file
from babel.messages.pofile import write_po
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.nodes import extract_messages

from book.languages import PAGES, SCRIPTS
from lab.translated import DOMAIN, LOCALE, catalogue

BOOK = Path(__file__).resolve().parent
OWN = dict.fromkeys(("conf.py", "languages.py"), "python") | dict.fromkeys(SCRIPTS, "javascript")
NO_WORDS = re.compile(r"`[^`]*`|\$[^$]*\$|\[\]\([^)]*\)|[A-Za-z](?![A-Za-z])")


def read() -> Sphinx:
    """Read all pages as the site's builder does; executed ones are kept."""
    with tempfile.TemporaryDirectory() as scratch:
        app = Sphinx(BOOK, BOOK, scratch, scratch, "gettext", status=None, freshenv=True)
        app.builder.read()
        app.env.trees = {page: app.env.get_doctree(page) for page in sorted(app.env.found_docs)}
    return app


def messages(app: Sphinx, pages: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Each message of the site and where it stands: pages, titles, the site's own words."""
    trees = app.env.trees
    others = sorted(page for page in set(trees) - set(pages) if not page.startswith("decisions/0"))
    for page in (*pages, *others):
        for node, message in extract_messages(trees[page]):
            if page in pages or isinstance(node, nodes.title):
                yield message, page
            if page not in pages and isinstance(node, nodes.title):
                break
    for file, kind in OWN.items():
        for _, message, _, _ in extract_from_file(kind, BOOK / file, keywords={"_": None}):
            yield message, f"book/{file}"


def template(app: Sphinx, pages: tuple[str, ...]) -> Catalog:
    """Return the catalogue of what is to be translated, without messages that have no words."""
    made = Catalog(project=DOMAIN, domain=DOMAIN, fuzzy=False)
    for message, place in messages(app, pages):
        if re.search("[A-Za-z]", NO_WORDS.sub("", message)):
            made.add(message, locations=[(place, 1)])
    return made


def state(told: Catalog) -> Counter[str]:
    """Return how many messages of a catalogue are translated, fuzzy and untranslated."""
    return Counter(
        "untranslated" if not one.string else "fuzzy" if one.fuzzy else "translated"
        for one in told
        if one.id
    )


def main(arguments: list[str] | None = None) -> int:
    """Write the catalogues anew, or say what is missing in them; 1 where a check finds a change."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if English changed")
    check = parser.parse_args(arguments).check
    os.environ["GEMMLAB_LIVE"] = ""
    app, changed = read(), False
    for language, pages in PAGES.items():
        told = catalogue(language)
        before = {one.id for one in told}
        told.update(template(app, pages), update_creation_date=False)
        for one in told:
            one.flags -= {"python-format", "python-brace-format"}  # a per cent sign, a class
        changed |= before != {one.id for one in told}
        if not check:
            path = LOCALE / language / "LC_MESSAGES" / f"{DOMAIN}.po"
            with path.open("wb") as file:
                write_po(file, told, width=100, ignore_obsolete=True, include_lineno=False)
        print(language, *(f"{number} {name}" for name, number in sorted(state(told).items())))
    return int(check and changed)


if __name__ == "__main__":
    sys.exit(main())
