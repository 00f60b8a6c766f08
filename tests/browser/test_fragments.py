"""The explorer of fragments in a browser, with no kernel behind it: keys, clicks, all layouts."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemmlab.explorers import Fragments
from gemmlab.instructions.fragments import LANES, LAYOUTS

pytestmark = pytest.mark.browser

# What both maps show, by what their cells are called.
SHOWN = """box => [...box.querySelectorAll('[role=gridcell]')].map(
    c => [c.closest('.f-map').parentNode.className.slice(2), c.getAttribute('aria-label'),
          c.textContent, c.classList.contains('f-chosen'), c.classList.contains('f-with')])"""


@pytest.fixture
def box(context, strangers):
    """The explorer alone on a page: a function of its arguments."""
    pages = []

    def open_page(*arguments, **keywords):
        page = context.new_page()
        pages.append(page)
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        html = Fragments(*arguments, **keywords)._repr_html_()
        page.set_content(f"<!doctype html><body>{html}</body>")
        assert errors == []
        return page.locator(".gemmlab-fragments")

    yield open_page
    assert strangers == []
    for page in pages:
        page.close()


def shown(box, kind: str) -> list[list]:
    return [cell[1:] for cell in box.evaluate(SHOWN) if cell[0] == kind]


def label(lane: int, register: int, layout) -> str:
    i, j = layout.element(lane, register)
    of = f" of matrix {layout.matrix(lane, register)}" if layout.matrices > 1 else ""
    return f"lane {lane}, register {register}, element ({i}, {j}){of}"


def test_every_layout_is_told_and_says_how_to_choose(box):
    page = box("m16n8k16", "A", lane=5, register=0)
    for name in dict.fromkeys(layout.instruction for layout in LAYOUTS):
        page.get_by_label("Instruction").select_option(name)
        told = page.locator("[role=status]").inner_text()
        assert "is in lane" in told
        assert "Lane 5 holds " in told
    assert "Click an element or a lane, or move by arrow keys." in page.inner_text()


def test_every_layout_is_drawn(box):
    page = box()
    for number, layout in enumerate(LAYOUTS):
        page.get_by_label("Instruction").select_option(layout.instruction)
        page.get_by_label("Operand").select_option(str(number))
        cells = shown(page, "registers")
        expected = [label(x, r, layout) for x in range(LANES) for r in range(layout.registers)]
        assert [cell[0] for cell in cells] == expected
        matrix = shown(page, "matrix")
        rows, cols = layout.shape
        assert len(matrix) == layout.matrices * rows * cols
        if layout.matrices == 1:
            lanes = [" ".join(map(str, dict.fromkeys(layout.map(i, j)[0])))
                     for i in range(rows) for j in range(cols)]  # fmt: skip
            assert [cell[1] for cell in matrix] == lanes


def test_both_maps_light_up_together(box, screenshots: Path):
    page = box("m16n8k16", "A", lane=5, register=2)
    page.screenshot(path=screenshots / "fragments.png")
    assert (
        "Element (9, 2) of A is in lane 5, register 2" in page.locator("[role=status]").inner_text()
    )
    for kind in ("matrix", "registers"):
        cells = shown(page, kind)
        assert [cell[0] for cell in cells if cell[2]] == [
            {"matrix": "element (9, 2), lane 5",
             "registers": "lane 5, register 2, element (9, 2)"}[kind]
        ]  # fmt: skip
        assert sum(cell[3] for cell in cells) == 7  # the others of the lane
    page.get_by_label("element (3, 4), lane 14", exact=True).click()
    (chosen,) = (cell for cell in shown(page, "registers") if cell[2])
    assert chosen[0] == "lane 14, register 0, element (3, 4)"


def test_copies_light_up_too(box):
    page = box("wmma.m16n16k16", "A", arch="sm_70", lane=5, register=2)
    assert sum(cell[2] for cell in shown(page, "registers")) == 2
    assert "lane 13, register 2" in page.locator("[role=status]").inner_text()


def test_keys_alone_are_enough(box):
    page = box("m16n8k16", "C")
    keys = page.page.keyboard
    status = page.locator("[role=status]")
    for _ in range(3):  # instruction, operand, the matrix
        keys.press("Tab")
    keys.press("ArrowDown")
    assert "Element (1, 0) of C is in lane 4, register 0" in status.inner_text()
    keys.press("End")
    assert "Element (1, 7) of C is in lane 7, register 1" in status.inner_text()
    keys.press("Tab")  # to the registers, where the same element is chosen
    focused = page.page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert focused == "lane 7, register 1, element (1, 7)"
    keys.press("ArrowUp")
    assert "Element (1, 5)" in status.inner_text()
    keys.press("Home")
    assert "Element" not in status.inner_text()
    assert "Lane 6 holds (1, 4), (1, 5), (9, 4) and (9, 5)." in status.inner_text()
    assert sum(cell[3] for cell in shown(page, "matrix")) == 4
    keys.press("ArrowLeft")  # nothing lies further left
    assert "Lane 6" in status.inner_text()


def test_it_answers_in_jupyterlab(opened):
    page = opened("07_warps_and_fragments.ipynb")
    explorer = page.locator(".gemmlab-fragments").first
    explorer.scroll_into_view_if_needed()
    explorer.get_by_label("lane 5, register 0, element (1, 2)", exact=True).click()
    page.keyboard.press("ArrowDown")
    assert "Element (1, 4) of A is in lane 6" in explorer.locator("[role=status]").inner_text()


def test_jupyterlab_leaves_it_its_keys(opened):
    """Arrows would move through the notebook's cells, and b would insert one."""
    page = opened("07_warps_and_fragments.ipynb")
    explorer = page.locator(".gemmlab-fragments").first
    cells, active = page.locator(".jp-Cell").count(), page.locator(".jp-Cell.jp-mod-active")
    instruction = explorer.get_by_label("Instruction")
    instruction.select_option("m16n8k16")
    explorer.get_by_label("element (0, 0), lane 0", exact=True).click()
    instruction.focus()
    place = active.first.get_attribute("data-windowed-list-index")
    page.keyboard.press("ArrowDown")
    assert instruction.input_value() == "m16n8k8"
    page.keyboard.press("b")
    page.keyboard.press("Tab")  # the operand
    page.keyboard.press("Tab")  # the matrix
    for key in ("b", "ArrowDown", "ArrowRight", "j"):
        page.keyboard.press(key)
    assert "Element (1, 1) of A" in explorer.locator("[role=status]").inner_text()
    assert page.locator(".jp-Cell").count() == cells
    assert active.first.get_attribute("data-windowed-list-index") == place
    focused = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert focused == "element (1, 1), lane 4"


def test_a_narrow_window_scrolls_each_map(opened, screenshots: Path):
    page = opened("07_warps_and_fragments.ipynb")
    explorer, wide = page.locator(".gemmlab-fragments").first, page.viewport_size
    page.set_viewport_size({"width": 700, "height": 900})
    try:
        explorer.get_by_label("Instruction").select_option("ldmatrix.x4")
        page.wait_for_timeout(500)
        explorer.screenshot(path=screenshots / "fragments_narrow.png")
        assert explorer.evaluate("box => box.scrollWidth <= box.clientWidth + 1")
        explorer.locator(".f-matrix [role=gridcell]").last.click()
        assert "(7, 7) of matrix 3" in explorer.locator("[role=status]").inner_text()
    finally:
        explorer.get_by_label("Instruction").select_option("m16n8k16")
        page.set_viewport_size(wide)
