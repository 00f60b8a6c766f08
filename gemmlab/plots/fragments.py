"""A fragment drawn as its matrix: which lane holds each element, and in which register."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from gemmlab.plots.lanes import LaneArtists, lane_map
from gemmlab.plots.shared import style

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
