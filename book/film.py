"""Explorers on the site: films of them, because a page has no kernel to draw their pictures.

A film is what an explorer shows for each value of each control, the other controls at their first
values, and a few lines of script (`_static/film.js`) that choose among these pictures. It asks for
nothing outside the page; without scripts its first picture is there, with its caption.
"""

from __future__ import annotations

import html
import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import ipywidgets as widgets
from PIL import Image

from gemmlab.explorers.base import Explorer
from gemmlab.explorers.controls import Size

MOST = 12  # values that a slider keeps; lists keep all of theirs
COLOURS = 64  # of a picture: lines, areas and the grey edges of letters
PNG = re.compile(r"data:image/png;base64,([A-Za-z0-9+/=]+)")


@dataclass(frozen=True)
class Control:
    """What moves an explorer: a widget, its name, and the values that the film keeps."""

    widget: widgets.Widget
    name: str
    values: tuple[Any, ...]
    labels: tuple[str, ...]

    @property
    def slides(self) -> bool:
        """Whether it is a slider; a list otherwise."""
        return not isinstance(self.widget, widgets.Dropdown)


def show_films() -> None:
    """Let explorers show themselves as films in this kernel, wherever HTML is wanted."""
    formatter = get_ipython().display_formatter.formatters["text/html"]  # noqa: F821
    formatter.for_type(Explorer, film)


def film(explorer: Explorer) -> str:
    """The film of an explorer as HTML; the explorer itself is left as it was."""
    pictures: list[tuple[str, str]] = []

    def keep() -> int:
        """The number of the picture that is shown now."""
        shown = lighter(explorer.picture.view.value), explorer.message
        if shown not in pictures:
            pictures.append(shown)
        return pictures.index(shown)

    keep()
    before = {widget: widget.value for widget in leaves(explorer) if hasattr(widget, "value")}
    rows = []
    for control in controls(explorer):
        first = control.widget.value
        frames = {first: 0}
        for value in control.values:
            if value != first:
                control.widget.value = value
                if not explorer.message.startswith("Not possible"):
                    frames[value] = keep()
                restore(explorer, before)
        if len(frames) > 1:
            rows.append(_row(control, frames))
    return _page(type(explorer).__name__, rows, pictures)


def controls(explorer: Explorer) -> Iterator[Control]:
    """The sliders and lists of an explorer that can be seen and moved, from top to bottom."""
    for widget in leaves(explorer, Size):
        if isinstance(widget, Size):
            powers = tuple(2**i for i in range(widget.slider.min, widget.slider.max + 1))
            values = tuple(sorted({*powers, widget.value}))
            name = widget.slider.description
            yield Control(widget, name, values, tuple(map(str, values)))
        elif isinstance(widget, widgets.IntSlider):
            values = spread(range(widget.min, widget.max + 1, widget.step), widget.value)
            yield Control(widget, widget.description, values, tuple(map(str, values)))
        elif isinstance(widget, widgets.SelectionSlider | widgets.Dropdown):
            pairs = widget._options_full  # (label, value), however the options were given
            labels, values = zip(*pairs, strict=True)
            yield Control(widget, widget.description, values, labels)


def leaves(box: widgets.Widget, *whole: type) -> Iterator[widgets.Widget]:
    """The widgets displayed in a box and in its boxes; a box of a type in `whole` is one itself."""
    for child in box.children:
        if child.layout.display == "none":
            continue
        if isinstance(child, widgets.Box) and not isinstance(child, whole):
            yield from leaves(child, *whole)
        else:
            yield child


def spread(values: range, first: int) -> tuple[int, ...]:
    """At most `MOST` of a slider's values, evenly spread, and its first one.

    >>> spread(range(33), 1)
    (0, 1, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30)
    """
    step = -(-len(values) // (MOST - 1))
    return tuple(sorted({*values[::step], first}))


def restore(explorer: Explorer, before: dict[widgets.Widget, Any]) -> None:
    """Set every control back: lists first, because what they offer depends on one another."""
    with explorer.together():
        for widget, value in before.items():
            if not isinstance(widget, widgets.HTML):
                widget.value = value


def lighter(picture: str) -> str:
    """The HTML of a picture, a PNG in it reduced to `COLOURS` colours: a quarter of the bytes."""

    def repack(match: re.Match) -> str:
        image = Image.open(BytesIO(b64decode(match[1]))).convert("RGB")
        packed = BytesIO()
        image.quantize(COLOURS, dither=Image.Dither.NONE).save(packed, "png", optimize=True)
        return f"data:image/png;base64,{b64encode(packed.getvalue()).decode()}"

    return PNG.sub(repack, picture)


def _row(control: Control, frames: dict[Any, int]) -> str:
    """One control: its name, and a slider or a list whose positions are numbers of pictures."""
    labelled = zip(control.values, control.labels, strict=True)
    kept = [(frames[value], label) for value, label in labelled if value in frames]
    numbers, labels = zip(*kept, strict=True)
    first = numbers.index(0)
    name = html.escape(control.name)
    told = f"data-pictures='{json.dumps(numbers)}'"
    if control.slides:
        positions = html.escape(json.dumps(labels))
        return (
            f'<label><span>{name}</span><input type="range" max="{len(kept) - 1}" value="{first}" '
            f'aria-valuetext="{html.escape(labels[first])}" data-labels="{positions}" {told}>'
            f"<output>{html.escape(labels[first])}</output></label>"
        )
    options = "".join(
        f"<option{' selected' * (number == 0)}>{html.escape(label)}</option>"
        for number, label in kept
    )
    return f"<label><span>{name}</span><select {told}>{options}</select></label>"


def _page(name: str, rows: list[str], pictures: list[tuple[str, str]]) -> str:
    """The film: controls, which the script makes visible, the first picture and its caption."""
    picture, text = pictures[0]
    data = json.dumps(pictures).replace("</", "<\\/")
    return (
        f'<div class="gemmlab-film" role="group" aria-label="Explorer {html.escape(name)}">'
        f'<div class="film-controls" hidden>{"".join(rows)}</div>'
        f'<div class="film-picture">{picture}</div>'
        f'<p class="film-caption" role="status">{html.escape(text)}</p>'
        '<p class="film-note">Drawn beforehand: on this page one control moves at a time. '
        "Run the chapter to move them all.</p>"
        f'<script type="application/json">{data}</script></div>'
    )
