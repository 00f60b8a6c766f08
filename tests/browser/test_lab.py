"""JupyterLab as `run.py lab` starts it: the first page, no news, and content that all can use."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.browser

START = "00_start_here.ipynb"
OURS = ".jp-RenderedMarkdown, .jp-OutputArea-output"  # what our cells put into the page
# ipywidgets' sliders and lists, and JupyterLab's anchors at headings, are not ours.
OF_THE_LAB = [[".widget-slider"], [".widget-dropdown"], [".jp-InternalAnchorLink"]]


def test_no_news_and_no_question_about_them(opened, strangers):
    page = opened(START)
    page.wait_for_timeout(3000)  # the question comes a moment after the page
    assert page.locator(".jp-toastContainer, .Toastify__toast").count() == 0
    assert page.get_by_text("Jupyter news").count() == 0
    assert strangers == []


def test_the_first_screen_has_its_picture_before_anything_runs(context, server):
    page = context.new_page()
    page.set_viewport_size({"width": 1366, "height": 768})
    page.goto(server.format(path=START), wait_until="domcontentloaded")
    picture = page.locator(".jp-OutputArea-output img[alt*='Speed of 7 kernels']").first
    picture.wait_for(timeout=600_000)
    assert picture.evaluate("img => img.complete && img.naturalWidth") > 400
    box = picture.bounding_box()
    page.close()
    assert box["y"] + box["height"] < 768


def test_the_terminal_frightens_nobody(opened, home):
    opened(START)
    told = (home / "server.log").read_text("utf-8")
    for words in ("not trusted", "eavesdropping", "ping_timeout", "ping timeout"):
        assert words not in told


def test_the_first_explorer_moves(opened):
    page = opened(START)
    box = page.locator(".gemmlab-coalescing").first
    box.scroll_into_view_if_needed()
    caption = box.locator("[role=status]").last
    before = caption.inner_text()
    box.locator(".noUi-handle").first.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "([box, before]) => box.querySelector('[role=status]').innerText !== before",
        arg=[box.element_handle(), before],
    )


def test_nothing_of_ours_stands_in_the_way_of_assistive_technology(opened):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = opened(START)
    found = axe.run(page, {"include": [[part] for part in OURS.split(", ")], "exclude": OF_THE_LAB})
    assert found.response["passes"]
    assert [
        (violation["id"], node["html"][:200])
        for violation in found.response["violations"]
        for node in violation["nodes"]
    ] == []
