"""Figures by what their artists hold, and by what changes when they are drawn again."""

import numpy as np
import pytest
from matplotlib.ticker import LogLocator, MaxNLocator

from gemmlab import Gemm, Measurement, Tiling, device, kernels, plots, predict, run
from gemmlab.plots.shared import style
from gemmlab.plots.sizes import ODD, joined


@pytest.fixture
def ax():
    return plots.figure()[1][0]


def timed(prediction, factor, backend="recorded"):
    """A measurement that took `factor` times as long as predicted, half of the runs a bit more."""
    seconds = prediction.seconds * factor
    return Measurement(
        kernel=prediction.kernel,
        problem=prediction.problem,
        tiling=prediction.tiling,
        backend=backend,
        device="h200",
        device_title="NVIDIA H200 SXM",
        error=0.0,
        tolerance=1e-6,
        samples=(seconds,) * 5 + (1.1 * seconds,) * 5,
        provenance={"date": "2026-01-31T12:00:00+00:00"},
    )


def tiled(n, tile=16):
    return predict(Gemm(n, n, n), "h200", kernels.tiled, Tiling.square(tile))


# ---------------------------------------------------------------------------------- style


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (989.4e12, "FLOP/s", "989 TFLOP/s"),
        (4.8e12, "B/s", "4.8 TB/s"),
        (2.88e-5, "s", "28.8 µs"),
        (0.5, "s", "500 ms"),
        (1, "B", "1 B"),
        (-2e3, "B", "-2 kB"),
        (999_999, "B", "1 MB"),
        (3e-13, "s", "300 fs"),
        (2e-18, "s", "0.002 fs"),
    ],
)
def test_si(value, unit, text):
    assert plots.si(value, unit) == text


def test_colours_are_distinct_and_stable():
    names = [f"kernel {i}" for i in range(len(style.SERIES))]
    colours = style.colours([*names, names[0]])
    assert len({colours[name] for name in names}) == len(names)
    assert colours.items() >= style.colours(names[:2]).items()
    assert style.colours(["ideal", *names]) == colours


def test_every_origin_has_a_shape_of_its_own():
    assert len({mark.marker for mark in style.MARKS.values()}) == len(style.MARKS)


def test_provenance_is_changed_in_place(ax):
    label = plots.provenance(ax, "predicted")
    assert plots.provenance(ax, "simulated", label) is label
    assert [text.get_text() for text in ax.texts] == ["simulated"]


# ------------------------------------------------------------------------------- roofline


def test_the_roof_meets_at_the_ridge(ax):
    v100 = device("v100")
    roof = plots.roofline(ax, v100, "float16")
    x, y = roof.slopes["dram"].get_data()
    assert x[-1] == roof.ridge.get_xdata()[0] == v100.ops_per_byte("float16")
    assert y[-1] == roof.peak.get_ydata()[0] == v100.peak_of("float16")
    assert y[0] / x[0] == pytest.approx(v100.dram_bandwidth)
    assert "139 FLOP/B" in roof.ridge_label.get_text()
    assert "125 TFLOP/s" in roof.peak_label.get_text()
    assert "900 GB/s" in roof.slope_labels["dram"].get_text()


@pytest.mark.parametrize(
    ("log", "limits", "label", "ticks"),
    [
        ("", (0, 17e12), "speed [TFLOP/s]", ["0", "5", "10", "15"]),
        ("", (0, 9e8), "speed [MFLOP/s]", ["0", "250", "500", "750"]),
        ("y", (20e-6, 20e-3), "speed [mFLOP/s]", ["0.1", "1", "10"]),
        ("y", (5e8, 5e14), "speed [TFLOP/s]", ["0.001", "0.01", "0.1", "1", "10", "100"]),
    ],
)
def test_the_prefix_stands_beside_the_unit(log, limits, label, ticks):
    """2 m on time [s] reads as two minutes."""
    figure, (ax,) = plots.figure()
    style.prepare(ax, log=log)
    ax.yaxis.set_major_locator(LogLocator(10) if log else MaxNLocator(4))
    style.si_axis(ax.yaxis, "speed", "FLOP/s")
    ax.set_ylim(*limits)
    figure.draw_without_rendering()
    low, high = limits
    seen = [t.get_text() for t in ax.get_yticklabels() if low <= t.get_position()[1] <= high]
    assert (ax.get_ylabel(), seen) == (label, ticks)


