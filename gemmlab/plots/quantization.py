"""Tiles over C, tiles over SMs, and the sawtooth that both make of a product's time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import ListedColormap, to_rgba
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator

from gemmlab.measure.measurement import Measurement
from gemmlab.model.quantization import Quantization
from gemmlab.plots.shared import style

IDLE, ODD, EVEN, TAIL = range(4)  # what a place of a picture shows
LOOKS = ListedColormap([to_rgba("white"), style.SKY, style.BLUE, style.ORANGE])
NAMES = {ODD: "a full wave", EVEN: "the next one", TAIL: "the last wave, if not full"}
WIDE = 4  # inches of axes, from which on a legend below them has three columns
NAMED = 2.6  # inches of axes that take the sizes of C and its tiles in one line
BELOW = 34  # of a legend under its axes: ticks and the name of the axis are between [pt]
MOST_LINES = 64  # more tiles than this along an axis would be a solid grey
QUANTITIES = {"time": "s", "speed": "FLOP/s", "share of the peak": ""}

Points = tuple[Sequence[float], Sequence[float]]  # sizes, values


def of_waves(q: Quantization, places: np.ndarray) -> np.ndarray:
    """Sort the tiles at these numbers: into full waves in turn, or the last one if it is not."""
    wave = places // q.wave
    looks = np.where(wave % 2, EVEN, ODD)
    looks[(wave == q.waves - 1) & (q.tail < q.wave)] = TAIL
    looks[places >= q.tiles] = IDLE
    return looks


# --------------------------------------------------------------------------------- over C


@dataclass
class CoverArtists:
    """`cover` draws these: the tiles by wave, their edges, C, and what hangs over it."""

    image: AxesImage
    grid: LineCollection
    outline: Rectangle
    over: tuple[Rectangle, Rectangle]
    name: Text


def cover(ax: Axes, q: Quantization, artists: CoverArtists | None = None) -> CoverArtists:
    """Draw C, its tiles in the colours of their waves, and hatched what hangs over its edges.

    q : of one product; tiles count along the rows of tiles
    """
    artists = artists or _new_cover(ax)
    (bm, bn), p = q.tile, q.problem
    m, n, right, bottom = p.m, p.n, q.across * q.tile[1], q.down * q.tile[0]
    places = np.arange(q.down * q.across).reshape(q.down, q.across)
    artists.image.set_data(of_waves(q, places))
    artists.image.set_extent((0, right, bottom, 0))
    lines = []
    if max(q.across, q.down) <= MOST_LINES:
        lines += [((x, 0), (x, bottom)) for x in range(bn, right, bn)]
        lines += [((0, y), (right, y)) for y in range(bm, bottom, bm)]
    artists.grid.set_segments(lines)
    artists.outline.set_bounds(0, 0, n, m)
    artists.over[0].set_bounds(n, 0, right - n, bottom)
    artists.over[1].set_bounds(0, m, n, bottom - m)
    room = 0.02 * max(right, bottom)
    ax.set(xlim=(-room, right + room), ylim=(bottom + room, -room))
    between = " " if _width(ax) >= NAMED else "\n"
    artists.name.set_text(f"C: {m:,}×{n:,}{between}in {q.down}×{q.across} tiles of {bm}×{bn}")
    style.describe(
        ax,
        f"C has {m:,} rows and {n:,} columns: {q.down} by {q.across} tiles of {bm}×{bn}, "
        f"{q.down * q.across:,} in all. {float(q.useful):.1%} of what they cover lies in C.",
        "cover",
    )
    return artists


def _new_cover(ax: Axes) -> CoverArtists:
    ax.set_axis_off()
    ax.set_anchor("NW")
    image = ax.imshow([[0]], cmap=LOOKS, vmin=IDLE, vmax=TAIL, interpolation="nearest")
    grid = LineCollection([], colors="white", linewidths=1)
    ax.add_collection(grid, autolim=False)
    hatched = {"facecolor": (1, 1, 1, 0.6), "edgecolor": style.GREY, "hatch": "////"}
    over = tuple(ax.add_patch(Rectangle((0, 0), 0, 0, linewidth=0, **hatched)) for _ in range(2))
    outline = ax.add_patch(Rectangle((0, 0), 1, 1, fill=False, edgecolor=style.INK, linewidth=2))
    name = ax.annotate("", (0, 0), (0, -4), xycoords="axes fraction", textcoords="offset points")
    name.set(fontsize=style.NOTE, color=style.INK, va="top")
    return CoverArtists(image, grid, outline, over, name)


# ------------------------------------------------------------------------------- over SMs


@dataclass
class WaveArtists:
    """`waves` draws these: a row for each SM, and a column for each tile that one takes in turn."""

    image: AxesImage
    grid: LineCollection


def waves(ax: Axes, q: Quantization, artists: WaveArtists | None = None) -> WaveArtists:
    """Draw which SM computes a tile when: white is idle.

    q : of one product, one tile on an SM at a time (`per_sm` = 1): tiles take equally long
    Raises ValueError for another.
    """
    if q.per_sm != 1:
        raise ValueError(f"per_sm={q.per_sm} tiles run side by side; use per_sm=1")
    sms, rounds = q.device.sms, int(q.waves)
    if artists is None:
        style.prepare(ax)
        image = ax.imshow([[0]], cmap=LOOKS, vmin=IDLE, vmax=TAIL, aspect="auto",
                          interpolation="nearest")  # fmt: skip
        grid = LineCollection([], colors="white", linewidths=1)
        ax.add_collection(grid, autolim=False)
        artists = WaveArtists(image, grid)
        style.plain_axis(ax.xaxis, "time, in tiles")
        style.plain_axis(ax.yaxis, "SM")
        ax.grid(visible=False)
        patches = [Patch(color=LOOKS(look)) for look in NAMES]
        below = {"loc": "upper left", "bbox_to_anchor": (-0.02, -BELOW / _height(ax)), "ncols": 1}
        style.legend(ax, patches, NAMES.values(), borderpad=0, **below)
    places = np.arange(rounds)[None, :] * sms + np.arange(sms)[:, None]
    artists.image.set_data(of_waves(q, places))
    artists.image.set_extent((0, rounds, sms, 0))
    lines = [((x, 0), (x, sms)) for x in range(1, rounds)] if rounds <= MOST_LINES else []
    ax.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    if sms <= MOST_LINES // 2:
        lines += [((0, y), (rounds, y)) for y in range(1, sms)]
    artists.grid.set_segments(lines)
    ax.set(xlim=(0, rounds), ylim=(sms, 0))
    ax.set_xticks(range(0, rounds + 1, max(1, rounds // 6)))
    style.describe(
        ax,
        f"{int(q.tiles):,} tiles over {sms} SMs: {style.count(rounds, 'wave')}, of which the last "
        f"has {style.count(int(q.tail), 'tile')}, {float(q.tail_use):.1%} of the SMs. On average "
        f"{float(q.wave_use):.1%} of the SMs work.",
        "waves",
    )
    return artists


def _width(ax: Axes) -> float:
    """Return the width of axes [in], whatever their aspect."""
    return ax.get_figure().get_figwidth() * ax.get_position(original=True).width


def _height(ax: Axes) -> float:
    """Return the height of axes [pt]."""
    return 72 * ax.get_figure().get_figheight() * ax.get_position().height


# ------------------------------------------------------------------------------- over sizes


@dataclass
class SawtoothArtists:
    """`sawtooth` draws these: a line for each prediction, marks for each kind of observation."""

    lines: dict[str, Line2D] = field(default_factory=dict)
    marks: dict[str, Line2D] = field(default_factory=dict)


def sawtooth(
    ax: Axes,
    predicted: Mapping[str, Points],
    observed: Mapping[str, Points] = {},
    quantity: str = "time",
    along: str = "n",
    artists: SawtoothArtists | None = None,
) -> SawtoothArtists:
    """Draw a quantity over one size of a product: predictions as lines, observations as marks.

    predicted, observed : name -> (sizes, values), at exact sizes: a jump is as steep as they are;
        what is called "counted" has the mark of what was simulated
    quantity : "time", "speed" or "share of the peak"; along : the size's name
    artists : of an earlier call with the same names, to be changed in place
    Raises ValueError for another quantity, and where there is nothing to draw.
    """
    if quantity not in QUANTITIES:
        raise ValueError(f"quantity={quantity!r} is not known; use one of {', '.join(QUANTITIES)}")
    if not predicted and not observed:
        raise ValueError("there is nothing to draw; give predicted or observed sizes and values")
    if artists is None:
        artists = SawtoothArtists()
        style.prepare(ax)
        ax.margins(x=0.02)
        style.plain_axis(ax.xaxis, along)
        if QUANTITIES[quantity]:
            style.si_axis(ax.yaxis, quantity, QUANTITIES[quantity])
        else:
            style.plain_axis(ax.yaxis, quantity)
        for i, name in enumerate(predicted):
            (artists.lines[name],) = ax.plot(
                [], [], linestyle=style.DASHES[i % len(style.DASHES)], linewidth=1.6,
                color=(style.BLACK, *style.SERIES)[i % (1 + len(style.SERIES))], label=name,
            )  # fmt: skip
        for i, name in enumerate(observed):
            (artists.marks[name],) = ax.plot(
                [], [], "^" if name == "counted" else "sov"[i % 3], markersize=4,
                color=style.SERIES[(i + 1) % 6],
                fillstyle=style.FILLS[i % 2], markeredgewidth=0.7, label=name, linestyle="none",
            )  # fmt: skip
        handles = [*artists.lines.values(), *artists.marks.values()]
        wide = _width(ax) >= WIDE
        place = {"loc": "upper left", "ncols": 3 if wide else 1, "borderpad": 0}
        place["bbox_to_anchor"] = (-0.01, -0.2 if wide else -BELOW / _height(ax))
        style.legend(ax, handles, [*artists.lines, *artists.marks], **place)
    drawn = [(artists.lines, predicted), (artists.marks, observed)]
    for made, given in drawn:
        for name, (sizes, values) in given.items():
            made[name].set_data(list(sizes), list(values))
    sizes, values = (
        np.concatenate([np.asarray(points[i], float) for _, g in drawn for points in g.values()])
        for i in (0, 1)
    )
    ax.set(xlim=(0, 1.02 * sizes.max()), ylim=(0, 1.08 * values.max()))
    told = [_finding(name, points, quantity, along) for _, g in drawn for name, points in g.items()]
    style.describe(ax, f"{quantity.capitalize()} over {along}. {' '.join(told)}", "sawtooth")
    return artists


def along_n(measured: Sequence[Measurement], quantity: str = "time") -> Points:
    """Return the sizes n of measurements, and their times [s] or speeds [FLOP/s]."""
    values = {"time": lambda m: m.seconds, "speed": lambda m: m.flops_per_second}[quantity]
    return [m.problem.n for m in measured], [values(m) for m in measured]


def _finding(name: str, points: Points, quantity: str, along: str) -> str:
    sizes, values = points
    if len(sizes) == 0:
        return f"{name}: nothing."
    unit = QUANTITIES[quantity]

    def shown(value: float) -> str:
        return style.si(value, unit) if unit else f"{value:.0%}"

    text = f"{name}: {shown(values[0])} at {sizes[0]:,.0f}, {shown(values[-1])} at {sizes[-1]:,.0f}"
    if len(sizes) > 2:
        ratio = np.asarray(values[1:], float) / np.asarray(values[:-1], float)
        at = int(np.argmax(np.abs(np.log(ratio))))
        text += (
            f"; the steepest step is from {shown(values[at])} at {along} = {sizes[at]:,.0f} to "
            f"{shown(values[at + 1])} at {sizes[at + 1]:,.0f}"
        )
    return f"{text}."
