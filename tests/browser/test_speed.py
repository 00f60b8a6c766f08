"""How long each explorer takes from a key to its picture: a table at the end of the run.

    python -m pytest tests/browser/test_speed.py

Nothing here asserts a time; that each key has a picture is asserted.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.browser.test_notebooks import TIMER, explorer, press

pytestmark = pytest.mark.browser

PRESSES = 20
UP_DOWN = "ArrowDown", "ArrowUp"


class Walk(NamedTuple):
    """An explorer, the control that is walked back and forth by two keys, and where it runs."""

    name: str
    notebook: str
    control: str = ".noUi-handle"
    keys: tuple[str, str] = ("ArrowRight", "ArrowLeft")
    backend: str = ""  # "": it has none to choose

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.name, self.backend)))


WALKS = (
    Walk("Roofline", "01_what_is_gemm.ipynb"),
    Walk("Memories", "02_intensity_and_limiters.ipynb"),
    Walk("Coalescing", "03_threads_warps_blocks.ipynb"),
    Walk("KernelLab", "04_shared_memory_tiling.ipynb", backend="simulator"),
    Walk("KernelLab", "04_shared_memory_tiling.ipynb", "select >> nth=-1", UP_DOWN, "recorded"),
    Walk("Quantization", "05_tile_and_wave_quantization.ipynb"),
    Walk("ThreadTiles", "06_register_tiles.ipynb", backend="recorded"),
    Walk("Timeline", "06_register_tiles.ipynb"),
    Walk("Fragments", "07_warps_and_fragments.ipynb", "[role=gridcell]", UP_DOWN),
    Walk("Swizzle", "08_tensor_core_gemm.ipynb", "select >> nth=2", UP_DOWN),
    Walk("Stages", "09_software_pipelining.ipynb"),
    Walk("StageTimeline", "09_software_pipelining.ipynb"),
    Walk("SplitK", "10_split_k.ipynb", backend="recorded"),
    Walk("Rounding", "11_number_formats.ipynb", "select", UP_DOWN),
    Walk("DotError", "11_number_formats.ipynb"),
    Walk("Tcec", "12_tcec.ipynb", "select >> nth=2", UP_DOWN),
)


@pytest.mark.parametrize("walk", WALKS, ids=str)
def test_each_key_has_its_picture(opened, walk: Walk, record_property):
    page = opened(walk.notebook)
    page.bring_to_front()  # a browser draws a hidden page once in a second
    box = explorer(page, walk.name.lower())
    if walk.backend:
        box.locator("select").filter(has_text="recorded").select_option(walk.backend)
        page.wait_for_timeout(1000)
    box.evaluate(TIMER)
    box.locator(walk.control).locator("visible=true").first.focus()
    times = [press(page, walk.keys[i % 2]) for i in range(PRESSES)]
    assert min(times) > 0
    record_property("from key to picture", [str(walk), times])
