"""The live site in a browser with the network cut: `python3 run.py book` comes first."""

from __future__ import annotations

import os
import re
import time
from itertools import pairwise
from pathlib import Path

import pytest

from tests.browser.conftest import ALL_RAN, SITE
from tests.browser.lab_server import ROOT

pytestmark = pytest.mark.browser

CHAPTERS = os.environ.get(
    "LIVE_CHAPTERS", "00_start_here,03_threads_warps_blocks,07_warps_and_fragments"
).split(",")
if CHAPTERS == ["all"]:
    CHAPTERS = sorted(file.stem for file in (ROOT / "notebooks").glob("*.ipynb"))
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


# How many code cells have run, if none has failed; a number that no notebook has if one has.
COUNTED = """() => {
    const cells = [...window.jupyterapp.shell.currentWidget.content.model.cells];
    const code = cells.filter(cell => cell.type === 'code');
    const failed = cell => cell.outputs.toJSON().some(told => told.output_type === 'error');
    if (code.some(failed)) return -1;
    return code.filter(cell => cell.executionCount !== null).length;
}"""


def run_all(page) -> tuple[float, float, float]:
    """Run all cells; seconds in all, until the first has run, and of the slowest of the others."""
    page.locator(".lm-MenuBar-itemLabel", has_text="Run").click()
    page.locator(".lm-Menu-item[data-command='runmenu:run-all']").click()
    began, ends = time.perf_counter(), []
    while not page.evaluate(ALL_RAN):
        if time.perf_counter() - began > START / 1000:
            page.wait_for_function(ALL_RAN, timeout=1)  # whose error says what was waited for
        page.wait_for_timeout(100)
        ends += [time.perf_counter()] * (page.evaluate(COUNTED) - len(ends))
    ends.append(time.perf_counter())
    slowest = max((after - before for before, after in pairwise(ends)), default=0.0)
    return ends[-1] - began, ends[0] - began, slowest


def megabytes(context) -> float | None:
    """What the pages of this browser hold in memory [MB]; None where the system does not say."""
    session = context.browser.new_browser_cdp_session()
    processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    total = 0
    for one in processes:
        told = Path(f"/proc/{one['id']}/smaps_rollup")
        if one["type"] == "renderer" and told.is_file():
            total += int(re.search(r"^Pss:\s+(\d+) kB", told.read_text(), re.MULTILINE)[1])
    return total / 1000 if total else None


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_runs_whole_in_the_page(
    live, context, screenshots, record_property, chapter: str
):
    page = live(chapter)
    times = run_all(page)
    outputs = page.evaluate(OUTPUTS)
    row = chapter, page.evaluate(COUNTED), *times, megabytes(context)
    record_property("in the page", row)
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


WRITE = """([old, written]) => {
    const cells = [...window.jupyterapp.shell.currentWidget.content.model.cells];
    const cell = cells.find(one => one.sharedModel.getSource().includes(old));
    cell.sharedModel.setSource(written);
}"""
SAID = """written => {
    const cells = [...window.jupyterapp.shell.currentWidget.content.model.cells];
    const cell = cells.find(one => one.sharedModel.getSource() === written);
    return cell ? JSON.stringify(cell.outputs.toJSON()) : '';
}"""
TAKE = """async path => {
    const { contents } = window.jupyterapp.serviceManager;
    const { content } = await contents.get(path, { content: true });
    return JSON.stringify(content);
}"""
PUT = """async ([path, text]) => {
    const { contents } = window.jupyterapp.serviceManager;
    const content = JSON.parse(text);
    await contents.save(path, { type: 'notebook', format: 'json', path, content });
}"""
SOLVED = """def gemm(alpha, A, B, beta, C):
    return alpha * (A @ B) + beta * C


q1.check(gemm)"""
GUESSED = """work = guess("01.work", unit="times the work")
work(8)"""


def test_a_guess_and_a_passed_exercise_are_found_again_and_go_out_and_in_as_a_file(live):
    page = live("01_what_is_gemm")
    page.evaluate(WRITE, ["q1.check(gemm)", SOLVED])
    page.evaluate(WRITE, ['guess("01.work"', GUESSED])
    run_all(page)
    said = [page.evaluate(SAID, written) for written in (SOLVED, GUESSED)]
    assert "passed" in said[0].lower()
    assert "8" in said[1]
    page.keyboard.press("Control+s")
    page.wait_for_timeout(2_000)
    page.reload()
    page.get_by_text("Python (Pyodide)").wait_for(timeout=START)
    page.wait_for_function(ALL_RAN, timeout=60_000)
    assert [page.evaluate(SAID, written) for written in (SOLVED, GUESSED)] == said
    # What *Download* gives, and what is put in beside it under another name.
    taken = page.evaluate(TAKE, "01_what_is_gemm.ipynb")
    assert "alpha * (A @ B) + beta * C" in taken
    page.evaluate(PUT, ["mine.ipynb", taken])
    assert page.evaluate(TAKE, "mine.ipynb") == taken


RUN = """async (code) => {
    const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
    return (await kernel.requestExecute({ code }).done).content.status;
}"""
WROTE = """
from gemmlab.course import progress
tried = ("guess", "03.rows", False), ("exercise", "04.1", True), ("exercise", "04.2", False)
for one in 2 * tried:
    progress.keep(*one)
"""
RINGS = """rings => rings.map(ring => parseFloat(ring.getAttribute('stroke-dasharray')))"""


def test_what_was_guessed_in_the_browser_is_on_the_map_of_the_first_page(live, site):
    page = live("00_start_here")
    assert page.evaluate(RUN, WROTE) == "ok"
    page.wait_for_timeout(2000)  # the file goes from the kernel to the browser's storage
    page.goto(f"{site}index.html")
    page.locator(".gemmlab-map .told").first.wait_for()
    told = page.locator(".gemmlab-map .told").all_inner_texts()
    assert [re.sub(r"\s", "", one) for one in told] == ["1/12", "1/13"]
    rings = page.locator(".gemmlab-map .share").evaluate_all(RINGS)
    assert list(filter(None, rings)) == pytest.approx([100 / 12, 100 / 13], rel=0.01)
