"""Speedup of fragments made in registers over a baseline, against the size of the batch."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from gemmlab.plots import style
from gemmlab.records.uses import FragmentUse

DASHES = ("-", "--", ":")  # of the sizes, in their order
FILLS = ("full", "none", "left", "top")  # of the uses, whose colours a grey print does not show


def speedups(ax: Axes, uses: Sequence[FragmentUse], over: str) -> dict[tuple[str, int], Line2D]:
    """Draw the speedup over the version `over` of each use and size; the lines by (name, m).

    Uses have colours and fillings, sizes of matrices dashes; at 1, where a line is, nothing is
    gained.
    """
    style.prepare(ax, log="xy", base=4)
    style.plain_axis(ax.xaxis, "matrices in the batch")
    style.plain_axis(ax.yaxis, "speedup of “registers”")
    style.title(ax, f"over “{over}”")
    names = list(dict.fromkeys(use.name for use in uses))
    colour = style.colours(names)
    sizes = sorted({use.m for use in uses})
    lines = {}
    for name, m in dict.fromkeys((use.name, use.m) for use in uses):
        points = sorted((u.batch, u.speedup(over)) for u in uses if (u.name, u.m) == (name, m))
        (line,) = ax.plot(*zip(*points, strict=True), DASHES[sizes.index(m)])
        line.set(color=colour[name], marker=style.MARKS["recorded"].marker, markersize=5.5)
        line.set(fillstyle=FILLS[names.index(name) % len(FILLS)], markerfacecoloralt="white")
        line.set(linewidth=1.5, label=f"{name.capitalize()}, {m}×{m}")
        lines[name, m] = line
    ax.axhline(1, color=style.INK, linewidth=1, zorder=1)
    batches = sorted({use.batch for use in uses})
    ax.set_xticks(batches)
    ax.set_yticks([0.8, 1, 1.25, 1.5, 2, 2.5, 3])
    ax.set_ylim(0.8, 3.2)
    return lines
