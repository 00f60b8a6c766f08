"""The roofline: attainable speed against arithmetic intensity, and problems as points in it.

`memories` draws one kernel under the rooflines of all memories, with a mark for each of them.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.path import Path
from matplotlib.text import Text
from matplotlib.transforms import Affine2D, Bbox

from gemmlab.device import LEVELS, Device
from gemmlab.measure.measurement import Measurement
from gemmlab.model import Prediction
from gemmlab.model.limiter import clocks, intensities, slopes
from gemmlab.plots.shared import style

# From below the intensity of 1×1×1 in float64 to above that of 16384³ in float16 [FLOP/B].
INTENSITIES = (0.05, 2e4)
MOST_POINTS = 4  # that are told one by one in words
MEMORIES = {
    "dram": (style.VERMILION, "-"),
    "l2": (style.ORANGE, "--"),
    "shared": (style.GREEN, "-."),
}


class RoofArtists(NamedTuple):
    """`roofline` draws these: the roof, each memory's slope, the ridge point, and their labels."""

    peak: Line2D
    slopes: dict[str, Line2D]
    ridge: Line2D
    peak_label: Text
    slope_labels: dict[str, Text]
    ridge_label: Text


def roofline(
    ax: Axes,
    device: Device,
    dtype: str,
    lowest: float | None = None,
    artists: RoofArtists | None = None,
    levels: Sequence[str] = ("dram", "l2"),
) -> RoofArtists:
    """Draw min(peak, intensity × bandwidth) of `device` for `dtype`, with the ridge point named.

    lowest : a speed that the axes must reach down to [FLOP/s]
    levels : memories to draw, keys of `MEMORIES`; "shared" is L1 and shared memory, one unit
    artists : of an earlier call on `ax`, to be changed in place
    Raises ValueError where the device has no rate for `dtype`.
    """
    peak = device.peak_of(dtype)
    if artists is None:
        artists = _new(ax)
    left, right = INTENSITIES
    known = slopes(device, dtype)
    bandwidths = {x: known[x].bandwidth for x in MEMORIES if x in levels and x in known}
    foot = left * device.dram_bandwidth
    ax.set_xlim(left, right)
    ax.set_ylim(style.decades(min(foot, lowest or foot), peak)[0], 4 * peak)

    ridge = device.ops_per_byte(dtype)
    nearest = min(peak / bandwidth for bandwidth in bandwidths.values())
    artists.peak.set_data([nearest, right], [peak, peak])
    artists.peak_label.set_position((right, peak * 1.4))  # clear of markers on the roof
    artists.peak_label.set_text(f"{dtype} peak, {style.si(peak, 'FLOP/s')}")
    for level, line in artists.slopes.items():
        line.set_visible(level in bandwidths)
        artists.slope_labels[level].set_visible(level in bandwidths)
    for level, bandwidth in bandwidths.items():
        artists.slopes[level].set_data([left, peak / bandwidth], [left * bandwidth, peak])
        label = artists.slope_labels[level]
        label.set_rotation(_slope(ax))
        label.set_text(f"{_NAMES[level]}, {style.si(bandwidth, 'B/s')}")
    # Where several slopes are shown, the label of the lowest one goes below it.
    artists.slope_labels["dram"].set_va("top" if len(bandwidths) > 1 else "bottom")
    for level in bandwidths:
        _name_slope(artists, level, left * 1.6)
    artists.ridge.set_data([ridge, ridge], [ax.get_ylim()[0], peak])
    artists.ridge_label.set_position((ridge * 1.08, ax.get_ylim()[0] * 1.3))
    artists.ridge_label.set_text(f"ridge, {style.number(ridge)} FLOP/B")
    drawn = " and ".join(
        f"{_NAMES[level]}'s {style.si(bandwidth, 'B/s')}" for level, bandwidth in bandwidths.items()
    )
    style.describe(
        ax,
        f"Roofline of {device.title} in {dtype}, speed against arithmetic intensity: slopes for "
        f"{drawn} lead up to the peak of {style.si(peak, 'FLOP/s')}, which that of DRAM meets at "
        f"{style.number(ridge)} FLOP/B.",
        "roofline",
    )
    return artists


def _name_slope(artists: RoofArtists, level: str, at: float) -> None:
    """Put a slope's label along it, from the intensity `at` on: above it, or below it."""
    (left, _), (foot, _) = artists.slopes[level].get_data()
    label, bandwidth = artists.slope_labels[level], foot / left
    below = label.get_va() == "top"
    label.set_position((1.2 * at, at * bandwidth / 1.23) if below else (at, at * bandwidth * 1.3))


_NAMES = {"dram": "DRAM", "l2": "L2", "shared": "L1 and shared memory"}


def _new(ax: Axes) -> RoofArtists:
    style.prepare(ax, log="xy")
    style.plain_axis(ax.xaxis, "arithmetic intensity", "FLOP/B")
    style.si_axis(ax.yaxis, "speed", "FLOP/s")
    text = {"fontsize": style.NOTE, "clip_on": True}
    (peak,) = ax.plot([], [], color=style.INK, linewidth=2)
    lines, labels = {}, {}
    for level, (colour, dashes) in MEMORIES.items():
        (lines[level],) = ax.plot([], [], dashes, color=colour, linewidth=2)
        labels[level] = ax.text(1, 1, "", color=style.INK, rotation_mode="anchor", **text)
    (ridge,) = ax.plot([], [], ":", color=style.GREY, linewidth=1.2, marker="o", markevery=[1])
    return RoofArtists(
        peak,
        lines,
        ridge,
        ax.text(1, 1, "", ha="right", va="bottom", color=style.INK, **text),
        labels,
        ax.text(1, 1, "", va="bottom", color=style.GREY, **text),
    )


