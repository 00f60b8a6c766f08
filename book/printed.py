"""The book on paper: all pages of the built site as one PDF.

    python -m book.printed SITE PDF

The pages' articles become one document, which Chromium prints: links between pages lead to pages
of paper, headings become bookmarks, films show their first picture, and figures are the vectors
that kernels kept (`book.vectors`). It is printed twice: the first time says on which page each
chapter begins, and the second one has these numbers in its contents.
"""

from __future__ import annotations

import argparse
import html
import re
import shutil
import subprocess
import sys
import tempfile
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import TYPE_CHECKING

from bs4 import BeautifulSoup, Tag

from book import vectors

if TYPE_CHECKING:
    import pikepdf

ROOT = Path(__file__).resolve().parents[1]
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "chrome", "msedge")
SECONDS = 1200  # that printing may take
# Chromium's own clock, in milliseconds: it stands still while anything is loaded or computed.
PATIENCE = 60_000
MOST_PRINTS = 3  # two, unless the numbers of pages in the contents move what follows
NARROW = 9  # columns of a table that fit a page in letters of the usual size
SHORT = 30  # lines of code that stay on one page of paper
# What is of no use on paper: controls, notes on them, code that only draws, links to headings.
DROPPED = (
    "script, .headerlink, .film-controls, .film-note, .toctree-wrapper, .copybtn, .tag_narrow, "
    "section:has(> .gemmlab-chapters), details.above-input, details.below-input > summary"
)
FURTHER = ("href", "src", "for", "aria-labelledby", "aria-describedby", "aria-controls")
PAGE = """<!doctype html><html lang="en" data-theme="light" data-mode="light">
<head><meta charset="utf-8"><title>{title}</title>{head}</head>
<body class="printed"><main class="bd-main"><div class="bd-content">
<div class="bd-article-container">
{body}
</div></div></main></body></html>"""


CONTENTS = "<!-- contents -->"


class MissingError(Exception):
    """What printing needs is not here; the message says what, and how to get it."""


@dataclass(frozen=True)
class Leaf:
    """A page of the site: the part of the book that it is in, its file, its name, its depth."""

    part: str
    file: str
    title: str
    depth: int

    @property
    def name(self) -> str:
        """What stands before each of its anchors in the one document."""
        return self.file.removesuffix(".html").replace("/", "-")


# ------------------------------------------------------------------------------------- gathering


def soup(file: Path) -> BeautifulSoup:
    """Return a page, parsed."""
    return BeautifulSoup(file.read_text("utf-8"), "html.parser")


def leaves(site: Path) -> Iterator[Leaf]:
    """The pages in the order of the site's contents; the first one is the site's own."""
    yield Leaf("", "index.html", "The course", 1)
    part = ""
    for item in soup(site / "index.html").select("nav.bd-links p.caption, nav.bd-links li > a"):
        if item.name == "p":
            part = item.get_text(" ", strip=True)
        else:
            depth = len(item.find_parents("li"))
            yield Leaf(part, item["href"], item.get_text(" ", strip=True), depth)


def article(site: Path, leaf: Leaf, known: dict[str, Leaf], drawn: dict[str, str]) -> Tag:
    """Return what a page says, with anchors, links and pictures as one document has them."""
    found = soup(site / leaf.file).select_one("article.bd-article")
    for useless in found.select(DROPPED):
        useless.decompose()
    for fold in found.find_all("details"):
        if fold.summary:
            fold["open"] = ""
        else:
            fold.name = "div"
    for box in found.select("[id]"):
        box["id"] = f"{leaf.name}--{box['id']}"
    for box in found.find_all(True):
        for attribute in FURTHER:
            if attribute in box.attrs:
                _lead(box, attribute, leaf, known)
    for code in found.select(".cell_input, .output.stream"):
        if code.get_text().count("\n") < SHORT:
            code["class"] = [*code["class"], "printed-whole"]
    for table in found.find_all("table"):
        if max(len(row.find_all(("td", "th"))) for row in table.find_all("tr")) > NARROW:
            table["class"] = [*table.get("class", ()), "printed-wide"]
    for picture in found.select("img[src^='data:image/png;base64,']"):
        vector = drawn.get(picture["src"].partition(",")[2])
        if vector:
            picture["src"] = "data:image/svg+xml;base64," + b64encode(vector.encode()).decode()
    found["id"] = leaf.name
    return found


def _lead(box: Tag, attribute: str, leaf: Leaf, known: dict[str, Leaf]) -> None:
    """Let one attribute lead to where its target is now."""
    target = box[attribute]
    if attribute not in ("href", "src"):
        box[attribute] = " ".join(f"{leaf.name}--{one}" for one in target.split())
        return
    if re.match(r"[a-z]+:", target):
        return
    file, _, anchor = target.partition("#")
    file = normpath(join(dirname(leaf.file), file)) if file else leaf.file
    if file in known:
        name = known[file].name
        box[attribute] = f"#{name}--{anchor}" if anchor else f"#{name}"
    elif attribute == "src":
        box[attribute] = file
    else:  # a file of the site, which paper has not
        del box[attribute]


def contents(all_leaves: list[Leaf], numbers: dict[str, int]) -> str:
    """Return the table of contents, with the number of each page of paper that is known."""
    lines, part = [], ""
    for leaf in all_leaves:
        if leaf.part != part:
            part = leaf.part
            lines.append(f'<p class="printed-part">{html.escape(part)}</p>')
        number = numbers.get(leaf.name, "")
        lines.append(
            f'<p class="printed-line depth-{leaf.depth}"><a href="#{leaf.name}">'
            f"<span>{html.escape(leaf.title)}</span><span>{number}</span></a></p>"
        )
    return '<nav class="printed-contents"><p class="printed-head">Contents</p>{}</nav>'.format(
        "".join(lines)
    )


