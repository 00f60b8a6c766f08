"""The book as one PDF and a chapter as slides, of the site that `python3 run.py book` built."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.browser.conftest import SITE
from tests.browser.lab_server import ROOT

pytestmark = pytest.mark.browser
printed = pytest.importorskip("book.printed")
pikepdf = pytest.importorskip("pikepdf")
slides = pytest.importorskip("book.slides")

CHAPTERS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def pdf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not (SITE / "index.html").is_file():
        pytest.skip("the site is not built: python3 run.py book")
    target = tmp_path_factory.mktemp("paper") / "gemmlab.pdf"
    printed.book(SITE, SITE.parent / "executed", target)
    return target


def test_every_page_of_the_site_has_a_bookmark_at_its_first_page(pdf: Path):
    numbers = printed.numbers_of(pdf)
    with pikepdf.open(pdf) as opened, opened.open_outline() as outline:
        pages = {page.objgen: number for number, page in enumerate(opened.pages, 1)}
        marks = {item.title: pages[item.destination[0].objgen] for item in outline.root}
        assert len(opened.pages) > 250
        assert all(item.children for item in outline.root[1:14])
    leaves = list(printed.leaves(SITE))[1:]
    assert len(leaves) > 45
    for leaf in leaves:
        assert marks[leaf.title] == numbers[leaf.name], leaf


def test_the_contents_have_the_numbers_that_links_lead_to(pdf: Path):
    """The second print moves nothing: numbers that it shows are those of its own pages."""
    numbers = printed.numbers_of(pdf)
    again = printed.contents(list(printed.leaves(SITE)), numbers)
    shown = [int(number) for number in re.findall(r"<span>(\d+)</span></a>", again)]
    assert shown == sorted(shown)
    assert shown[0] > 2
    assert not (SITE / "printed.html").exists()


def test_figures_are_vectors(pdf: Path):
    """What remains in pixels are films, pictures of guides and parts of figures."""
    drawn = printed.vectors.kept(SITE.parent / "executed")
    pages = list(printed.leaves(SITE))
    known = {leaf.file: leaf for leaf in pages}
    for leaf in pages:
        article = printed.article(SITE, leaf, known, drawn)
        figures = article.select("figure.gemmlab-figure img")
        assert all(image["src"].startswith("data:image/svg+xml") for image in figures), leaf


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_is_shown_as_slides(context, strangers, site: str, path: Path, screenshots: Path):
    target = SITE / "slides" / f"{path.stem}.html"
    target.parent.mkdir(exist_ok=True)
    target.write_text(slides.slides(SITE / "notebooks" / f"{path.stem}.html"), "utf-8")
    page = context.new_page()
    page.set_viewport_size({"width": 1280, "height": 760})
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("response", lambda r: r.status >= 400 and errors.append(f"{r.status} {r.url}"))
    page.goto(f"{site}slides/{path.stem}.html")
    page.wait_for_selector(".laid", timeout=60_000)
    told = page.locator(".slide-count")
    count = int(told.inner_text().partition("/")[2])
    assert 5 <= count <= 90
    cut = page.evaluate("""() => slides.map((slide, i) => {
        slide.classList.add("shown");
        const body = slide.querySelector(".slide-body:not(.scrolls)");
        const over = body ? body.scrollHeight - body.clientHeight : 0;
        const wide = [...slide.querySelectorAll("img")].some(
            image => image.getBoundingClientRect().right > slide.getBoundingClientRect().right);
        slide.classList.toggle("shown", i === at);
        return over > 2 || wide ? i + 1 : 0;
    }).filter(Boolean)""")
    assert cut == []
    page.keyboard.press("ArrowRight")
    assert told.inner_text() == f"2 / {count}"
    page.keyboard.press("End")
    assert told.inner_text() == f"{count} / {count}"
    page.keyboard.press("n")
    assert page.locator(".slide.shown .slide-notes").is_visible()
    page.screenshot(path=screenshots / f"slides_{path.stem}.png")
    page.close()
    assert errors == []
    assert strangers == []