def _slope(ax: Axes) -> float:
    """Return the angle on the screen of speed ∝ intensity [degrees]."""
    (x0, y0), (x1, y1) = ax.transData.transform([(1, 1e9), (10, 1e10)])
    return math.degrees(math.atan2(y1 - y0, x1 - x0))


def points(
    ax: Axes,
    items: Iterable[Prediction | Measurement],
    colour: str = style.BLUE,
    artists: dict[str, Line2D] | None = None,
    names: Sequence[str] = (),
) -> dict[str, Line2D]:
    """Draw predictions and timed measurements at (compulsory intensity, speed).

    names : of the timed items, written below their points by the first call
    Their shape says where they come from; the artists are keyed by `style.MARKS`. What was not
    timed has no place in a roofline and is left out.
    """
    timed = [item for item in items if item.seconds is not None]
    if artists is None:
        artists = {}
        for name, (marker, filled) in style.MARKS.items():
            (artists[name],) = ax.plot([], [], marker, color=colour, markersize=9, zorder=5)
            artists[name].set(markerfacecolor=colour if filled else "white", markeredgewidth=2)
            artists[name].set_label(name)
        for item, name in zip(timed, names, strict=False):
            place = item.problem.intensity, item.flops_per_second
            ax.annotate(name, place, (0, -9), textcoords="offset points", ha="center", va="top",
                        fontsize=style.NOTE, color=style.INK)  # fmt: skip
    for name, line in artists.items():
        mine = [item for item in timed if style.origin(item) == name]
        line.set_data(
            [item.problem.intensity for item in mine], [item.flops_per_second for item in mine]
        )
    if timed:
        style.describe(ax, _finding(timed, names), f"points in {colour}")
    return artists


def _finding(timed: Sequence[Prediction | Measurement], names: Sequence[str]) -> str:
    """Tell each point in words; of many, those with the least and the most intensity."""
    named = names if len(names) == len(timed) else [str(item.problem) for item in timed]
    told = [
        f"{name}, {style.origin(item)}, at {style.number(item.problem.intensity)} FLOP/B and "
        f"{style.si(item.flops_per_second, 'FLOP/s')}"
        for item, name in zip(timed, named, strict=True)
    ]
    if len(told) > MOST_POINTS:
        told = [f"{len(told)} points, the first {told[0]}", f"the last {told[-1]}"]
    return "; ".join(told) + "."


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
        artists = _new_marks(ax)
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
    style.describe(
        ax,
        f"{prediction.kernel}, {style.origin(item)}, runs at {style.si(speed, 'FLOP/s')}; its "
        f"intensity is {told}.",
        artists.part,
    )
    return artists


STARTS = (1.6, 4, 10, 25, 60)  # of a slope's label, as a multiple of the least intensity
MARGIN = 3  # points around a mark or its name


def make_room(ax: Axes, roof: RoofArtists, marks: MemoryArtists) -> None:
    """Move the labels of slopes along them to where no mark, no name and no line between lies."""
    figure = ax.get_figure()
    taken = [label.get_window_extent() for label in marks.labels.values() if label.get_visible()]
    # Lines have no extent across: a mark's is added.
    for line in (marks.joint, *marks.marks.values()):
        if line.get_visible():
            (x0, y0), *_, (x1, y1) = ax.transData.transform(line.get_xydata()).repeat(2, axis=0)
            across = line.get_markersize() if line is not marks.joint else 0
            grown = (across / 2 + MARGIN) * figure.dpi / 72
            taken.append(Bbox([[x0 - grown, y0 - grown], [x1 + grown, y1 + grown]]))
    peak = ax.transData.transform([(1, roof.peak.get_ydata()[0])])[0, 1]
    for level, label in roof.slope_labels.items():
        if not label.get_visible():
            continue
        label.set_rotation(0)
        box = label.get_window_extent()
        label.set_rotation(_slope(ax))
        for start in STARTS:
            _name_slope(roof, level, start * INTENSITIES[0])
            corners = _turned(ax, label, box)
            clear = not any(corners.intersects_bbox(one) for one in taken)
            if clear and corners.vertices[:, 1].max() < peak:
                break
        else:
            _name_slope(roof, level, STARTS[0] * INTENSITIES[0])


def _turned(ax: Axes, label: Text, level: Bbox) -> Path:
    """Return the outline of a label that is turned about its place; `level` is its box if not."""
    x, y = ax.transData.transform([label.get_position()])[0]
    down = -level.height if label.get_va() == "top" else 0
    corners = [(0, down), (level.width, down), (level.width, down + level.height)]
    corners.append((0, down + level.height))
    turned = Affine2D().rotate_deg(label.get_rotation()).translate(x, y).transform(corners)
    return Path([*turned, turned[0]], closed=True)


def _together(found: dict[str, float]) -> dict[str, str]:
    """Return the names of memories whose marks lie together, at the first of each group."""
    groups: dict[str, str] = {}
    for level, x in found.items():
        near = [g for g in groups if abs(math.log10(found[g] / x)) < APART]
        if near:
            groups[near[0]] += f", {NAMES[level]}"
        else:
            groups[level] = NAMES[level]
    return groups


def _new_marks(ax: Axes) -> MemoryArtists:
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
