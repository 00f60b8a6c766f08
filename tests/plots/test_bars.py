"""Bars: as long as their values, named, and refused where they mean nothing."""

import pytest

from gemmlab import plots


def test_bars_are_as_long_as_their_values_and_say_them():
    figure, (ax,) = plots.figure(5, 1.5)
    drawn = plots.bars(ax, {"first": 34.4e9, "second": 17.2e9}, "B")
    assert [bar.get_width() for bar in drawn] == [34.4e9, 17.2e9]
    assert [text.get_text() for text in ax.texts] == ["34.4 GB", "17.2 GB"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["first", "second"]
    top, bottom = (bar.get_y() for bar in drawn)
    assert ax.transData.transform((0, top))[1] > ax.transData.transform((0, bottom))[1]
    assert "first 34.4 GB, second 17.2 GB" in plots.alt(figure)
    assert len({bar.get_facecolor() for bar in drawn}) == 1  # a second colour would mean something


def test_a_bar_of_nothing_is_drawn():
    figure, (ax,) = plots.figure(5, 1.5)
    plots.bars(ax, {"nothing": 0}, "s")
    assert "nothing 0 s" in plots.alt(figure)


@pytest.mark.parametrize("values", [{}, {"a": 1, "b": -1}])
def test_values_that_are_no_lengths_are_refused(values):
    _, (ax,) = plots.figure()
    with pytest.raises(ValueError, match="none below 0"):
        plots.bars(ax, values, "s")
