"""Bars show what the issue slots of an SM are used for, and what the empty ones wait for.

`slots` adds the slots up; `warps` draws each warp over the cycles.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from matplotlib.text import Annotation

from gemmlab.compiled.sm.pipes import Kind
from gemmlab.compiled.sm.result import SCHEDULERS, Reason
from gemmlab.plots.shared import style

TALL, THIN = 0.72, 0.3  # of a row: instructions are tall, waits are thin, whatever their colour
ROOM = 1.22  # of the longest bar, for the number beside it
KEY = 0.055  # of the axes' width, between names and bars, for the colours


class Look(NamedTuple):
    """Kinds of instructions, or reasons to wait, that share a name and a colour."""

    name: str
    colour: str
    members: tuple[int, ...]


USED = (
    Look("FMA", style.BLUE, (Kind.FMA, Kind.FP64)),
    Look("mma", style.VERMILION, (Kind.TENSOR,)),
    Look("integer", style.ORANGE, (Kind.INTEGER, Kind.UNIFORM)),
    Look("shared memory", style.GREEN, (Kind.SHARED,)),
    Look("global memory", style.PURPLE, (Kind.GLOBAL,)),
    Look("copy to shared", style.SKY, (Kind.COPY,)),
    Look("other", style.INK, (Kind.SPECIAL, Kind.BARRIER, Kind.BRANCH, Kind.OTHER)),
)
EMPTY = (
    Look("a result", style.VERMILION, (Reason.SCOREBOARD,)),
    Look("fixed pause", style.GREY, (Reason.STALL,)),
    Look("register port", style.BLUE, (Reason.BANK,)),
    Look("busy pipe", style.ORANGE, (Reason.PIPE, Reason.DISPATCH)),
    Look("load queue", style.GREEN, (Reason.LSU,)),
    Look("barrier", style.PURPLE, (Reason.BARRIER,)),
    Look("instruction fetch", style.SKY, (Reason.FETCH,)),
    Look("no warp", style.YELLOW, (Reason.IDLE,)),
)
READY = Look("ready: another's turn", style.GRID, (Reason.NOT_SELECTED,))


class SlotArtists(NamedTuple):
    """`slots` draws these: a bar and its number for each name, those of `USED` first."""

    bars: tuple[Rectangle, ...]
    numbers: tuple[Annotation, ...]

    @property
    def moving(self) -> tuple[Rectangle | Annotation, ...]:
        """The artists that change while the axis stays."""
        return *self.bars, *self.numbers


def shares(by_member: Mapping[str, float], looks: tuple[Look, ...]) -> dict[str, float]:
    """Shares by the names of looks, from those by the names of kinds or of reasons.

    >>> shares({"fma": 0.5, "uniform": 0.1, "integer": 0.1}, USED)["integer"]
    0.2
    """
    return {
        look.name: sum(by_member.get(member.name.lower(), 0.0) for member in look.members)
        for look in looks
    }


def slots(
    ax: Axes,
    used: Mapping[str, float],
    empty: Mapping[str, float],
    artists: SlotArtists | None = None,
) -> SlotArtists:
    """Draw shares of the issue slots: tall bars for instructions, thin ones for what is waited for.

    used, empty : shares by the names of `Kind` and of `Reason`, as `Steps` has them

    >>> from gemmlab import plots
    >>> figure, (ax,) = plots.figure(5, 4)
    >>> artists = plots.slots(ax, {"fma": 0.5, "integer": 0.25}, {"scoreboard": 0.25})
    >>> plots.alt(figure)
    'Issue slots: 75% used: 50% FMA, 25% integer; empty: 25% a result.'
    """
    if artists is None:
        artists = _new(ax)
    found = (*shares(used, USED).values(), *shares(empty, EMPTY).values())
    for share, bar, number in zip(found, artists.bars, artists.numbers, strict=True):
        bar.set_width(100 * max(share, 0.0))
        number.set_text(percent(share) if share > 0 else "–")
        number.xy = 100 * max(share, 0.0), number.xy[1]
    longest = 10 * -(-1000 * max(found) // 100)  # in steps of ten, so that it seldom changes
    ax.set_xlim(0, ROOM * max(longest, 10))
    style.describe(ax, _finding(used, empty), "slots")
    return artists


def percent(share: float) -> str:
    """Return a share in words.

    >>> percent(0.353), percent(0.0042)
    ('35%', '0.4%')
    """
    return f"{share:.0%}" if share >= 0.0095 else f"{100 * share:.1f}%"


def in_words(by_member: Mapping[str, float], looks: tuple[Look, ...], most: int = 9) -> str:
    """Give the largest shares, "35% FMA, 24% integer"; those that round to nothing are left out."""
    found = sorted(shares(by_member, looks).items(), key=lambda item: -item[1])
    return ", ".join(f"{percent(n)} {name}" for name, n in found[:most] if n >= 0.0005)


def _finding(used: Mapping[str, float], empty: Mapping[str, float]) -> str:
    text = f"Issue slots: {percent(sum(used.values()))} used: {in_words(used, USED)}"
    waits = in_words(empty, EMPTY)
    return f"{text}; empty: {waits}." if waits else f"{text}."


def _new(ax: Axes) -> SlotArtists:
    style.prepare(ax)
    looks = [(look, TALL) for look in USED] + [(look, THIN) for look in EMPTY]
    places = [y + (y >= len(USED)) for y in range(len(looks))]  # a free row between the two
    bars = tuple(
        ax.barh(y, 0, height, color=look.colour)[0]
        for y, (look, height) in zip(places, looks, strict=True)
    )
    for y, (look, height) in zip(places, looks, strict=True):  # a key, also of what has no bar
        key = (-KEY, y - height / 2), KEY - 0.02, height
        patch = Rectangle(*key, color=look.colour, transform=ax.get_yaxis_transform())
        ax.add_artist(patch).set(clip_on=False, in_layout=False)
    numbers = tuple(
        ax.annotate("", (0, y), (4, 0), textcoords="offset points", va="center") for y in places
    )
    for number in numbers:
        number.set(fontsize=style.NOTE, color=style.INK, annotation_clip=False)
    ax.set_yticks(places, [look.name for look, _ in looks])
    ax.tick_params(
        axis="y", pad=72 * KEY * ax.get_figure().get_figwidth() * ax.get_position().width
    )
    head = {"transform": ax.get_yaxis_transform(), "fontsize": style.NOTE, "va": "center"}
    ax.text(-KEY - 0.01, len(USED), "waits for:", ha="right", color=style.GREY, **head)
    ax.set_ylim(places[-1] + 0.6, -0.6)
    ax.grid(visible=False)
    ax.set_xticks([])
    ax.spines["bottom"].set_visible(False)
    ax.set_xlabel("% of the issue slots", fontsize=style.NOTE, color=style.INK)
    return SlotArtists(bars, numbers)


MANY = 16  # warps: of more, each is drawn in fewer rows of pixels
TICKS = 16  # cycles between two


def _palette(looks: Sequence, members: type) -> np.ndarray:
    found = np.ones((len(members), 3))
    for look in looks:
        found[list(look.members)] = to_rgb(look.colour)
    return found


ISSUES = _palette(USED, Kind)
WAITS = _palette((*EMPTY, READY), Reason)


class Grain(NamedTuple):
    """Rows of pixels for a warp; of them, where an instruction is drawn, and where a wait is."""

    rows: int
    tall: slice
    thin: slice


FINE, COARSE = Grain(12, slice(1, 11), slice(5, 7)), Grain(4, slice(0, 3), slice(1, 2))


class WarpArtists(NamedTuple):
    """`warps` draws these: the cells, the scheduler's own row below them, and the chosen slot."""

    cells: AxesImage
    slots: AxesImage
    chosen: Rectangle

    @property
    def moving(self) -> tuple:
        """The artists that change while the same warps are shown."""
        return self.cells, self.slots, self.chosen


