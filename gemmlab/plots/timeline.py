"""A timeline tells what happens when: bars over cycles or steps.

`timeline` has copies, waits and arithmetic over cycles; `ring` and `turns` make its rows for a ring
of stages, predicted by a model and simulated. `schedule` says which SM computes which tile in which
step.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch, Rectangle
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator

from gemmlab.compiled.forecast.rings import Ring
from gemmlab.model.pipeline import Pipeline
from gemmlab.model.schedule import Placed, busy, ends, sums_stored
from gemmlab.plots.shared import style

WAIT = "wait"  # the one kind of span in which nothing is done; it is drawn as an empty, hatched bar
LOOKS = ((style.SKY, ""), (style.ORANGE, "\\\\\\"), (style.GREEN, "..."), (style.PURPLE, "xxx"))
HEIGHT = 0.68  # of a bar, of the distance between two rows


@dataclass(frozen=True)
class Span:
    """Something that lasts: `what` is done from cycle `start` to cycle `end`.

    >>> Span("copy", 0, 667).cycles
    667
    """

    what: str
    start: float
    end: float

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise ValueError(
                f"{self.what!r} lasts from {self.start} to {self.end}; use 0 <= start <= end"
            )

    @property
    def cycles(self) -> float:
        return self.end - self.start


@dataclass(frozen=True)
class TimelineArtists:
    """`timeline` draws these: the bars of each row, in the order of its spans."""

    bars: dict[str, list[Rectangle]]


def timeline(
    ax: Axes,
    rows: Mapping[str, Sequence[Span]],
    until: float | None = None,
    unit: str = "cycles",
    kinds: Sequence[str] = (),
) -> TimelineArtists:
    """Draw each row's spans as bars over time, the first row at the top; the legend is below.

    rows : name -> what is done there, one after the other; a span named "wait" is hatched grey,
        the other names have colours in the order in which they first come
    until : where the axis ends, so that two timelines can be compared; the last end where None
    kinds : names that have the first colours, whether they come or not, so that two are alike
    Raises ValueError where spans of a row overlap, and where there are none.

    >>> from gemmlab import plots
    >>> figure, (ax,) = plots.figure(7, 1.6)
    >>> rows = {"block 0": [Span("copy", 0, 600), Span("multiply", 600, 1000)]}
    >>> artists = plots.timeline(ax, rows)
    >>> plots.alt(figure)
    'Timeline in cycles: block 0: copy 0 to 600, multiply 600 to 1,000. It ends at 1,000.'
    """
    spans = [span for row in rows.values() for span in row]
    if not spans:
        raise ValueError(f"rows={dict(rows)!r} has no spans; give each name a list of Span")
    for name, row in rows.items():
        _check(name, row)
    end = max(span.end for span in spans)
    names = dict.fromkeys((*kinds, *(span.what for span in spans if span.what != WAIT)))
    looks = {what: LOOKS[i % len(LOOKS)] for i, what in enumerate(names)} | {WAIT: ("white", "//")}
    style.prepare(ax)
    bars = {name: [_bar(ax, y, span, looks) for span in row]
            for y, (name, row) in enumerate(rows.items())}  # fmt: skip
    ax.set(xlim=(0, until or end), ylim=(len(rows) - 0.5, -0.5))
    ax.set_yticks(range(len(rows)), rows)
    ax.tick_params(axis="y", labelsize=style.LABEL)
    ax.grid(visible=False, axis="y")
    style.plain_axis(ax.xaxis, unit)
    for y, row in enumerate(rows.values()):
        for span in row:
            _write(ax, y, span, until or end)
    shown = [what for what in looks if any(span.what == what for span in spans)]
    handles = [Patch(**_look(looks[what])) for what in shown]
    below = -34 / _points(ax)[1]  # beneath the ticks and the name of the axis
    style.legend(
        ax, handles, shown, loc="upper left", bbox_to_anchor=(0, below), ncols=len(shown),
        borderpad=0, borderaxespad=0,
    )  # fmt: skip
    style.describe(ax, _finding(rows, end, unit), "timeline")
    return TimelineArtists(bars)


def _check(name: str, row: Sequence[Span]) -> None:
    """Raise ValueError where a row does two things at once."""
    ordered = sorted(row, key=lambda span: (span.start, span.end))
    for one, after in pairwise(ordered):
        if after.start < one.end:
            raise ValueError(
                f"{name!r} has {one.what} until {one.end} and {after.what} from {after.start}; "
                "spans of a row follow each other: use a row for each"
            )


def _look(look: tuple[str, str]) -> dict[str, object]:
    colour, hatch = look
    return {"facecolor": colour, "hatch": hatch, "edgecolor": style.INK, "linewidth": 0.8}


def _bar(ax: Axes, y: int, span: Span, looks: Mapping[str, tuple[str, str]]) -> Rectangle:
    bar = Rectangle(
        (span.start, y - HEIGHT / 2), span.cycles, HEIGHT, hatch_linewidth=0.5,
        **_look(looks[span.what]),
    )  # fmt: skip
    ax.add_artist(bar)  # the limits are set, and to widen them for each bar takes its time
    return bar


def _write(ax: Axes, y: int, span: Span, end: float) -> None:
    if len(span.what) * 0.65 * style.NOTE < span.cycles / end * _points(ax)[0] - 4:
        text = ax.text((span.start + span.end) / 2, y, span.what, ha="center", va="center")
        text.set(fontsize=style.NOTE, color=style.INK, clip_on=True)
        text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.85})


def _points(ax: Axes) -> tuple[float, float]:
    place, (width, height) = ax.get_position(), ax.get_figure().get_size_inches()
    return 72 * width * place.width, 72 * height * place.height


def _finding(rows: Mapping[str, Sequence[Span]], end: float, unit: str) -> str:
    """Tell each row in words, when the last span ends, and how much of that time a row waits."""
    told = []
    for name, row in rows.items():
        spans = (f"{s.what} {style.number(s.start)} to {style.number(s.end)}" for s in row)
        told.append(f"{name}: {', '.join(spans)}")
    text = f"Timeline in {unit}: {'; '.join(told)}. It ends at {style.number(end)}."
    waits = {name: sum(s.cycles for s in row if s.what == WAIT) for name, row in rows.items()}
    longest = max(waits, key=waits.__getitem__)
    if waits[longest]:
        text += f" {longest} waits longest, {waits[longest] / end:.0%} of that time."
    return text


# What a stage goes through, and a consumer does: first what a `ring` has too, so that both pictures
# have one colour for each.
TURNS = "copy", "multiply", "full", "store"
LEAST = 1 / 400  # of a window: narrower bars are lines


def ring(pipeline: Pipeline, arithmetic: str = "arithmetic") -> dict[str, list[Span]]:
    """Rows for `timeline`: a stage's copies and products, and last the products with their waits.

    >>> from gemmlab.model.pipeline import Pipeline
    >>> rows = ring(Pipeline(steps=2, stages=1, copy=900, multiply=300))
    >>> [(span.what, span.start, span.end) for span in rows["arithmetic"]][:2]
    [('wait', 0.0, 900), ('multiply', 900, 1200)]
    """
    rows: dict[str, list[Span]] = {f"stage {i}": [] for i in range(pipeline.stages)}
    products: list[Span] = []
    idle = 0.0
    for step, tile in enumerate(pipeline.schedule()):
        product = Span("multiply", tile.begins, tile.done)
        rows[f"stage {step % pipeline.stages}"] += [Span("copy", tile.asked, tile.there), product]
        if product.start > idle:
            products.append(Span(WAIT, idle, product.start))
        products.append(product)
        idle = tile.done
    return {**rows, arithmetic: products}


def turns(ring: Ring, first: int, last: int) -> dict[str, list[Span]]:
    """Rows for `timeline` of what a simulated block does in the cycles from `first` to `last`.

    A stage is copied from when it is asked for until its bytes are there, full until a consumer
    reads it, and multiplied until all have read it; then it is free. What lasts less than `LEAST`
    of these cycles is left out.
    """
    stages: dict[str, list[tuple[str, int, int]]] = {f"stage {i}": [] for i in range(ring.stages)}
    for turn in ring.turns:
        stages[f"stage {turn.stage}"] += [
            ("copy", turn.asked, turn.full),
            ("full", turn.full, turn.read),
            ("multiply", turn.read, turn.free),
        ]
    producer, *others = ring.roles
    rows = {producer: ring.roles[producer], **stages, **{n: ring.roles[n] for n in others}}
    return {
        name: [
            Span(what, max(start, first) - first, min(end, last) - first)
            for what, start, end in spans
            if min(end, last) - max(start, first) >= LEAST * (last - first)
        ]
        for name, spans in rows.items()
    }


BLOCK_HEIGHT = 0.8  # of a bar, of the distance between two rows
HUES = (style.SKY, style.ORANGE, style.GREEN, style.PURPLE, style.YELLOW)  # of tiles, in turn
LARGEST = 4_000  # pieces that are drawn; more would be thinner than a pixel
FEW = 40  # rows, and pieces, that have room for edges, hatches and the number of their tile


@dataclass
class ScheduleArtists:
    """`schedule` draws these: whole tiles, pieces of tiles, and the numbers of their tiles."""

    whole: PolyCollection
    parts: PolyCollection
    names: list[Text] = field(default_factory=list)


def schedule(
    ax: Axes,
    placed: Sequence[Placed],
    sms: int,
    until: int | None = None,
    legend: bool = True,
    artists: ScheduleArtists | None = None,
    shown: Sequence[int] = (),
) -> ScheduleArtists:
    """Draw each piece as a bar in the row of its SM, in the colour of its tile.

    In up to `FEW` rows, pieces of a tile that several blocks share are hatched: their sums are
    added afterwards.
    shown : the SMs that have a row, in their order; all where none is named
    until : where the axis ends, so that two schedules can be compared; the last end where None
    legend : whether it is said below what hatches mean
    artists : of an earlier call, to be changed in place
    Raises ValueError for more than `LARGEST` pieces, and for none.
    """
    shown = shown or range(sms)
    few, rows = len(shown) <= FEW, {sm: row for row, sm in enumerate(shown)}
    drawn = [one for one in placed if one.sm in rows]
    if not 0 < len(drawn) <= LARGEST:
        raise ValueError(f"{len(drawn):,} pieces cannot be drawn; use 1 to {LARGEST:,}")
    artists = artists or _new(ax, legend and few)
    for name in artists.names:
        name.remove()
    artists.names.clear()
    for collection, whole in ((artists.whole, True), (artists.parts, False)):
        mine = [one for one in drawn if one.piece.whole is whole]
        collection.set_verts(_corners(mine, rows))
        collection.set_facecolor([to_rgb(HUES[one.piece.tile % len(HUES)]) for one in mine])
        collection.set(linewidth=0.8 if few else 0)
    artists.parts.set_hatch("//" if few else "")
    if max(len(drawn), len(shown)) <= FEW:
        for one in drawn:
            middle = (one.start + one.end) / 2, rows[one.sm]
            text = ax.text(*middle, f"{one.piece.tile}", ha="center", va="center")
            text.set(fontsize=style.NOTE, color=style.INK, clip_on=True)
            text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.85})
            artists.names.append(text)
    end = ends(placed)
    ax.set(xlim=(0, until or end), ylim=(len(shown) - 0.5, -0.5))
    if few:
        ax.set_yticks(range(len(shown)), shown)
    else:
        ax.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    blocks = len({one.block for one in placed})
    stored = sums_stored(placed)
    style.describe(
        ax,
        f"{style.count(blocks, 'block')} on {sms} SMs: the last step ends at {end:,}, and SMs "
        f"compute {busy(list(placed), sms):.0%} of that time. {style.count(stored, 'piece')} of "
        f"shared tiles leave sums to be added.",
        "schedule",
    )
    return artists


def _corners(placed: Sequence[Placed], rows: Mapping[int, int]) -> np.ndarray:
    left = np.array([one.start for one in placed], float)
    right = np.array([one.end for one in placed], float)
    row = np.array([rows[one.sm] for one in placed], float)
    above, below = row - BLOCK_HEIGHT / 2, row + BLOCK_HEIGHT / 2
    corners = ((left, above), (right, above), (right, below), (left, below))
    return np.stack([np.stack(corner, axis=-1) for corner in corners], axis=1)


def _new(ax: Axes, legend: bool) -> ScheduleArtists:
    style.prepare(ax)
    ax.grid(visible=False, axis="y")
    ax.xaxis.set_major_locator(MaxNLocator(6, integer=True, steps=(1, 2, 4, 5, 10)))
    style.plain_axis(ax.xaxis, "time", "steps along k")
    ax.set_ylabel("SM", fontsize=style.LABEL, color=style.INK)
    whole = PolyCollection([], edgecolors=style.INK)
    parts = PolyCollection([], edgecolors=style.INK, hatch_linewidth=0.5)
    for collection in (whole, parts):
        ax.add_collection(collection, autolim=False)
    if legend:
        looks = {"facecolor": style.SKY, "edgecolor": style.INK, "linewidth": 0.8}
        handles = [Patch(**looks), Patch(**looks, hatch="//", hatch_linewidth=0.5)]
        names = ["a whole tile", "a part, to be added"]
        below = -34 / (72 * ax.get_figure().get_figheight() * ax.get_position().height)
        style.legend(
            ax, handles, names, loc="upper left", bbox_to_anchor=(0, below), ncols=2,
            borderpad=0, borderaxespad=0,
        )  # fmt: skip
    return ScheduleArtists(whole, parts)
