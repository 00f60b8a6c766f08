"""Which processor computes which tile when: bars over steps, a row for each SM."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator

from gemmlab.model.schedule import Placed, busy, ends, sums_stored
from gemmlab.plots.shared import style

HEIGHT = 0.8  # of a bar, of the distance between two rows
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
) -> ScheduleArtists:
    """Draw each piece as a bar in the row of its SM, in the colour of its tile.

    On up to `FEW` SMs, pieces of a tile that several blocks share are hatched: their sums are added
    afterwards.
    until : where the axis ends, so that two schedules can be compared; the last end where None
    legend : whether it is said below what hatches mean
    artists : of an earlier call, to be changed in place
    Raises ValueError for more than `LARGEST` pieces, and for none.
    """
    if not 0 < len(placed) <= LARGEST:
        raise ValueError(f"{len(placed):,} pieces cannot be drawn; use 1 to {LARGEST:,}")
    artists = artists or _new(ax, legend and sms <= FEW)
    for name in artists.names:
        name.remove()
    artists.names.clear()
    for collection, whole in ((artists.whole, True), (artists.parts, False)):
        mine = [one for one in placed if one.piece.whole is whole]
        collection.set_verts(_corners(mine))
        collection.set_facecolor([to_rgb(HUES[one.piece.tile % len(HUES)]) for one in mine])
        collection.set(linewidth=0.8 if sms <= FEW else 0)
    artists.parts.set_hatch("////" if sms <= FEW else "")
    if max(len(placed), sms) <= FEW:
        for one in placed:
            middle = (one.start + one.end) / 2, one.sm
            text = ax.text(*middle, f"{one.piece.tile}", ha="center", va="center")
            text.set(fontsize=style.NOTE, color=style.INK, clip_on=True)
            text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.85})
            artists.names.append(text)
    end = ends(placed)
    ax.set(xlim=(0, until or end), ylim=(sms - 0.5, -0.5))
    if sms <= FEW:
        ax.set_yticks(range(sms))
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


def _corners(placed: Sequence[Placed]) -> np.ndarray:
    """The corners of each bar, (pieces, 4, 2)."""
    left = np.array([one.start for one in placed], float)
    right = np.array([one.end for one in placed], float)
    row = np.array([one.sm for one in placed], float)
    above, below = row - HEIGHT / 2, row + HEIGHT / 2
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
        handles = [Patch(**looks), Patch(**looks, hatch="////", hatch_linewidth=0.5)]
        names = ["a whole tile", "a piece of a tile, to be added"]
        below = -34 / (72 * ax.get_figure().get_figheight() * ax.get_position().height)
        style.legend(
            ax, handles, names, loc="upper left", bbox_to_anchor=(0, below), ncols=2,
            borderpad=0, borderaxespad=0,
        )  # fmt: skip
    return ScheduleArtists(whole, parts)
