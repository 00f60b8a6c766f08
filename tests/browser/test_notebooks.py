"""The course as a learner meets it: JupyterLab in a browser, keys pressed, pictures compared.

Run with `pytest tests/browser`; `--screenshots FOLDER` keeps the pictures.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from gemmlab.explorers.coalescing import sectors
from tests.browser.lab_server import ROOT

pytestmark = pytest.mark.browser

NOTEBOOKS = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))
ERROR = "[data-mime-type='application/vnd.jupyter.error']"
# Times each key press up to the moment when the next picture has been decoded; Fragments draws in
# the page itself, which is done when its words have changed and a frame has passed.
TIMER = """box => {
    window.pressed = []; window.shown = [];
    const seen = () => window.shown.push(performance.now());
    document.addEventListener('keydown', () => window.pressed.push(performance.now()), true);
    box.addEventListener('load', seen, true);
    if (!box.querySelector('img'))
        new MutationObserver(() => requestAnimationFrame(seen)).observe(
            box.querySelector('[role=status]'), {childList: true, subtree: true});
}"""


def digest(image) -> str:
    """The hash of what an <img> shows."""
    data = image.evaluate(
        """async img => Array.from(new Uint8Array(
            await (await fetch(img.src)).arrayBuffer()))"""
    )
    return hashlib.sha256(bytes(data)).hexdigest()


def explorer(page, name: str):
    """The first explorer of a class, scrolled into view."""
    box = page.locator(f".gemmlab-{name}").first
    box.wait_for(timeout=600_000)
    box.scroll_into_view_if_needed()
    return box


def caption(box) -> str:
    return box.locator("[role=status], [role=alert]").last.inner_text()


def press(page, key: str) -> float:
    """Press `key` on the focused control; milliseconds until the next picture."""
    before = page.evaluate("window.shown.length")
    page.keyboard.press(key)
    page.wait_for_function(f"window.shown.length > {before}", timeout=600_000)
    page.wait_for_timeout(250)  # of two figures one comes after the other
    return page.evaluate("window.shown.at(-1) - window.pressed.at(-1)")


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_every_cell_runs(opened, name: str):
    errors = [cell.inner_text() for cell in opened(name).locator(ERROR).all()]
    assert errors == []


def test_the_roofline_follows_the_keyboard(opened, screenshots: Path):
    page = opened("01_what_is_gemm.ipynb")
    box = explorer(page, "roofline")
    image = box.locator("img").first
    picture, text = digest(image), caption(box)
    readout = box.locator("input[type=text]").first
    shown = readout.input_value()
    box.evaluate(TIMER)
    box.locator(".noUi-handle").first.focus()
    press(page, "ArrowLeft")
    assert digest(image) != picture
    assert caption(box) != text
    assert readout.input_value() != shown
    assert " ".join(image.get_attribute("alt").split()) == " ".join(caption(box).split())
    box.screenshot(path=screenshots / "roofline.png")


def test_any_size_can_be_typed(opened):
    page = opened("01_what_is_gemm.ipynb")
    box = explorer(page, "roofline")
    number = box.locator("input[type=text]").first
    number.fill("1e3")
    page.keyboard.press("Enter")
    page.wait_for_function("box => box.innerText.includes('1000×')", arg=box.element_handle())
    assert number.input_value() == "1000"
    picture = digest(box.locator("img").first)
    for typed in ("1.5", "1,5", "1e9", "many"):
        number.fill(typed)
        page.keyboard.press("Enter")
        page.wait_for_function(
            "([box, typed]) => box.innerText.includes(`Not possible: m: “${typed}” is`)",
            arg=[box.element_handle(), typed],
        )
        assert number.input_value() == "1000"
    assert digest(box.locator("img").first) == picture
    box.locator(".noUi-handle").first.focus()
    page.keyboard.press("ArrowLeft")  # the slider goes on from there, in powers of two
    page.wait_for_function("box => box.innerText.includes('512×')", arg=box.element_handle())


def test_the_coalescing_explorer_follows_the_keyboard(opened, screenshots: Path):
    page = opened("03_threads_warps_blocks.ipynb")
    box = explorer(page, "coalescing")
    image = box.locator("img").first
    box.evaluate(TIMER)
    stride, offset = box.locator(".noUi-handle").all()[:2]
    # Which slider, which key -> stride, offset and bytes of an element that result.
    walk = [
        (stride, "ArrowRight", (2, 0, 4)),
        (stride, "ArrowLeft", (1, 0, 4)),
        (offset, "ArrowRight", (1, 1, 4)),
    ]
    pictures = {digest(image)}
    for handle, key, state in walk:
        handle.focus()
        press(page, key)
        told = f"Predicted: {sectors(*state)} sectors. Counted: {sectors(*state)} sectors"
        assert told in " ".join(caption(box).split())
        assert " ".join(image.get_attribute("alt").split()) == " ".join(caption(box).split())
        pictures.add(digest(image))
    assert len(pictures) == 3  # the second key goes back to the first picture
    shown = page.evaluate("window.shown.length")
    box.locator("select").select_option("8 B (float64)")
    page.wait_for_function(f"window.shown.length > {shown}", timeout=600_000)
    assert f"Counted: {sectors(1, 1, 8)} sectors" in " ".join(caption(box).split())
    assert digest(image) not in pictures
    box.screenshot(path=screenshots / "coalescing.png")


def test_the_kernel_lab_runs(opened, screenshots: Path):
    page = opened("04_shared_memory_tiling.ipynb")
    box = explorer(page, "kernellab")
    image = box.locator("img").first
    before = digest(image)
    box.get_by_role("button", name="Run").click()
    page.wait_for_function(
        "box => box.innerText.includes('Counted − predicted = 0')",
        arg=box.element_handle(),
        timeout=600_000,
    )
    assert digest(image) != before
    assert "simulated" in caption(box)
    assert box.get_by_role("button", name="Run").is_enabled()
    box.screenshot(path=screenshots / "kernel_lab.png")


def test_a_run_can_be_stopped_and_repeated(opened):
    page = opened("04_shared_memory_tiling.ipynb")
    box = explorer(page, "kernellab")
    handle = box.locator(".noUi-handle").first
    handle.focus()
    for _ in range(3):  # up to 1024³, which takes long enough to be stopped
        page.keyboard.press("ArrowRight")
    page.wait_for_function("box => box.innerText.includes('1024×1024×1024')",
                           arg=box.element_handle())  # fmt: skip
    box.get_by_role("button", name="Run").click()
    page.wait_for_function(  # a report of progress, whenever it comes: the run says 0.0 at first
        "box => /running… (?!0[.]0)/.test(box.innerText)", arg=box.element_handle()
    )
    box.get_by_role("button", name="Stop").click()
    page.wait_for_function("box => box.innerText.includes('Stopped')", arg=box.element_handle())
    handle.focus()
    for _ in range(4):
        page.keyboard.press("ArrowLeft")
    page.wait_for_function("box => box.innerText.includes('64×64×64')", arg=box.element_handle())
    box.get_by_role("button", name="Run").click()
    page.wait_for_function(
        "box => box.innerText.includes('Counted − predicted = 0')", arg=box.element_handle()
    )


def test_nothing_is_asked_of_another_machine(opened, strangers):
    for name in NOTEBOOKS:
        opened(name)
    assert strangers == []