def warps(
    ax: Axes,
    kinds: np.ndarray,
    reasons: np.ndarray,
    numbers: Sequence[int],
    first: int,
    chosen: tuple[int, int] = (0, 0),
    artists: WarpArtists | None = None,
) -> WarpArtists:
    """Draw warps from the top down, cycles from left to right, a cell for each.

    A tall cell is an instruction of that kind, a thin one a wait. The lowest row has the slots of
    the warps' schedulers together: how many of them issue in a cycle, as a height.

    kinds : (warps, cycles), the `Kind` that a warp issues, -1 for none
    reasons : (warps, cycles), the `Reason` why it does not, -1 where it issues
    numbers : of the warps; first : the first cycle
    chosen : row and column of the cell that is framed
    """
    rows, cycles = kinds.shape
    if artists is None:
        artists = _new_rows(ax, rows, cycles, numbers)
    grain = FINE if rows <= MANY else COARSE
    picture = np.ones((rows, grain.rows, cycles, 3))
    picture[:, grain.thin] = np.where((kinds < 0)[..., None], WAITS[reasons], 1)[:, None]
    picture[:, grain.tall] = np.where(
        (kinds >= 0)[:, None, :, None], ISSUES[kinds][:, None], picture[:, grain.tall]
    )
    artists.cells.set_data(picture.reshape(-1, cycles, 3))
    artists.slots.set_data(_stacked(kinds, min(SCHEDULERS, len({w % SCHEDULERS for w in numbers}))))
    row, column = chosen
    artists.chosen.set_bounds(column, row, 1, 1)
    ax.set_xticklabels([f"{first + tick:,}" for tick in range(0, cycles + 1, TICKS)])
    style.describe(ax, _told_of_warps(kinds, numbers, first), "warps")
    return artists


