"""The explorer of one SM's timeline: cells, bars and sentences are of the rung that is chosen."""

import re
import threading
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from gemmlab import kernels, records
from gemmlab.compiled.sm.result import SCHEDULERS
from gemmlab.compiled.sm.streams import Effects
from gemmlab.explorers import Timeline, timeline
from gemmlab.explorers.shared import preparing
from gemmlab.explorers.timeline import (
    LADDERS,
    LEFT_OUT,
    PROBLEM,
    SHOWN,
    STARTS,
    rung,
    simulated,
    warps as warps_of,
)
from gemmlab.plots import number, si
from tests.support.waiting import SECONDS, until

LIGHT = "coalesced"  # its code is executed in a moment


def shown(explorer):
    """The explorer when its picture is what is asked for."""
    assert explorer.wait(SECONDS)
    return explorer


@pytest.fixture
def explorer():
    return shown(Timeline(LIGHT))


def test_effects_that_can_be_left_out_are_those_of_the_simulation():
    assert list(LEFT_OUT) == ["", *Effects().names, "all"]


def test_the_longest_step_fits_into_the_starts():
    assert simulated("tiled", "").cycles < STARTS[-1] + SHOWN


def test_it_says_predicted_and_recorded_time(explorer):
    recorded = records.find(kernels.coalesced, PROBLEM).seconds
    predicted = rung(LIGHT).seconds
    told = f"predicted from its compiled code {si(predicted, 's')}, recorded {si(recorded, 's')}"
    told += f"; recorded ÷ predicted = {number(recorded / predicted)}."
    assert told in explorer.message
    assert "recorded" in explorer.times.get_text()


def test_the_chosen_slot_is_named_with_its_instruction_and_line(explorer):
    window = explorer._window(explorer.steps)
    warp, cycle = (int(i[0]) for i in np.nonzero(window.kinds >= 0))
    explorer.warp.value, explorer.cycle.value = window.warps[warp], cycle
    first = window.ahead[warp, cycle]
    listing = explorer.steps.listing
    assert (
        f"Warp {window.warps[warp]}, cycle {cycle} issues {listing.instructions[first]}, of the "
        f"line “{listing.lines[first].text}”." in explorer.message
    )
    assert explorer.cells.chosen.get_xy() == (cycle, warp)
    warp, cycle = (int(i[0]) for i in np.nonzero(window.kinds < 0))
    explorer.warp.value, explorer.cycle.value = window.warps[warp], cycle
    assert f"Warp {window.warps[warp]}, cycle {cycle} waits (" in explorer.message


def test_a_scheduler_has_every_fourth_warp(explorer):
    labels = [t.get_text() for t in explorer.left.get_yticklabels()]
    warps = len(explorer.steps.run.timeline.issued)
    assert labels[:2] == ["warp 0", f"warp {SCHEDULERS}"]
    assert explorer.warp.options == tuple(range(0, warps, SCHEDULERS))
    explorer.warp.value = 8
    explorer.view.value = "of the whole SM"
    assert explorer.warp.options == tuple(range(warps))
    assert explorer.warp.value == 8
    explorer.warp.value = 9
    explorer.view.value = "of one scheduler"
    assert explorer.warp.value == 0


def test_left_out_effects_change_the_step(explorer):
    bars = [bar.get_width() for bar in explorer.bars.bars]
    explorer.left_out.value = "scoreboards"
    shown(explorer)
    assert explorer.message.count("Without waits for results a step along k takes") == 1
    assert f"instead of {simulated(LIGHT, '').cycles:,.0f}" in explorer.message
    assert [bar.get_width() for bar in explorer.bars.bars] != bars
    names = [t.get_text() for t in explorer.right.get_yticklabels()]
    assert explorer.bars.bars[names.index("a result")].get_width() == 0
    explorer.left_out.value = ""
    assert [bar.get_width() for bar in explorer.bars.bars] == bars


def test_a_moved_window_looks_as_if_drawn_anew(explorer):
    before = explorer.picture.png
    explorer.start.value, explorer.cycle.value, explorer.warp.value = 256, 7, 12
    assert explorer.picture.png != before
    assert explorer.picture.png == shown(Timeline(LIGHT, start=256, cycle=7, warp=12)).picture.png


