"""The base of explorers: controls, a picture drawn in place, and a caption, also for errors."""

from __future__ import annotations

import html
import re
import threading
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager

import ipywidgets as widgets
from matplotlib.artist import Artist

from gemmlab.explorers.shared.picture import Picture

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