def _stacked(kinds: np.ndarray, schedulers: int) -> np.ndarray:
    """Return a column for each cycle: what is issued in it, one above the other."""
    picture = np.ones((schedulers, kinds.shape[1], 3))
    issued = np.sort(kinds, axis=0)[::-1][:schedulers]
    for i, row in enumerate(issued):
        where = np.flatnonzero(row >= 0)
        picture[schedulers - 1 - i, where] = ISSUES[row[where]]
    return picture


def _told_of_warps(kinds: np.ndarray, numbers: Sequence[int], first: int) -> str:
    issued = kinds >= 0
    last = first + kinds.shape[1] - 1
    told = style.count(int(issued.sum()), "instruction")
    told += " is" if issued.sum() == 1 else " are"
    busiest = int(issued.sum(axis=1).argmax())
    return (
        f"Warps {', '.join(map(str, numbers))} in the cycles {first:,} to {last:,}: "
        f"{told} issued; warp {numbers[busiest]} issues most, "
        f"{int(issued[busiest].sum())}."
    )


def _new_rows(ax: Axes, rows: int, cycles: int, numbers: Sequence[int]) -> WarpArtists:
    ax.clear()
    style.prepare(ax)
    gap, strip = 0.04 * rows, max(1.0, 0.14 * rows)
    bottom = rows + gap + strip
    look = {"aspect": "auto", "interpolation": "nearest", "origin": "upper"}
    cells = ax.imshow(np.ones((1, 1, 3)), extent=(0, cycles, rows, 0), **look)
    slots = ax.imshow(np.ones((1, 1, 3)), extent=(0, cycles, bottom, rows + gap), **look)
    chosen = Rectangle((0, 0), 1, 1, facecolor="none", edgecolor=style.BLACK, linewidth=1.6)
    chosen.set_clip_on(False)
    ax.add_patch(chosen)
    ax.set(xlim=(0, cycles), ylim=(bottom, 0))
    step = -(-rows // 16)
    ticks = [row + 0.5 for row in range(0, rows, step)]
    names = [f"warp {numbers[row]}" for row in range(0, rows, step)]
    ax.set_yticks([*ticks, rows + gap + strip / 2], [*names, "issued"])
    ax.set_xticks(range(0, cycles + 1, TICKS))
    ax.grid(visible=False)
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.set_xlabel(
        "cycle (faint: ready, another warp goes first)", fontsize=style.NOTE, color=style.INK
    )
    return WarpArtists(cells, slots, chosen)
