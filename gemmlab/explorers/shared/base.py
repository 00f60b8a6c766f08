"""The base of explorers: controls, a picture drawn in place, and a caption, also for errors.

A `Picture` is made of figures, each an <img> with its text. It is drawn again at each change of a
control, so that three parts of it are faster than matplotlib's: texts keep their pixels, what does
not move is copied, and one filter of PNG suits figures.
Source: W3C, Portable Network Graphics (PNG) Specification, 3rd edition.
"""

import html
import re
import struct
import threading
import zlib
from base64 import b64encode
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import ipywidgets as widgets
import numpy as np
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

from gemmlab import plots
from gemmlab.plots.shared.figures import DENSITY, DPI

SIGNATURE = b"\x89PNG\r\n\x1a\n"
RGBA, UP = 6, 2  # the type of the picture, and the filter: each row less the one above
LEVEL = 1  # of compression: most of a figure is one colour


def png(pixels: np.ndarray) -> bytes:
    """Return the file of `pixels`, (height, width, 4) uint8: red, green, blue and alpha."""
    height, width, _ = pixels.shape
    rows = pixels.reshape(height, 4 * width)
    filtered = np.empty((height, 1 + 4 * width), np.uint8)
    filtered[:, 0] = UP
    filtered[0, 1:] = rows[0]
    np.subtract(rows[1:], rows[:-1], out=filtered[1:, 1:])
    head = struct.pack(">IIBBBBB", width, height, 8, RGBA, 0, 0, 0)
    data = zlib.compress(filtered, LEVEL)
    return SIGNATURE + _chunk(b"IHDR", head) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


KEPT = 2048  # texts, of about 20 kB each
Stamp = tuple[int, int, np.ndarray]  # where the pixels begin, from the pen to the right and up


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


class Canvas(FigureCanvasAgg):
    """Agg's canvas; a text that was drawn before, anywhere, is stamped instead of drawn again."""

    _size: tuple[float, ...] = ()

    def get_renderer(self) -> Renderer:
        """Return the renderer for the figure's size, kept while that stays."""
        size = (*self.figure.bbox.size, self.figure.dpi)
        if size != self._size:
            self._size, self.renderer = size, Renderer(*size)
        return self.renderer


@lru_cache(maxsize=KEPT)
def stamp(text: str, font: FontProperties, dpi: float, colour: tuple[float, ...]) -> Stamp:
    """Return the pixels of a text, the lowest row first, without the empty ones around."""
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
        """The bytes of the picture that is shown, to be compared."""
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
    """A panel is a figure and the HTML widget that shows it."""

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
        height, width = (size // DENSITY for size in self._pixels.shape[:2])
        if height:
            # Its size is known and it is decoded at once: nothing jumps or blinks in between.
            self.view.value = (
                f'<img alt="{html.escape(description)}" width="{width}" height="{height}" '
                'decoding="sync" style="max-width:100%; height:auto; display:block'
                f'{"; opacity:0.25" * faded}" src="{self._source}">'
            )


# JupyterLab takes arrows and letters for commands of its own (b inserts a cell) unless the element
# that has the focus is marked; ipywidgets do not mark their lists. Nor do they name a slider's
# handle to a screen reader: its label does; nor a field without a label: its tooltip does.
_HELP = """<script>
if (!window.gemmlabHelp) {
  window.gemmlabHelp = true;
  document.addEventListener("focusin", (event) => {
    if (event.target.matches("[class*=gemmlab-] :is(select, button, [role=slider])"))
      event.target.setAttribute("data-lm-suppress-shortcuts", "true");
  });
  new MutationObserver(() => {
    const handles = "[class*=gemmlab-] [role=slider]:not([aria-label])";
    for (const handle of document.querySelectorAll(handles)) {
      const name = handle.closest(".widget-inline-hbox")?.querySelector(".widget-label");
      if (name) handle.setAttribute("aria-label", name.textContent);
    }
    const fields = "[class*=gemmlab-] input[title]:not([aria-label])";
    for (const field of document.querySelectorAll(fields))
      field.setAttribute("aria-label", field.title);
  }).observe(document.body, {childList: true, subtree: true});
}
</script>"""
ROW = {"flex_flow": "row wrap"}  # the layout of controls that stand side by side where they can


def row(*controls: widgets.Widget) -> widgets.HBox:
    """Controls side by side, in a window that is wide enough."""
    return widgets.HBox(controls, layout=ROW)


class Explorer(widgets.VBox):
    """Controls, a picture and a caption. `show` turns the controls' values into both.

    A subclass makes its controls and its picture, calls `arrange`, and defines `show`. Values that
    the library refuses become the caption, and the picture fades; the controls stay as they were
    and go on working. A text that a field refuses becomes the caption alone: the field goes back to
    what the picture shows. ipywidgets sends the next value of a slider when the last one has been
    dealt with, so that a burst of key presses skips pictures instead of queueing them.
    """

    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self.caption = widgets.HTML(layout={"max_width": "60em"})
        self.message = ""  # the caption as plain text
        self.moving: Sequence[Artist] = ()  # what `show` changes while `frames` stay equal
        self.frames: Sequence[Hashable] = ()  # of each figure, as in `Picture.draw`
        self.watched: Sequence[widgets.Widget] = ()  # the controls that change the picture
        self._held = False
        # A run reports from its own thread while the controls stay alive.
        self._drawing = threading.RLock()
        super().__init__()
        self.add_class(f"gemmlab-{type(self).__name__.lower()}")

    def arrange(
        self, rows: Sequence[widgets.Widget], watched: Sequence[widgets.Widget] = ()
    ) -> None:
        """Lay out `rows` above picture and caption, watch controls, and show the first picture."""
        script = {"output_type": "display_data", "metadata": {}, "data": {"text/html": _HELP}}
        help_ = widgets.Output(outputs=(script,), layout={"height": "0", "overflow": "hidden"})
        self.children = (*rows, self.picture.view, self.caption, help_)
        self.watched = watched
        for control in watched:
            control.observe(self.refresh, "value")
            if control.has_trait("refusal"):
                control.observe(lambda change: change.new and self.refuse(change.new), "refusal")
        self.refresh()

    def show(self) -> str:
        """Change the artists to what the controls say; return the result in words."""
        raise NotImplementedError

    def refresh(self, _change: object = None) -> bool:
        """Draw what the controls say now, or say why not; return whether it was drawn."""
        if self._held:
            return False
        with self._drawing:
            try:
                text = self.show()
            except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
                self.refuse(str(error))
                self.picture.fade(str(error))
                return False
            self.picture.draw(text, self.moving, self.frames)
            self.say(text)
        return True

    def say(self, text: str) -> None:
        """Set the caption, which screen readers announce."""
        self._caption(text, "status", "line-height:1.5")

    def refuse(self, reason: str) -> None:
        """Say in the caption what is not possible; it is marked in words and by a bar."""
        bar = "line-height:1.5; border-left:4px solid #D55E00; padding-left:0.6em"
        self._caption(f"Not possible: {reason}", "alert", bar)

    def _caption(self, text: str, role: str, style: str) -> None:
        self.message = text
        lines = "<br>".join(html.escape(line) for line in text.split("\n"))
        lines = re.sub(r"(?<=\d) (?=[A-Za-zµ%])", "&nbsp;", lines)  # a number keeps its unit
        self.caption.value = f'<div role="{role}" style="{style}">{lines}</div>'

    @contextmanager
    def together(self) -> Iterator[None]:
        """Hold back the picture while several controls change; then draw it once."""
        held, self._held = self._held, True
        try:
            yield
        finally:
            self._held = held
        self.refresh()
