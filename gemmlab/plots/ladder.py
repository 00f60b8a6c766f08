"""Kernels side by side: horizontal bars that say their values, and observed against predicted.

`bars` draws a few numbers of one kind. `ladder` draws the rungs of the ladder at one size: the
speed of each beside the library's and the peak. `residual` compares times by their ratio,
`counters` one by one, and `beside` kernel by kernel.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.ticker import LogLocator

from gemmlab.formats import number_format
from gemmlab.measure.measurement import Measurement
from gemmlab.model import Prediction
from gemmlab.model.counters import TransactionCounters
from gemmlab.plots.shared import style
from gemmlab.plots.sizes import QUANTITIES, SIZE, size, value
from gemmlab.tiling import Tiling

BAR_HEIGHT = 0.62  # of a bar, of the distance between two


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
    bars = ax.barh(range(len(names)), speeds, height=BAR_HEIGHT, color=style.SKY)
    texts = [_text(ax, i, speed, reference, peak) for i, speed in enumerate(speeds)]
    expected = {p.kernel: p.flops_per_second for p in predictions}
    points = [
        (expected[name], i + BAR_HEIGHT / 2) for i, name in enumerate(names) if name in expected
    ]
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
    style.describe(ax, _speeds_in_words(measurements, reference, peak), "ladder")
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


def _speeds_in_words(rungs: Sequence[Measurement], reference: Measurement, peak: float) -> str:
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
    drawn = ax.barh(
        list(range(len(values))), list(map(float, values.values())), BAR_HEIGHT, color=style.SKY
    )
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


Pair = tuple[Measurement, Prediction]


def residual(
    ax: Axes, pairs: Iterable[Pair], artists: dict[tuple[str, str], Line2D] | None = None
) -> dict[tuple[str, str], Line2D]:
    """Draw measured time over predicted time against ∛(mnk); 1, a line, is a perfect prediction.

    Pairs that were not timed are left out. The artists are keyed by (kernel and tile, origin).
    """
    if artists is None:
        style.prepare(ax, log="xy", base=2)
        style.plain_axis(ax.xaxis, SIZE)
        style.plain_axis(ax.yaxis, "measured ÷ predicted time")
        ax.axhline(1, color=style.INK, linewidth=1.5)
        ax.yaxis.set_major_locator(LogLocator(10, (1, 2, 5), numticks=7))
        ax.set(xlim=(16, 8192), ylim=(0.1, 10))
        artists = {}
    timed = [(m, p) for m, p in pairs if m.seconds is not None]
    groups: dict[tuple[str, str], list[Pair]] = {}
    for m, p in timed:
        groups.setdefault((style.series(m), style.origin(m)), []).append((m, p))
    names = list(dict.fromkeys(name for name, _ in groups))
    colours = style.colours(names)
    for key in [key for key in artists if key not in groups]:
        artists.pop(key).remove()
    for key, group in groups.items():
        if key not in artists:
            marker, _ = style.MARKS[key[1]]
            (artists[key],) = ax.plot([], [], marker, markersize=7, markerfacecoloralt="white")
        artists[key].set(color=colours[key[0]], label=f"{key[0]}, {key[1]}")
        artists[key].set_fillstyle(style.FILLS[names.index(key[0]) % len(style.FILLS)])
        artists[key].set_data(
            [size(m.problem) for m, _ in group], [m.seconds / p.seconds for m, p in group]
        )
    if timed:
        xs = [size(m.problem) for m, _ in timed]
        ratios = [m.seconds / p.seconds for m, p in timed]
        ax.set_xlim(min(xs) / 1.4, max(xs) * 1.4)
        low, high = style.decades(min(*ratios, 0.9), max(*ratios, 1.1))
        room = min(0.05 + 0.07 * len(artists), 0.5)  # of the height, for the legend above all data
        ax.set_ylim(low, high * (high / low) ** (room / (1 - room)))
        style.legend(
            ax, artists.values(), map(Line2D.get_label, artists.values()), loc="upper left"
        )
        style.describe(ax, _ratios(groups), "residual")
    return artists


def _ratios(groups: dict[tuple[str, str], list[Pair]]) -> str:
    """Return the ratios of each series in words."""
    told = []
    for (name, origin), group in groups.items():
        ratios = [m.seconds / p.seconds for m, p in group]
        low, high = style.number(min(ratios)), style.number(max(ratios))
        told.append(f"{name}, {origin}: {low}" + (f" to {high}" if low != high else ""))
    return f"Measured over predicted time against n. {'; '.join(told)}."


class CounterArtists(NamedTuple):
    """`counters` draws one of each of these for every counter."""

    predicted: tuple[Rectangle, ...]
    counted: tuple[Rectangle, ...]
    differences: tuple[Text, ...]
    names: tuple[str, ...]
    column: str  # what the numbers at the right are

    @property
    def moving(self) -> tuple[Rectangle | Text, ...]:
        """The artists that change while the same counters are shown."""
        return *self.predicted, *self.counted, *self.differences


def counters(
    ax: Axes,
    prediction: Prediction | None,
    measurement: Measurement | None = None,
    artists: CounterArtists | None = None,
) -> CounterArtists:
    """Draw counters as bars, counted inside predicted, each with counted − predicted beside it.

    Without a measurement only the prediction is drawn; without a prediction, of a kernel that has
    no model, what was counted, each with its number beside it. Every counter that either names has
    a row, also one that is 0: that no bank conflicts occur is a finding. Artists of an earlier call
    are reused where the same counters are shown.
    """
    counted = measurement.counters if measurement else TransactionCounters()
    model = prediction.counters if prediction else TransactionCounters()
    names = tuple(sorted({*model, *counted}))
    column = "counted − predicted" if prediction else "counted"
    if artists is None or (artists.names, artists.column) != (names, column):
        artists = _new(ax, names, column)
    most = 1
    rows = zip(names, artists.predicted, artists.counted, artists.differences, strict=True)
    for name, outer, inner, text in rows:
        expected, found = model[name], counted[name]
        most = max(most, expected, found)
        outer.set_width(expected)
        inner.set_width(found)
        inner.set_visible(measurement is not None)
        difference = f"{found - expected:+,d}" if found != expected else "0"
        text.set_text(difference if prediction else f"{found:,d}")
        text.set_visible(measurement is not None)
    if prediction:
        style.describe(ax, _finding(names, prediction, measurement), "counters")
    else:
        told = ", ".join(f"{_plain(name)} {counted[name]:,}" for name in names)
        style.describe(ax, f"Counters: {told or 'nothing was counted'}.", "counters")
    # In steps of a thousand, so that the axis seldom changes while a size does.
    ax.set_xlim(1, 1000 ** math.ceil(math.log(10 * most, 1000)))
    return artists


def _finding(
    names: tuple[str, ...], prediction: Prediction, measurement: Measurement | None
) -> str:
    """Return the counters in words, and where what was counted differs from what was predicted."""
    values = ", ".join(f"{_plain(name)} {prediction.counters[name]:,}" for name in names)
    text = f"Counters, predicted: {values}."
    if measurement is None:
        return text
    off = [
        f"{_plain(name)} by {difference:+,d}"
        for name in names
        if (difference := measurement.counters[name] - prediction.counters[name])
    ]
    if off:
        return f"{text} What was counted differs: {', '.join(off)}."
    return f"{text} What was counted is the same, counter by counter."


def _plain(name: str) -> str:
    return name.replace("_", " ")


def _new(ax: Axes, names: tuple[str, ...], column: str) -> CounterArtists:
    ax.clear()
    style.prepare(ax, log="x")
    style.powers_axis(ax.xaxis, "count, or bytes")
    rows = range(len(names))
    blank = [1] * len(names)
    outer = ax.barh(rows, blank, 0.75, facecolor="none", edgecolor=style.BLUE, linewidth=1.5)
    inner = ax.barh(rows, blank, 0.4, facecolor=style.VERMILION)
    ax.set_yticks(rows, [_plain(name) for name in names])
    ax.grid(visible=False, axis="y")
    texts = [
        ax.text(0.99, row, "", transform=ax.get_yaxis_transform(), ha="right", va="center")
        for row in rows
    ]
    for text in texts:
        text.set(fontsize=style.NOTE, color=style.INK)
    if names:  # a row of its own above the bars says what they are
        ax.set_ylim(len(names) - 0.4, -1.6)
        head = {"fontsize": style.NOTE, "transform": ax.get_yaxis_transform(), "va": "center"}
        ax.text(0.99, -1, column, ha="right", color=style.INK, **head)
        if column != "counted":
            ax.text(-0.02, -1, "□ predicted", ha="right", color=style.BLUE, **head)
        ax.text(0.02, -1, "■ counted", color=style.VERMILION, **head)
    return CounterArtists(tuple(outer), tuple(inner), tuple(texts), names, column)


FEWEST = 10  # rows that there is room for, so that a few bars are not thick
HEIGHT = 0.66  # of a bar, of the distance between two
WRITTEN = 0.34  # of the axis: as much as a text may cover
BEYOND = 1.45  # of the longest bar: room for the texts at the ends of bars


class Row(NamedTuple):
    """A row is one kernel with one tile: its prediction, and its measurement where there is one."""

    kernel: str
    tiling: Tiling | None
    predicted: Prediction | None = None
    observed: Measurement | None = None


@dataclass
class RowArtists:
    """`beside` draws these: a bar and a text for each row, diamonds for all, and the rows.

    marks : what the legend names
    """

    predicted: Line2D
    marks: tuple[str, ...] = ()
    bars: list[Rectangle] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)

    @property
    def moving(self) -> tuple:
        """The artists that change while the same rows are shown on the same axis."""
        return *self.bars, *self.texts, self.predicted


def beside(
    ax: Axes, rows: Sequence[Row], chosen: int, quantity: str, artists: RowArtists | None = None
) -> RowArtists:
    """Draw what was observed of each row as a bar, what is predicted as a diamond.

    chosen : the place of the row that is marked; quantity : as in `plots.sizes`
    artists : of an earlier call on `ax` for the same quantity, to be changed in place
    """
    names = labels(rows)
    artists = artists or _new_rows(ax, quantity)
    if artists.rows != names:
        _name_rows(ax, artists, names)
    unit = QUANTITIES[quantity][1]
    expected = [row.predicted and value(row.predicted, quantity) for row in rows]
    observed = [row.observed and value(row.observed, quantity) for row in rows]
    shown = [x for x in (*expected, *observed) if x] or [1.0]
    if quantity == "speed":
        left, right = 0.0, style.steps(1, BEYOND * max(shown))[1]
    else:  # kernels differ by factors; in steps of a thousand the axis seldom changes
        left = 1000.0 ** math.floor(math.log(min(shown) / 1.5, 1000))
        right = 1000.0 ** math.ceil(math.log(10 * max(shown), 1000))
    ax.set_xlim(left, right)
    for i, (bar, text) in enumerate(zip(artists.bars, artists.texts, strict=True)):
        known = observed[i] or expected[i]
        bar.set(x=left, width=(observed[i] or left) - left)
        bar.set_facecolor(style.BLUE if i == chosen else style.SKY)
        text.set_text(style.si(known, unit) if known else "press Run" if i == chosen else "")
        text.set_fontweight("bold" if i == chosen else "normal")
        text.set_color(style.INK if observed[i] or i == chosen else style.GREY)
        text.xy = _end(ax, observed[i] or expected[i] or left, expected[i] or left), i
    points = [(x, i) for i, x in enumerate(expected) if x]
    artists.predicted.set_data([x for x, _ in points], [y for _, y in points])
    marks = ("observed",) * any(observed) + ("predicted",) * bool(points)
    if artists.marks != marks:
        _name_marks(ax, artists, marks, quantity)
    for i, tick in enumerate(ax.get_yticklabels()):
        tick.set_fontweight("bold" if i == chosen else "normal")
    told = [
        f"{name} {style.si(known, unit)}" + ("" if seen else " (predicted)")
        for name, seen, known in zip(
            names, observed, (o or e for o, e in zip(observed, expected, strict=True)), strict=True
        )
        if known
    ]
    style.describe(
        ax, f"{QUANTITIES[quantity][0].capitalize()}: {'; '.join(told) or 'none'}.", "rows"
    )
    return artists


def _end(ax: Axes, known: float, diamond: float) -> float:
    """Place the text of what is `known`: there, or behind a diamond that it would cover."""
    at, mark = (
        ax.transLimits.transform(ax.transScale.transform((x, 0)))[0] for x in (known, diamond)
    )
    return diamond if at < mark < at + WRITTEN else known


def labels(rows: Sequence[Row]) -> list[str]:
    """Kernel and block tile of each row, with the thread tile where these are the same of two."""
    short = [_name(row) for row in rows]
    twice = {name for name, count in Counter(short).items() if count > 1}
    return [
        f"{name}, thread {'×'.join(map(str, row.tiling.thread))}" if name in twice else name
        for name, row in zip(short, rows, strict=True)
    ]


def _name(row: Row) -> str:
    return row.kernel + (f"  {'×'.join(map(str, row.tiling.block))}" if row.tiling else "")


def _new_rows(ax: Axes, quantity: str) -> RowArtists:
    """Return the axis and the diamonds: no rows yet."""
    style.prepare(ax, log="" if quantity == "speed" else "x")
    style.si_axis(ax.xaxis, *QUANTITIES[quantity])
    (predicted,) = ax.plot([], [], style.MARKS["predicted"].marker, color=style.INK)
    predicted.set(markerfacecolor="white", markersize=5, zorder=5)
    ax.grid(axis="y", visible=False)
    return RowArtists(predicted)


def _name_marks(ax: Axes, artists: RowArtists, marks: tuple[str, ...], quantity: str) -> None:
    """A legend of the marks that there are."""
    free = "upper right" if quantity == "speed" else "lower right"  # the ladder begins at the top
    bars = tuple(Rectangle((0, 0), 1, 1, facecolor=hue) for hue in (style.SKY, style.BLUE))
    known = {"observed": bars, "predicted": artists.predicted}
    style.legend(ax, [known[mark] for mark in marks], marks, loc=free)
    artists.marks = marks


def _name_rows(ax: Axes, artists: RowArtists, names: list[str]) -> None:
    """A bar and a text for each name, which stands beside the axis."""
    for artist in (*artists.bars[len(names) :], *artists.texts[len(names) :]):
        artist.remove()
    del artists.bars[len(names) :], artists.texts[len(names) :]
    at_its_end = {"xytext": (8, 0), "textcoords": "offset points", "va": "center"}
    for i in range(len(artists.bars), len(names)):
        artists.bars.append(ax.add_patch(Rectangle((1, i - HEIGHT / 2), 1, HEIGHT)))
        artists.texts.append(ax.annotate("", (0, i), fontsize=style.SMALLEST, **at_its_end))
    ax.set_yticks(range(len(names)), names, fontsize=style.SMALLEST)
    ax.set_ylim(max(len(names), FEWEST) - 0.4, -0.6)
    artists.rows = names
