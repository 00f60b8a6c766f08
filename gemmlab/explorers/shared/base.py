"""The base of explorers: controls, a picture drawn in place, and a caption, also for errors.

A `Picture` is made of figures, each an <img> with its text. It is drawn again at each change of a
control, so that three parts of it are faster than matplotlib's: texts keep their pixels, what does
not move is copied, and one filter of PNG suits figures.
Source: W3C, Portable Network Graphics (PNG) Specification, 3rd edition.
"""

import asyncio
import html
import re
import struct
import threading
import zlib
from base64 import b64encode
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib import resources
from typing import Any

import ipywidgets as widgets
import numpy as np
from IPython import get_ipython
from IPython.display import publish_display_data
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

from gemmlab import plots
from gemmlab.here.detection import THREADS
from gemmlab.plots.shared.figures import DARK, DENSITY, DPI, PAPER

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


SHRUNK, GROWN = 0.88, 1.2  # of a figure's width: its texts stay legible, and it stays on a screen
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

    They shrink and grow together, by up to `SHRUNK` and `GROWN`, before they stand in two rows.

    ipywidgets' Image cannot carry alternative text, so each figure is an <img> in HTML. What is
    drawn is given by the figures' artists, and said by `plots.describe`; the first figure's text is
    what the explorer says of all of them.
    """

    def __init__(self, *figures: Figure) -> None:
        self.panels = [Panel(figure) for figure in figures]
        self.view = widgets.HBox([panel.view for panel in self.panels])
        self.view.add_class("gemmlab-pictures")

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
        width = DPI * figure.get_figwidth()
        self._least = f"{SHRUNK * width:.0f}px"
        self._flex = f"{width:.0f} 1 {self._least}"
        self._most = f"min(100%, {GROWN * width:.0f}px)"
        self.view = widgets.HTML(layout={"flex": self._flex, "max_width": self._most})
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
                f'<img class="gemmlab-picture dark-light" alt="{html.escape(description)}" '
                f'width="{width}" height="{height}" decoding="sync" '
                f'style="--least:{self._least}; flex:{self._flex}; width:100%; min-width:0; '
                f"max-width:{self._most}; "
                f'height:auto; display:block; {PAPER}{"; opacity:0.25" * faded}" '
                f'src="{self._source}">'
            )


ENDED = (
    "This is the last picture: the kernel that drew it has ended. Run this cell again to move it: "
    "click here, choose Run → Run All Above Selected Cell, then press Shift+Enter."
)
INTERRUPTED = "it was interrupted before it was drawn; move a control to draw it"
REST = 0.5  # seconds without a change after which the still is made again


class Still:
    """A still is what an explorer showed last, kept in the notebook as an output of its cell.

    A widget is gone when its kernel is, or when a saved notebook is opened the next day. Then
    `explorer.css` shows the still in its place. It is empty at first and follows when the explorer
    has come to rest, so that it never holds up a key.
    """

    def __init__(self, explorer: "Explorer") -> None:
        self.explorer = explorer
        self._timer: threading.Timer | asyncio.TimerHandle | None = None
        self._placed = False

    def place(self) -> None:
        """Put it below the cell that runs now."""
        self._placed = True
        publish_display_data(self._bundle(""), transient=self._name)
        self.follow()

    def follow(self) -> None:
        """Make it what the explorer shows, once that rests."""
        if self._placed:
            if self._timer:
                self._timer.cancel()
            if THREADS:
                self._timer = threading.Timer(REST, self._renew)
                self._timer.daemon = True
                self._timer.start()
            else:
                self._timer = asyncio.get_event_loop().call_later(REST, self._renew)

    @property
    def _name(self) -> dict[str, str]:
        return {"display_id": f"gemmlab-{self.explorer.model_id}"}

    def _renew(self) -> None:
        shown = "".join(panel.view.value for panel in self.explorer.picture.panels)
        publish_display_data(
            self._bundle(
                f'<p class="gemmlab-ending">{ENDED}</p>'
                f'<div class="gemmlab-caption">{self.explorer.caption.value}</div>'
                f'<div class="gemmlab-pictures">{shown}</div>'
            ),
            transient=self._name, update=True,
        )  # fmt: skip

    def _bundle(self, inside: str) -> dict[str, str]:
        page = f'{STYLE}<div class="gemmlab-still">{inside}</div>'
        return {"text/html": page, "text/plain": self.explorer.message}


def _file(name: str) -> str:
    return (resources.files("gemmlab.explorers.shared") / name).read_text("utf-8")


STYLE = f"<style>{_file('explorer.css')}</style>{DARK}"
HELP = f"{STYLE}<script>{_file('explorer.js')}</script>"
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

    lasts = True  # whether a still is laid beside it, which outlives the kernel

    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self.caption = widgets.HTML(layout={"margin": "2px"})
        self.caption.add_class("gemmlab-caption")
        self.message = ""  # the caption as plain text
        self.moving: Sequence[Artist] = ()  # what `show` changes while `frames` stay equal
        self.frames: Sequence[Hashable] = ()  # of each figure, as in `Picture.draw`
        self.watched: Sequence[widgets.Widget] = ()  # the controls that change the picture
        self._held = False
        # A run reports from its own thread while the controls stay alive.
        self._drawing = threading.RLock()
        self.still = Still(self)
        super().__init__()
        self.add_class("gemmlab-explorer")
        self.add_class(f"gemmlab-{type(self).__name__.lower()}")

    def arrange(
        self, rows: Sequence[widgets.Widget], watched: Sequence[widgets.Widget] = ()
    ) -> None:
        """Lay out `rows` above caption and picture, watch controls, and show the first picture."""
        script = {"output_type": "display_data", "metadata": {}, "data": {"text/html": HELP}}
        help_ = widgets.Output(outputs=(script,), layout={"height": "0", "overflow": "hidden"})
        self.children = (*rows, self.caption, self.picture.view, help_)
        self.watched = watched
        for control in watched:
            control.observe(self.refresh, "value")
            if control.has_trait("refusal"):
                control.observe(lambda change: change.new and self.refuse(change.new), "refusal")
        self.refresh()

    def _repr_mimebundle_(self, **kwargs: object) -> dict | None:
        """Show the widget, as ipywidgets do, and lay a still beside it where a kernel shows it."""
        if self.lasts and get_ipython() is not None:
            self.still.place()
        return super()._repr_mimebundle_(**kwargs)

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
                self.picture.fade(str(error))
                self.refuse(str(error))
                return False
            except KeyboardInterrupt:
                self.picture.fade(INTERRUPTED)
                self.refuse(INTERRUPTED)
                raise
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
        self.still.follow()
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