def test_less_to_wait_for_may_take_longer_and_it_says_why(explorer):
    longer = replace(explorer.steps, cycles=2 * explorer.steps.cycles)
    told = timeline._step(longer, explorer.steps, "fixed pauses")
    assert "Longer, with less to wait for: " in told
    assert "Longer" not in timeline._step(explorer.steps, longer, "fixed pauses")


@pytest.fixture
def gate(monkeypatch):
    """What the simulation of a rung waits for, of all but the light one."""
    opened, simulate = threading.Event(), timeline.simulated

    def waiting(name, left_out):
        while name != LIGHT and not opened.wait(0.01):
            pass
        return simulate(name, left_out)

    monkeypatch.setattr(timeline, "simulated", waiting)
    monkeypatch.setattr(preparing, "PATIENCE", 0.05)
    yield opened
    opened.set()


def test_another_rung_is_waited_for_beside_its_name(explorer, gate):
    """Names, lists and picture agree at any time, and the controls go on working."""
    before, height = explorer.message, explorer.caption.layout.min_height
    explorer.kernel.value = "tiled"
    assert "code of tiled is being simulated" in explorer.message
    assert "The pale picture is still of coalesced." in explorer.message
    assert "opacity:0.25" in explorer.picture.panels[0].view.value
    assert explorer.progress.layout.visibility == "visible"
    until(lambda: " s</span>" in explorer.status.value)
    assert explorer.warp.options == tuple(range(0, warps_of("tiled"), SCHEDULERS))
    explorer.warp.value = 12
    gate.set()
    shown(explorer)
    assert explorer.message.startswith("tiled on ")
    assert "\nWarp 12, cycle 0 " in explorer.message
    assert explorer.left.get_title("left").startswith("tiled")
    assert explorer.progress.layout.visibility == "hidden"
    assert explorer.caption.layout.min_height == height
    assert before.startswith("coalesced")


def test_what_is_stopped_goes_back_to_what_is_drawn(explorer, gate):
    before, picture = explorer.message, explorer.picture.png
    explorer.kernel.value = "tiled"
    explorer.stop.click()
    shown(explorer)
    assert explorer.kernel.value == "coalesced"
    assert (explorer.message, explorer.picture.png) == (before, picture)
    assert "opacity" not in explorer.picture.panels[0].view.value


def test_the_last_choice_is_drawn_whatever_was_begun_before(explorer, gate):
    explorer.kernel.value = "tiled"
    first = explorer.job
    explorer.kernel.value = "naive"
    explorer.kernel.value = "coalesced"
    assert explorer.message.startswith("coalesced on ")
    gate.set()
    assert first.wait(SECONDS)
    assert explorer.job is None
    assert explorer.message.startswith("coalesced on ")


def test_a_first_picture_that_takes_long_has_its_place_at_once(gate):
    explorer = Timeline("tiled")
    assert "code of tiled is being simulated" in explorer.message
    size = re.search(r'width="\d+" height="\d+"', explorer.picture.panels[0].view.value)[0]
    gate.set()
    shown(explorer)
    assert explorer.message.startswith("tiled on ")
    assert size in explorer.picture.panels[0].view.value


def test_an_error_is_told_and_another_rung_can_be_chosen(explorer, monkeypatch):
    def fail(name, left_out):
        raise RuntimeError("there is no compiler")

    with monkeypatch.context() as patch:
        patch.setattr(timeline, "simulated", fail)
        explorer.kernel.value = "naive"
        shown(explorer)
        assert explorer.message == "Not possible: there is no compiler"
    explorer.kernel.value = "tiled"
    assert shown(explorer).message.startswith("tiled on ")


@pytest.mark.parametrize("kernel", [LIGHT, "mma_shared"])
def test_warps_are_counted_without_a_simulation(kernel):
    assert warps_of(kernel) == len(simulated(kernel, "").run.timeline.issued)


