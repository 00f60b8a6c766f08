"""Explorers on the site: films of them, because a page has no kernel to draw their pictures.

A film is what an explorer shows for each value of each control, the other controls at their first
values, and a few lines of script (`_static/film.js`) that choose among these pictures. It asks for
nothing outside the page; without scripts its first picture is there, with its caption.
"""

from __future__ import annotations

import ast
import html
import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import ipywidgets as widgets
from PIL import Image
from traitlets import TraitError

from book.outside import pages
from gemmlab.explorers.shared.base import Explorer
from gemmlab.explorers.shared.controls import Field
from gemmlab.plots.shared.figures import DARK

MOST = 10  # values that a slider keeps where `STOPS` has none for it; lists keep all of theirs
# (explorer, control) -> the values that its film has: those that the text beside it asks for.
STOPS: dict[tuple[str, str], tuple[Any, ...]] = {
    ("Coalescing", "stride"): (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32),
    ("Coalescing", "offset"): (0, 1, 2, 4, 7, 8, 9, 12, 16, 24, 31),
    ("Roofline", "n"): (1, 8, 32, 64, 128, 143, 144, 229, 230, 256, 1024, 4096, 16384),
    ("Quantization", "n"): (8, 16, 20, 24, 28, 32, 33, 36, 40, 48, 52, 56, 60, 64),
    ("Quantization", "m"): (8, 16, 24, 32, 40, 48, 64),
    ("StageTimeline", "from step"): (0, 1, 2, 4, 6, 8, 10, 12, 14, 15),
    ("SplitK", "parts"): (1, 2, 3, 4, 5, 6, 8, 12, 16, 32, 64, 128, 256),
    ("Rounding", "x"): (0.1, 1.00390625, 1.01171875, 1e-05, 1e-07, 300.0, 500.0, 2049.0, 65520.0),
}
ROUNDS = 3  # in which the controls of an explorer are set back
COLOURS = 64  # of a picture: lines, areas and the grey edges of letters
PNG = re.compile(r"data:image/png;base64,([A-Za-z0-9+/=]+)")


@dataclass(frozen=True)
class Control:
    """A list, a slider or a field of an explorer: its name, and its values in a film.

    widget : what takes the values and tells the one that it has
    slides : whether the film shows a slider; a list otherwise
    """

    name: str
    widget: widgets.Widget
    values: tuple[Any, ...]
    slides: bool

    @property
    def label(self) -> str:
        """The value now, as readers know it."""
        return str(getattr(self.widget, "label", self.widget.value))


class Stills:
    """What an explorer has shown: pictures, as HTML that refers to images, with their captions."""

    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        self.images: list[str] = []
        self.pictures: list[tuple[str, str]] = []

    def keep(self) -> int:
        """The number of the picture that is shown now."""
        picture = PNG.sub(
            lambda match: f"@{self._number(match[0])}", html_of(self.explorer.picture.view)
        )
        return _index(self.pictures, (picture, self.explorer.message))

    def _number(self, image: str) -> int:
        return _index(self.images, lighter(image))


def show_films(ends: bool = False) -> None:
    """Let explorers show themselves as films in this kernel, wherever HTML is wanted."""
    shell = get_ipython()  # noqa: F821
    formatter = shell.display_formatter.formatters["text/html"]
    formatter.for_type(Explorer, lambda explorer: film(explorer, shell.user_ns["In"][-1], ends))
    Explorer.lasts = False  # a film lasts by itself


def film(explorer: Explorer, cell: str = "", ends: bool = False) -> str:
    """The film of an explorer, which a cell has made, as HTML; the explorer is left as it was.

    ends : of each control show only the first value and the last, which is soon done
    """
    stills = Stills(explorer)
    settle(explorer)
    stills.keep()
    everything = leaves(explorer, hidden=True)
    before = {widget: widget.value for widget in everything if hasattr(widget, "value")}
    rows = []
    for control in controls(explorer):
        first = control.widget.value
        kept = []  # (number of the picture, label of the value)
        for value in between(control.values, first) if ends else control.values:
            if value == first:
                kept.append((0, control.label))
                continue
            control.widget.value = value
            settle(explorer)
            if not explorer.message.startswith("Not possible"):
                kept.append((stills.keep(), control.label))
            restore(before)
        if len(kept) > 1:
            rows.append(_row(control, kept))
    return _page(type(explorer).__name__, rows, stills, expression(cell))


def expression(cell: str) -> str:
    r"""The expression at the end of a cell, if `explorers` is all that it needs; "" otherwise.

    >>> expression("from gemmlab import explorers\n\nexplorers.Roofline(n=128)")
    'explorers.Roofline(n=128)'
    >>> expression("explorers.KernelLab(mine)")
    ''
    """
    *_, last = [None, *ast.parse(cell).body]
    if not isinstance(last, ast.Expr):
        return ""
    names = {node.id for node in ast.walk(last) if isinstance(node, ast.Name)}
    return ast.unparse(last) if names == {"explorers"} else ""


def settle(explorer: Explorer) -> None:
    """Wait for a picture that is made in the background."""
    if hasattr(explorer, "wait"):
        explorer.wait()


