"""Curves over size: speed, traffic or speedup of problems, and what splits of k cost."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator

from gemmlab.measure.benchmarks import FragmentUse
from gemmlab.measure.measurement import Measurement
from gemmlab.model import Prediction
from gemmlab.plots.shared import style
from gemmlab.problem import Gemm

# quantity -> (its name on the axis, unit)
QUANTITIES = {
    "speed": ("speed", "FLOP/s"),
    "global": ("global traffic", "B"),
    "shared": ("shared-memory traffic", "B"),
}
SIZE = "n, or ∛(mnk) where they differ"
ODD = "hollow, not joined: n is no power of two"
WIDE = 5  # inches of axes, from which on the legend has two columns

Item = Prediction | Measurement
Key = tuple[str, str]  # a series, by kernel and tile, and an origin


def size(problem: Gemm) -> float:
    """Give the side of the cube with as many multiplications, ∛(mnk): n itself where m = n = k."""
    m, n, k = problem.m, problem.n, problem.k
    return m if m == n == k else math.cbrt(m * n * k)


def joined(problem: Gemm) -> bool:
    """Whether a curve passes through a problem: m, n and k are powers of two, like their peers."""
    return all(side & (side - 1) == 0 for side in (problem.m, problem.n, problem.k))


@dataclass
class SizeArtists:
    """`sizes` draws these of each series: a predicted line, observed dots, and bars around them.

    odd : the marks at sizes that are not joined, of predictions and measurements
    labels : the texts of the legend
    """

    lines: dict[str, Line2D] = field(default_factory=dict)
    dots: dict[Key, Line2D] = field(default_factory=dict)
    odd: dict[Key, Line2D] = field(default_factory=dict)
    bars: LineCollection | None = None
    labels: list[str] = field(default_factory=list)


def sizes(
    ax: Axes,
    measurements: Iterable[Measurement],
    predictions: Iterable[Prediction] = (),
    quantity: str = "speed",
    artists: SizeArtists | None = None,
    limits: Mapping[str, float] | None = None,
) -> SizeArtists:
    """Draw `quantity` against ∛(mnk): predictions as thick lines, measurements as dots.

    quantity : "speed" with bars from the 10th to the 90th percentile, or "global" or "shared"
        traffic. Items without it are left out. Kernel and tile have a colour and a dash pattern,
        origins a marker.
    artists : of an earlier call on `ax`, to be changed in place
    limits : values of the quantity by their names, level lines of the first call: a peak, say
    Lines join powers of two alone, as other sizes behave differently: those are hollow marks.
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
        for name, y in (limits or {}).items():
            _limit(ax, y, f"{name}, {style.si(y, QUANTITIES[quantity][1])}")
    curves, observed = _series(predictions, quantity), _series(measurements, quantity)
    names = [name for name, _ in (*observed, *curves)]
    colours, dashes = style.colours(names), style.dashes(names)

    _draw(ax, artists.lines, {name: rows for (name, _), rows in curves.items()}, quantity, True)
    for name, line in artists.lines.items():
        line.set(color=colours[name], linewidth=2, linestyle=dashes[name])
    _draw(ax, artists.dots, observed, quantity, True)
    for (name, origin), line in artists.dots.items():
        marker = style.MARKS[origin].marker
        line.set(color=colours[name], marker=marker, markersize=7, linestyle=dashes[name])
        line.set(linewidth=0.8, zorder=5)
    _draw(ax, artists.odd, {**curves, **observed}, quantity, False)
    for (name, origin), line in artists.odd.items():
        line.set(color=colours[name], marker=style.MARKS[origin].marker, linestyle="none")
        line.set(markerfacecolor="white", markeredgewidth=1.5, zorder=5)
        line.set_markersize(5 if origin == "predicted" else 7)

    bars = [
        ([(size(m.problem), m.flops / m.percentile(p)) for p in (10, 90)], colours[name])
        for (name, _), rows in observed.items()
        for m in rows
        if quantity == "speed"
    ]
    artists.bars.set_segments([bar for bar, _ in bars])
    artists.bars.set_color([colour for _, colour in bars])
    _legend(ax, artists)
    if curves or observed:
        style.describe(ax, _finding({**curves, **observed}, quantity, limits or {}), "sizes")
    return artists


