"""The coalescing explorer without a browser: counts, artists, pictures, sentences."""

import time

import numpy as np
import pytest

from gemmlab.explorers import Coalescing
from gemmlab.explorers.coalescing import ELEMENTS, OFFSETS, STRIDES, sectors


@pytest.fixture
def explorer():
    return Coalescing()


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("itemsize", ELEMENTS)
@pytest.mark.parametrize("offset", [0, 1, 7, 8, 31])
def test_every_stride_counts_what_is_predicted(explorer, offset, itemsize):
    explorer.offset.value, explorer.itemsize.value = offset, itemsize
    for stride in STRIDES:
        explorer.stride.value = stride
        assert explorer.counted == explorer.predicted == sectors(stride, offset, itemsize)


@pytest.mark.parametrize(
    ("stride", "offset", "itemsize", "expected"),
    [
        (0, 0, 4, 1),  # all lanes ask for one element
        (1, 0, 2, 2),
        (1, 0, 4, 4),
        (1, 0, 8, 8),
        (1, 1, 4, 5),  # the last lane stands in a fifth sector
        (1, 8, 4, 4),  # a whole sector further
        (2, 0, 4, 8),
        (8, 0, 4, 32),
        (32, 31, 8, 32),
    ],
)
def test_sectors_worked_out_by_hand(stride, offset, itemsize, expected):
    explorer = Coalescing(stride, offset, itemsize)
    assert explorer.counted == explorer.predicted == expected
    told = "1 sector" if expected == 1 else f"{expected} sectors"
    assert f"Counted: {told} (simulated)." in explorer.message
    assert explorer.heading.get_text().endswith(f": {told}")


def test_the_mark_stands_on_the_curve(explorer):
    explorer.stride.value = 5
    x, y = explorer.curve.get_data()
    ((at,), (count,)) = explorer.mark.get_data()
    assert (at, count) == (5, explorer.counted)
    assert y[list(x).index(5)] == count
    assert list(y) == [sectors(s, 0, 4) for s in STRIDES]


def test_the_map_shows_the_sectors_that_are_counted(explorer):
    for stride, offset in ((1, 0), (1, 1), (3, 5), (32, 31)):
        with explorer.together():
            explorer.stride.value, explorer.offset.value = stride, offset
        shades = explorer.map.get_array()
        assert int((shades > 0).sum()) == explorer.counted
    assert float(shades.max()) == 0.25 + 0.75 / 8  # 4 of 32 bytes


def test_a_whole_sector_is_darkest(explorer):
    shades = np.asarray(explorer.map.get_array()).ravel()
    assert list(np.flatnonzero(shades)) == [0, 1, 2, 3]
    assert set(shades[:4]) == {1.0}
    assert "100 %" in explorer.message


def test_the_share_that_is_used(explorer):
    explorer.stride.value = 2
    assert "256 bytes are moved, and the lanes use 128 different ones of them: 50 %." in (
        explorer.message
    )


def test_a_change_redraws_in_place(explorer):
    before, artists = explorer.picture.png, explorer.moving
    explorer.stride.value = 4
    assert explorer.picture.png != before
    assert explorer.moving == artists
    assert "Stride 4" in explorer.heading.get_text()
    assert 'alt="Lane i loads element 4·i' in explorer.picture.panels[0].view.value


def test_a_slider_answers_at_once(explorer):
    times = []
    for stride in list(STRIDES)[1:12]:
        start = time.process_time()  # other processes may be at work
        explorer.stride.value = stride
        times.append(time.process_time() - start)
    assert sorted(times)[len(times) // 2] < 0.1


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"stride": -1}, ValueError, "stride=-1"),
        ({"stride": 33}, ValueError, "stride=33 is too large; use 0 to 32"),
        ({"stride": 1.5}, TypeError, "stride=1.5"),
        ({"offset": 32}, ValueError, "offset=32 is too large; use 0 to 31"),
        ({"itemsize": 3}, ValueError, "itemsize=3 is not offered; use 2, 4 or 8"),
    ],
)
def test_values_that_are_refused(arguments, error, match):
    with pytest.raises(error, match=match):
        Coalescing(**arguments)


def test_sliders_cover_what_is_accepted(explorer):
    for control, values in ((explorer.stride, STRIDES), (explorer.offset, OFFSETS)):
        assert list(control.stops) == list(values)
        assert (control.slider.min, control.slider.max) == (0, len(values) - 1)
        for typed in (min(values), max(values)):
            control.number.text.value = str(typed)
            assert (control.value, control.refusal) == (typed, "")
        control.number.text.value = str(max(values) + 1)
        assert (control.value, control.number.text.value) == (max(values), str(max(values)))
        assert f"“{max(values) + 1}” is too large" in explorer.message
