"""A matrix names the owners of its elements, and the pieces of a tile lie in shared memory's banks.

The owner is the lane, warp or thread that loads or holds an element; `fragment` draws the matrix of
a fragment, where a lane holds each element in one of its registers. `pieces` lie in lines of 128
bytes with the banks below them.
"""

import math
from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import Colormap, LinearSegmentedColormap, to_rgba
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
    """Return the side of a box, which is as large as the axes allow [pt]."""
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


PIECE, LINE = 8, 64  # elements of 2 bytes in a piece of 16 bytes, and in a line of 128
PLACES = LINE // PIECE  # of a line, four banks each
BANKS = 4
SHADES = colormaps["Blues"]  # of pieces, from the first of a row to its last
DARKEST = 0.45  # so that ink is read on all of them


class PieceArtists(NamedTuple):
    """`pieces` draws these: a box for each place, and the name of the piece that lies there."""

    boxes: QuadMesh
    names: list[Text]


def pieces(
    ax: Axes,
    elements: ArrayLike,
    title: str = "",
    marked: Collection[tuple[int, int]] = (),
    artists: PieceArtists | None = None,
) -> PieceArtists:
    """Draw a tile in shared memory: a box is a place of 16 bytes, "row.piece" is what it holds.

    elements : (rows, pieces), the element of 2 bytes from which on each piece lies
    marked : (row, piece) of those that are read together; below each place stands how many of them
        it has
    Raises ValueError for a piece that begins between two places, and where two share one.

    >>> from gemmlab import plots
    >>> figure, (ax,) = plots.figure(5, 2)
    >>> artists = plots.pieces(ax, [[0, 8], [16, 24]], "two rows", marked=[(0, 0), (1, 0)])
    >>> plots.alt(figure)
    'two rows: 4 pieces in 1 line of 128 bytes. Row.piece 0.0, 1.0 lie in 2 places: 1 wavefront.'
    """
    elements = np.asarray(elements)
    places = elements.ravel() // PIECE
    if (elements % PIECE).any() or len(np.unique(places)) < places.size:
        raise ValueError("pieces lie at multiples of 8 elements, each in a place of its own")
    lines = int(-(-(places.max() + 1) // PLACES))
    if artists is None:
        artists = _new(ax, lines)
    colours = np.ones((lines * PLACES, 4))
    for text in artists.names:
        text.set_text("")
    counts = np.zeros(PLACES, int)
    most = max(1, elements.shape[1] - 1)
    for (row, piece), element in np.ndenumerate(elements):
        place, chosen = element // PIECE, (row, piece) in marked
        shade = SHADES(0.05 + (DARKEST - 0.05) * piece / most)
        colours[place] = to_rgba(style.VERMILION) if chosen else shade
        counts[place % PLACES] += chosen
        text = artists.names[place]
        text.set(text=f"{row}.{piece}", color="white" if chosen else style.INK)
        text.set_fontweight("bold" if chosen else "normal")
    artists.boxes.set_facecolor(colours)
    banks = [f"{BANKS * i}–{BANKS * i + BANKS - 1}" for i in range(PLACES)]
    if marked:
        banks = [f"{bank}\n{count}" for bank, count in zip(banks, counts, strict=True)]
    ax.set_xticks(np.arange(PLACES) + 0.5, banks)
    below = "banks, and marked pieces in them" if marked else "banks"
    ax.set_xlabel(f"box: row.piece; foot: {below}", fontsize=style.NOTE, color=style.INK)
    style.title(ax, title)
    style.describe(ax, _pieces_finding(elements.size, lines, marked, counts), "pieces")
    return artists


def _pieces_finding(
    size: int, lines: int, marked: Collection[tuple[int, int]], counts: np.ndarray
) -> str:
    text = f"{size} pieces in {style.count(lines, 'line')} of 128 bytes."
    if not marked:
        return text
    names = ", ".join(f"{row}.{piece}" for row, piece in marked)
    places = style.count(int((counts > 0).sum()), "place")
    wavefronts = style.count(int(counts.max()), "wavefront")
    return f"{text} Row.piece {names} lie in {places}: {wavefronts}."


def _new(ax: Axes, lines: int) -> PieceArtists:
    ax.clear()
    style.prepare(ax)
    ax.grid(visible=False)
    boxes = ax.pcolormesh(np.zeros((lines, PLACES)), edgecolors="white", linewidth=1.5)
    boxes.set_array(None)
    names = [
        ax.text(i % PLACES + 0.5, i // PLACES + 0.52, "", ha="center", va="center",
                fontsize=style.SMALLEST)
        for i in range(lines * PLACES)
    ]  # fmt: skip
    ax.set(xlim=(0, PLACES), ylim=(lines, 0))
    ax.set_yticks(np.arange(0, lines, 2) + 0.5, range(0, lines, 2))
    ax.set_ylabel("line of 128 bytes", fontsize=style.NOTE, color=style.INK)
    ax.tick_params(length=0, labelsize=style.SMALLEST)
    ax.spines[:].set_visible(False)
    return PieceArtists(boxes, names)
