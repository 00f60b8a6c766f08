"""The live site in a browser with the network cut: `python3 run.py book` comes first."""

from __future__ import annotations

import os
import time

import pytest

from tests.browser.conftest import ALL_RAN, SITE

pytestmark = pytest.mark.browser

CHAPTERS = tuple(
    os.environ.get(
        "LIVE_CHAPTERS", "00_start_here,03_threads_warps_blocks,07_warps_and_fragments"
    ).split(",")
)
START = 300_000  # ms until Python has begun in the page
OUTPUTS = """() => [...window.jupyterapp.shell.currentWidget.content.model.cells]
    .filter(cell => cell.type === 'code').flatMap(cell => cell.outputs.toJSON())"""


@pytest.fixture
def live(context, site: str):
    """A function of a notebook's name: its page in the live site, which has it in Python."""
    if not (SITE / "lite" / "index.html").is_file():
        pytest.skip("the live site is not built: python3 run.py book says what is missing")
    pages, strangers = [], []

    def go(name: str):
        page = context.new_page()
        pages.append(page)
        page.on("request", lambda request: strangers.append(request.url)
                if not request.url.startswith((site, "data:", "blob:")) else None)  # fmt: skip
        page.goto(f"{site}lite/notebooks/index.html?path={name}.ipynb")
        page.get_by_text("Python (Pyodide)").wait_for(timeout=START)
        return page

    yield go
    for page in pages:
        page.close()
    assert strangers == []


def run_all(page) -> float:
    """Run all cells; the seconds that it took."""
    began = time.perf_counter()
    page.locator(".lm-MenuBar-itemLabel", has_text="Run").click()
    page.locator(".lm-Menu-item[data-command='runmenu:run-all']").click()
    page.wait_for_function(ALL_RAN, timeout=START)
    return time.perf_counter() - began


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_runs_whole_in_the_page(live, screenshots, record_property, chapter: str):
    page = live(chapter)
    record_property("seconds in the page", (chapter, run_all(page)))
    outputs = page.evaluate(OUTPUTS)
    assert [told for told in outputs if told["output_type"] == "error"] == []
    assert any("image/png" in told.get("data", {}) for told in outputs) or outputs
    page.screenshot(path=screenshots / f"live_{chapter}.png")


def test_a_slider_runs_a_kernel_in_the_page_and_work_is_found_again(live):
    page = live("00_start_here")
    run_all(page)
    handle = page.locator(".noUi-handle").first
    handle.focus()
    for step in (2, 3):
        handle.press("ArrowRight")
        page.get_by_text(f"Lane i loads element {step}").first.wait_for(timeout=60_000)
    page.keyboard.press("Control+s")
    page.wait_for_timeout(2_000)
    page.reload()
    page.get_by_text("Python (Pyodide)").wait_for(timeout=START)
    page.wait_for_function(ALL_RAN, timeout=60_000)  # the numbers of the cells are those of before
