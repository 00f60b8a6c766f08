"""Figures as functions of (ax, data); each returns its artists, to be changed in place later.

>>> from gemmlab import device, plots
>>> figure, (ax,) = plots.figure()
>>> artists = plots.roofline(ax, device("v100"), "float16")
>>> artists = plots.roofline(ax, device("h200"), "float16", artists=artists)
"""

from gemmlab.plots.access import access_map
from gemmlab.plots.compare import counters, residual
from gemmlab.plots.roofline import points, roofline
from gemmlab.plots.sizes import size, sizes, value
from gemmlab.plots.style import figure, number, provenance, si
from gemmlab.plots.tiles import tiles

__all__ = [
    "access_map",
    "counters",
    "figure",
    "number",
    "points",
    "provenance",
    "residual",
    "roofline",
    "si",
    "size",
    "sizes",
    "tiles",
    "value",
]
