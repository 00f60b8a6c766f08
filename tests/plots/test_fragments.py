"""The figure of a fragment: each number is the lane that holds the element."""

import numpy as np
import pytest

from gemmlab import plots
from gemmlab.instructions import layout
from gemmlab.plots.lanes import MARKED


@pytest.fixture
def ax():
    return plots.figure()[1][0]


@pytest.mark.parametrize("operand", ["A", "B", "C"])
def test_every_element_shows_its_lane_and_register(ax, operand):
    form = layout("m16n8k16", operand)
    artists = plots.fragment(ax, form.table, operand)
    registers = np.asarray(artists.boxes.get_array()).reshape(form.shape)
    assert len(artists.numbers) == registers.size
    for text in artists.numbers:
        x, y = text.get_position()
        (lane,), (register,) = form.map(int(y), int(x))
        assert text.get_text() == str(lane)
        assert registers[int(y), int(x)] == register


def test_of_two_holders_the_first_is_shown(ax):
    form = layout("wmma.m16n16k16", "A", arch="sm_70", major="row")
    artists = plots.fragment(ax, form.table, "A")
    shown = [int(t.get_text()) for t in artists.numbers]
    assert shown == [form.map(i, j)[0][0] for i in range(16) for j in range(16)]


def test_one_lane_is_marked(ax):
    form = layout("m16n8k16", "A")
    artists = plots.fragment(ax, form.table, "A", lane=5)
    marked = [t for t in artists.numbers if t.get_color() == MARKED["color"]]
    assert {t.get_text() for t in marked} == {"5"}
    assert len(marked) == form.registers


def test_title_and_source(ax):
    plots.fragment(ax, layout("m16n8k16", "C").table, "C of mma", source="simulated")
    assert ax.get_title(loc="left") == "C of mma"
    assert "simulated" in [t.get_text() for t in ax.texts]
    assert ax.yaxis_inverted()  # row 0 is on top