def value(item: Item, quantity: str) -> float | None:
    """Return the quantity of one item, as `sizes` draws it; None where the item lacks it."""
    if quantity == "speed":
        return item.flops_per_second if item.seconds is not None else None
    return item.bytes.get(quantity)


def _series(items: Iterable[Item], quantity: str) -> dict[Key, list[Item]]:
    """Items that have the quantity, by (kernel and tile, origin), in order of size."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        if value(item, quantity) is not None:
            groups.setdefault((style.series(item), style.origin(item)), []).append(item)
    return {key: sorted(rows, key=lambda r: size(r.problem)) for key, rows in groups.items()}


def _draw(ax: Axes, lines: dict, series: dict, quantity: str, together: bool) -> None:
    """Make `lines` show those items of `series` that are joined, or those that are not."""
    shown = {
        key: [r for r in rows if joined(r.problem) == together] for key, rows in series.items()
    }
    for key in [key for key in lines if not shown.get(key)]:
        lines.pop(key).remove()
    for key, rows in shown.items():
        if rows and key not in lines:
            (lines[key],) = ax.plot([], [])
        if rows:
            lines[key].set_data([size(r.problem) for r in rows], [value(r, quantity) for r in rows])


def _limit(ax: Axes, y: float, text: str) -> None:
    line = ax.axhline(y, color=style.INK, linewidth=1.2, zorder=1)
    line.set_gid("limit")
    ax.annotate(
        text, (1, y), (-2, 3), xycoords=ax.get_yaxis_transform(), textcoords="offset points",
        ha="right", fontsize=style.NOTE, color=style.INK,
    )  # fmt: skip


def _labels(artists: SizeArtists) -> dict[str, tuple[Line2D, ...]]:
    """A line of the legend for each series: what it is called, and the artists that show it."""
    labels = {}
    keys = [*((name, "predicted") for name in artists.lines), *artists.dots, *artists.odd]
    for name in dict.fromkeys(name for name, _ in keys):
        shown = {origin: line for (series, origin), line in artists.odd.items() if series == name}
        shown |= {origin: line for (series, origin), line in artists.dots.items() if series == name}
        shown |= {"predicted": artists.lines[name]} if name in artists.lines else {}
        origins = sorted(shown, key=list(style.MARKS).index)
        labels[f"{name}, {' and '.join(origins)}"] = tuple(shown[origin] for origin in origins)
    if artists.odd:
        origins = dict.fromkeys(origin for _, origin in artists.odd)
        look = {"color": style.GREY, "markerfacecolor": "white", "linestyle": "none"}
        labels[ODD] = tuple(Line2D([], [], marker=style.MARKS[o].marker, **look) for o in origins)
    return labels


def _legend(ax: Axes, artists: SizeArtists) -> None:
    """The legend, and below all data the room for it; half an octave around x."""
    labels = _labels(artists)
    width = ax.get_figure().get_figwidth() * ax.get_position().width
    columns = 2 if width >= WIDE and len(labels) > 2 else 1
    lines = [*artists.lines.values(), *artists.dots.values(), *artists.odd.values()]
    xs = [x for line in lines for x in line.get_xdata()]
    ys = [y for line in lines for y in line.get_ydata()]
    ys += [line.get_ydata()[0] for line in ax.lines if line.get_gid() == "limit"]
    if xs:
        ax.set_xlim(min(xs) / 1.4, max(xs) * 1.4)
        low, high = style.steps(min(ys) / 1.2, max(ys) * 1.25)
        height = ax.get_figure().get_figheight() * ax.get_position().height
        rows = -(-len(labels) // columns)
        share = min((0.15 + 0.19 * rows) / height, 0.5)  # of the height; a row has 0.19 inches
        ax.set_ylim(low / (high / low) ** (share / (1 - share)), high)
    if artists.labels != list(labels):
        artists.labels = list(labels)
        style.legend(ax, labels.values(), labels, loc="lower right", ncols=columns)


def _finding(series: dict[Key, list[Item]], quantity: str, limits: Mapping[str, float]) -> str:
    """Say where each series begins, ends and culminates, and which leads at the largest size."""
    name, unit = QUANTITIES[quantity]
    told, last = [], {}
    for (kernel, origin), rows in series.items():
        at = [(style.number(round(size(r.problem))), value(r, quantity)) for r in rows]
        (first, low), (end, high), (peak, most) = at[0], at[-1], max(at, key=lambda pair: pair[1])
        text = f"{kernel}, {origin}: {style.si(low, unit)} at {first}"
        text += f", {style.si(high, unit)} at {end}" if end != first else ""
        told.append(text + (f", most at {peak}, {style.si(most, unit)}" * (most > max(low, high))))
        if origin != "predicted":
            last[kernel] = size(rows[-1].problem), high
    told += [f"{name}: {style.si(y, unit)}" for name, y in limits.items()]
    largest = max((n for n, _ in last.values()), default=0)
    there = {kernel: y for kernel, (n, y) in last.items() if n == largest}
    if len(there) > 1:
        best = max(there, key=there.__getitem__)
        told.append(f"at n = {style.number(round(largest))} {best} is highest")
    return f"{name.capitalize()} against n. " + "; ".join(told) + "."


DASHES = ("-", "--", ":")  # of the sizes of matrices, in their order


def speedups(ax: Axes, uses: Sequence[FragmentUse], over: str) -> dict[tuple[str, int], Line2D]:
    """Draw the speedup over the version `over` of each use and size; the lines by (name, m).

    Uses have colours and fillings, sizes of matrices dashes; at 1, where a line is, nothing is
    gained. The legend is below the axes.
    """
    style.prepare(ax, log="xy", base=4)
    style.plain_axis(ax.xaxis, "matrices in the batch")
    style.plain_axis(ax.yaxis, "speedup of “registers”")
    style.title(ax, f"over “{over}”")
    names = list(dict.fromkeys(use.name for use in uses))
    colour = style.colours(names)
    sizes = sorted({use.m for use in uses})
    lines = {}
    for name, m in dict.fromkeys((use.name, use.m) for use in uses):
        points = sorted((u.batch, u.speedup(over)) for u in uses if (u.name, u.m) == (name, m))
        (line,) = ax.plot(*zip(*points, strict=True), DASHES[sizes.index(m)])
        line.set(color=colour[name], marker=style.MARKS["recorded"].marker, markersize=5.5)
        line.set(fillstyle=style.FILLS[names.index(name) % len(style.FILLS)])
        line.set_markerfacecoloralt("white")
        line.set(linewidth=1.5, label=f"{name.capitalize()}, {m}×{m}")
        lines[name, m] = line
    ax.axhline(1, color=style.INK, linewidth=1, zorder=1)
    batches = sorted({use.batch for use in uses})
    ax.set_xticks(batches)
    ax.set_yticks([0.8, 1, 1.25, 1.5, 2, 2.5, 3])
    ax.set_ylim(0.8, 3.2)
    names = [line.get_label() for line in lines.values()]
    style.legend(ax, lines.values(), names, loc="upper left", bbox_to_anchor=(-0.1, -0.14), ncols=2)
    style.describe(ax, _told_of_uses(lines, over), "speedups")
    return lines


def _told_of_uses(lines: dict[tuple[str, int], Line2D], over: str) -> str:
    """Least and most speedup of each line, and how many reach a gain at the largest batch."""
    told, gains = [], 0
    for line in lines.values():
        batches, speedups = line.get_data()
        best = batches[list(speedups).index(max(speedups))]
        told.append(f"{line.get_label()}: {min(speedups):.2f} to {max(speedups):.2f}, at {best:,}")
        gains += speedups[-1] > 1
    return (
        f"Speedup of “registers” over “{over}” against the matrices in the batch. "
        f"{'; '.join(told)}. At the largest batch {gains} of {len(lines)} gain."
    )


UNITS = {"time": "s", "sectors": ""}
LOOKS = {"recorded": "s", "measured": "o", "counted": "^"}  # of marks, by where they come from

Points = tuple[Sequence[float], Sequence[float]]  # splits, values


@dataclass
class SplitsArtists:
    """`splits` draws these: a line for each prediction, marks, and the library's time."""

    lines: dict[str, Line2D] = field(default_factory=dict)
    marks: dict[str, Line2D] = field(default_factory=dict)
    library: Line2D | None = None
    names: tuple[str, ...] = ()  # of the legend


