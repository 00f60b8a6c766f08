"""Slots of an SM as bars, and warps by cycles: heights and colours are those of the data."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from gemmlab import plots
from gemmlab.compiled.sm.pipes import Kind
from gemmlab.compiled.sm.result import Reason
from gemmlab.plots.slots import COARSE, EMPTY, FINE, MANY, READY, USED


@pytest.fixture
def ax():
    return plots.figure(5, 4)[1][0]


def test_every_kind_and_every_reason_has_one_look():
    kinds = [m for look in USED for m in look.members]
    reasons = [m for look in (*EMPTY, READY) for m in look.members]
    assert sorted(kinds) == list(Kind)
    assert sorted(reasons) == list(Reason)
    for looks in (USED, (*EMPTY, READY)):
        assert len({look.colour for look in looks}) == len(looks)


def test_every_colour_has_a_key_also_where_there_is_no_bar(ax):
    plots.slots(ax, {"fma": 1.0}, {})
    keys = [patch for patch in ax.patches if patch.get_x() < 0]
    looks = (*USED, *EMPTY)
    assert [to_rgb(key.get_facecolor()) for key in keys] == [to_rgb(look.colour) for look in looks]
    rows = [key.get_y() + key.get_height() / 2 for key in keys]
    assert rows == pytest.approx(list(ax.get_yticks()))


def test_bars_are_shares_and_are_changed_in_place(ax):
    artists = plots.slots(ax, {"fma": 0.5, "uniform": 0.1, "integer": 0.1}, {"bank": 0.3})
    assert [bar.get_width() for bar in artists.bars[:4]] == pytest.approx([50, 0, 20, 0])
    names = [label.get_text() for label in ax.get_yticklabels()]
    port = names.index("register port")
    assert artists.bars[port].get_width() == pytest.approx(30)
    assert [n.get_text() for n in artists.numbers[:4]] == ["50%", "–", "20%", "–"]
    assert artists.bars[0].get_height() > 2 * artists.bars[port].get_height()
    again = plots.slots(ax, {"fma": 0.25}, {}, artists)
    assert again is artists
    assert artists.bars[0].get_width() == pytest.approx(25)
    assert artists.numbers[0].xy[0] == pytest.approx(25)


def cells(artists, grain, warp, cycle):
    """The pixels of a warp in a cycle, from the top down."""
    return artists.cells.get_array()[grain.rows * warp : grain.rows * (warp + 1), cycle]


@pytest.mark.parametrize(("more", "grain"), [(0, FINE), (MANY, COARSE)])
def test_instructions_are_tall_and_waits_are_thin(ax, more, grain):
    kinds = np.array([[Kind.FMA, -1], [-1, Kind.SHARED], *[[-1, -1]] * more])
    reasons = np.where(kinds < 0, int(Reason.BARRIER), -1)
    artists = plots.warps(ax, kinds, reasons, range(len(kinds)), 0)
    colour = {m: to_rgb(look.colour) for look in USED for m in look.members}
    for warp, cycle, kind in ((0, 0, Kind.FMA), (1, 1, Kind.SHARED)):
        drawn = (cells(artists, grain, warp, cycle) == colour[kind]).all(axis=1)
        assert list(np.flatnonzero(drawn)) == list(range(grain.rows))[grain.tall]
    waiting = (cells(artists, grain, 0, 1) < 1).any(axis=1)
    assert list(np.flatnonzero(waiting)) == list(range(grain.rows))[grain.thin]


def test_the_lowest_row_has_what_schedulers_issue_together(ax):
    kinds = np.array([[Kind.FMA, -1], [-1, -1], [Kind.FMA, Kind.INTEGER]])
    artists = plots.warps(ax, kinds, np.where(kinds < 0, 1, -1), (0, 1, 2), 0)
    filled = (artists.slots.get_array() < 1).any(axis=2).sum(axis=0)
    assert list(filled) == [2, 1]


def test_the_chosen_slot_is_framed_and_cycles_are_named(ax):
    kinds = np.full((2, 32), -1)
    artists = plots.warps(ax, kinds, kinds + 1, (0, 4), 0, (0, 0))
    plots.warps(ax, kinds, kinds + 1, (0, 4), 4096, (1, 9), artists)
    assert artists.chosen.get_xy() == (9, 1)
    assert [t.get_text() for t in ax.get_xticklabels()] == ["4,096", "4,112", "4,128"]
