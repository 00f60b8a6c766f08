"""Pieces of a tile: each stands where it lies, and the foot counts the marked ones."""

import numpy as np
import pytest

from gemmlab import plots
from gemmlab.kernels.tensor_core.shared.shared_layouts import in_rows, swizzled

ROWS, EACH = np.arange(16)[:, None], np.arange(8)


@pytest.fixture
def ax():
    return plots.figure(5, 5)[1][0]


def shown(drawn):
    """Line and place -> the name that stands there."""
    return {(int(t.get_position()[1]), int(t.get_position()[0])): t.get_text() for t in drawn.names}


def foot(ax):
    return [int(t.get_text().split("\n")[1]) for t in ax.get_xticklabels()]


def test_each_piece_stands_where_it_lies(ax):
    elements = swizzled(64)(ROWS, EACH)
    found = shown(plots.pieces(ax, elements))
    assert len(found) == elements.size
    for (row, piece), element in np.ndenumerate(elements):
        assert found[element // 64, element % 64 // 8] == f"{row}.{piece}"


@pytest.mark.parametrize(
    ("placed", "counts"), [(in_rows, [0, 0, 8] + [0] * 5), (swizzled, [1] * 8)]
)
def test_the_foot_counts_what_banks_hold(ax, placed, counts):
    plots.pieces(ax, placed(64)(ROWS, EACH), "it", [(row, 2) for row in range(8)])
    assert foot(ax) == counts
    wavefronts = "8 wavefronts" if max(counts) == 8 else "1 wavefront"
    assert plots.alt(ax.figure).endswith(f": {wavefronts}.")


def test_artists_are_changed_and_look_as_if_drawn_anew(ax):
    drawn = plots.pieces(ax, in_rows(64)(ROWS, EACH), "it", [(0, 0)])
    again = plots.pieces(ax, swizzled(64)(ROWS, EACH), "it", [(3, 1)], drawn)
    assert again is drawn
    _, (other,) = plots.figure(5, 5)
    fresh = plots.pieces(other, swizzled(64)(ROWS, EACH), "it", [(3, 1)])
    assert shown(again) == shown(fresh)
    assert (again.boxes.get_facecolor() == fresh.boxes.get_facecolor()).all()
    assert [t.get_color() for t in again.names] == [t.get_color() for t in fresh.names]


@pytest.mark.parametrize("elements", [[[0, 4]], [[0, 8], [8, 16]]])
def test_pieces_have_places_of_their_own(ax, elements):
    with pytest.raises(ValueError, match="each in a place of its own"):
        plots.pieces(ax, elements)