def splits(
    ax: Axes,
    predicted: Mapping[str, Points],
    observed: Mapping[str, Points],
    quantity: str = "time",
    library: float | None = None,
    along: str = "parts of k",
    artists: SplitsArtists | None = None,
) -> SplitsArtists:
    """Draw a quantity over the number of parts, both logarithmic.

    predicted, observed : name -> (splits, values); names of observed ones begin with where they
        come from: "recorded", "measured" or "counted"
    library : cuBLAS's time, a horizontal line, where one is known
    artists : of an earlier call, to be changed in place
    Raises ValueError for another quantity, and where nothing is predicted.
    """
    if quantity not in UNITS:
        raise ValueError(f"quantity={quantity!r} is not known; use one of {', '.join(UNITS)}")
    if not predicted:
        raise ValueError("nothing is predicted; give splits and values by name")
    if artists is None:
        artists = SplitsArtists()
        style.prepare(ax, log="xy", base=2)
        style.plain_axis(ax.xaxis, along)
        ax.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
    ax.set_xlabel(along)
    if UNITS[quantity]:
        style.si_axis(ax.yaxis, quantity, UNITS[quantity])
    else:
        style.plain_axis(ax.yaxis, quantity)
    for i, (name, points) in enumerate(predicted.items()):
        if name not in artists.lines:
            look = {"color": (style.BLACK, *style.SERIES)[i % 7], "linewidth": 1.6}
            (line,) = ax.plot([], [], linestyle=style.DASHES[i % len(style.DASHES)], **look)
            artists.lines[name] = line
        artists.lines[name].set_data(*map(list, points))
    for i, (name, points) in enumerate(observed.items()):
        if name not in artists.marks:
            look = {"color": style.SERIES[(i + 1) % 6], "markersize": 7, "zorder": 5}
            marker = LOOKS[name.split()[0]]
            (marks,) = ax.plot([], [], marker, fillstyle=style.FILLS[i % 2], **look)
            artists.marks[name] = marks
        artists.marks[name].set_data(*map(list, points))
    for made, given in ((artists.lines, predicted), (artists.marks, observed)):
        for name in [name for name in made if name not in given]:
            made.pop(name).remove()
    _library(ax, artists, library)
    every = [np.asarray(values, float) for _, values in (*predicted.values(), *observed.values())]
    values = np.concatenate([*every, [library or every[0][0]]])
    most = max(max(at) for at, _ in (*predicted.values(), *observed.values()) if len(at))
    ax.set(xlim=(0.85, 1.2 * most), ylim=(values.min() / 1.4, values.max() * 1.4))
    _splits_legend(ax, artists)
    drawn = (*predicted.items(), *observed.items())
    told = [_split_finding(name, points, quantity) for name, points in drawn]
    if library:
        told.append(f"cuBLAS: {style.si(library, 's')}.")
    style.describe(ax, f"{quantity.capitalize()} over {along}. {' '.join(told)}", "splits")
    return artists


