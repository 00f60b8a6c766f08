"""The explorers of chapters 05 to 11 in JupyterLab: every control by keyboard, no error."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemmlab.device import device
from gemmlab.explorers.dot_error import LENGTHS, errors
from gemmlab.explorers.rounding import CHOICES
from gemmlab.explorers.thread_tiles import THREAD_TILES
from gemmlab.numerics import round_to
from gemmlab.plots import number
from tests.browser.test_notebooks import ERROR, TIMER, caption, digest, explorer, press

pytestmark = pytest.mark.browser

TILES, NUMBERS = "06_register_tiles.ipynb", "11_number_formats.ipynb"
WAVES, PIECES = "05_tile_and_wave_quantization.ipynb", "08_tensor_core_gemm.ipynb"
SPLITS = "10_split_k.ipynb"
PIPELINES = "09_software_pipelining.ipynb"


def words(box) -> str:
    """The caption in one line."""
    return " ".join(caption(box).split())


def agrees(box) -> None:
    """A screen reader is told of the picture what the caption says."""
    assert " ".join(box.locator("img").first.get_attribute("alt").split()) == words(box)


def until(page, box, text: str) -> None:
    """Wait for `text` in the caption."""
    page.wait_for_function(
        """([box, text]) => [...box.querySelectorAll('[role=status], [role=alert]')].some(
            told => told.textContent.replace(/\\s+/g, ' ').includes(text))""",
        arg=[box.element_handle(), text],
        timeout=600_000,
    )


def largest_error(arch: str) -> str:
    """Of the Tensor Core, for the longest sums of positive float16, as captions say it."""
    return number(float(abs(errors("inside", "float16", arch, "positive")[-1]).max() * 2**24))


def choose(page, control, key: str) -> str:
    """Open a list by the space bar, move by `key`, take what is there; the new value."""
    control.focus()
    page.keyboard.press("Space")
    page.wait_for_timeout(200)  # the list of a browser opens after the key has been dealt with
    page.keyboard.press(key)
    page.keyboard.press("Enter")
    return control.input_value()


def each_key_moves(page, box) -> None:
    """Each key of a slider changes picture and caption."""
    box.evaluate(TIMER)
    image, handle = box.locator("img").first, box.locator(".noUi-handle").first
    for key in ("ArrowLeft", "ArrowRight", "ArrowDown", "ArrowUp", "Home", "End"):
        picture, text = digest(image), words(box)
        handle.focus()
        press(page, key)
        assert digest(image) != picture, key
        assert words(box) != text, key
        agrees(box)


def no_errors(page) -> None:
    assert [cell.inner_text() for cell in page.locator(ERROR).all()] == []


@pytest.fixture
def console(opened):
    """A function of a notebook: its page, on which no script fails during the test."""
    failures: list[str] = []
    heard = []

    def listen(name: str):
        page = opened(name)
        page.on("pageerror", lambda error: failures.append(str(error)))
        heard.append(page)
        return page

    yield listen
    for page in heard:
        no_errors(page)
    assert failures == []


def test_quantization_follows_the_keyboard(console, screenshots: Path):
    page = console(WAVES)
    box = explorer(page, "quantization")
    each_key_moves(page, box)
    until(page, box, "C has 32×64 elements: 32 tiles of 8×8")  # End
    number = box.locator("input[type=text]").first
    for typed, told in (
        ("33", "C has 32×33 elements: 20 tiles"),
        ("100", "Not possible: n: “100” is too large; type one from 1 to 64"),
    ):
        number.fill(typed)
        page.keyboard.press("Enter")
        until(page, box, told)
    gpu, tile, _ = box.locator("select").all()
    assert choose(page, gpu, "End") == device("h200").title
    until(page, box, "143 tiles of 128×256, 94.2% of what they cover. 132 SMs take 2 waves.")
    number.fill("3080")
    page.keyboard.press("Enter")
    until(page, box, "pipelined, recorded on NVIDIA H200 SXM")
    assert choose(page, tile, "ArrowDown") == "256×128"
    until(page, box, "tiles of 256×128")
    agrees(box)
    box.screenshot(path=screenshots / "quantization.png")


def test_thread_tiles_follow_the_keyboard(console, screenshots: Path):
    page = console(TILES)
    box = explorer(page, "threadtiles")
    kernel, thread, backend = box.locator("select").all()
    backend.select_option("recorded")  # every size can be shown
    page.wait_for_timeout(500)
    each_key_moves(page, box)
    until(page, box, "8192×8192×8192")  # End
    number = box.locator("input[type=text]").first
    assert number.input_value() == "8192"
    number.fill("1000")
    page.keyboard.press("Enter")
    until(page, box, "1000×1000×1000")
    picture = digest(box.locator("img").first)
    before = thread.input_value()
    assert choose(page, thread, "Home") == "×".join(map(str, THREAD_TILES[0])) != before
    until(page, box, "at least 3 registers; for each of its FMAs it needs 2 words")
    assert digest(box.locator("img").first) != picture
    assert choose(page, kernel, "ArrowDown") == "vectorised"
    until(page, box, "vectorised 128×128×8, thread 8×8")  # 1×1 is not to be had
    agrees(box)
    box.screenshot(path=screenshots / "thread_tiles.png")


def test_thread_tiles_run(console):
    page = console(TILES)
    box = explorer(page, "threadtiles")
    kernel, _, backend = box.locator("select").all()
    kernel.select_option("register_tiled")
    backend.select_option("simulator")
    number = box.locator("input[type=text]").first
    number.fill("8192")
    page.keyboard.press("Enter")
    until(page, box, "Not possible: 8192×8192×8192 float32 is too large to simulate")
    number.fill("128")
    page.keyboard.press("Enter")
    until(page, box, "Press Run (simulator)")
    box.get_by_role("button", name="Run").focus()
    page.keyboard.press("Space")
    until(page, box, "Counted − predicted = 0 for all")
    agrees(box)


def test_stages_follow_the_keyboard_and_run(console, screenshots: Path):
    page = console(PIPELINES)
    box = explorer(page, "stages")
    box.locator(".noUi-handle").first.focus()
    page.keyboard.press("ArrowRight")  # from the slider's end
    until(page, box, "with 2 stages a step takes")
    each_key_moves(page, box)
    until(page, box, "with 5 stages a step takes")  # End
    tile = box.locator("select").first
    assert choose(page, tile, "ArrowDown") == "128×128×32"
    until(page, box, "blocks share an SM: 2.")
    agrees(box)
    box.screenshot(path=screenshots / "stages.png")
    box.get_by_role("button", name="Run").focus()
    page.keyboard.press("Space")
    until(page, box, "the result is right, 8 barriers")
    until(page, box, "stages would do for a block alone")
    box.screenshot(path=screenshots / "stages_run.png")


def test_the_swizzle_follows_the_keyboard(console, screenshots: Path):
    page = console(PIECES)
    box = explorer(page, "swizzle")
    until(page, box, "lies in 1 place of a line: it takes 8 wavefronts.")
    kernel, length, piece = box.locator("select").all()
    picture = digest(box.locator("img").first)
    assert choose(page, piece, "ArrowDown") == "piece 3"
    until(page, box, "Piece 3 of the rows 0 to 7")
    assert digest(box.locator("img").first) != picture
    assert choose(page, kernel, "ArrowDown") == "mma_swizzled"
    until(page, box, "2 predicted, 2 counted (simulated)")
    assert choose(page, length, "ArrowUp") == "32 elements, 64 bytes"
    until(page, box, "Rows of 32 elements, pieces as mma_swizzled lays them.")
    agrees(box)
    box.screenshot(path=screenshots / "swizzle.png")


def test_the_timeline_follows_the_keyboard(console, screenshots: Path):
    page = console(TILES)
    box = explorer(page, "timeline")
    until(page, box, "register_tiled on 4096×4096×4096 float32: predicted from its compiled code")
    box.screenshot(path=screenshots / "timeline.png")
    box.locator(".noUi-handle").first.focus()
    for _ in range(2):  # away from the left end
        page.keyboard.press("ArrowRight")
    until(page, box, "cycle 64")
    each_key_moves(page, box)
    rung, left_out, warps, warp = box.locator("select").all()
    picture = digest(box.locator("img").first)
    assert choose(page, left_out, "End") == "all of these"
    until(page, box, "Without all of these a step along k takes")
    assert digest(box.locator("img").first) != picture
    left_out.select_option("nothing")
    assert choose(page, warps, "End") == "of the whole SM"
    rung.select_option("tiled")
    until(page, box, "“acc += As[y, p] * Bs[p, x]”")
    assert choose(page, warp, "End") == "63"
    until(page, box, "Warp 63, cycle")
    agrees(box)
    box.screenshot(path=screenshots / "timeline_sm.png")


def test_rounding_follows_the_keyboard(console, screenshots: Path):
    page = console(NUMBERS)
    box = explorer(page, "rounding")
    image, x = box.locator("img").first, box.locator("input[type=text]").first
    form, rounding = box.locator("select").all()
    # What is typed, and what the caption begins with: halfway, subnormal, beyond the range.
    for typed in (1.00390625, -0.1, 1e-40, 1e39):
        picture = digest(image)
        x.fill(f"{typed:.10g}")
        page.keyboard.press("Enter")
        until(page, box, f"{typed!r} in bfloat16, to nearest, ties to even: ")
        assert f"even: {float(round_to(typed, 'bfloat16'))!r}." in words(box)
        assert digest(image) != picture
        agrees(box)
    box.screenshot(path=screenshots / "rounding.png")
    x.fill("65520")
    page.keyboard.press("Enter")
    until(page, box, "65520.0 in bfloat16")
    below = CHOICES[CHOICES.index("bfloat16") + 1]
    assert choose(page, form, "ArrowDown") == below
    until(page, box, f"65520.0 in {below}")
    assert choose(page, rounding, "ArrowDown") == "RZ"
    until(page, box, "toward zero")
    assert f": {float(round_to(65520, below, 'RZ'))!r}." in words(box)
    agrees(box)


def test_errors_of_dot_products_follow_the_keyboard(console, screenshots: Path):
    page = console(NUMBERS)
    box = explorer(page, "doterror")
    each_key_moves(page, box)
    until(page, box, f"64 dot products of {LENGTHS[-1]} products, positive, in float16")  # End
    operands, core, values = box.locator("select").all()
    assert f"Tensor Core: largest error {largest_error('sm_90')} u" in words(box)
    picture = digest(box.locator("img").first)
    assert choose(page, core, "Home") == "Volta (sm_70)"
    until(page, box, f"Tensor Core: largest error {largest_error('sm_70')} u")
    assert digest(box.locator("img").first) != picture
    assert choose(page, operands, "ArrowDown") == "bfloat16"
    until(page, box, "Not possible: sm_70 does not multiply bfloat16")
    assert choose(page, operands, "Home") == "float16"
    assert choose(page, values, "End") == "either sign"
    until(page, box, "either sign, in float16")
    agrees(box)
    box.screenshot(path=screenshots / "dot_error.png")


def test_splits_follow_the_keyboard(console, screenshots: Path):
    page = console(SPLITS)
    box = explorer(page, "splitk")
    until(page, box, "With 4 parts of k there are 128 blocks; 132 SMs take 1 wave, 128 steps.")
    box.screenshot(path=screenshots / "split_k.png")
    box.evaluate(TIMER)
    split = box.locator(".noUi-handle").nth(3)
    pictures = [digest(image) for image in box.locator("img").all()]
    split.focus()
    press(page, "ArrowRight")
    until(page, box, "With 5 parts of k there are 160 blocks; 132 SMs take 2 waves, 206 steps.")
    agrees(box)
    now = [digest(image) for image in box.locator("img").all()]
    assert all(new != old for new, old in zip(now, pictures, strict=True))
    box.screenshot(path=screenshots / "split_k_two_waves.png")
    kernel, _, backend = box.locator("select").all()
    assert choose(page, kernel, "End") == "stream_k"
    until(page, box, "stream_k, 1024×1024×8192 float32: 32 tiles of 128×256, 1,024 steps each.")
    assert choose(page, backend, "ArrowUp") == "simulator"
    until(page, box, "Not possible: 1024×1024×8192 float32 is too large to simulate")
    box.locator("select").nth(1).select_option("64×64")
    fields = box.locator("input[type=text]").all()
    for field, size in zip(fields, (64, 64, 256, 4), strict=True):
        field.fill(str(size))
        page.keyboard.press("Enter")
    until(
        page,
        box,
        "stream_k, 64×64×256 float32: 1 tile of 64×64, 16 steps each. There are 4 blocks;",
    )
    box.get_by_role("button", name="Run").click()
    until(page, box, "the result is right.")
    agrees(box)
    box.screenshot(path=screenshots / "split_k_counted.png")


def test_lists_keep_their_keys(console):
    """Arrows would move through the notebook's cells, and b would insert one."""
    page = console(NUMBERS)
    box = explorer(page, "rounding")
    cells, form = page.locator(".jp-Cell").count(), box.locator("select").first
    form.select_option(CHOICES[0])
    form.focus()
    page.keyboard.press("ArrowDown")
    assert form.input_value() == CHOICES[1]
    page.keyboard.press("ArrowUp")
    assert form.input_value() == CHOICES[0]
    page.keyboard.press("b")
    assert form.input_value() == next(f for f in CHOICES if f.startswith("b"))
    until(page, box, f"in {form.input_value()}")
    assert page.locator(".jp-Cell").count() == cells
    assert page.evaluate("document.activeElement.tagName") == "SELECT"


def test_a_burst_of_keys_ends_where_it_should(console):
    page = console(NUMBERS)
    box = explorer(page, "doterror")
    handle = box.locator(".noUi-handle").first
    handle.focus()
    page.keyboard.press("Home")
    for _ in range(5 * len(LENGTHS)):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    until(page, box, f"dot products of {LENGTHS[-2]} products")
    assert box.locator(".widget-readout").inner_text() == str(LENGTHS[-2])
    agrees(box)


@pytest.mark.parametrize(
    ("notebook", "names"),
    [(NUMBERS, ("rounding", "doterror")), (TILES, ("timeline",)), (SPLITS, ("splitk",))],
)
def test_explorers_fit_into_a_narrow_window(console, screenshots: Path, notebook, names):
    page = console(notebook)
    wide = page.viewport_size
    page.set_viewport_size({"width": 700, "height": 900})
    try:
        for name in names:
            box = explorer(page, name)
            page.wait_for_timeout(500)
            box.screenshot(path=screenshots / f"{name}_narrow.png")
            assert box.evaluate("box => box.scrollWidth <= box.clientWidth + 1"), name
    finally:
        page.set_viewport_size(wide)