def test_axes_name_quantity_and_unit(ax):
    plots.roofline(ax, device("v100"), "float16")
    assert ax.get_xlabel() == "arithmetic intensity [FLOP/B]"
    assert ax.get_ylabel() == "speed [FLOP/s]"


def test_a_memory_without_a_known_bandwidth_has_no_slope(ax):
    known = {name: device(name).l2_bandwidth for name in ("h200", "v100", "t4", "rtx2060")}
    shown = {}
    roof = None
    for name in known:
        roof = plots.roofline(ax, device(name), "float32", artists=roof)
        shown[name] = roof.slopes["l2"].get_visible()
    assert shown == {name: bool(bandwidth) for name, bandwidth in known.items()}


def test_shared_memory_is_drawn_where_it_is_asked_for(ax):
    levels = ("dram", "l2", "shared")
    roof = plots.roofline(ax, device("v100"), "float16", levels=levels)
    for level, line in roof.slopes.items():
        x, y = line.get_data()
        assert line.get_visible()
        assert x[-1] == device("v100").ops_per_byte("float16", level)
        assert y[-1] == device("v100").peak_of("float16")
    assert roof.slope_labels["shared"].get_text() == "L1 and shared memory, 15.7 TB/s"
    assert roof.peak.get_xdata()[0] == roof.slopes["shared"].get_xdata()[-1]
    roof = plots.roofline(ax, device("v100"), "float16", artists=roof)
    assert not roof.slopes["shared"].get_visible()
    assert not roof.slope_labels["shared"].get_visible()
    assert roof.peak.get_xdata()[0] == roof.slopes["l2"].get_xdata()[-1]


def test_a_roof_is_redrawn_in_place(ax):
    roof = plots.roofline(ax, device("v100"), "float16")
    count = len(ax.get_children())
    again = plots.roofline(ax, device("h200"), "float32", artists=roof)
    assert again is roof
    assert len(ax.get_children()) == count
    assert roof.peak.get_ydata()[0] == device("h200").peak_of("float32")


def test_a_roof_reaches_down_to_the_lowest_speed(ax):
    plots.roofline(ax, device("h200"), "float16", lowest=3e7)
    assert ax.get_ylim()[0] == 1e7


def test_an_unknown_format_is_refused(ax):
    with pytest.raises(ValueError, match="float16"):
        plots.roofline(ax, device("rtx2060"), "float8")


def test_points_by_origin(ax):
    p = tiled(1024)
    points = plots.points(ax, [p, timed(p, 2), timed(p, 4, "gpu")])
    assert points["predicted"].get_xydata().tolist() == [[p.problem.intensity, p.flops_per_second]]
    assert points["recorded"].get_ydata()[0] == pytest.approx(
        p.flops_per_second * p.seconds / timed(p, 2).seconds
    )
    assert len(points["measured"].get_xdata()) == 1
    assert len(points["simulated"].get_xdata()) == 0
    assert points["predicted"].get_markerfacecolor() == "white"


def test_counts_without_times_have_no_place_in_a_roofline(ax):
    counted = run(kernels.tiled, Gemm(32, 32, 32), "simulator")
    points = plots.points(ax, [counted])
    assert not any(len(line.get_xdata()) for line in points.values())


# ---------------------------------------------------------------------------------- sizes


def test_speed_over_size_with_percentiles(ax):
    predictions = [tiled(n) for n in (256, 512, 1024)]
    measured = [timed(p, 2) for p in reversed(predictions)]
    drawn = plots.sizes(ax, measured, predictions)
    (line,), (dots,) = drawn.lines.values(), drawn.dots.values()
    assert np.allclose(line.get_xdata(), [256, 512, 1024])
    assert np.allclose(dots.get_xdata(), [256, 512, 1024])
    assert np.allclose(dots.get_ydata(), [m.flops_per_second for m in reversed(measured)])
    assert line.get_color() == dots.get_color()
    (_, top), (_, bottom) = drawn.bars.get_segments()[0]
    m = measured[-1]
    assert {top, bottom} == {m.flops / m.percentile(10), m.flops / m.percentile(90)}
    low, high = ax.get_ylim()
    assert low < bottom < high


