"""Controls that explorers share, all usable by keyboard.

A number that is typed becomes exactly what its text says, or an error quotes the text.
"""

import math
import re
import sys
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import ipywidgets as widgets
import traitlets

from gemmlab import Gemm

QUOTED = 30  # characters of a text that an error repeats
_HEX = re.compile(r"[+-]?0x", re.IGNORECASE)


def whole(text: str, name: str, least: int, most: int) -> int:
    """Give the whole number that `text` says; ValueError, with what is accepted, for anything else.

    >>> whole("1e3", "m", 1, 8192), whole(" 128.0", "m", 1, 8192)
    (1000, 128)
    >>> whole("1.5", "m", 1, 8192)
    Traceback (most recent call last):
        ...
    ValueError: m: “1.5” is not a whole number; type one from 1 to 8192, such as 1000 or 1e3
    """
    accepted = f"type one from {least} to {most}, such as {min(1000, most)}"
    accepted += " or 1e3" if most >= 1000 else ""
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        number = Decimal("nan")
    if not number.is_finite() or number != number.to_integral_value():
        raise ValueError(f"{name}: {_quoted(text)} is not a whole number{_comma(text)}; {accepted}")
    if not least <= number <= most:
        size = "small" if number < least else "large"
        raise ValueError(f"{name}: {_quoted(text)} is too {size}; {accepted}")
    return int(number)


def real(text: str, name: str) -> float:
    """Return the float64 nearest to what `text` says, which may be infinite or no number.

    Raises ValueError for what is no number, and for finite numbers beyond float64 or below it.

    >>> real("0.1", "x"), real("-inf", "x"), real("0x1.8p3", "x")
    (0.1, -inf, 12.0)
    """
    plain = text.strip()
    try:
        value = float.fromhex(plain) if _HEX.match(plain) else float(plain)
    except OverflowError:
        value = math.inf
    except ValueError:
        raise ValueError(
            f"{name}: {_quoted(text)} is not a number{_comma(text)}; type one such as 0.1, 1e-40, "
            "0x1.8p3, inf or nan"
        ) from None
    if math.isinf(value) and "inf" not in plain.lower():
        raise ValueError(
            f"{name}: {_quoted(text)} lies beyond float64, whose largest number is "
            f"{sys.float_info.max!r}; type inf for infinity"
        )
    if value == 0 and re.search("[1-9a-f]", re.split("[ep]", _HEX.sub("", plain).lower())[0]):
        raise ValueError(
            f"{name}: {_quoted(text)} lies below float64, whose smallest number above 0 is "
            f"{math.ulp(0.0)!r}; type 0 for zero"
        )
    return value


def _quoted(text: str) -> str:
    return f"“{text[:QUOTED]}…”" if len(text) > QUOTED else f"“{text}”"


def _comma(text: str) -> str:
    return " (the decimal point is a point, and digits are not grouped)" if "," in text else ""


NAMES = {"description_width": "6em"}  # a control's name stands left of it


def dropdown(
    name: str, options: Sequence, value: Any, width: str = "24em"
) -> widgets.Dropdown:  # fmt: skip
    """Return a list to choose from."""
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
    """Return a field for any number, infinities and NaN included."""
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
            layout={"width": "24em", "min_width": "0", "flex": "0 1 auto"},
        )  # fmt: skip
        self.number = field(name, value, stops[-1], indent="", least=least)
        self.number.layout.flex = "none"
        self.told = widgets.HTML(layout={"display": "none"})  # of the slider, to screen readers
        super().__init__([self.slider, self.number, self.told], layout={"max_width": "100%"})
        self.add_class("gemmlab-number")
        self.value = value
        self._tell()
        self._following = False
        self.observe(self._follow, "value")
        self.slider.observe(self._slide, "value")
        traitlets.link((self.number, "value"), (self, "value"))
        traitlets.dlink((self.number, "refusal"), (self, "refusal"))

    @traitlets.validate("value")
    def _accepted(self, proposal: dict) -> int:
        return self.number.read(str(proposal["value"]))

    def offer(self, stops: Sequence[int], value: int) -> None:
        """Offer other stops, of another scale, and choose one of their numbers."""
        name, self.stops = self.slider.description, stops
        self.number.read = lambda text: whole(text, name, self.least, stops[-1])
        self.number.text.tooltip = f"{name}: {_range(self.least, stops[-1])}"
        self._following = True
        self.slider.max = len(stops) - 1
        self._following = False
        self.value = value
        self._follow()

    def _tell(self) -> None:
        """Tell `explorer.js` the stops, and the number now, which may lie beside the nearest."""
        self.told.value = (
            f'<span data-stops="{list(self.stops)}" data-at="{self.slider.value}" '
            f'data-value="{self.value}"></span>'
        )

    def _nearest(self, value: int) -> int:
        return min(range(len(self.stops)), key=lambda i: abs(self.stops[i] - value))

    def _follow(self, _change: object = None) -> None:
        """Move the slider to the stop that is nearest to a number set otherwise."""
        self._following = True
        self.slider.value = self._nearest(self.value)
        self._following = False
        self._tell()

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
