"""The explorer of rings that the TMA fills: bars, shares and sentences are of the simulated run."""

import re
import threading

import pytest

from gemmlab import kernels, plots
from gemmlab.explorers import StageTimeline, stage_timeline as module
from gemmlab.explorers.shared import preparing
from gemmlab.explorers.stage_timeline import SHOWN, STEPS, found
from gemmlab.explorers.timeline import rung
from gemmlab.model.pipeline import Pipeline
from gemmlab.plots import si
from gemmlab.plots.timeline import HEIGHT
from tests.support.waiting import SECONDS

NAME = kernels.warp_specialised.name


@pytest.fixture
def explorer():
    made = StageTimeline(NAME)
    assert made.wait(SECONDS)
    return made


def bars(explorer, row):
    """(start, end) of each bar of a row, by its name."""
    names = [label.get_text() for label in explorer.ax.get_yticklabels()]
    y = names.index(row) - HEIGHT / 2
    return [
        (bar.get_x(), bar.get_x() + bar.get_width())
        for bar in explorer.ax.patches
        if bar.get_y() == pytest.approx(y)
    ]


def test_stages_lie_between_producer_and_consumers(explorer):
    names = [label.get_text() for label in explorer.ax.get_yticklabels()]
    stages = [f"stage {i}" for i in range(kernels.warp_specialised.default.stages)]
    assert names == ["producer", *stages, "consumer 1", "consumer 2", "Tensor Cores"]


def test_the_axis_begins_with_the_chosen_step(explorer):
    explorer.step.value = 6
    turn = found(NAME).turns[6]
    assert bars(explorer, f"stage {turn.stage}")[-1][1] <= SHOWN
    assert (0, turn.full - turn.asked) in bars(explorer, f"stage {turn.stage}")
    told = f"Step 6 has stage {turn.stage}: it is asked for in cycle {turn.asked:,} of the block"
    assert told in explorer.message
    assert explorer.ax.get_xlim() == (0, SHOWN)


def test_the_shares_are_of_the_bars(explorer):
    explorer.step.value = 6
    told = re.search(r"the Tensor Cores multiply in (\d+)%", explorer.message)[1]
    drawn = sum(end - start for start, end in bars(explorer, "Tensor Cores"))
    assert int(told) == pytest.approx(100 * drawn / SHOWN, abs=1)


def test_it_says_the_predicted_time_and_that_none_is_recorded(explorer):
    assert f"predicted from its compiled code {si(rung(NAME).seconds, 's')}" in (explorer.message)
    told = "recorded" if rung(NAME).recorded else "this code is not recorded"
    assert told in explorer.message


def test_every_step_can_be_chosen(explorer, undrawn):
    for step in range(STEPS):
        explorer.step.value = step
        assert f"Step {step} has stage" in explorer.message


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (
            {"kernel": "mma_tuned"},
            "'mma_tuned' has no ring that the TMA fills; use mma_tma or warp",
        ),
        ({"step": STEPS}, "step=16; use 0 to 15"),
    ],
)
def test_values_that_it_refuses(arguments, match):
    with pytest.raises(ValueError, match=match):
        StageTimeline(**arguments)


def test_a_bar_has_the_colour_that_the_formula_s_picture_gives_it(explorer):
    _, (ax,) = plots.figure()
    rows = plots.ring(Pipeline(steps=2, stages=1, copy=900, multiply=300))

    def colours(axes):
        legend = axes.get_legend()
        handles = zip(legend.get_texts(), legend.legend_handles, strict=True)
        return {text.get_text(): (box.get_facecolor(), box.get_hatch()) for text, box in handles}

    plots.timeline(ax, rows)
    here, there = colours(explorer.ax), colours(ax)
    assert {"copy", "multiply", "wait"} == there.keys()
    assert {what: here[what] for what in there} == there


def test_another_ring_is_waited_for_beside_its_name(explorer, monkeypatch):
    """Of another rung, whose code is this one's here: to execute it takes long."""
    opened = threading.Event()

    def waiting(name):
        while not opened.wait(0.01):
            pass
        return found(NAME)

    monkeypatch.setattr(preparing, "PATIENCE", 0.05)
    monkeypatch.setattr(module, "found", waiting)
    monkeypatch.setattr(module, "rung", lambda name: rung(NAME)._replace(kernel=kernels.get(name)))
    explorer.kernel.value = kernels.mma_tma.name
    assert "The compiled code of mma_tma is being simulated" in explorer.message
    assert f"The pale picture is still of {NAME}." in explorer.message
    explorer.stop.click()
    assert explorer.wait(SECONDS)
    assert explorer.kernel.value == NAME
    assert explorer.message.startswith(f"{NAME} on ")
    opened.set()
    explorer.kernel.value = kernels.mma_tma.name
    assert explorer.wait(SECONDS)
    assert explorer.message.startswith("mma_tma on ")
