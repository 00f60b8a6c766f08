"""Speedup of fragments made in registers over a baseline, against the size of the batch."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from gemmlab.measure.benchmarks import FragmentUse
from gemmlab.plots.shared import style
from gemmlab.plots.shared.description import describe

DASHES = ("-", "--", ":")  # of the sizes of matrices, in their order


def speedups(ax: Axes, uses: Sequence[FragmentUse], over: str) -> dict[tuple[str, int], Line2D]:
    """Draw the speedup over the version `over` of each use and size; the lines by (name, m).

    Uses have colours and fillings, sizes of matrices dashes; at 1, where a line is, nothing is
    gained. The legend is below the axes.
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
        line.set(fillstyle=style.FILLS[names.index(name) % len(style.FILLS)])
        line.set_markerfacecoloralt("white")
        line.set(linewidth=1.5, label=f"{name.capitalize()}, {m}×{m}")
        lines[name, m] = line
    ax.axhline(1, color=style.INK, linewidth=1, zorder=1)
    batches = sorted({use.batch for use in uses})
    ax.set_xticks(batches)
    ax.set_yticks([0.8, 1, 1.25, 1.5, 2, 2.5, 3])
    ax.set_ylim(0.8, 3.2)
    names = [line.get_label() for line in lines.values()]
    style.legend(ax, lines.values(), names, loc="upper left", bbox_to_anchor=(-0.1, -0.14), ncols=2)
    describe(ax, _finding(lines, over), "speedups")
    return lines


def _finding(lines: dict[tuple[str, int], Line2D], over: str) -> str:
    """Least and most speedup of each line, and how many reach a gain at the largest batch."""
    told, gains = [], 0
    for line in lines.values():
        batches, speedups = line.get_data()
        best = batches[list(speedups).index(max(speedups))]
        told.append(f"{line.get_label()}: {min(speedups):.2f} to {max(speedups):.2f}, at {best:,}")
        gains += speedups[-1] > 1
    return (
        f"Speedup of “registers” over “{over}” against the matrices in the batch. "
        f"{'; '.join(told)}. At the largest batch {gains} of {len(lines)} gain."
    )
