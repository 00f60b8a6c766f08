"""Numbers as horizontal bars that say their values.

`bars` draws a few of one kind. `ladder` draws the rungs of the ladder at one size: the speed of
each beside the library's and the peak.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.lines import Line2D
from matplotlib.text import Text

from gemmlab.formats import number_format
from gemmlab.measure.measurement import Measurement
from gemmlab.model import Prediction
from gemmlab.plots.shared import style

HEIGHT = 0.62  # of a bar, of the distance between two


class Speed(NamedTuple):
    """A kernel was expected to reach this speed."""

    kernel: str
    flops_per_second: float


class LadderArtists(NamedTuple):
    """`ladder` draws these: a bar and a text for each rung, the predictions, the two limits."""

    bars: BarContainer
    texts: list[Text]
    predicted: Line2D
    limits: dict[str, Line2D]


def ladder(
    ax: Axes,
    measurements: Sequence[Measurement],
    reference: Measurement,
    peak: float,
    predictions: Sequence[Prediction | Speed] = (),
) -> LadderArtists:
    """Draw the speed of each measurement as a bar, from the first at the top down.

    reference : the library's measurement of the same problem: a line, and 100 % in the texts
    peak : of the device [FLOP/s], another line
    predictions : of the same kernels; a diamond at the bar of each
    """
    style.prepare(ax)
    style.si_axis(ax.xaxis, "speed", "FLOP/s")
    names = [m.kernel for m in measurements]
    speeds = [m.flops_per_second for m in measurements]
    library = reference.flops_per_second
    bars = ax.barh(range(len(names)), speeds, height=HEIGHT, color=style.SKY)
    texts = [_text(ax, i, speed, reference, peak) for i, speed in enumerate(speeds)]
    expected = {p.kernel: p.flops_per_second for p in predictions}
    points = [(expected[name], i + HEIGHT / 2) for i, name in enumerate(names) if name in expected]
    (predicted,) = ax.plot(
        [x for x, _ in points], [y for _, y in points], style.MARKS["predicted"].marker
    )
    predicted.set(color=style.INK, markerfacecolor="white", markersize=7, zorder=5)
    predicted.set_label("predicted, nothing fitted")
    top = f"{_short(reference.problem.dtype)} peak"
    limits = {
        reference.kernel: _limit(ax, reference.kernel, library, "--"),
        top: _limit(ax, top, peak, "-"),
    }
    ax.set_yticks(range(len(names)), [f"{i}  {name}" for i, name in enumerate(names, 1)])
    ax.set(ylim=(len(names) - 0.4, -1.35), xlim=(0, 1.02 * peak))
    ax.grid(axis="y", visible=False)
    ax.tick_params(axis="y", labelsize=style.LABEL)
    if points:
        ax.legend(handles=[predicted], loc="upper left", fontsize=style.NOTE, frameon=False)
    style.describe(ax, _finding(measurements, reference, peak), "ladder")
    return LadderArtists(bars, texts, predicted, limits)


def _text(ax: Axes, place: int, speed: float, reference: Measurement, peak: float) -> Text:
    """Return a bar's speed in words: inside the bar where that is long enough, else right of it."""
    library = reference.flops_per_second
    inside = speed > 0.45 * peak
    text = ax.annotate(
        f"{style.si(speed, 'FLOP/s', like=peak)} · "
        f"{speed / library:.1%} of {reference.kernel} · {speed / peak:.1%} of the peak",
        (min(speed, library) if inside else speed, place),  # clear of the library's line
        (-6 if inside else 8, 0),
        textcoords="offset points",
    )
    text.set(va="center", ha="right" if inside else "left", fontsize=style.TICK)
    text.set(color=style.INK)
    if not inside:  # it may cross the library's line
        text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1.5})
    return text


def _limit(ax: Axes, name: str, speed: float, dash: str) -> Line2D:
    line = ax.axvline(speed, color=style.INK, linewidth=1.2, linestyle=dash, zorder=1.5)
    ax.annotate(
        f"{name}\n{style.si(speed, 'FLOP/s')}",
        (speed, -0.62),
        (-5, 0),
        textcoords="offset points",
        ha="right",
        fontsize=style.NOTE,
        color=style.INK,
    )
    return line


def _finding(rungs: Sequence[Measurement], reference: Measurement, peak: float) -> str:
    """Return the speed of each rung, what the last makes of the library's and of the first's."""
    speeds = [m.flops_per_second for m in rungs]
    library = reference.flops_per_second
    told = [f"{m.kernel} {style.si(s, 'FLOP/s')}" for m, s in zip(rungs, speeds, strict=True)]
    text = f"Speed of {len(rungs)} kernels as bars: {', '.join(told)}."
    if len(rungs) > 1:
        text += (
            f" {rungs[-1].kernel} runs at {style.number(speeds[-1] / speeds[0])} times the speed "
            f"of {rungs[0].kernel}, at {speeds[-1] / library:.1%} of that of {reference.kernel}"
            f" ({style.si(library, 'FLOP/s')}) and at {speeds[-1] / peak:.1%} of the peak"
            f" ({style.si(peak, 'FLOP/s')})."
        )
    return text


def _short(dtype: str) -> str:
    """FP16 for "float16", BF16 for "bfloat16"."""
    name = number_format(dtype).ptx.upper()
    return f"FP{name[1:]}" if name.startswith("F") else name


def bars(ax: Axes, values: Mapping[str, float], unit: str) -> BarContainer:
    """Draw each value as a bar from the first at the top down, with its value beside it.

    values : name -> number of at least 0, in `unit`
    Raises ValueError where there are no values, or one below 0.

    >>> from gemmlab import plots
    >>> figure, (ax,) = plots.figure(5, 1.5)
    >>> artists = plots.bars(ax, {"before": 2e-3, "after": 5e-4}, "s")
    >>> plots.alt(figure)
    'Bars: before 2 ms, after 500 µs.'
    """
    if not values or min(values.values()) < 0:
        raise ValueError(f"values={dict(values)!r}; use at least one, and none below 0")
    style.prepare(ax)
    drawn = ax.barh(list(range(len(values))), list(values.values()), HEIGHT, color=style.SKY)
    texts = [style.si(value, unit) for value in values.values()]
    ax.bar_label(drawn, texts, padding=5, fontsize=style.LABEL, color=style.INK)
    ax.set_yticks(range(len(values)), list(values))
    ax.tick_params(axis="y", labelsize=style.LABEL)
    ax.set(xticks=[], ylim=(len(values) - 0.5, -0.5), xlim=(0, 1.25 * max(values.values()) or 1))
    ax.spines["bottom"].set_visible(False)
    ax.grid(visible=False)
    pairs = [f"{name} {text}" for name, text in zip(values, texts, strict=True)]
    style.describe(ax, f"Bars: {', '.join(pairs)}.", "bars")
    return drawn
