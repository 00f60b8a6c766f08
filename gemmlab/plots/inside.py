"""Warps over the cycles of their SM, as its clock said it, above what was simulated before."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.patches import Patch

from gemmlab.measure.inside import WarpMarks
from gemmlab.plots.shared import style

START, TURN, NEXT, STORE = "start", "turn", "next turn", "store"
LOOKS = {START: style.SKY, TURN: style.GREEN, NEXT: "#8FD0BB", STORE: style.ORANGE}
NAMES = {
    START: "until the first tile is there",
    TURN: "products, one tile after the other",
    STORE: "C is stored",
}
BETWEEN = 0.35  # of the rows of an origin: from those measured to those simulated
ORIGINS = {"measured": "median", "simulated": "simulated"}


class InsideArtists(NamedTuple):
    """`inside` draws these: the bars by what a warp does, the measured ones and the simulated."""

    bars: dict[str, PolyCollection]


class Doing(NamedTuple):
    """A warp does something from one cycle to another."""

    what: str
    start: int
    end: int


def doings(marks: Sequence[int], rounds: int = 1) -> list[Doing]:
    """List what a warp does between its marks, of which the last two of a tile of C end it.

    rounds : tiles of C, one after the other

    >>> [(one.what, one.end) for one in doings((0, 30, 50, 70, 90))]
    [('start', 30), ('turn', 50), ('next turn', 70), ('store', 90)]
    """
    each, found = (len(marks) - 1) // rounds, []
    for tile in range(rounds):
        own = marks[tile * each : (tile + 1) * each + 1]
        found.append(Doing(START, own[0], own[1]))
        for turn in range(1, each - 1):
            found.append(Doing((NEXT, TURN)[turn % 2], own[turn], own[turn + 1]))
        found.append(Doing(STORE, own[-2], own[-1]))
    return found


def inside(
    ax: Axes, warps: Sequence[WarpMarks], resident: int = 1, rounds: int = 1, legend: bool = True
) -> InsideArtists:
    """Draw each warp that stores as a row of bars: those measured above, those simulated below.

    resident : blocks at a time, each of which has rows of its own
    rounds : tiles of C that a block has
    legend : below the axis
    """
    most = max(len(one.simulated) for one in warps)
    shown = [one for one in warps if len(one.simulated) == most]
    rows = resident * len({one.warp for one in shown})
    corners: dict[str, list] = {what: [] for what in LOOKS}
    ends = {}
    for number, (origin, field) in enumerate(ORIGINS.items()):
        top = number * rows * (1 + BETWEEN)
        for row, marks in _rows(shown, field, resident):
            for one in doings(marks, rounds):
                y = top + row
                left, right = (one.start, y), (one.end, y)
                below = (one.end, y + 1), (one.start, y + 1)
                corners[one.what].append((left, right, *below))
        ends[origin] = max(max(getattr(one, field)) for one in shown)
    bars = {
        what: ax.add_collection(PolyCollection(of, facecolors=LOOKS[what], linewidths=0))
        for what, of in corners.items()
    }
    _axes(ax, rows, ends)
    if legend:
        tall = 72 * ax.get_figure().get_figheight() * ax.get_position().height
        style.legend(
            ax, [Patch(color=LOOKS[what]) for what in NAMES], [*NAMES.values()], ncols=len(NAMES),
            loc="upper left", bbox_to_anchor=(0, -34 / tall), borderpad=0, borderaxespad=0,
        )  # fmt: skip
    return InsideArtists(bars)


def _rows(
    warps: Sequence[WarpMarks], field: str, resident: int
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield each warp's row and marks: later blocks come where one has ended."""
    blocks: dict[int, list[tuple[int, ...]]] = {}
    for one in warps:
        blocks.setdefault(one.block, []).append(getattr(one, field))
    ends = {number: max(map(max, marks)) for number, marks in blocks.items()}
    order, places = sorted(ends, key=ends.__getitem__), {}
    for number, marks in sorted(blocks.items()):
        before = number - resident
        places[number] = number if before < 0 else places[order[before]]
        for warp, own in enumerate(marks):
            yield places[number] * len(marks) + warp, own


def _axes(ax: Axes, rows: int, ends: dict[str, int]) -> None:
    style.prepare(ax)
    ax.grid(visible=False, axis="y")
    middles = [rows * (number * (1 + BETWEEN) + 0.5) for number in range(len(ends))]
    ax.set(xlim=(0, 1.12 * max(ends.values())), ylim=(rows * (2 + BETWEEN), 0))
    ax.set_yticks(middles, ends)
    ax.tick_params(axis="y", length=0, labelsize=style.LABEL)
    style.plain_axis(ax.xaxis, "cycles of the SM")
    measured, simulated = ends["measured"], ends["simulated"]
    off = f"{simulated / measured - 1:+.1%}".replace("-", "−")
    for middle, (origin, end) in zip(middles, ends.items(), strict=True):
        text = style.number(end) if origin == "measured" else f"{style.number(end)}\n({off})"
        ax.annotate(
            text, (end, middle), (4, 0), textcoords="offset points", va="center",
            fontsize=style.NOTE, color=style.INK,
        )  # fmt: skip
    style.describe(
        ax,
        f"The last warp has stored after {measured:,} cycles; {simulated:,} were simulated, {off}.",
        "inside",
    )
