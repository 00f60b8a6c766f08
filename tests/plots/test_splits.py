"""Pictures of splits: a bar for each piece of a schedule, and curves that come and go."""

import pytest

from gemmlab import plots
from gemmlab.model import schedule


def test_a_schedule_has_a_bar_for_each_piece():
    figure, (ax,) = plots.figure()
    placed = schedule.schedule(schedule.stream_k(5, 8, 4), 4)
    made = plots.schedule(ax, placed, 4)
    whole, parts = (len(c.get_paths()) for c in (made.whole, made.parts))
    assert (whole, parts) == (2, 6)
    assert [name.get_text() for name in made.names] == [str(one.piece.tile) for one in placed]
    assert "the last step ends at 10, and SMs compute 100%" in plots.alt(figure)
    plots.schedule(ax, schedule.schedule(schedule.split_k(5, 8), 4), 4, artists=made)
    assert (len(made.whole.get_paths()), len(made.parts.get_paths())) == (5, 0)
    with pytest.raises(ValueError, match="0 pieces cannot be drawn"):
        plots.schedule(ax, [], 4)


def test_splits_draws_what_it_is_given_and_drops_what_it_is_not():
    figure, (ax,) = plots.figure()
    made = plots.splits(
        ax, {"bound": ([1, 2, 4], [4, 2, 3])}, {"recorded": ([2], [2.5])}, library=1
    )
    assert list(made.marks["recorded"].get_ydata()) == [2.5]
    assert "bound: 4 s at 1, at least 2 s at 2, 3 s at 4." in plots.alt(figure)
    assert "cuBLAS: 1 s." in plots.alt(figure)
    plots.splits(ax, {"bound": ([1], [4])}, {}, artists=made)
    assert made.marks == {}
    assert made.library is None
    with pytest.raises(ValueError, match="quantity='speed'"):
        plots.splits(ax, {"bound": ([1], [4])}, {}, "speed")
    with pytest.raises(ValueError, match="nothing is predicted"):
        plots.splits(ax, {}, {})