def test_a_kernel_has_one_colour_in_both_plots():
    _, (left, right) = plots.figure(columns=2)
    naive = predict(Gemm(256, 256, 256), "h200", kernels.naive)
    pairs = [(timed(p, 2), p) for p in (naive, tiled(256))]
    speeds = plots.sizes(left, [m for m, _ in pairs], [tiled(256), tiled(512, 32), naive])
    ratios = plots.residual(right, pairs)
    assert {key: dots.get_color() for key, dots in speeds.dots.items()} == {
        key: dots.get_color() for key, dots in ratios.items()
    }


def test_the_legend_lies_below_all_data(ax):
    plots.sizes(ax, [timed(tiled(n), 2) for n in (64, 256)], [tiled(64), tiled(256)])
    ax.figure.canvas.draw()
    top = ax.transData.inverted().transform(ax.get_legend().get_window_extent())[1][1]
    assert top < min(y for line in ax.lines for y in line.get_ydata())
    (text,) = ax.get_legend().get_texts()
    assert text.get_text() == "tiled 16×16×16, predicted and recorded"


def test_a_size_where_m_n_and_k_differ():
    assert plots.size(Gemm(2, 4, 8)) == pytest.approx(4)
    assert plots.size(Gemm(15, 15, 15)) == 15


def test_lines_join_powers_of_two_and_other_sizes_are_marks_of_their_own(ax):
    predictions = [tiled(n) for n in (512, 1024, 1023, 1025, 2048)]
    drawn = plots.sizes(ax, [timed(p, 2) for p in predictions], predictions)
    (line,), (dots,) = drawn.lines.values(), drawn.dots.values()
    for one in (line, dots):
        assert list(one.get_xdata()) == [512, 1024, 2048]
        assert one.get_linestyle() == "-"
    assert {origin for _, origin in drawn.odd} == {"predicted", "recorded"}
    for odd in drawn.odd.values():
        assert list(odd.get_xdata()) == [1023, 1025]
        assert (odd.get_linestyle(), odd.get_markerfacecolor()) == ("None", "white")
        assert odd.get_color() == line.get_color()
    said = [text.get_text() for text in ax.get_legend().get_texts()]
    assert said == ["tiled 16×16×16, predicted and recorded", ODD]
    plots.sizes(ax, [], [tiled(256), tiled(512)], artists=drawn)
    assert drawn.odd == {}
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["tiled 16×16×16, predicted"]


def test_a_size_with_unequal_sides_is_joined_where_all_are_powers_of_two():
    assert joined(Gemm(64, 64, 8192))
    assert not joined(Gemm(64, 63, 64))


def test_limits_are_named_lines_that_lie_in_the_picture(ax):
    plots.sizes(ax, [], [tiled(256)], limits={"FP32 peak": 66.9e12})
    assert [t.get_text() for t in ax.texts] == ["FP32 peak, 66.9 TFLOP/s"]
    assert ax.get_ylim()[1] > 66.9e12


def test_series_come_and_go_in_place(ax):
    drawn = plots.sizes(ax, [timed(tiled(256), 2)], [tiled(256), tiled(512)])
    kept = drawn.lines["tiled 16×16×16"]
    again = plots.sizes(ax, [], [tiled(256), tiled(256, 32)], artists=drawn)
    assert again is drawn
    assert drawn.lines["tiled 16×16×16"] is kept
    assert set(drawn.lines) == {"tiled 16×16×16", "tiled 32×32×32"}
    assert drawn.dots == {}
    assert len(ax.lines) == 2
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["tiled 16×16×16, predicted", "tiled 32×32×32, predicted"]


def test_counted_traffic_lies_on_its_prediction(ax):
    p = tiled(64)
    counted = run(kernels.tiled, p.problem, "simulator")
    drawn = plots.sizes(ax, [counted], [p], "global")
    (line,), (dots,) = drawn.lines.values(), drawn.dots.values()
    assert line.get_ydata() == dots.get_ydata() == [p.bytes["global"]]
    assert ax.get_ylabel() == "global traffic [B]"


