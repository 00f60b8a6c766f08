"""Figures as vectors, for paper: beside its picture in pixels, each figure of a page keeps an SVG.

Kernels of the site's build start with `keep`; `book.printed` puts the vectors in the place of the
pixels. Pages themselves show pixels, which are smaller and carry their text for screen readers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import matplotlib

from gemmlab.plots.shared.figures import Figure

SVG, PNG = "image/svg+xml", "image/png"
# The same figure is the same file, whenever it is made.
SETTINGS = {"svg.hashsalt": "gemmlab", "svg.fonttype": "path"}


def svg(figure: Figure) -> str:
    """Return the whole figure as SVG, within the margins of `figures.png`."""
    file = StringIO()
    with matplotlib.rc_context(SETTINGS):
        figure.savefig(
            file, format="svg", bbox_inches="tight", pad_inches=0.08, metadata={"Date": None}
        )
    return file.getvalue()


def keep() -> None:
    """Let figures of this kernel show themselves as vectors, too."""
    pixels = Figure._repr_mimebundle_

    def both(self: Figure, include: object = None, exclude: object = None) -> tuple:
        shown, sizes = pixels(self, include, exclude)
        return shown | {SVG: svg(self)}, sizes

    Figure._repr_mimebundle_ = both


def kept(executed: Path) -> dict[str, str]:
    """Return the vectors that executed notebooks hold: pixels, as base64 -> SVG."""
    return {
        "".join(data[PNG]).strip(): "".join(data[SVG])
        for notebook in sorted(executed.rglob("*.ipynb"))
        for data in _shown(json.loads(notebook.read_text("utf-8")))
        if PNG in data and SVG in data
    }


def _shown(notebook: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            yield output.get("data", {})
