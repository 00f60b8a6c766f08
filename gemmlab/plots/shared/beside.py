"""Kernels and tiles beside each other at one problem: speeds, or traffic."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from gemmlab.measure.measurement import Measurement
from gemmlab.model import Prediction
from gemmlab.plots.shared import style
from gemmlab.plots.sizes import QUANTITIES, value
from gemmlab.tiling import Tiling

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
    artists = artists or _new(ax, quantity)
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


def _new(ax: Axes, quantity: str) -> RowArtists:
    """The axis and the diamonds: no rows yet."""
    style.prepare(ax, log="" if quantity == "speed" else "x")
    style.si_axis(ax.xaxis, *QUANTITIES[quantity])
    (predicted,) = ax.plot([], [], style.MARKS["predicted"].marker, color=style.INK)
    predicted.set(markerfacecolor="white", markersize=5, zorder=5)
    ax.grid(axis="y", visible=False)
    return RowArtists(predicted)


def _name_marks(ax: Axes, artists: RowArtists, marks: tuple[str, ...], quantity: str) -> None:
    """A legend of the marks that there are."""
    free = "upper right" if quantity == "speed" else "lower right"  # the ladder begins at the top
    bar = Rectangle((0, 0), 1, 1, facecolor=style.BLUE)
    known = {"observed": bar, "predicted": artists.predicted}
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
