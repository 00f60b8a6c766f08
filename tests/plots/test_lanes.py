"""Maps of lanes: each number is the owner of its element."""

import numpy as np
import pytest

from gemmlab import plots
from gemmlab.plots.lanes import MARKED


@pytest.fixture
def ax():
    return plots.figure(6, 3)[1][0]


def test_every_number_is_the_owner_of_its_element(ax):
    owners = np.arange(32).reshape(16, 2).T
    drawn = plots.lane_map(ax, owners, "lanes", marked=5)
    found = np.full(owners.shape, -1)
    for number in drawn.numbers:
        x, y = number.get_position()
        found[int(y), int(x)] = int(number.get_text())
    assert (found == owners).all()
    (marked,) = (n for n in drawn.numbers if n.get_text() == "5")
    assert marked.get_color() == MARKED["color"]
    assert ax.get_title(loc="left") == "lanes"


def test_what_is_nobodys_stays_empty(ax):
    drawn = plots.lane_map(ax, [[0, -1], [-1, 1]], who="warp")
    assert [n.get_text() for n in drawn.numbers] == ["0", "1"]
    assert np.ma.getmaskarray(drawn.boxes.get_array()).sum() == 2
    assert plots.alt(ax.figure) == "2 warps own the elements of 2 rows and 2 columns."


def test_numbers_that_cannot_be_read_are_left_out(ax):
    drawn = plots.lane_map(ax, np.arange(64 * 64).reshape(64, 64))
    assert not any(number.get_visible() for number in drawn.numbers)


@pytest.mark.parametrize("owners", [[1, 2], 3, np.zeros((0, 2))])
def test_only_a_matrix_is_drawn(ax, owners):
    with pytest.raises(ValueError, match="give a matrix"):
        plots.lane_map(ax, owners)
