"""A matrix whose elements name their owners: the lane, warp or thread that loads or holds each.

`fragment` draws the matrix of a fragment, where a lane holds each element in one of its registers.
"""

import math
from typing import NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.text import Text
from numpy.typing import ArrayLike

from gemmlab.plots.shared import style

MARKED = {
    "color": "white",
    "fontweight": "bold",
    "bbox": {"boxstyle": "square,pad=0.25", "facecolor": style.VERMILION, "edgecolor": style.INK},
}
TOLD = 8  # elements of a lane that are told one by one in words
SPREAD = colormaps["cividis_r"]  # from light to dark, and told apart by everybody


class LaneArtists(NamedTuple):
    """`lane_map` draws these: the boxes, and the numbers written into them."""

    boxes: QuadMesh
    numbers: list[Text]


def lane_map(
    ax: Axes,
    owners: ArrayLike,
    title: str = "",
    marked: int | None = None,
    shades: ArrayLike | None = None,
    who: str = "lane",
    shades_map: Colormap = SPREAD,
) -> LaneArtists:
    """Draw a matrix of numbers: element (i, j) belongs to lane `owners[i, j]`.

    owners : two dimensions; a negative number is nobody's, and its box stays empty
    marked : an owner whose elements stand out
    shades : a number for each element, the darker the larger; the owners where None
    who : what an owner is, as "lane", "warp" or "thread", for the words that describe the figure
    Raises ValueError where `owners` has not two dimensions.

    >>> from gemmlab import plots
    >>> figure, (ax,) = plots.figure(5, 2)
    >>> artists = plots.lane_map(ax, [[0, 2, 4, 6], [1, 3, 5, 7]], "lanes of a warp", marked=2)
    >>> plots.alt(figure)
    'lanes of a warp: 8 lanes own the elements of 2 rows and 4 columns. Lane 2: (0, 1).'
    """
    owners = np.asarray(owners)
    if owners.ndim != 2 or not owners.size:
        raise ValueError(f"owners has the shape {owners.shape}; give a matrix, as [[0, 1], [2, 3]]")
    rows, columns = owners.shape
    depth = np.ma.masked_where(owners < 0, owners if shades is None else np.asarray(shades))
    most = max(int(np.max(depth.compressed(), initial=1)), 1)
    boxes = ax.pcolormesh(
        depth, cmap=shades_map, vmin=0, vmax=1.25 * most, edgecolors=style.GRID, linewidth=0.5
    )
    side = _side(ax, rows, columns)
    size = min(style.LABEL, 0.75 * side, side / (0.7 * len(str(owners.max()))))
    colours = boxes.to_rgba(depth)[..., :3]
    numbers = [
        ax.text(
            j + 0.5, i + 0.55, str(owners[i, j]), ha="center", va="center", fontsize=size,
            visible=size >= style.SMALLEST,
            **(MARKED if owners[i, j] == marked else {"color": style.ink_on(colours[i, j])}),
        )
        for i, j in np.argwhere(owners >= 0)
    ]  # fmt: skip
    for axis, length in ((ax.xaxis, columns), (ax.yaxis, rows)):
        step = 2 ** max(0, math.ceil(math.log2(1.9 * style.SMALLEST / side)))
        axis.set_ticks(np.arange(0, length, step) + 0.5, range(0, length, step))
    ax.tick_params(length=0, colors=style.GREY, labelsize=style.SMALLEST, pad=2)
    ax.set(aspect="equal", xlim=(0, columns), ylim=(rows, 0))
    ax.set_anchor("N")  # maps side by side begin at one height
    ax.spines[:].set_visible(False)
    style.title(ax, title)
    style.describe(ax, _finding(owners, marked, who), "lane map")
    return LaneArtists(boxes, numbers)


def _side(ax: Axes, rows: int, columns: int) -> float:
    """The side of a box, which is as large as the axes allow [pt]."""
    page, place = 72 * ax.get_figure().get_size_inches(), ax.get_position(original=True)
    return min(place.width * page[0] / columns, place.height * page[1] / rows)


def _finding(owners: np.ndarray, marked: int | None, who: str) -> str:
    """Say how many lanes own how much, and what the marked one owns."""
    rows, columns = owners.shape
    there = np.unique(owners[owners >= 0])
    text = (
        f"{style.count(len(there), who)} own{'s' * (len(there) == 1)} the elements of "
        f"{style.count(rows, 'row')} and {style.count(columns, 'column')}."
    )
    if marked is None:
        return text
    places = [f"({i}, {j})" for i, j in np.argwhere(owners == marked)]
    listed = ", ".join(places[:TOLD]) or "none"
    more = f" and {len(places) - TOLD} more" if len(places) > TOLD else ""
    return f"{text} {who.capitalize()} {marked}: {listed}{more}."


REGISTERS = LinearSegmentedColormap.from_list("registers", ["white", style.SKY])


def fragment(
    ax: Axes, table: np.ndarray, title: str, lane: int | None = None, source: str = ""
) -> LaneArtists:
    """Draw the matrix whose element (i, j) = table[lane, register]; a number is a lane.

    table : (32, registers, 2), as `Layout.table` has it or a probe reads it. Of an element that is
        held more than once, the first lane and register count
    lane : one to be marked; source : where the table comes from

    The darker a box, the later the register.
    """
    table = np.asarray(table)
    rows, cols = table.reshape(-1, 2).max(axis=0) + 1
    lanes, registers = (np.full((rows, cols), -1) for _ in range(2))
    for holder in reversed(range(len(table))):
        for register in reversed(range(table.shape[1])):
            at = tuple(table[holder, register])
            lanes[at], registers[at] = holder, register
    artists = lane_map(ax, lanes, title, lane, registers, shades_map=REGISTERS)
    ax.set_xlabel("number: lane\ndarker: later register", fontsize=style.NOTE)
    style.provenance(ax, source)
    return artists
