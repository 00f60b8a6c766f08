"""The pieces of a tile lie in shared memory, in lines of 128 bytes with the banks below them."""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_rgba
from matplotlib.text import Text
from numpy.typing import ArrayLike

from gemmlab.plots.shared import style

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
    style.describe(ax, _finding(elements.size, lines, marked, counts), "pieces")
    return artists


def _finding(size: int, lines: int, marked: Collection[tuple[int, int]], counts: np.ndarray) -> str:
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
