"""The built site as a reader meets it, with the network cut: `python3 run.py book` comes first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.lab_server import ROOT

pytestmark = pytest.mark.browser

CHAPTERS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))
# One page of each type.
TYPES = {
    "first": "index.html",
    "chapter": "notebooks/03_threads_warps_blocks.html",
    "fragments": "notebooks/07_warps_and_fragments.html",
    "plain": "glossary.html",
    "executed": "status.html",
    "tables": "predictions.html",
    "install": "install.html",
    "guide": "simulator.html",
    "search": "search.html?q=warp",
    "translated": "zh/notebooks/01_what_is_gemm.html",
    "not translated": "zh/install.html",
}
WINDOWS = {"wide": {"width": 1366, "height": 900}, "narrow": {"width": 390, "height": 844}}


@pytest.fixture
def visit(context, site: str, screenshots: Path) -> Iterator:
    """A function: page, window and colours -> the page, loaded without any other machine."""
    opened = []

    def go(path: str, window: str = "wide", scheme: str = "light"):
        page = context.new_page()
        page.set_viewport_size(WINDOWS[window])
        page.emulate_media(color_scheme=scheme)
        page.route(lambda url: not url.startswith((site, "data:", "blob:")), lambda r: r.abort())
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("requestfailed", lambda request: errors.append(request.url[:200]))
        page.on("response", lambda r: r.status >= 400 and errors.append(f"{r.status} {r.url}"))
        page.goto(site + path, wait_until="load")
        page.wait_for_timeout(500)
        opened.append(page)
        assert errors == []
        return page

    yield go
    for page in opened:
        page.close()


def explorers_of(chapter: str) -> list[str]:
    """The names of the explorers that a notebook's cells make, in order."""
    cells = json.loads((ROOT / "notebooks" / f"{chapter}.ipynb").read_text("utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    calls = [line for text in code for line in text.splitlines() if line.startswith("explorers.")]
    return [call.removeprefix("explorers.").partition("(")[0] for call in calls]


def test_there_are_explorers():
    assert sum(map(len, map(explorers_of, CHAPTERS))) >= 7


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_explorer_shows_its_picture(visit, strangers, chapter: str):
    page = visit(f"notebooks/{chapter}.html")
    shown = page.evaluate("""() => {
        const boxes = document.querySelectorAll(".gemmlab-film, .gemmlab-fragments");
        return [...boxes].map(box => {
            const drawn = box.matches(".gemmlab-film")
                ? [...box.querySelectorAll("img")].map(i => i.naturalWidth)
                : [box.querySelectorAll("[role=gridcell]").length];
            const name = (box.getAttribute("aria-label") || "").split(" ").at(-1);
            return [name, drawn.length > 0 && Math.min(...drawn) > 100];
        });
    }""")
    wanted = [[name.lower(), True] for name in explorers_of(chapter)]
    assert [[name.lower(), drawn] for name, drawn in shown] == wanted
    assert strangers == []


@pytest.mark.parametrize("chapter", [c for c in CHAPTERS if explorers_of(c)])
def test_every_picture_is_there_without_scripts(context, site, chapter: str):
    page = context.browser.new_context(java_script_enabled=False).new_page()
    page.goto(f"{site}notebooks/{chapter}.html")
    films = page.locator(".gemmlab-film")
    assert films.count() == sum(name != "Fragments" for name in explorers_of(chapter))
    for film in films.all():
        source = film.locator("img").first.get_attribute("src")
        assert source.startswith("data:image/png;base64,")
        assert len(source) > 2000
        assert film.locator("img").first.get_attribute("alt")
        assert film.locator(".film-caption").inner_text()
        assert not film.locator(".film-controls").is_visible()
    page.context.close()


def test_a_film_follows_the_keyboard(visit, screenshots: Path):
    page = visit("index.html")
    page.route("**/lite/**", lambda asked: asked.abort())  # it stays a film
    film = page.locator(".gemmlab-film").first
    image, caption = film.locator(".film-picture img").first, film.locator(".film-caption")
    stride, offset = film.locator("input[type=range]").all()[:2]
    first = image.get_attribute("src"), caption.inner_text(), stride.input_value()
    stride.focus()
    stride.press("ArrowRight")
    assert image.get_attribute("src") != first[0]
    assert caption.inner_text() != first[1]
    told = stride.get_attribute("aria-valuetext")
    assert f"element {told}·i" in caption.inner_text()
    assert told == film.locator("output").first.inner_text()
    film.screenshot(path=screenshots / "film.png")
    offset.focus()
    offset.press("ArrowRight")  # one control moves at a time
    assert stride.input_value() == first[2]
    assert f"element {stride.get_attribute('aria-valuetext')}·i + " in caption.inner_text()
    offset.press("ArrowLeft")
    assert image.get_attribute("src") == first[0]
    assert caption.inner_text() == first[1]
    film.locator("select").select_option(index=2)
    assert "8 bytes" in caption.inner_text()


def test_the_first_page_leads_to_every_chapter(visit):
    page = visit("index.html")
    links = page.locator(".gemmlab-map li a")
    targets = [a.get_attribute("href") for a in links.all()]
    assert sorted(targets) == [f"notebooks/{chapter}.html" for chapter in CHAPTERS]
    assert page.locator("img[alt^='The ladder']").first.evaluate("img => img.naturalWidth") > 400


def test_the_ladder_fits_a_phone_to_its_last_bar(visit):
    shown = visit("index.html", "narrow").locator("img[alt^='The ladder']")
    boxes = [image.bounding_box() for image in shown.all() if image.is_visible()]
    (box,) = boxes
    assert box["x"] + box["width"] <= WINDOWS["narrow"]["width"]


@pytest.mark.parametrize("words", ["bank conflict", "coalesced", "split"])
def test_the_search_finds_chapters_before_decisions(visit, words):
    found = search(visit, words)
    assert found.index("notebooks") < found.index("decisions")


@pytest.mark.parametrize("words", ["install", "setup", "set up", "download", "installation"])
def test_the_search_finds_how_to_install(visit, words):
    assert search(visit, words)[0] == "install.html"


@pytest.mark.parametrize("name", ["predictions", "hazards", "notation"])
def test_the_search_finds_a_page_by_its_name_first(visit, name):
    assert search(visit, name)[0] == f"{name}.html"


@pytest.mark.parametrize("words", ["线程束", "瓦片量化", "屋顶线", "共享 内存", "warp 加载"])
def test_the_search_finds_chinese_words(visit, words):
    found = search(visit, words, "zh/")
    assert "notebooks" in found or "glossary.html" in found


def test_the_search_does_not_find_what_is_nowhere(visit):
    page = visit("zh/search.html?q=犀牛")
    page.wait_for_timeout(2000)
    assert page.locator("#search-results li").count() == 0


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("path", ["index.html", "notebooks/01_what_is_gemm.html", "genindex.html"])
def test_the_keyboard_reaches_the_same_page_in_the_other_language(visit, path, window):
    page = visit(path, window)
    assert page.locator("html").get_attribute("lang") == "en"
    for language, there in (("zh-CN", f"zh/{path}"), ("en", path)):
        link = page.locator(".btn-language")
        assert link.get_attribute("lang") == link.get_attribute("hreflang") == language
        for _ in range(80):
            page.keyboard.press("Tab")
            if link.evaluate("link => link === document.activeElement"):
                break
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/{there}")
        assert page.locator("html").get_attribute("lang") == language


def test_the_other_language_opens_at_the_section_that_is_read(visit):
    page = visit("notebooks/01_what_is_gemm.html#arithmetic-or-dram")
    page.locator(".btn-language").click()
    page.wait_for_url("**/zh/notebooks/01_what_is_gemm.html#arithmetic-or-dram")
    assert page.locator("#arithmetic-or-dram h2").first.inner_text().startswith("3. 运算还是 DRAM")


def test_an_explorer_of_a_translated_page_finds_python(visit):
    page = visit("zh/index.html")
    page.get_by_role("button", name="在此运行探索器").click()
    page.get_by_text("探索器已运行").wait_for(timeout=120_000)


def search(visit, words: str, folder: str = "") -> list[str]:
    """The folders, or the pages of the first folder, that a search finds, in its order."""
    page = visit(f"{folder}search.html?q={words.replace(' ', '+')}")
    page.locator("#search-results li").first.wait_for(timeout=20_000)
    page.wait_for_timeout(2000)  # the rest follows
    links = page.locator("#search-results li a").all()
    return [link.get_attribute("href").split("/")[0] for link in links] + ["decisions"]


def test_the_first_page_shows_the_errors_of_all_predictions(visit):
    for path in ("index.html", "predictions.html"):
        image = visit(path).locator("img[alt^='Predictions that were written down first']")
        assert image.evaluate("image => image.naturalWidth") > 400


def test_the_tables_of_predictions_are_folded(visit):
    page = visit(TYPES["tables"])
    assert page.locator("details:not([open]) table").count() > 20
    assert page.evaluate("document.documentElement.scrollHeight") < 16_000


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", TYPES)
def test_no_page_is_wider_than_its_window(visit, screenshots: Path, kind, scheme, window):
    page = visit(TYPES[kind], window, scheme)
    page.screenshot(path=screenshots / f"site_{kind}_{scheme}_{window}.png")
    wider = page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert wider <= 0


@pytest.mark.parametrize(("window", "scheme"), [("wide", "light"), ("narrow", "dark")])
@pytest.mark.parametrize("kind", TYPES)
def test_nothing_stands_in_the_way_of_assistive_technology(visit, kind, scheme, window):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = visit(TYPES[kind], window, scheme)
    page.evaluate("document.querySelectorAll('details').forEach(box => box.open = true)")
    page.wait_for_timeout(500)
    found = axe.run(page).response
    assert found["passes"]
    assert [
        (violation["id"], node["target"], node["html"][:200])
        for violation in found["violations"]
        for node in violation["nodes"]
    ] == []