def _library(ax: Axes, artists: SplitsArtists, seconds: float | None) -> None:
    """The line of the library, where its time is known."""
    if seconds is None:
        if artists.library:
            artists.library.remove()
        artists.library = None
        return
    if artists.library is None:
        artists.library = ax.axhline(seconds, color=style.GREY, linestyle=":", linewidth=1.6)
    artists.library.set_ydata([seconds, seconds])


def _splits_legend(ax: Axes, artists: SplitsArtists) -> None:
    names = (*artists.lines, *artists.marks, *(["cuBLAS"] if artists.library else []))
    if names == artists.names:
        return
    handles = [*artists.lines.values(), *artists.marks.values()]
    handles += [artists.library] if artists.library else []
    below = -36 / (72 * ax.get_figure().get_figheight() * ax.get_position().height)
    place = {"loc": "upper left", "bbox_to_anchor": (-0.12, below), "ncols": 3, "borderpad": 0}
    style.legend(ax, handles, names, **place)
    artists.names = names


def _split_finding(name: str, points: Points, quantity: str) -> str:
    """Return the ends of a curve and its least value, in words."""
    at, values = points
    if len(at) == 0:
        return f"{name}: nothing."
    unit = UNITS[quantity]

    def shown(i: int) -> str:
        return f"{style.si(values[i], unit) if unit else style.number(values[i])} at {at[i]:,}"

    least = int(np.argmin(values))
    middle = f", at least {shown(least)}" if len(at) > 1 else ""
    return f"{name}: {shown(0)}{middle}, {shown(-1)}."
