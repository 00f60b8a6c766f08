"""Timelines: bars lie where their spans do, and rows that do two things at once are refused."""

import pytest

from gemmlab import plots
from gemmlab.plots import Span
from gemmlab.plots.timeline import LOOKS


@pytest.fixture
def ax():
    return plots.figure()[1][0]


ROWS = {
    "block 0": [Span("copy", 0, 600), Span("multiply", 600, 1000)],
    "block 1": [Span("wait", 0, 600), Span("copy", 600, 1200)],
}


def test_bars_lie_where_the_spans_do(ax):
    drawn = plots.timeline(ax, ROWS)
    found = {
        name: [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in bars]
        for name, bars in drawn.bars.items()
    }
    assert found == {"block 0": [(0, 600), (600, 1000)], "block 1": [(0, 600), (600, 1200)]}
    assert [label.get_text() for label in ax.get_yticklabels()] == list(ROWS)
    assert ax.yaxis_inverted()
    assert ax.get_xlim() == (0, 1200)


def test_a_kind_has_one_look_and_is_named(ax):
    bars = plots.timeline(ax, ROWS).bars
    assert bars["block 0"][0].get_facecolor() == bars["block 1"][1].get_facecolor()
    looks = {(bar.get_facecolor(), bar.get_hatch()) for row in bars.values() for bar in row}
    assert len({hatch for _, hatch in looks}) == 3  # also without colours
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["copy", "multiply", "wait"]


def test_named_kinds_have_the_first_colours_though_they_do_not_come():
    _, axes = plots.figure(7, 4, rows=2)
    for ax, what in zip(axes, ("copy", "multiply"), strict=True):
        rows = {"one": [Span("multiply", 0, 1)], "two": [Span(what, 1, 2)]}
        bars = plots.timeline(ax, rows, kinds=("copy", "multiply")).bars
        assert bars["one"][0].get_hatch() == LOOKS[1][1]
        assert bars["two"][0].get_hatch() == LOOKS[what == "multiply"][1]
    assert [t.get_text() for t in axes[1].get_legend().get_texts()] == ["multiply"]


def test_two_timelines_on_one_scale():
    _, axes = plots.figure(7, 4, rows=2)
    for ax, end in zip(axes, (1000, 600), strict=True):
        plots.timeline(ax, {"copies": [Span("copy", 0, end)]}, until=1000)
    assert axes[0].get_xlim() == axes[1].get_xlim()


def test_the_words_say_when_it_ends_and_who_waits(ax):
    plots.timeline(ax, ROWS)
    words = plots.alt(ax.figure)
    assert "copy 600 to 1,200" in words
    assert words.endswith("It ends at 1,200. block 1 waits longest, 50% of that time.")


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (3, 2), (float("nan"), 2)])
def test_a_span_that_ends_before_it_starts_is_refused(start, end):
    with pytest.raises(ValueError, match="'copy' lasts from .* use 0 <= start <= end"):
        Span("copy", start, end)


def test_a_row_does_one_thing_at_a_time(ax):
    with pytest.raises(ValueError, match="'block 0' has copy until 600 and wait from 500"):
        plots.timeline(ax, {"block 0": [Span("copy", 0, 600), Span("wait", 500, 700)]})


def test_no_spans(ax):
    with pytest.raises(ValueError, match="no spans"):
        plots.timeline(ax, {"block 0": []})
