"""Explorers beside a kernel that ends, a person who saves, a small screen and a dark theme."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path

import pytest

from gemmlab.explorers.shared.base import ENDED
from tests.browser.conftest import load, run_all
from tests.browser.test_notebooks import NOTEBOOKS, explorer

pytestmark = pytest.mark.browser

NAME = "life.ipynb"
CODE = ("from gemmlab import explorers", "explorers.Coalescing()", "explorers.KernelLab(n=512)")
PANEL = "window.jupyterapp.shell.currentWidget"
STILLS = ".gemmlab-still >> visible=true"
SMALL = {"width": 1366, "height": 768}
VISIBLE = 647  # pixels of a notebook there
SIDES = """box => [...box.querySelectorAll(".gemmlab-pictures img")].map(image => {
    const {left, top, right} = image.getBoundingClientRect();
    return [Math.round(left), Math.round(top), Math.round(right)];
})"""


@pytest.fixture(scope="module")
def page(copies: Path, opened):
    """A notebook of two explorers, run; another's kernel is not to end."""
    cells = [
        {"cell_type": "code", "id": f"cell-{i}", "metadata": {}, "source": code, "outputs": [],
         "execution_count": None}
        for i, code in enumerate(CODE)
    ]  # fmt: skip
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    (copies / NAME).write_text(json.dumps(notebook), "utf-8")
    return opened(NAME)


def command(page, name: str) -> None:
    page.evaluate("name => window.jupyterapp.commands.execute(name)", name)


def restart(page) -> None:
    """Restart the kernel, which asks nothing here."""
    page.evaluate(f"{PANEL}.sessionContext.session.kernel.restart()")
    page.wait_for_timeout(3000)


def ended(page) -> None:
    """Each explorer is its still alone: picture, caption, and what to do."""
    for still in page.locator(STILLS).all():
        assert ENDED in still.inner_text()
        assert still.locator("[role=status]").inner_text()
        assert still.locator("img").first.evaluate("image => image.naturalWidth") > 300
    assert page.locator(STILLS).count() == 2
    assert page.locator(".gemmlab-explorer >> visible=true").count() == 0
    assert page.get_by_text("model not found").locator("visible=true").count() == 0


@pytest.mark.parametrize("control", [".noUi-handle", "select", "input[type=text]", "button"])
def test_ctrl_s_saves_from_every_control(page, control):
    box = explorer(page, "coalescing" if control != "button" else "kernellab")
    page.evaluate(f"{PANEL}.content.model.dirty = true")
    box.locator(control).first.focus()
    page.keyboard.press("Control+s")
    page.wait_for_function(f"!{PANEL}.content.model.dirty")


def test_a_slider_is_heard_as_the_number_beside_it(page):
    box = explorer(page, "kernellab")
    handle, number = box.locator(".noUi-handle").first, box.locator("input[type=text]").first
    for key in ("ArrowLeft", "ArrowRight"):
        handle.focus()
        page.keyboard.press(key)
        page.wait_for_timeout(1000)
        assert handle.get_attribute("aria-valuetext") == number.input_value()
    number.fill("500")
    page.keyboard.press("Enter")
    page.wait_for_timeout(1000)
    assert handle.get_attribute("aria-valuetext") == "500"
    number.fill("512")
    page.keyboard.press("Enter")


def test_a_picture_stays_where_it_is_when_the_words_above_it_change(page):
    box = explorer(page, "coalescing")
    number = box.locator("input[type=text]").first
    tops = []
    for typed in ("2", "many", "3"):  # three lines, a refusal of one, three
        number.fill(typed)
        page.keyboard.press("Enter")
        page.wait_for_timeout(1000)
        assert ("Not possible" in box.inner_text()) == (typed == "many")
        tops.append([top for _, top, _ in box.evaluate(SIDES)])
    assert tops[0] == tops[1] == tops[2]


@pytest.mark.parametrize("way", ["notebook:interrupt-kernel", "Stop"])
def test_an_interrupt_of_the_kernel_stops_a_run_as_stop_does(page, way):
    box = explorer(page, "kernellab")
    box.get_by_role("button", name="Run").click()
    page.wait_for_function(
        "box => /running… (?!0[.]0)/.test(box.innerText)", arg=box.element_handle()
    )
    if way == "Stop":
        box.get_by_role("button", name=way).click()
    else:
        command(page, way)
    page.wait_for_function(
        "box => box.innerText.includes('Stopped: nothing was added')", arg=box.element_handle()
    )


def test_a_picture_is_dark_in_the_dark_theme(page, screenshots: Path):
    image_of = pytest.importorskip("PIL.Image")
    picture = explorer(page, "coalescing").locator("img").first
    shades = []
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        page.evaluate(
            "theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", theme
        )
        page.wait_for_timeout(1500)
        shown = picture.screenshot(path=screenshots / f"coalescing {theme}.png")
        shades.append(image_of.open(BytesIO(shown)).convert("L").resize((1, 1)).getpixel((0, 0)))
    assert shades[0] < 60
    assert shades[1] > 200


def test_an_explorer_outlives_its_kernel(page, server, screenshots: Path):
    handle = explorer(page, "coalescing").locator(".noUi-handle").first
    handle.focus()
    page.keyboard.press("End")
    page.wait_for_timeout(1500)
    restart(page)
    ended(page)
    assert "element 32·i" in page.locator(STILLS).first.inner_text()
    page.screenshot(path=screenshots / "restarted.png")
    run_all(page)
    assert page.locator(STILLS).count() == 0
    assert explorer(page, "coalescing").is_visible()
    page.wait_for_timeout(1500)
    command(page, "kernelmenu:shutdown")
    page.wait_for_timeout(3000)
    ended(page)
    for _ in range(2):  # it is saved, opened, and saved again as it is
        page.evaluate(f"{PANEL}.content.model.dirty = true")
        command(page, "docmanager:save")
        page.wait_for_function(f"!{PANEL}.content.model.dirty")
        load(page, server.format(path=NAME))
        page.wait_for_timeout(5000)
        ended(page)
    page.screenshot(path=screenshots / "reopened.png")
    run_all(page)
    assert page.locator(STILLS).count() == 0


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_each_explorer_fits_one_small_screen(opened, screenshots: Path, name):
    page = opened(name)
    before = page.viewport_size
    page.set_viewport_size(SMALL)
    page.wait_for_timeout(1000)
    try:
        for box in page.locator(".gemmlab-explorer").all():
            kind = box.get_attribute("class").split("gemmlab-")[-1].split()[0]
            box.scroll_into_view_if_needed()
            box.screenshot(path=screenshots / f"{kind}_small.png")
            assert box.bounding_box()["height"] <= VISIBLE, kind
            sides = box.evaluate(SIDES)
            if kind != "rounding":  # two strips, one below the other
                assert len({top for _, top, _ in sides}) == 1, kind
    finally:
        page.set_viewport_size(before)
