"""Thread tiles side by side, and the time that each resource of the device needs for one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.lines import Line2D
from matplotlib.text import Text

from gemmlab.measure.measurement import Measurement
from gemmlab.model import Prediction
from gemmlab.plots.shared import style
from gemmlab.tiling import WARP

Item = Prediction | Measurement


def wavefronts(item: Item) -> float | None:
    """Shared-memory wavefronts of loads for each FMA of a warp; None where nothing was counted."""
    if not item.counters:
        return None
    fmas = item.tiling.padded_flops(item.problem) / 2 / WARP
    return item.counters["shared_load_wavefronts"] / fmas


@dataclass
class TileArtists:
    """`thread_tiles` draws these: a line, dots for each origin, and the `origins` of its legend."""

    line: Line2D
    dots: dict[str, Line2D] = field(default_factory=dict)
    origins: tuple[str, ...] = ()


def thread_tiles(
    ax: Axes,
    measurements: Iterable[Measurement],
    predictions: Sequence[Prediction],
    counted: bool,
    artists: TileArtists | None = None,
) -> TileArtists:
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
        artists = TileArtists(line)
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