def cover() -> str:
    """Return the first page."""
    return (
        '<header class="printed-cover"><p class="printed-title">gemmlab</p>'
        "<p>GPU matrix multiplication, from its definition to Tensor Cores:<br>"
        "predict it, run it, compare.</p>"
        '<p class="printed-small">The chapters are Jupyter notebooks, and this is what they showed '
        "when they were executed. Explorers, which move in the notebooks and on the site, show "
        "their first picture. Text and figures: CC BY 4.0. Code: BSD-3-Clause.</p></header>"
    )


def head(site: Path, pages: list[Leaf]) -> str:
    """Return what the pages load that paper needs: styles, and the script of formulas."""
    kept: dict[str, None] = {}  # a set in order
    for leaf in pages:
        for element in soup(site / leaf.file).head.select("link[rel=stylesheet], script"):
            loaded = element.get("href") or element.get("src") or ""
            if element.name == "link" or "mathjax" in f"{loaded}{element.string}".lower():
                for attribute in ("href", "src"):
                    if attribute in element.attrs:
                        element[attribute] = normpath(join(dirname(leaf.file), loaded))
                kept[str(element)] = None
    return "".join(kept)


# -------------------------------------------------------------------------------------- printing


def chromium() -> str:
    """Return the path of the browser that prints."""
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if found is None:
        raise MissingError(
            "no Chromium or Chrome is on the PATH, which prints the pages. On Debian and Ubuntu: "
            "sudo apt install chromium"
        )
    return found


def printed(page: Path, target: Path) -> None:
    """Have Chromium print a page; MissingError with its last line if it does not."""
    with tempfile.TemporaryDirectory() as profile:
        command = [
            *(chromium(), "--headless", "--no-sandbox", "--disable-gpu"),
            *("--disable-dev-shm-usage", f"--user-data-dir={profile}"),
            *("--generate-pdf-document-outline", "--no-pdf-header-footer"),
            f"--virtual-time-budget={PATIENCE}",
            f"--print-to-pdf={target}",
            page.as_uri(),
        ]
        target.unlink(missing_ok=True)
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    if not target.is_file():
        said = [line for line in done.stderr.splitlines() if line.strip()] or [""]
        raise MissingError(f"{command[0]} printed nothing: {said[-1]}")


def numbers_of(pdf: Path) -> dict[str, int]:
    """Return on which page of paper each anchor lies that a link leads to."""
    import pikepdf  # which run.py installs for --pdf alone

    with pikepdf.open(pdf) as opened:
        pages = {page.objgen: number for number, page in enumerate(opened.pages, 1)}
        places = opened.Root.get("/Dests", {})
        return {name.lstrip("/"): pages[place[0].objgen] for name, place in places.items()}


def finish(pdf: Path, headings: list[str]) -> int:
    """Name the PDF, mend its bookmarks and pack it to two thirds; the number of its pages.

    Where a heading takes two lines, Chromium's bookmark lacks the space between them.
    """
    import pikepdf

    whole = {"".join(heading.split()): heading for heading in headings}
    with pikepdf.open(pdf, allow_overwriting_input=True) as opened:
        with opened.open_outline() as outline:
            rename(outline.root, whole)
        opened.docinfo["/Title"], opened.docinfo["/Author"] = "gemmlab", "gemmlab contributors"
        opened.save(pdf, object_stream_mode=pikepdf.ObjectStreamMode.generate)
        return len(opened.pages)


def rename(items: list[pikepdf.OutlineItem], whole: dict[str, str]) -> None:
    """Give bookmarks, and those below them, the text that their headings have."""
    for item in items:
        item.title = whole.get("".join(item.title.split()), item.title)
        rename(item.children, whole)


def document(site: Path, pages: list[Leaf], drawn: dict[str, str]) -> str:
    """Return the whole book as one page, with a place for its contents."""
    known = {leaf.file: leaf for leaf in pages}
    articles = "".join(str(article(site, leaf, known, drawn)) for leaf in pages)
    body = f"{cover()}{CONTENTS}{articles}"
    return PAGE.format(title="gemmlab", head=head(site, pages), body=body)


def book(site: Path, executed: Path, target: Path) -> int:
    """Print the site into one PDF; the number of its pages."""
    pages = list(leaves(site))
    text = document(site, pages, vectors.kept(executed))
    page = site / "printed.html"  # beside what it refers to, while it is printed
    numbers: dict[str, int] = {}
    try:
        for _ in range(MOST_PRINTS):
            page.write_text(text.replace(CONTENTS, contents(pages, numbers)), "utf-8")
            printed(page, target)
            shown, numbers = numbers, numbers_of(target)
            if shown == numbers:
                break
    finally:
        page.unlink(missing_ok=True)
    found = BeautifulSoup(text, "html.parser").select("h1, h2, h3, h4, h5, h6")
    return finish(target, [" ".join(heading.get_text().split()) for heading in found])


def main() -> int:
    """Print the book; one line says where it is, or what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path, help="folder of the built pages")
    parser.add_argument("pdf", type=Path, help="file that is written")
    given = parser.parse_args()
    executed = given.site.resolve().parent / "executed"  # by book.executed
    try:
        count = book(given.site.resolve(), executed, given.pdf.resolve())
    except MissingError as error:
        print(f"no PDF: {error}", file=sys.stderr)
        return 1
    print(f"{given.pdf.resolve()}, {count} pages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
