"""What the built pages would fetch from elsewhere: nothing, so that the site needs no network."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

# What a browser fetches by itself; <a href> waits for the reader.
FETCHED = {
    "audio": ("src",), "embed": ("src",), "iframe": ("src",), "img": ("src", "srcset"),
    "image": ("href", "xlink:href"), "input": ("src",), "link": ("href",), "object": ("data",),
    "script": ("src",), "source": ("src", "srcset"), "track": ("src",),
    "use": ("href", "xlink:href"), "video": ("src", "poster"),
}  # fmt: skip
NAMED = ("canonical", "author", "license", "next", "prev", "search", "index")  # links, not fetched
APART = ("lite", "zh")
ELSEWHERE = re.compile(r"\s*(?:https?:)?//", re.I)
CSS = re.compile(r"""(?:url\(|@import)\s*["']?\s*((?:https?:)?//[^\s"')]+)""", re.I)
IMPORT = re.compile(r"""\b(?:import|from|fetch\()\s*\(?\s*["']((?:https?:)?//[^"']+)""")


class Page(HTMLParser):
    """Collects in `found` the addresses elsewhere that a page fetches."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self._inside = tag
        if tag == "link" and given.get("rel", "").lower() in NAMED:
            return
        for name in FETCHED.get(tag, ()):
            parts = given.get(name, "").split(",") if name == "srcset" else [given.get(name, "")]
            self.found += [part.split()[0] for part in parts if ELSEWHERE.match(part)]
        self.found += CSS.findall(given.get("style", ""))

    def handle_data(self, data: str) -> None:
        if self._inside in ("style", "script"):
            self.found += (CSS if self._inside == "style" else IMPORT).findall(data)

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""


def pages(site: Path, kind: str) -> list[Path]:
    """The files of a kind below `site`, without the live site, which a browser's test looks at, and
    without pages in other languages, which are sites of their own.
    """
    found = sorted(site.rglob(kind))
    return [path for path in found if path.relative_to(site).parts[0] not in APART]


def requests(site: Path) -> Iterator[tuple[str, str]]:
    """Every page or style sheet below `site` that fetches from elsewhere, and the address."""
    for path in pages(site, "*.html"):
        page = Page()
        page.feed(path.read_text("utf-8"))
        yield from ((path.relative_to(site).as_posix(), address) for address in page.found)
    for path in pages(site, "*.css"):
        text = path.read_text("utf-8", "replace")
        yield from ((path.relative_to(site).as_posix(), found) for found in CSS.findall(text))
