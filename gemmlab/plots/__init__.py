"""Figures as functions of (ax, data); each returns its artists, to be changed in place later.

>>> from gemmlab import device, plots
>>> figure, (ax,) = plots.figure()
>>> artists = plots.roofline(ax, device("v100"), "float16")
>>> artists = plots.roofline(ax, device("h200"), "float16", artists=artists)
"""

from gemmlab.plots.access import access_map
from gemmlab.plots.alignment import alignment
from gemmlab.plots.compare import counters, residual
from gemmlab.plots.fragments import fragment
from gemmlab.plots.ladder import ladder
from gemmlab.plots.lanes import lane_map
from gemmlab.plots.memories import memories
from gemmlab.plots.pieces import pieces
from gemmlab.plots.quantization import along_n, cover, sawtooth, waves
from gemmlab.plots.ring import ring, turns
from gemmlab.plots.roofline import points, roofline
from gemmlab.plots.schedule import schedule
from gemmlab.plots.shared import style
from gemmlab.plots.shared.bars import bars
from gemmlab.plots.shared.beside import Row, beside
from gemmlab.plots.shared.description import alt, describe
from gemmlab.plots.shared.figures import figure
from gemmlab.plots.shared.style import number, provenance, si
from gemmlab.plots.sizes import size, sizes, value
from gemmlab.plots.slots import slots
from gemmlab.plots.speedups import speedups
from gemmlab.plots.splits import splits
from gemmlab.plots.thread_tiles import resources, thread_tiles
from gemmlab.plots.tiles import tiles
from gemmlab.plots.timeline import Span, timeline
from gemmlab.plots.warps import warps

__all__ = [
    "Row",
    "Span",
    "access_map",
    "alignment",
    "along_n",
    "alt",
    "bars",
    "beside",
    "counters",
    "cover",
    "describe",
    "figure",
    "fragment",
    "ladder",
    "lane_map",
    "memories",
    "number",
    "pieces",
    "points",
    "provenance",
    "residual",
    "resources",
    "ring",
    "roofline",
    "sawtooth",
    "schedule",
    "si",
    "size",
    "sizes",
    "slots",
    "speedups",
    "splits",
    "style",
    "thread_tiles",
    "tiles",
    "timeline",
    "turns",
    "value",
    "warps",
    "waves",
]
