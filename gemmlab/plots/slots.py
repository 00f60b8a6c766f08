"""What the issue slots of an SM are used for, and what the empty ones wait for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.text import Annotation

from gemmlab.compiled.sm.pipes import Kind
from gemmlab.compiled.sm.result import Reason
from gemmlab.plots.shared import style
from gemmlab.plots.shared.description import describe

TALL, THIN = 0.72, 0.3  # of a row: instructions are tall, waits are thin, whatever their colour
ROOM = 1.22  # of the longest bar, for the number beside it


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
    """What `slots` draws: a bar and its number for each name, those of `USED` first."""

    bars: tuple[Rectangle, ...]
    numbers: tuple[Annotation, ...]

    @property
    def moving(self) -> tuple[Rectangle | Annotation, ...]:
        """All that changes while the axis stays."""
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
    describe(ax, _finding(used, empty), "slots")
    return artists


def percent(share: float) -> str:
    """A share in words.

    >>> percent(0.353), percent(0.0042)
    ('35%', '0.4%')
    """
    return f"{share:.0%}" if share >= 0.0095 else f"{100 * share:.1f}%"


def in_words(by_member: Mapping[str, float], looks: tuple[Look, ...], most: int = 9) -> str:
    """The largest shares, "35% FMA, 24% integer"; those that round to nothing are left out."""
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
    numbers = tuple(
        ax.annotate("", (0, y), (4, 0), textcoords="offset points", va="center") for y in places
    )
    for number in numbers:
        number.set(fontsize=style.NOTE, color=style.INK, annotation_clip=False)
    ax.set_yticks(places, [look.name for look, _ in looks])
    head = {"transform": ax.get_yaxis_transform(), "fontsize": style.NOTE, "va": "center"}
    ax.text(-0.02, len(USED), "waits for:", ha="right", color=style.GREY, **head)
    ax.set_ylim(places[-1] + 0.6, -0.6)
    ax.grid(visible=False)
    ax.set_xticks([])
    ax.spines["bottom"].set_visible(False)
    ax.set_xlabel("% of the issue slots", fontsize=style.NOTE, color=style.INK)
    return SlotArtists(bars, numbers)
