"""Matrices are cut into tiles: what a block computes and holds, and what thread tiles cost."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.container import BarContainer
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from gemmlab.measure.measurement import Measurement
from gemmlab.model import Prediction
from gemmlab.plots.shared import style
from gemmlab.problem import Gemm
from gemmlab.tiling import WARP, Tiling

COLOURS = {"A": style.BLUE, "B": style.GREEN, "C": style.VERMILION}
MOST_LINES = 64  # more tiles than this along an axis would be a solid grey


class TileArtists(NamedTuple):
    """`tiles` draws these, keyed by matrix: outline, grid, strip, tile in use, and name; a key."""

    outlines: dict[str, Rectangle]
    grids: dict[str, LineCollection]
    strips: dict[str, Rectangle]
    tiles: dict[str, Rectangle]
    names: dict[str, Text]
    key: Text


def tiles(
    ax: Axes,
    problem: Gemm,
    tiling: Tiling,
    block: tuple[int, int] = (0, 0),
    step: int = 0,
    artists: TileArtists | None = None,
) -> TileArtists:
    """Draw A left of C and B above it, cut into tiles; one block's tiles stand out.

    block : (x, y), the block's place along the columns and rows of C
    step : along k; the tiles of A and B of this step are dark, those of the other steps pale.
    Tiles that reach beyond a ragged edge are drawn whole. Raises ValueError for a block or a step
    outside the problem.
    """
    (across, down), steps = tiling.grid(problem), tiling.steps(problem)
    for name, got, end in (("x", block[0], across), ("y", block[1], down), ("step", step, steps)):
        if not 0 <= got < end:
            raise ValueError(f"{name}={got} is outside; use 0 to {end - 1}")
    artists = artists or _new(ax)
    bm, bn, bk = tiling.block
    m, n, k = problem.m, problem.n, problem.k
    gap = 0.12 * max(m, n, k)
    # matrix: left, top, rows, columns, tile, (row, column) of the tile in use
    places = {
        "A": (0, k + gap, m, k, (bm, bk), (block[1], step)),
        "B": (k + gap, 0, k, n, (bk, bn), (step, block[0])),
        "C": (k + gap, k + gap, m, n, (bm, bn), (block[1], block[0])),
    }
    for name, (left, top, rows, columns, (th, tw), (row, column)) in places.items():
        artists.outlines[name].set_bounds(left, top, columns, rows)
        segments = [((left + x, top), (left + x, top + rows)) for x in _cuts(columns, tw)]
        segments += [((left, top + y), (left + columns, top + y)) for y in _cuts(rows, th)]
        artists.grids[name].set_segments(segments)
        artists.tiles[name].set_bounds(left + column * tw, top + row * th, tw, th)
    left, top, rows, columns, (th, tw), (row, _) = places["A"]
    artists.strips["A"].set_bounds(left, top + row * th, columns, min(th, rows - row * th))
    left, top, rows, columns, (th, tw), (_, column) = places["B"]
    artists.strips["B"].set_bounds(left + column * tw, top, min(tw, columns - column * tw), rows)

    space = 0.03 * max(m, n, k)
    artists.names["A"].set_position((-space, k + gap + m / 2))
    artists.names["A"].set_text(f"A\n{m}×{k}")
    artists.names["B"].set_position((k + gap + n / 2, -space))
    artists.names["B"].set_text(f"B  {k}×{n}")
    artists.names["C"].set_position((k + gap + n / 2, k + gap + m + space))
    artists.names["C"].set_text(f"C  {m}×{n}")
    artists.key.set_text(
        f"dark: block ({block[0]}, {block[1]}) in step {step}; pale: its other steps"
    )
    style.describe(ax, _finding(problem, tiling, block, step), "tiles")
    ax.set_xlim(-3 * gap, max(k + gap + n, across * bn + k + gap) + gap / 4)
    ax.set_ylim(max(k + gap + m, down * bm + k + gap) + 1.4 * gap, -1.4 * gap)
    return artists


def _finding(problem: Gemm, tiling: Tiling, block: tuple[int, int], step: int) -> str:
    """Which rows and columns the block computes, and how far its tile reaches beyond C."""
    (across, down), (bm, bn, bk) = tiling.grid(problem), tiling.block
    top, left = block[1] * bm, block[0] * bn
    over = (max(0, top + bm - problem.m), max(0, left + bn - problem.n))
    beyond = f", {over[0]} rows and {over[1]} columns of them beyond C" if any(over) else ""
    return (
        f"C in {down} by {across} tiles of {bm}×{bn}, A left of it and B above. Block {block} "
        f"computes rows {top} to {top + bm - 1} and columns {left} to {left + bn - 1}{beyond}; "
        f"step {step} of {tiling.steps(problem)} uses {bk} columns of A and {bk} rows of B."
    )


def _cuts(length: int, tile: int) -> range:
    """Find the tile edges inside 0 … length; none where they would lie too close to see."""
    return range(tile, length, tile) if length / tile <= MOST_LINES else range(0)


def _new(ax: Axes) -> TileArtists:
    ax.set_aspect("equal")
    ax.set_axis_off()
    ax.set_anchor("N")  # pictures side by side begin at one height
    key = ax.annotate("", (0, 0), (0, -4), xycoords="axes fraction", textcoords="offset points")
    key.set(fontsize=style.NOTE, color=style.INK, va="top")
    made = TileArtists({}, {}, {}, {}, {}, key)
    style.provenance(ax, "computed")
    align = {"A": ("right", "center"), "B": ("center", "bottom"), "C": ("center", "top")}
    for name, colour in COLOURS.items():
        if name != "C":
            made.strips[name] = ax.add_patch(_box(facecolor=colour, alpha=0.25))
        made.tiles[name] = ax.add_patch(_box(facecolor=colour, alpha=0.85))
        made.grids[name] = LineCollection([], colors=style.GREY, linewidths=0.5)
        ax.add_collection(made.grids[name], autolim=False)
        made.outlines[name] = ax.add_patch(
            _box(facecolor="none", edgecolor=style.INK, linewidth=1.5)
        )
        ha, va = align[name]
        made.names[name] = ax.text(0, 0, "", ha=ha, va=va, fontsize=style.LABEL, color=style.INK)
    return made


def _box(**look: object) -> Rectangle:
    return Rectangle((0, 0), 1, 1, **look)


Item = Prediction | Measurement


def wavefronts(item: Item) -> float | None:
    """Shared-memory wavefronts of loads for each FMA of a warp; None where nothing was counted."""
    if not item.counters:
        return None
    fmas = item.tiling.padded_flops(item.problem) / 2 / WARP
    return item.counters["shared_load_wavefronts"] / fmas


@dataclass
class ThreadTileArtists:
    """`thread_tiles` draws these: a line, dots for each origin, and the `origins` of its legend."""

    line: Line2D
    dots: dict[str, Line2D] = field(default_factory=dict)
    origins: tuple[str, ...] = ()


def thread_tiles(
    ax: Axes,
    measurements: Iterable[Measurement],
    predictions: Sequence[Prediction],
    counted: bool,
    artists: ThreadTileArtists | None = None,
) -> ThreadTileArtists:
    """Draw each thread tile of `predictions`, in their order: its speed or, if `counted`, loads.

    counted : whether the height is wavefronts of shared loads for each FMA of a warp, not FLOP/s
    Measurements of other thread tiles are left out.
    """
    names = ["×".join(map(str, p.tiling.thread)) for p in predictions]
    if artists is None:
        style.prepare(ax, log="y")
        if counted:
            style.plain_axis(ax.yaxis, "shared wavefronts per FMA of a warp")
        else:
            style.si_axis(ax.yaxis, "speed", "FLOP/s")
        ax.set_xlabel("elements of C a thread", fontsize=style.LABEL, color=style.INK)
        (line,) = ax.plot([], [], style.MARKS["predicted"].marker + "-", color=style.BLUE)
        line.set(markerfacecolor="white", markersize=7, label="predicted", linewidth=1.5)
        artists = ThreadTileArtists(line)
    height = wavefronts if counted else _speed
    heights = [height(p) for p in predictions]
    artists.line.set_data(range(len(names)), heights)
    seen: dict[str, list[tuple[int, float]]] = {}
    for m in measurements:
        name = "×".join(map(str, m.tiling.thread))
        if name in names and height(m) is not None:
            seen.setdefault(style.origin(m), []).append((names.index(name), height(m)))
    for origin in [origin for origin in artists.dots if origin not in seen]:
        artists.dots.pop(origin).remove()
    for origin, points in seen.items():
        if origin not in artists.dots:
            (dots,) = ax.plot([], [], style.MARKS[origin].marker, color=style.VERMILION)
            artists.dots[origin] = dots
            dots.set(markersize=8, zorder=5, label=origin)
        artists.dots[origin].set_data(*zip(*points, strict=True))
    ax.set_xticks(range(len(names)), names)
    every = [*heights, *(y for points in seen.values() for _, y in points)]
    ax.set(xlim=(-0.5, len(names) - 0.5), ylim=style.decades(min(every) / 1.1, 1.1 * max(every)))
    if artists.origins != ("predicted", *artists.dots):
        artists.origins = ("predicted", *artists.dots)
        handles = [artists.line, *artists.dots.values()]
        style.legend(ax, handles, artists.origins, loc="upper right" if counted else "lower right")
    told = [
        f"{name} {style.number(y) if counted else style.si(y, 'FLOP/s')}"
        for name, y in zip(names, heights, strict=True)
    ]
    quantity = "Shared wavefronts per FMA of a warp" if counted else "Speed"
    observed = "".join(f"; {len(points)} {origin}" for origin, points in seen.items())
    finding = f"{quantity} of each thread tile, predicted: {', '.join(told)}{observed}."
    style.describe(ax, finding, "thread tiles")
    return artists


def _speed(item: Item) -> float | None:
    return item.flops_per_second if item.seconds is not None else None


@dataclass
class ResourceArtists:
    """`resources` draws these: a bar for each resource, and its time in words."""

    bars: BarContainer
    texts: list[Text]


RESOURCES = ("math", "issue", "l1", "l2", "dram", "latency")  # keys of `Prediction.times`
NAMES = ("math", "issue", "L1 and\nshared", "L2", "DRAM", "latency")


def resources(
    ax: Axes, prediction: Prediction, artists: ResourceArtists | None = None
) -> ResourceArtists:
    """Draw the time that each resource needs alone; the longest decides and is dark.

    A resource whose work the kernel does not count has no bar, and is said to be not counted.
    """
    times = [prediction.times.get(name, 0.0) for name in RESOURCES]
    said = [
        style.si(prediction.times[name], "s") if name in prediction.times else "not counted"
        for name in RESOURCES
    ]
    if artists is None:
        style.prepare(ax)
        bars = ax.barh(range(len(RESOURCES)), times, height=0.6)
        texts = [ax.text(0, i, "", va="center", fontsize=style.TICK) for i in range(len(times))]
        artists = ResourceArtists(bars, texts)
        ax.set_yticks(range(len(RESOURCES)), NAMES)
        ax.set(ylim=(len(RESOURCES) - 0.5, -0.5), xlim=(0, 1.3))
        ax.xaxis.set_major_formatter(lambda x, _: f"{x:.0%}" if x <= 1 else "")
        ax.set_xlabel("share of the predicted time", fontsize=style.LABEL, color=style.INK)
        ax.grid(axis="y", visible=False)
    drawn = zip(RESOURCES, times, said, artists.bars, artists.texts, strict=True)
    for name, seconds, words, bar, text in drawn:
        bar.set_width(seconds / prediction.seconds)
        bar.set_color(style.BLUE if name == prediction.bottleneck else style.SKY)
        text.set_position((seconds / prediction.seconds + 0.02, text.get_position()[1]))
        text.set_text(words)
    told = [f"{' '.join(name.split())} {words}" for name, words in zip(NAMES, said, strict=True)]
    style.describe(
        ax, f"What each resource needs alone: {', '.join(told)}. {prediction.limiter} decides.",
        "resources",
    )  # fmt: skip
    return artists