def test_an_unknown_quantity_is_refused(ax):
    with pytest.raises(ValueError, match="'joules'.*speed, global, shared"):
        plots.sizes(ax, [], [], "joules")


# -------------------------------------------------------------------------------- compare


def test_residual_is_a_ratio(ax):
    pairs = [(timed(p, factor), p) for factor, p in ((1, tiled(256)), (3, tiled(512)))]
    drawn = plots.residual(ax, pairs)
    (dots,) = drawn.values()
    assert np.allclose(dots.get_ydata(), [1.05, 3.15])
    low, high = ax.get_ylim()
    assert low < 1 < 3.15 < high
    assert plots.residual(ax, [], drawn) == {}


def test_counters_show_counted_inside_predicted(ax):
    problem = Gemm(20, 30, 40)
    p = predict(problem, "h200", kernels.tiled)
    drawn = plots.counters(ax, p, run(kernels.tiled, problem, "simulator"))
    assert set(drawn.names) == set(p.counters)  # as many rows as the sentence has counters
    assert "shared_bank_conflicts" in drawn.names
    assert p.counters["shared_bank_conflicts"] == 0
    rows = zip(drawn.names, drawn.predicted, drawn.counted, drawn.differences, strict=True)
    for name, outer, inner, text in rows:
        assert outer.get_width() == inner.get_width() == p.counters[name]
        assert text.get_text() == "0"


def test_counters_say_by_how_much_they_differ(ax):
    p = tiled(32)
    right = run(kernels.tiled, p.problem, "simulator")
    counts = {**right.counters, "barriers": right.counters["barriers"] - 3}
    wrong = Measurement(**{**vars(right), "counters": counts})
    drawn = plots.counters(ax, p, wrong)
    told = dict(zip(drawn.names, (t.get_text() for t in drawn.differences), strict=True))
    assert told.pop("barriers") == "-3"
    assert set(told.values()) == {"0"}


def test_counters_before_a_run_are_only_predicted(ax):
    drawn = plots.counters(ax, tiled(32))
    assert not any(a.get_visible() for a in (*drawn.counted, *drawn.differences))
    again = plots.counters(ax, tiled(64), artists=drawn)
    assert again is drawn


# ---------------------------------------------------------------------------------- tiles


def test_tiles_of_one_block(ax):
    drawn = plots.tiles(ax, Gemm(64, 48, 32), Tiling((16, 8, 4)), block=(2, 3), step=5)
    boxes = {name: tile.get_bbox().bounds[2:] for name, tile in drawn.tiles.items()}
    assert boxes == {"A": (4, 16), "B": (8, 4), "C": (8, 16)}
    c, tile = drawn.outlines["C"].get_bbox(), drawn.tiles["C"].get_bbox()
    assert (tile.x0 - c.x0, tile.y0 - c.y0) == pytest.approx((2 * 8, 3 * 16))
    a, tile = drawn.outlines["A"].get_bbox(), drawn.tiles["A"].get_bbox()
    assert (tile.x0 - a.x0, tile.y0 - a.y0) == pytest.approx((5 * 4, 3 * 16))
    again = plots.tiles(ax, Gemm(64, 48, 32), Tiling((16, 8, 4)), artists=drawn)
    assert again is drawn
    assert drawn.tiles["A"].get_bbox().x0 == a.x0


def test_a_ragged_tile_is_drawn_whole(ax):
    drawn = plots.tiles(ax, Gemm(20, 20, 20), Tiling.square(16), block=(1, 1))
    tile, matrix = drawn.tiles["C"].get_bbox(), drawn.outlines["C"].get_bbox()
    assert tile.width == 16
    assert tile.x1 > matrix.x1
    assert ax.get_xlim()[1] > tile.x1


@pytest.mark.parametrize(("where", "name"), [({"block": (4, 0)}, "x=4"), ({"step": -1}, "step=-1")])
def test_a_block_outside_is_refused(ax, where, name):
    with pytest.raises(ValueError, match=f"{name} is outside; use 0 to 3"):
        plots.tiles(ax, Gemm(64, 64, 64), Tiling.square(16), **where)
