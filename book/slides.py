"""A chapter as slides for a teacher: one page, of the site's own parts, that needs no network.

    python -m book.slides SITE 06 [07 …]

What a class looks at stands on slides: headings, questions, pictures, films, tables, listings and
exercises, with the sentence that leads to each. All other text is the speaker's: the notes of the
slide that it belongs to. How much fits on a slide, the page itself finds out (`_static/slides.js`).
"""

from __future__ import annotations

import argparse
import html
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from bs4 import BeautifulSoup, Tag

HEADINGS = ("h1", "h2", "h3", "h4")
# A class sees a paragraph with words in bold: what to look for, to predict, to find.
SEEN = "strong, img"
OFF = ".headerlink, .copybtn, .toctree-wrapper, .tag_narrow, details.above-input, .film-note"
# A class guesses aloud: cells that keep a reader's guess stay with the chapter. So do the verdict
# on an exercise that nobody has begun, and the line that only shows an explorer.
LEFT = re.compile(
    r"No guess yet|\w+\.reveal\(\)$|\w+ = guess\(|explorers\.[^\n]*$|Exercise \S+ not attempted yet"
)
PAGE = """<!doctype html><html lang="en" data-theme="light" data-mode="light"><head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>
{head}<link rel="stylesheet" href="../_static/slides.css">
<script defer src="../_static/slides.js"></script></head>
<body class="slides"><main class="bd-main"><div class="bd-content">
<div class="bd-article-container"><article class="bd-article">
{body}
</article></div></div></main></body></html>"""


def chapter(site: Path, number: str) -> Path:
    """Return the page of a chapter, named by the beginning of its file's name.

    Raises ValueError where none or several begin so.
    """
    pages = sorted((site / "notebooks").glob("*.html"))
    whole = [page for page in pages if page.stem == number]
    found = whole or [page for page in pages if page.stem.startswith(f"{number}_")][:1]
    if not found:
        names = ", ".join(page.stem for page in pages)
        raise ValueError(f"no chapter begins with {number!r}; there are: {names}")
    return found[0]


def blocks(section: Tag) -> Iterator[Tag]:
    """The blocks of a section and of those in it: headings, paragraphs, cells, in their order.

    A cell's listing and its output are two blocks, because each fills a slide.
    """
    for child in section.find_all(True, recursive=False):
        if child.name == "section" or (child.name == "div" and "cell" in child.get("class", ())):
            yield from blocks(child)
        elif LEFT.match(child.get_text().strip()):
            continue
        elif child.get_text(strip=True) or child.select_one("img, script"):
            yield child


def marked(found: list[Tag]) -> Iterator[tuple[str, Tag]]:
    """Each block, and what it is: `heading`, `lead`, `shown`, or `note` for the speaker."""
    for block, after in zip(found, [*found[1:], None], strict=True):
        if block.name in HEADINGS:
            yield "heading", block
        elif block.name != "p":
            yield "shown", block
        elif after is not None and after.name not in (*HEADINGS, "p"):
            yield "lead", block
        else:
            yield ("shown" if block.select_one(SEEN) else "note"), block


def head(page: BeautifulSoup) -> str:
    """Return what the chapter's page loads that slides need."""
    wanted = ("mathjax", "film.js")
    loaded = page.head.select("link[rel=stylesheet]")
    for script in page.head.select("script"):
        if any(word in f"{script.get('src')}{script.string}".lower() for word in wanted):
            loaded.append(script)
    return "".join(map(str, loaded))


def slides(page: Path) -> str:
    """Return the page of a chapter's slides."""
    parsed = BeautifulSoup(page.read_text("utf-8"), "html.parser")
    article = parsed.select_one("article.bd-article")
    for useless in article.select(OFF):
        useless.decompose()
    for said in article.select(".cell_output p"):
        if LEFT.match(said.get_text()):
            said.decompose()
    for fold in article.select("details.below-input"):  # an output that a reader predicts first
        del fold["class"]
        fold.summary.string = "What comes out"
    for link in article.select("a[href]"):
        if not link["href"].startswith(("#", "http")):
            link["href"] = f"../notebooks/{link['href']}"
    body = "\n".join(
        f'<div class="block" data-kind="{kind}">{block}</div>'
        for kind, block in marked(list(blocks(article)))
    )
    title = html.escape(article.h1.get_text(" ", strip=True))
    return PAGE.format(title=title, head=head(parsed), body=body)


def main() -> int:
    """Write the slides of chapters; a line for each says where they are."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path, help="folder of the built pages")
    parser.add_argument("chapters", nargs="+", metavar="chapter", help="such as 06")
    given = parser.parse_args()
    try:
        pages = [chapter(given.site.resolve(), number) for number in given.chapters]
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    for page in pages:
        target = page.parents[1] / "slides" / page.name
        target.parent.mkdir(exist_ok=True)
        target.write_text(slides(page), "utf-8")
        print(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
