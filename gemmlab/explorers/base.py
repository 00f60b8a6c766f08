"""The base of explorers: controls, a picture drawn in place, and a caption, also for errors."""

from __future__ import annotations

import html
import re
import threading
from base64 import b64encode
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import Any

import ipywidgets as widgets
import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.image import imsave

# JupyterLab takes arrows and letters for commands of its own (b inserts a cell) unless the element
# that has the focus is marked; ipywidgets do not mark their lists.
_OWN_KEYS = """<script>
if (!window.gemmlabOwnKeys) {
  window.gemmlabOwnKeys = true;
  document.addEventListener("focusin", (event) => {
    if (event.target.matches("[class*=gemmlab-] :is(select, button, [role=slider])"))
      event.target.setAttribute("data-lm-suppress-shortcuts", "true");
  });
}
</script>"""


class Picture:
    """A figure without a window, drawn again in place into the HTML widget `view`.

    ipywidgets' Image cannot carry alternative text, so the picture is an <img> in HTML.
    """

    def __init__(self, figure: Figure) -> None:
        self.figure = figure
        self.png = b""
        self.view = widgets.HTML()
        self._frame: Hashable = None
        self._still: Any = None

    def draw(self, description: str, moving: Sequence[Artist] = (), frame: Hashable = None) -> None:
        """Show the figure as it is now; `description` is what a screen reader says of it.

        While `frame`, which stands for everything else in the figure, stays equal, only the
        `moving` artists are drawn again, over a copy of the rest.
        """
        canvas = self.figure.canvas
        if frame is None or frame != self._frame:
            for artist in moving:
                artist.set_animated(True)
            canvas.draw()
            self._frame, self._still = frame, canvas.copy_from_bbox(self.figure.bbox)
        else:
            canvas.restore_region(self._still)
        for artist in moving:
            artist.axes.draw_artist(artist)
        png = BytesIO()
        rgb = np.asarray(canvas.buffer_rgba())[..., :3]
        imsave(png, rgb, format="png", pil_kwargs={"compress_level": 1})
        self.png = png.getvalue()
        height, width, _ = rgb.shape
        # Its size is known and it is decoded at once: nothing jumps or blinks between two pictures.
        self.view.value = (
            f'<img alt="{html.escape(description)}" width="{width}" height="{height}" '
            'decoding="sync" style="max-width:100%; height:auto" '
            f'src="data:image/png;base64,{b64encode(self.png).decode()}">'
        )


class Explorer(widgets.VBox):
    """Controls, a picture and a caption. `show` turns the controls' values into both.

    A subclass makes its controls and its picture, calls `arrange`, and defines `show`. Values that
    the library refuses become the caption; the controls stay as they were and go on working.
    ipywidgets sends the next value of a slider when the last one has been dealt with, so that a
    burst of key presses skips pictures instead of queueing them.
    """

    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self.caption = widgets.HTML(layout={"max_width": "60em"})
        self.message = ""  # the caption as plain text
        self.moving: Sequence[Artist] = ()  # what `show` changes while `frame` stays equal
        self.frame: Hashable = None
        self._held = False
        # A run reports from its own thread while the controls stay alive.
        self._drawing = threading.RLock()
        super().__init__()
        self.add_class(f"gemmlab-{type(self).__name__.lower()}")

    def arrange(
        self, rows: Sequence[widgets.Widget], watched: Sequence[widgets.Widget] = ()
    ) -> None:
        """Lay out `rows` above picture and caption, watch controls, and show the first picture."""
        script = {"output_type": "display_data", "metadata": {}, "data": {"text/html": _OWN_KEYS}}
        keys = widgets.Output(outputs=(script,), layout={"height": "0"})
        self.children = (*rows, self.picture.view, self.caption, keys)
        for control in watched:
            control.observe(self.refresh, "value")
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
                self.say(str(error), error=True)
                return False
            self.picture.draw(text, self.moving, self.frame)
            self.say(text)
        return True

    def say(self, text: str, error: bool = False) -> None:
        """Set the caption, which screen readers announce; an error is marked in words too."""
        self.message = f"Not possible: {text}" if error else text
        colour = "#B00020" if error else "inherit"
        lines = "<br>".join(html.escape(line) for line in self.message.split("\n"))
        lines = re.sub(r"(?<=\d) (?=[A-Za-zµ%])", "&nbsp;", lines)  # a number keeps its unit
        self.caption.value = (
            f'<div role="{"alert" if error else "status"}" '
            f'style="line-height:1.5; color:{colour}">{lines}</div>'
        )

    @contextmanager
    def together(self) -> Iterator[None]:
        """Hold back the picture while several controls change; then draw it once."""
        held, self._held = self._held, True
        try:
            yield
        finally:
            self._held = held
        self.refresh()
