"""Observed against predicted: times by their ratio, counters one by one."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.ticker import LogLocator

from gemmlab.measure.measurement import Measurement
from gemmlab.model import Prediction
from gemmlab.model.counters import TransactionCounters
from gemmlab.plots.shared import style
from gemmlab.plots.sizes import SIZE, size

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
    """The ratios of each series in words."""
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
    no model, what was counted, each with its number beside it. Counters that are 0 in both are left
    out; artists of an earlier call are reused where the same counters are shown.
    """
    counted = measurement.counters if measurement else TransactionCounters()
    model = prediction.counters if prediction else TransactionCounters()
    names = tuple(name for name in sorted({*model, *counted}) if model[name] or counted[name])
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
    """The counters in words, and where what was counted differs from what was predicted."""
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
    style.si_axis(ax.xaxis, "count, or bytes", "B")
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
