"""A kernel under the rooflines of all memories: one mark for each, at its intensity there."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.text import Text

from gemmlab.device import LEVELS, Device
from gemmlab.measure.measurement import Measurement
from gemmlab.model import Prediction
from gemmlab.model.roofline import clocks, intensities
from gemmlab.plots.roofline import MEMORIES
from gemmlab.plots.shared import style
from gemmlab.plots.shared.description import describe

# L1 and shared memory are one unit of an SM, with one slope.
COLOURS = {"l1": MEMORIES["shared"][0], **{level: look[0] for level, look in MEMORIES.items()}}
NAMES = {"dram": "DRAM", "l2": "L2", "l1": "L1", "shared": "shared memory"}
APART = 0.15  # decades between marks that have labels of their own


@dataclass
class MemoryArtists:
    """The marks and labels of each memory, and the line that joins the marks.

    part : of the description of the axes that is about them
    """

    joint: Line2D
    part: str
    marks: dict[str, Line2D] = field(default_factory=dict)
    labels: dict[str, Text] = field(default_factory=dict)


def memories(
    ax: Axes,
    prediction: Prediction,
    device: Device,
    measurement: Measurement | None = None,
    artists: MemoryArtists | None = None,
) -> MemoryArtists:
    """Draw a kernel's marks into a roofline: at each memory's intensity, all at one speed.

    The speed is that of `measurement`, or else what the longest of its clocks allows; the shape of
    the marks says which. Artists of an earlier call are changed in place.
    """
    if artists is None:
        artists = _new(ax)
    found = intensities(prediction)
    item = measurement or prediction
    speed = item.flops / (item.seconds if measurement else max(clocks(prediction, device).values()))
    marker, filled = style.MARKS[style.origin(item)]
    together = _together(found)
    for level, mark in artists.marks.items():
        shown = level in found
        mark.set_visible(shown)
        artists.labels[level].set_visible(level in together)
        if shown:
            mark.set_data([found[level]], [speed])
            mark.set(marker=marker, markerfacecolor=COLOURS[level] if filled else "white")
        if level in together:
            artists.labels[level].xy = found[level], speed
            artists.labels[level].set_text(together[level])
    artists.joint.set_data(list(found.values()), [speed] * len(found))
    told = ", ".join(f"{style.number(x)} FLOP/B at {NAMES[level]}" for level, x in found.items())
    describe(
        ax,
        f"{prediction.kernel}, {style.origin(item)}, runs at {style.si(speed, 'FLOP/s')}; its "
        f"intensity is {told}.",
        artists.part,
    )
    return artists


def _together(found: dict[str, float]) -> dict[str, str]:
    """The names of memories whose marks lie together, at the first of each group."""
    groups: dict[str, str] = {}
    for level, x in found.items():
        near = [g for g in groups if abs(math.log10(found[g] / x)) < APART]
        if near:
            groups[near[0]] += f", {NAMES[level]}"
        else:
            groups[level] = NAMES[level]
    return groups


def _new(ax: Axes) -> MemoryArtists:
    (joint,) = ax.plot([], [], color=style.GREY, linewidth=0.8, zorder=4)
    artists = MemoryArtists(joint, part=f"memories, line {len(ax.lines)}")
    paper = {"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.8}
    for level in LEVELS:
        size = 13 if level == "l2" else 8  # it shows around L1's mark where both lie together
        (artists.marks[level],) = ax.plot([], [], color=COLOURS[level], markersize=size, zorder=5)
        artists.marks[level].set_markeredgewidth(2)
        artists.labels[level] = ax.annotate(
            "", (1, 1), (-5, -10), textcoords="offset points", ha="left", va="top", bbox=paper,
            fontsize=style.NOTE, color=style.INK, zorder=6,
        )  # fmt: skip
    return artists
