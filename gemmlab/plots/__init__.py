"""Figures as functions of (ax, data); each returns its artists, to be changed in place later.

>>> from gemmlab import device, plots
>>> figure, (ax,) = plots.figure()
>>> artists = plots.roofline(ax, device("v100"), "float16")
>>> artists = plots.roofline(ax, device("h200"), "float16", artists=artists)
"""

from gemmlab.plots.access import access_map
from gemmlab.plots.alignment import alignment
from gemmlab.plots.inside import inside
from gemmlab.plots.ladder import Row, bars, beside, counters, ladder, residual
from gemmlab.plots.lanes import fragment, lane_map, pieces
from gemmlab.plots.quantization import along_n, cover, sawtooth, waves
from gemmlab.plots.roofline import make_room, memories, points, roofline
from gemmlab.plots.shared import style
from gemmlab.plots.shared.figures import figure
from gemmlab.plots.shared.style import alt, describe, number, provenance, si
from gemmlab.plots.sizes import size, sizes, speedups, splits, value
from gemmlab.plots.slots import slots, warps
from gemmlab.plots.tiles import resources, thread_tiles, tiles
from gemmlab.plots.timeline import Span, ring, schedule, timeline, turns

__all__ = [
    "Row", "Span", "access_map", "alignment", "along_n", "alt", "bars", "beside", "counters",
    "cover", "describe", "figure", "fragment", "inside", "ladder", "lane_map", "make_room",
    "memories", "number", "pieces", "points", "provenance", "residual", "resources", "ring",
    "roofline", "sawtooth", "schedule", "si", "size", "sizes", "slots", "speedups", "splits",
    "style", "thread_tiles", "tiles", "timeline", "turns", "value", "warps", "waves",
]  # fmt: skip
