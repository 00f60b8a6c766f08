"""The explorer of swizzled tiles: the rung runs, and what it counts lies on what is predicted."""

import pytest

from gemmlab import plots
from gemmlab.explorers import Swizzle
from gemmlab.explorers.swizzle import LENGTHS, PROBLEM, tiling


@pytest.fixture(scope="module")
def explorer():
    return Swizzle()


def chosen(explorer, kernel="mma_shared", length=64, piece=0):
    for control, value in zip(
        (explorer.kernel, explorer.length, explorer.piece), (kernel, length, piece), strict=True
    ):
        control.value = value
    return explorer


def test_a_matrix_in_one_place_takes_eight_wavefronts(explorer):
    chosen(explorer)
    assert explorer.wavefronts == 8
    assert "lies in 1 place of a line: it takes 8 wavefronts." in explorer.message
    assert "16 predicted, 16 counted (simulated)" in explorer.message
    before = explorer.picture.png
    chosen(explorer, "mma_swizzled")
    assert explorer.wavefronts == 1
    assert "lies in 8 places of a line: it takes 1 wavefront." in explorer.message
    assert explorer.picture.png != before


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_every_run_lies_on_its_prediction(explorer):
    for kernel in ("mma_shared", "mma_swizzled"):
        for length in LENGTHS:
            chosen(explorer, kernel, length)
            m = explorer.runs[kernel, length]
            assert (m.kernel, m.problem, m.tiling) == (kernel, PROBLEM, tiling(length))
            each = m.counters["shared_load_wavefronts"] / (64 / 16 * 64 / 8 * 128 / 16)
            assert explorer.counted == explorer.predicted == each
            assert m.passed


def test_a_counted_mark_has_the_legend_s_shape_and_no_kernel_s_colour(explorer):
    chosen(explorer)
    legend = explorer.cost_axes.get_legend()
    told = zip(legend.get_texts(), legend.legend_handles, strict=True)
    (handle,) = (handle for text, handle in told if text.get_text() == "counted (simulated)")
    assert handle.get_marker() == explorer.dots["mma_shared"].get_marker()
    assert handle.get_color() not in {dots.get_color() for dots in explorer.dots.values()}


def test_a_run_is_kept(explorer, monkeypatch):
    chosen(explorer)
    monkeypatch.setattr("gemmlab.measure.backends.run", lambda *a, **b: pytest.fail("it ran again"))
    chosen(explorer, piece=3)
    (xs, ys) = explorer.dots["mma_shared"].get_data()
    assert (LENGTHS.index(64), 16.0) in list(zip(xs, ys, strict=True))


def test_the_marked_matrix_is_the_chosen_piece_of_eight_rows(explorer):
    chosen(explorer, "mma_swizzled", 64, 5)
    bold = {t.get_text() for t in explorer.tile.names if t.get_fontweight() == "bold"}
    assert bold == {f"{row}.5" for row in range(8)}
    assert "Row.piece 0.5, 1.5" in plots.alt(explorer.tile_axes.figure)


def test_a_shorter_row_has_fewer_pieces(explorer):
    chosen(explorer, "mma_swizzled", 128, 15)
    explorer.length.value = 16
    assert [value for _, value in explorer.piece.options] == [0, 1]
    assert explorer.piece.value == 0
    assert not explorer.message.startswith("Not possible")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel": "tiled"}, "use mma_shared or mma_swizzled"),
        ({"length": 48}, "use one of 16, 32, 64, 128"),
        ({"length": 32, "piece": 4}, "use 0 to 3"),
    ],
)
def test_other_values_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Swizzle(**arguments)
