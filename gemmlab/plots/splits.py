"""Time, or traffic, over the split of k: predictions as lines, observations as marks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator

from gemmlab.plots.shared import style

QUANTITIES = {"time": "s", "sectors": ""}
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
    if quantity not in QUANTITIES:
        raise ValueError(f"quantity={quantity!r} is not known; use one of {', '.join(QUANTITIES)}")
    if not predicted:
        raise ValueError("nothing is predicted; give splits and values by name")
    if artists is None:
        artists = SplitsArtists()
        style.prepare(ax, log="xy", base=2)
        style.plain_axis(ax.xaxis, along)
        ax.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
    ax.set_xlabel(along)
    if QUANTITIES[quantity]:
        style.si_axis(ax.yaxis, quantity, QUANTITIES[quantity])
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
    _legend(ax, artists)
    told = [
        _finding(name, points, quantity) for name, points in (*predicted.items(), *observed.items())
    ]
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


def _legend(ax: Axes, artists: SplitsArtists) -> None:
    names = (*artists.lines, *artists.marks, *(["cuBLAS"] if artists.library else []))
    if names == artists.names:
        return
    handles = [*artists.lines.values(), *artists.marks.values()]
    handles += [artists.library] if artists.library else []
    below = -36 / (72 * ax.get_figure().get_figheight() * ax.get_position().height)
    place = {"loc": "upper left", "bbox_to_anchor": (-0.01, below), "ncols": 3, "borderpad": 0}
    style.legend(ax, handles, names, **place)
    artists.names = names


def _finding(name: str, points: Points, quantity: str) -> str:
    """The ends of a curve and its least value, in words."""
    at, values = points
    if len(at) == 0:
        return f"{name}: nothing."
    unit = QUANTITIES[quantity]

    def shown(i: int) -> str:
        return f"{style.si(values[i], unit) if unit else style.number(values[i])} at {at[i]:,}"

    least = int(np.argmin(values))
    middle = f", at least {shown(least)}" if len(at) > 1 else ""
    return f"{name}: {shown(0)}{middle}, {shown(-1)}."
