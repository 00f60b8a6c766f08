"""Speed or traffic against problem size: measured points over predicted curves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D

from gemmlab.measurement import Measurement
from gemmlab.model import Prediction
from gemmlab.plots import style
from gemmlab.problem import Gemm

# quantity -> (its name on the axis, unit)
QUANTITIES = {
    "speed": ("speed", "FLOP/s"),
    "global": ("global traffic", "B"),
    "shared": ("shared-memory traffic", "B"),
}
SIZE = "n, or ∛(mnk) where they differ"


def size(problem: Gemm) -> float:
    """The side of the cube with as many multiplications, ∛(mnk): n itself where m = n = k."""
    return (problem.m * problem.n * problem.k) ** (1 / 3)


@dataclass
class SizeArtists:
    """What `sizes` draws: a line for each predicted series, dots and bars for each observed one."""

    lines: dict[str, Line2D] = field(default_factory=dict)
    dots: dict[tuple[str, str], Line2D] = field(default_factory=dict)
    bars: LineCollection | None = None
    labels: list[str] = field(default_factory=list)  # of the legend


def sizes(
    ax: Axes,
    measurements: Iterable[Measurement],
    predictions: Iterable[Prediction] = (),
    quantity: str = "speed",
    artists: SizeArtists | None = None,
) -> SizeArtists:
    """Draw `quantity` against ∛(mnk): predictions as lines, measurements as dots.

    quantity : "speed" with bars from the 10th to the 90th percentile, or "global" or "shared"
        traffic. Items without it are left out. Kernel and tile have a colour, origins a marker.
    artists : of an earlier call on `ax`, to be changed in place
    Raises ValueError for another quantity.
    """
    if quantity not in QUANTITIES:
        raise ValueError(f"quantity={quantity!r} is not known; use one of {', '.join(QUANTITIES)}")
    if artists is None:
        style.prepare(ax, log="xy", base=2)
        style.plain_axis(ax.xaxis, SIZE)
        style.si_axis(ax.yaxis, *QUANTITIES[quantity])
        artists = SizeArtists(bars=LineCollection([], linewidths=1.5, zorder=4))
        ax.add_collection(artists.bars, autolim=False)
    curves = _series(predictions, quantity)
    observed = _series(measurements, quantity)
    colours = style.colours(name for name, _ in (*observed, *curves))

    _draw(ax, artists.lines, {name: rows for (name, _), rows in curves.items()}, quantity)
    for name, line in artists.lines.items():
        line.set(color=colours[name], linewidth=1.8)
    _draw(ax, artists.dots, observed, quantity)
    for (name, origin), line in artists.dots.items():
        marker, _ = style.MARKS[origin]
        line.set(color=colours[name], marker=marker, markersize=7, linestyle="none", zorder=5)

    bars = [
        ([(size(m.problem), m.flops / m.percentile(p)) for p in (10, 90)], colours[name])
        for (name, _), rows in observed.items()
        for m in rows
        if quantity == "speed"
    ]
    artists.bars.set_segments([bar for bar, _ in bars])
    artists.bars.set_color([colour for _, colour in bars])
    labels = _labels(artists)
    _frame(ax, [*artists.lines.values(), *artists.dots.values()], len(labels))
    if artists.labels != list(labels):
        artists.labels = list(labels)
        ax.legend(
            list(labels.values()), artists.labels, loc="lower right", fontsize=style.NOTE,
            frameon=False, labelspacing=0.4,
        )  # fmt: skip
    return artists


def value(item: Prediction | Measurement, quantity: str) -> float | None:
    """The quantity of one item, as `sizes` draws it; None where the item lacks it."""
    if quantity == "speed":
        return item.flops_per_second if item.seconds is not None else None
    return item.bytes.get(quantity)


def _series(items: Iterable, quantity: str) -> dict[tuple[str, str], list]:
    """Items that have the quantity, by (kernel and tile, origin), in order of size."""
    groups: dict[tuple[str, str], list] = {}
    for item in items:
        if value(item, quantity) is not None:
            groups.setdefault((style.series(item), style.origin(item)), []).append(item)
    return {key: sorted(rows, key=lambda r: size(r.problem)) for key, rows in groups.items()}


def _draw(ax: Axes, lines: dict, series: dict, quantity: str) -> None:
    """Make `lines` show `series`: change those that are there, add the new, remove the gone."""
    for key in [key for key in lines if key not in series]:
        lines.pop(key).remove()
    for key, rows in series.items():
        if key not in lines:
            (lines[key],) = ax.plot([], [])
        lines[key].set_data([size(r.problem) for r in rows], [value(r, quantity) for r in rows])


def _labels(artists: SizeArtists) -> dict[str, tuple[Line2D, ...]]:
    """A line of the legend for each series: what it is called, and the artists that show it."""
    labels = {}
    for name in dict.fromkeys([*artists.lines, *(name for name, _ in artists.dots)]):
        shown = {"predicted": artists.lines[name]} if name in artists.lines else {}
        shown |= {origin: line for (series, origin), line in artists.dots.items() if series == name}
        labels[f"{name}, {' and '.join(shown)}"] = tuple(shown.values())
    return labels


def _frame(ax: Axes, lines: list[Line2D], rows: int) -> None:
    """Half an octave around x; whole decades of y above room for the rows of the legend."""
    xs = [x for line in lines for x in line.get_xdata()]
    ys = [y for line in lines for y in line.get_ydata()]
    if xs:
        ax.set_xlim(min(xs) / 1.4, max(xs) * 1.4)
        low, high = style.decades(min(ys) / 1.2, max(ys) * 1.2)
        share = min(0.05 + 0.06 * rows, 0.5)
        ax.set_ylim(low / (high / low) ** (share / (1 - share)), high)
