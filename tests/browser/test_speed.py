"""How long each explorer takes from a key to its picture: a table at the end of the run.

    python -m pytest tests/browser/test_speed.py

Nothing here asserts a time; that each key has a picture is asserted.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from gemmlab import explorers
from tests.browser.test_notebooks import TIMER, explorer, press
from tests.support.paths import ROOT

pytestmark = pytest.mark.browser

PRESSES = 20
UP_DOWN = "ArrowDown", "ArrowUp"


class Walk(NamedTuple):
    """An explorer, the control that is walked back and forth by two keys, and where it runs."""

    name: str
    control: str = ".noUi-handle"
    keys: tuple[str, str] = ("ArrowRight", "ArrowLeft")
    backend: str = ""  # "": it has none to choose

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.name, self.backend)))

    @property
    def notebook(self) -> str:
        """The first chapter that shows it."""
        return next(
            path.name
            for path in sorted((ROOT / "notebooks").glob("[01]?_*.ipynb"))
            if f'"explorers.{self.name}(' in path.read_text("utf-8")
        )


# All others are walked by the handle of their first slider.
OTHERWISE = (
    Walk("KernelLab", backend="simulator"),
    Walk("KernelLab", "select >> nth=-1", UP_DOWN, "recorded"),
    Walk("ThreadTiles", backend="recorded"),
    Walk("Fragments", "[role=gridcell]", UP_DOWN),
    Walk("Swizzle", "select >> nth=2", UP_DOWN),
    Walk("SplitK", backend="recorded"),
    Walk("Rounding", "select", UP_DOWN),
    Walk("Tcec", "select >> nth=2", UP_DOWN),
)
NAMED = {walk.name for walk in OTHERWISE}
WALKS = (*OTHERWISE, *(Walk(name) for name in explorers.__all__ if name not in NAMED))


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