def controls(explorer: Explorer) -> Iterator[Control]:
    """The controls of an explorer that can be seen and moved, from top to bottom.

    A field without a slider is one of them where `STOPS` says what to type.
    """
    for widget, box in leaves(explorer).items():
        name = getattr(widget, "description", "")
        asked = STOPS.get((type(explorer).__name__, name), ())
        if isinstance(widget, widgets.IntSlider):
            steps = range(widget.min, widget.max + 1, widget.step)
            numbers = getattr(box, "stops", None)  # for which the slider's positions stand
            moved = widget if numbers is None else box
            even = spread(steps, widget.value)
            values = even if numbers is None else [numbers[i] for i in even]
            chosen = tuple(sorted({*(asked or values), moved.value}))
            yield Control(name, moved, chosen, slides=True)
        elif isinstance(widget, widgets.SelectionSlider | widgets.Dropdown):
            # Its options may be given as values or as pairs of a label and a value.
            values = tuple(value for _, value in widget._options_full)
            yield Control(name, widget, values, not isinstance(widget, widgets.Dropdown))
        elif isinstance(box, Field) and asked:
            yield Control(name, box, tuple(sorted({*asked, box.value})), slides=False)


def leaves(box: widgets.Widget, hidden: bool = False) -> dict[widgets.Widget, widgets.Widget]:
    """The widgets inside a box and its boxes -> the box that each stands in; also hidden ones?"""
    found = {}
    for child in box.children:
        if hidden or child.layout.display != "none":
            inside = isinstance(child, widgets.Box)
            found |= leaves(child, hidden) if inside else {child: box}
    return found


def html_of(view: widgets.Widget) -> str:
    """The HTML that a widget or the widgets in a box show."""
    return view.value if isinstance(view, widgets.HTML) else "".join(map(html_of, view.children))


def spread(values: range, first: int) -> tuple[int, ...]:
    """At most `MOST` of a slider's values, evenly spread, and its first one.

    >>> spread(range(33), 1)
    (0, 1, 4, 8, 12, 16, 20, 24, 28, 32)
    """
    step = -(-len(values) // (MOST - 1))
    return tuple(sorted({*values[::step], first}))


def between(values: tuple[Any, ...], now: Any) -> tuple[Any, ...]:
    """The first of a control's values, the one that it has now, and the last.

    >>> between((1, 2, 4, 8, 16), 4)
    (1, 4, 16)
    """
    kept = [value for value in values if value in (values[0], now, values[-1])]
    return tuple(dict.fromkeys(kept))


def restore(before: dict[widgets.Widget, Any]) -> None:
    """Set every control back; what a list offers may depend on another, so in several rounds."""
    for _ in range(ROUNDS):
        for widget, value in before.items():
            if not isinstance(widget, widgets.HTML) and widget.value != value:
                with suppress(TraitError):  # not offered yet
                    widget.value = value


def missing(site: Path) -> Iterator[str]:
    """The pages below `site` in which a widget stands as text: it could not be filmed."""
    for page in pages(site, "*.html"):
        if re.search(r"\b[A-Z]\w*\(children=\(", page.read_text("utf-8")):
            yield page.relative_to(site).as_posix()


@cache
def lighter(image: str) -> str:
    """A PNG in `COLOURS` colours: a quarter of the bytes."""
    full = Image.open(BytesIO(b64decode(PNG.fullmatch(image)[1]))).convert("RGB")
    packed = BytesIO()
    full.quantize(COLOURS, dither=Image.Dither.NONE).save(packed, "png", optimize=True)
    return f"data:image/png;base64,{b64encode(packed.getvalue()).decode()}"


def _index(items: list, item: Any) -> int:
    """The place of an item in a list, to which it is added if it is new."""
    if item not in items:
        items.append(item)
    return items.index(item)


def _row(control: Control, kept: list[tuple[int, str]]) -> str:
    """One control: its name, and a slider or a list whose positions are numbers of pictures."""
    numbers, labels = zip(*kept, strict=True)
    first = labels[numbers.index(0)]
    name = html.escape(control.name)
    told = f"data-pictures='{json.dumps(numbers)}'"
    if control.slides:
        return (
            f'<label><span>{name}</span><input type="range" max="{len(kept) - 1}" '
            f'value="{numbers.index(0)}" aria-valuetext="{html.escape(first)}" '
            f'data-labels="{html.escape(json.dumps(labels))}" {told}>'
            f"<output>{html.escape(first)}</output></label>"
        )
    options = "".join(
        f"<option{' selected' * (number == 0)}>{html.escape(label)}</option>"
        for number, label in kept
    )
    return f"<label><span>{name}</span><select {told}>{options}</select></label>"


def _page(name: str, rows: list[str], stills: Stills, made_by: str) -> str:
    """The film: controls, which the script makes visible, the first picture and its caption.

    made_by : the expression that makes the explorer anew, where a page can: see `_static/live`
    """
    picture, text = stills.pictures[0]
    for number, image in enumerate(stills.images):
        picture = picture.replace(f'"@{number}"', f'"{image}"')
    data = json.dumps({"images": stills.images, "pictures": stills.pictures}).replace("</", "<\\/")
    live = f' data-expression="{html.escape(made_by)}"' if made_by else ""
    return (
        f'<div class="gemmlab-film" role="group" aria-label="Explorer {html.escape(name)}"{live}>'
        f'<div class="film-controls" hidden>{"".join(rows)}</div>'
        f'<p class="film-caption" role="status">{html.escape(text)}</p>'
        f'<div class="film-picture">{DARK}{picture}</div>'
        '<p class="film-note">Drawn beforehand: on this page one control moves at a time. '
        "Run the chapter to move them all.</p>"
        f'<script type="application/json">{data}</script></div>'
    )
