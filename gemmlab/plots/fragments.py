"""A fragment drawn as its matrix: which lane holds each element, and in which register."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.text import Text

from gemmlab.plots import style

MARKED = {
    "color": "white",
    "fontweight": "bold",
    "bbox": {"boxstyle": "square,pad=0.35", "facecolor": style.VERMILION, "edgecolor": style.INK},
}


class FragmentArtists(NamedTuple):
    """The artists of `fragment`: the boxes, and the lanes written into them."""

    boxes: QuadMesh
    lanes: list[Text]


def fragment(
    ax: Axes, table: np.ndarray, title: str, lane: int | None = None, source: str = ""
) -> FragmentArtists:
    """Draw the matrix whose element (i, j) = table[lane, register]; a number is a lane.

    table : (32, registers, 2), as `Layout.table` has it or a probe reads it. Of an element that is
        held more than once, the first lane and register count
    lane : one to be marked; source : where the table comes from, written below

    The darker a box, the later the register.
    """
    table = np.asarray(table)
    rows, cols = table.reshape(-1, 2).max(axis=0) + 1
    lanes, registers = (np.full((rows, cols), -1) for _ in range(2))
    for holder in reversed(range(len(table))):
        for register in reversed(range(table.shape[1])):
            at = tuple(table[holder, register])
            lanes[at], registers[at] = holder, register
    shades = LinearSegmentedColormap.from_list("registers", ["white", style.SKY])
    most = max(int(registers.max()), 1)
    boxes = ax.pcolormesh(
        registers, cmap=shades, vmin=0, vmax=1.25 * most, edgecolors=style.GRID, linewidth=0.5
    )
    written = [
        ax.text(
            j + 0.5, i + 0.55, str(lanes[i, j]), ha="center", va="center", fontsize=7.5,
            **(MARKED if lanes[i, j] == lane else {"color": style.INK}),
        )
        for i in range(rows)
        for j in range(cols)
    ]  # fmt: skip
    ax.set_xticks(np.arange(cols) + 0.5, range(cols), fontsize=style.TICK - 1.5)
    ax.set_yticks(np.arange(rows) + 0.5, range(rows), fontsize=style.TICK - 1.5)
    ax.tick_params(length=0, colors=style.GREY, labeltop=True, labelbottom=False, pad=1)
    ax.set(aspect="equal")
    ax.invert_yaxis()
    ax.spines[:].set_visible(False)
    ax.set_title(title, loc="left", fontsize=style.TITLE, color=style.INK, pad=14)
    ax.text(
        1, -0.02, source, transform=ax.transAxes, ha="right", va="top", fontsize=style.NOTE,
        style="italic", color=style.GREY,
    )  # fmt: skip
    return FragmentArtists(boxes, written)
