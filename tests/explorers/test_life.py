"""What an explorer leaves behind, how a run is interrupted, and what room a picture takes."""

import ast
import threading
from types import SimpleNamespace

import pytest

from gemmlab.explorers import Rounding, ThreadTiles
from gemmlab.explorers.shared import base, running
from gemmlab.explorers.shared.base import GROWN, SHRUNK
from gemmlab.explorers.shared.controls import Size
from gemmlab.plots.shared.figures import DPI
from tests.support.paths import ROOT
from tests.support.waiting import SECONDS, until

GAP = 8  # pixels between two pictures
LAB, SITE = 919, 737  # pixels for them: a screen of 1366 with the file list open, and a chapter's
TALLEST = 435  # pixels of them in the lab: what controls and words leave of a screen of 768


# ---------------------------------------------------------------------------------------- stills


@pytest.fixture
def published(monkeypatch):
    """What a notebook would be given, in order: the outputs, and whether each replaces one."""
    seen = []

    def publish(data, transient, update=False):
        seen.append((transient["display_id"], update, data["text/html"]))

    monkeypatch.setattr(base, "publish_display_data", publish)
    monkeypatch.setattr(base, "get_ipython", lambda: SimpleNamespace())
    monkeypatch.setattr(base, "REST", 0.01)
    return seen


def test_an_explorer_that_is_shown_lays_an_empty_still_and_fills_it_when_it_rests(published):
    explorer = Rounding()
    explorer.x.value = 0.2
    assert published == []  # it is not shown yet
    assert "application/vnd.jupyter.widget-view+json" in explorer._repr_mimebundle_()
    name, update, page = published[0]
    assert not update
    assert page.endswith('<div class="gemmlab-still"></div>')
    until(lambda: len(published) > 1)
    (again, update, page) = published[1]
    assert (again, update) == (name, True)
    assert base.ENDED in page
    assert explorer.caption.value in page
    assert page.count("<img") == len(explorer.picture.panels)


def test_a_still_follows_the_last_change(published, monkeypatch):
    monkeypatch.setattr(base, "REST", 0.5)
    explorer = Rounding()
    explorer._repr_mimebundle_()
    for x in (0.3, 0.4, 0.7):
        explorer.x.value = x
    until(lambda: len(published) > 1)
    assert len(published) == 2
    assert "0.7 in bfloat16" in published[-1][2]


def test_a_film_needs_no_still(published, monkeypatch):
    monkeypatch.setattr(Rounding, "lasts", False)
    Rounding()._repr_mimebundle_()
    assert published == []


def test_controls_come_first_then_the_words_and_below_them_the_pictures():
    explorer = Rounding()
    *_, caption, picture, _ = explorer.children
    assert (caption, picture) == (explorer.caption, explorer.picture.view)


# ------------------------------------------------------------------------------------ interrupts


@pytest.fixture
def kernel(monkeypatch):
    """An ipykernel, as far as it is asked."""
    made = SimpleNamespace(saved_sigint_handler="ignore")
    monkeypatch.setattr(running, "get_ipython", lambda: SimpleNamespace(kernel=made))
    return made


@pytest.fixture
def endless(kernel, monkeypatch):
    """An explorer that runs, until it is stopped."""
    begun = threading.Event()

    def execute(*_):
        begun.set()
        while True:
            threading.Event().wait(0.001)

    explorer = ThreadTiles(backend="simulator", n=128)
    monkeypatch.setattr(explorer, "execute", execute)
    explorer.start()
    assert begun.wait(SECONDS)
    return explorer


def test_an_interrupt_stops_a_run_as_stop_does(endless, kernel):
    kernel.saved_sigint_handler(2, None)
    assert endless.wait(SECONDS)
    assert endless.message.startswith("Stopped: nothing was added.")
    assert running.Job.all == set()


def test_an_interrupt_of_a_cell_that_waits_for_a_run_stops_it(endless, monkeypatch):
    job = endless.job

    def interrupted(seconds):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(job, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            endless.wait()
    assert job.wait(SECONDS)
    assert "Stopped" in endless.message


def test_an_interrupted_picture_says_so(monkeypatch):
    explorer = Rounding()

    def show():
        raise KeyboardInterrupt

    monkeypatch.setattr(explorer, "show", show)
    with pytest.raises(KeyboardInterrupt):
        explorer.refresh()
    assert explorer.message.startswith("Not possible: it was interrupted")


# ---------------------------------------------------------------------------- sliders, and room


def test_a_slider_tells_the_number_and_not_its_place():
    size = Size("m", 8192, high=13)
    assert 'data-at="13" data-value="8192"' in size.told.value
    size.slider.value = 12
    assert 'data-at="12" data-value="4096"' in size.told.value
    size.number.value = 1000  # beside the stop that is nearest
    assert 'data-at="10" data-value="1000"' in size.told.value
    size.offer([7, 70], 70)
    assert 'data-stops="[7, 70]" data-at="1" data-value="70"' in size.told.value


def figures(path):
    """The widths and heights [inches] of the figures that a module makes, as it is written."""
    return [
        tuple(side.value for side in call.args[:2])
        for call in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "plots.figure"
    ]


DRAWING = {
    path.stem: sizes
    for path in sorted((ROOT / "gemmlab" / "explorers").glob("*.py"))
    if (sizes := figures(path))
}


def test_the_explorers_that_draw_are_found():
    assert len(DRAWING) >= 14


@pytest.mark.parametrize("name", DRAWING)
def test_pictures_stand_side_by_side_and_fit_one_screen(name):
    sizes = DRAWING[name]
    gaps = GAP * (len(sizes) - 1)
    widest = DPI * sum(width for width, _ in sizes)
    heights = [DPI * height for _, height in sizes]
    if name == "rounding":  # two strips, one below the other
        assert GROWN * sum(heights) < TALLEST
        return
    assert SHRUNK * widest + gaps <= SITE
    grown = min(GROWN, (LAB - gaps) / widest)
    assert grown >= 1
    assert grown * max(heights) <= TALLEST
