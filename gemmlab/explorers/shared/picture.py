"""The picture of an explorer: figures drawn again in place, each an <img> with its text."""

from __future__ import annotations

import html
from base64 import b64encode
from collections.abc import Hashable, Sequence
from typing import Any

import ipywidgets as widgets
import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from gemmlab import plots
from gemmlab.explorers.shared.canvas import Canvas
from gemmlab.explorers.shared.png import png
from gemmlab.plots.shared.figures import DENSITY, DPI


class Picture:
    """Figures without windows, side by side where there is room, in the widget `view`.

    ipywidgets' Image cannot carry alternative text, so each figure is an <img> in HTML. What is
    drawn is given by the figures' artists, and said by `plots.describe`; the first figure's text is
    what the explorer says of all of them.
    """

    def __init__(self, *figures: Figure) -> None:
        self.panels = [Panel(figure) for figure in figures]
        self.view = widgets.HBox(
            [panel.view for panel in self.panels],
            layout={"flex_flow": "row wrap", "overflow": "hidden"},
        )

    @property
    def png(self) -> bytes:
        """What is shown, to be compared."""
        return b"".join(panel.png for panel in self.panels)

    def draw(
        self, description: str, moving: Sequence[Artist] = (), frames: Sequence[Hashable] = ()
    ) -> None:
        """Show the figures as they are now; `description` is what a screen reader says of them.

        frames : for each figure what stands for everything in it but the `moving` artists: while
            it stays equal, only these are drawn again, over a copy of the rest; None never does
        """
        for i, panel in enumerate(self.panels):
            mine = [artist for artist in moving if artist.figure is panel.figure]
            panel.draw(mine, frames[i] if frames else None)
            panel.show(description if i == 0 else plots.alt(panel.figure))

    def fade(self, reason: str) -> None:
        """Show that the picture is not of what was asked for, and say why in its place."""
        for panel in self.panels:
            panel.show(f"No picture. {reason}", faded=True)


class Panel:
    """One figure, and the HTML widget that shows it."""

    def __init__(self, figure: Figure) -> None:
        Canvas(figure)
        figure.set_dpi(DENSITY * DPI)
        self.figure = figure
        self.png = b""
        self.view = widgets.HTML(layout={"max_width": "100%", "margin": "0"})
        self._frame: Hashable = None
        self._still: Any = None  # the pixels of everything but what moves
        self._moving: Sequence[Artist] = ()
        self._pixels = np.zeros((0, 0, 4), np.uint8)
        self._source = ""

    def draw(self, moving: Sequence[Artist], frame: Hashable) -> None:
        """Make `png` the figure as it is now; see `Picture.draw`."""
        canvas = self.figure.canvas
        if frame is None or frame != self._frame:
            for artist in self._moving:
                artist.set_animated(False)
            for artist in moving:
                artist.set_animated(True)
            canvas.draw()
            self._frame, self._moving = frame, tuple(moving)
            self._still = canvas.copy_from_bbox(self.figure.bbox)
        else:
            canvas.restore_region(self._still)
        for artist in moving:
            artist.axes.draw_artist(artist)
        pixels = np.array(canvas.buffer_rgba())
        if not np.array_equal(pixels, self._pixels):
            self._pixels = pixels
            self.png = png(self._pixels)
            self._source = f"data:image/png;base64,{b64encode(self.png).decode()}"

    def show(self, description: str, faded: bool = False) -> None:
        """Show what was drawn last."""
        height, width = (size // DENSITY for size in self._pixels.shape[:2])
        if height:
            # Its size is known and it is decoded at once: nothing jumps or blinks in between.
            self.view.value = (
                f'<img alt="{html.escape(description)}" width="{width}" height="{height}" '
                'decoding="sync" style="max-width:100%; height:auto; display:block'
                f'{"; opacity:0.25" * faded}" src="{self._source}">'
            )
