"""Controls that explorers share, all usable by keyboard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets as widgets
import traitlets

from gemmlab.explorers.shared.typed import real, whole
from gemmlab.problem import Gemm

NAMES = {"description_width": "6em"}  # a control's name stands left of it


def dropdown(
    name: str, options: Sequence, value: Any, width: str = "24em"
) -> widgets.Dropdown:  # fmt: skip
    """A list to choose from."""
    return widgets.Dropdown(
        options=options, value=value, description=name, style=NAMES,
        layout={"width": width, "max_width": "100%"},
    )  # fmt: skip


def offer(control: widgets.Dropdown, options: dict, had: Any, other: Any = None) -> None:
    """Offer `options`, by their names; choose what was chosen if it is among them, or another."""
    values = list(options.values())
    if control.options != tuple(options.items()):
        control.options = tuple(options.items())
    control.value = next(v for v in (had, other, values[0]) if v in values)


class Field(widgets.HBox):
    """A number to type. What `read` refuses leaves `value` and text as they were: see `refusal`.

    read : text -> number, or ValueError; write : number -> text
    refusal : why the last text that was typed is refused; "" where it is not
    """

    value = traitlets.Any()
    refusal = traitlets.Unicode()

    def __init__(
        self, name: str, value: Any, read: Callable[[str], Any], write: Callable[[Any], str],
        indent: str, hint: str,
    ) -> None:  # fmt: skip
        self.read, self.write = read, write
        self.text = widgets.Text(
            write(value), description=name if indent else "", continuous_update=False,
            tooltip=f"{name}: {hint}", placeholder=name, style={"description_width": indent},
            layout={"width": f"calc({indent or '0px'} + 6.5em)"},
        )  # fmt: skip
        super().__init__([self.text])
        self.value = value
        self.observe(self._write, "value")
        self.text.observe(self._typed, "value")

    @traitlets.validate("value")
    def _accepted(self, proposal: dict) -> Any:
        return self.read(self.write(proposal["value"]))

    def _write(self, _change: object = None) -> None:
        self.text.value = self.write(self.value)

    def _typed(self, change: Any) -> None:
        if change.new == self.write(self.value):
            return
        self.refusal = ""  # the same text is refused again
        try:
            self.value = self.read(change.new)
        except ValueError as error:
            self._write()
            self.refusal = str(error)
        else:
            self._write()  # 1e3 is shown as 1000


def field(name: str, value: int, most: int, indent: str = "6em", least: int = 1) -> Field:
    """A field for a whole number from `least` to `most`; its name, if shown, takes `indent`."""
    hint = _range(least, most)
    return Field(name, value, lambda text: whole(text, name, least, most), str, indent, hint)


def _range(least: int, most: int) -> str:
    return f"a whole number from {least} to {most}"


def real_field(name: str, value: float) -> Field:
    """A field for any number, infinities and NaN included."""
    hint = "a number such as 0.1, 1e-40, 0x1.8p3, inf or nan"
    made = Field(name, value, lambda text: real(text, name), repr, NAMES["description_width"], hint)
    made.text.layout.width = "18em"
    return made


class Number(widgets.HBox):
    """A whole number: a slider over `stops`, and a field for any from `least` to the last stop.

    refusal : of the field
    """

    value = traitlets.Int()
    refusal = traitlets.Unicode()

    def __init__(self, name: str, value: int, stops: Sequence[int], least: int) -> None:
        self.stops, self.least = stops, least
        self.slider = widgets.IntSlider(
            self._nearest(value), 0, len(stops) - 1, description=name, readout=False, style=NAMES,
            layout={"width": "24em", "max_width": "100%"},
        )  # fmt: skip
        self.number = field(name, value, stops[-1], indent="", least=least)
        super().__init__([self.slider, self.number], layout={"flex_flow": "row wrap"})
        self.value = value
        self._following = False
        self.observe(self._follow, "value")
        self.slider.observe(self._slide, "value")
        traitlets.link((self.number, "value"), (self, "value"))
        traitlets.dlink((self.number, "refusal"), (self, "refusal"))

    @traitlets.validate("value")
    def _accepted(self, proposal: dict) -> int:
        return self.number.read(str(proposal["value"]))

    def offer(self, stops: Sequence[int], value: int) -> None:
        """Other stops, of another scale, and one of their numbers."""
        name, self.stops = self.slider.description, stops
        self.number.read = lambda text: whole(text, name, self.least, stops[-1])
        self.number.text.tooltip = f"{name}: {_range(self.least, stops[-1])}"
        self._following = True
        self.slider.max = len(stops) - 1
        self._following = False
        self.value = value
        self._follow()

    def _nearest(self, value: int) -> int:
        return min(range(len(self.stops)), key=lambda i: abs(self.stops[i] - value))

    def _follow(self, _change: object = None) -> None:
        """Move the slider to the stop that is nearest to a number set otherwise."""
        self._following = True
        self.slider.value = self._nearest(self.value)
        self._following = False

    def _slide(self, _change: object) -> None:
        if not self._following:
            self.value = self.stops[self.slider.value]


class Size(Number):
    """A whole number from 1 to 2^high, by a slider over powers of two from 2^low, or typed."""

    def __init__(self, name: str, value: int, high: int, low: int = 0) -> None:
        super().__init__(name, value, [2**i for i in range(low, high + 1)], least=1)


def sizes_of(problem: Gemm, largest: int) -> dict[str, int]:
    """m, n and k of a problem; ValueError where one is above 2^largest, the end of its slider."""
    sizes = {name: getattr(problem, name) for name in "mnk"}
    for name, value in sizes.items():
        if value > 2**largest:
            raise ValueError(f"{name}={value} is too large; use 1 to {2**largest}")
    return sizes
