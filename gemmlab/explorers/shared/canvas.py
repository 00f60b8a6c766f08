"""A canvas that keeps the pixels of its texts: laying them out takes most of a picture's time."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.font_manager import FontProperties

KEPT = 2048  # texts, of about 20 kB each
Stamp = tuple[int, int, np.ndarray]  # where the pixels begin, from the pen to the right and up


class Canvas(FigureCanvasAgg):
    """Agg's canvas; a text that was drawn before, anywhere, is stamped instead of drawn again."""

    _size: tuple[float, ...] = ()

    def get_renderer(self) -> Renderer:
        """The renderer for the figure's size, kept while that stays."""
        size = (*self.figure.bbox.size, self.figure.dpi)
        if size != self._size:
            self._size, self.renderer = size, Renderer(*size)
        return self.renderer


class Renderer(RendererAgg):
    """Agg's renderer, but for level texts."""

    def draw_text(self, gc, x, y, s, prop, angle, ismath=False, mtext=None) -> None:
        """Put a text's pixels where the pen is, at (x, y) from the upper left corner."""
        if angle or ismath:
            super().draw_text(gc, x, y, s, prop, angle, ismath, mtext)
            return
        left, bottom, pixels = stamp(s, prop.copy(), self.dpi, gc.get_rgb())
        if pixels.size:
            self.draw_image(gc, round(x) + left, round(self.height - y) + bottom, pixels)


@lru_cache(maxsize=KEPT)
def stamp(text: str, font: FontProperties, dpi: float, colour: tuple[float, ...]) -> Stamp:
    """The pixels of a text, the lowest row first, without the empty ones around."""
    em = round(font.get_size_in_points() * dpi / 72)
    page = RendererAgg(2 * em * (len(text) + 1), 4 * em, dpi)  # no glyph is two em wide
    gc = page.new_gc()
    gc.set_foreground(colour, isRGBA=True)
    page.draw_text(gc, em, 2 * em, text, font, 0)
    pixels = np.asarray(page.buffer_rgba())[::-1]
    rows, columns = (np.flatnonzero(pixels[..., 3].any(axis)) for axis in (1, 0))
    if not rows.size:
        return 0, 0, pixels[:0]
    (low, high), (left, right) = rows[[0, -1]], columns[[0, -1]]
    cropped = np.ascontiguousarray(pixels[low : high + 1, left : right + 1])
    return left - em, low - 2 * em, cropped