def test_beyond_the_end_there_is_no_warp(explorer):
    explorer.left_out.value = "all"
    shown(explorer)
    explorer.start.value = STARTS[-1]
    assert "no instruction is left" in explorer.message
    assert "Not possible" not in explorer.message


def test_artists_are_changed_and_not_made_again(explorer):
    cells, children = explorer.cells, len(explorer.left.get_children())
    explorer.start.value = 512
    explorer.left_out.value = "lsu"
    shown(explorer)
    assert explorer.cells is cells
    assert len(explorer.left.get_children()) == children


def test_a_rung_on_tensor_cores_is_shown_with_those_of_its_ladder():
    explorer = shown(Timeline("mma_shared"))
    assert explorer.kernel.options == tuple(k.name for k in LADDERS[1])
    problem = rung("mma_shared").problem
    assert (problem.dtype, problem.out_dtype) == ("float16", "float32")
    assert explorer.message.startswith(f"mma_shared on {problem}: predicted")
    assert f"recorded {si(records.find(kernels.mma_shared, problem).seconds, 's')}" in (
        explorer.message
    )
    names = [t.get_text() for t in explorer.right.get_yticklabels()]
    assert explorer.bars.bars[names.index("mma")].get_width() > 0
    assert explorer.bars.bars[names.index("FMA")].get_width() == 0


def test_code_with_other_registers_is_not_laid_beside_what_is_recorded(monkeypatch):
    """An SM may hold another number of its blocks."""
    chosen, seen = rung("mma_shared"), records.find(kernels.mma_shared, rung("mma_shared").problem)
    assert chosen.recorded == seen
    other = seen.resources | {"registers": seen.resources["registers"] + 1}
    monkeypatch.setattr(records, "find", lambda *asked: replace(seen, resources=other))
    assert chosen.recorded is None
    explorer = shown(Timeline("mma_shared"))
    assert "this code is not recorded" in explorer.message
    assert si(seen.seconds, "s") not in explorer.message + explorer.times.get_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    "kernel",
    [
        pytest.param(k, id=k.name, marks=[pytest.mark.measuring] if number % 3 else [])
        for number, k in enumerate(kernels.LADDER)
    ],
)
def test_every_rung_is_shown(kernel):
    explorer = shown(Timeline(kernel.name))
    assert explorer.message.startswith(f"{kernel.name} on {PROBLEM}: predicted")
    # What a longer run waits for less than a shorter one has no bar.
    assert sum(bar.get_width() for bar in explorer.bars.bars) == pytest.approx(100, abs=1.5)
    assert simulated(kernel.name, "").cycles < STARTS[-1] + SHOWN


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"kernel": "fast"}, ValueError, "'fast' is no rung; use one of naive, coalesced"),
        ({"left_out": "gravity"}, ValueError, "left_out='gravity'; use one of '', 'stalls'"),
        ({"start": 8192}, ValueError, "start=8192 is too large; use 0 to 8160"),
        ({"cycle": 64}, ValueError, "cycle=64 is too large; use 0 to 63"),
        ({"warp": 3}, ValueError, r"warp=3 is not shown; use one of \(0, 4, 8"),
        ({"start": 1.5}, TypeError, "start=1.5"),
    ],
)
def test_values_that_it_refuses(arguments, error, match):
    with pytest.raises(error, match=match):
        Timeline(**arguments)


def test_in_a_page_a_simulation_that_takes_long_is_stopped_with_advice(monkeypatch):
    def late(name, left_out):
        raise timeline.stopping.OutOfTime

    @contextmanager
    def limited(seconds, what):
        try:
            yield
        except timeline.stopping.OutOfTime:
            raise TimeoutError(f"{what} was stopped after {seconds:g} s") from None

    monkeypatch.setattr(timeline.stopping, "THREADS", False)
    monkeypatch.setattr(timeline.stopping, "limited", limited)
    with pytest.raises(TimeoutError, match=r"stopped after 9 s; on your own machine, with Numba"):
        timeline.in_time(late, "tiled", "stalls")
    assert timeline.in_time(lambda *given: given, "tiled", "stalls") == ("tiled", "stalls")
