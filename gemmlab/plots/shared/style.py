"""The style of all figures: colours, SI units on axes, where the data comes from, and what each
shows in words: the alternative text for those who do not see it.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.legend_handler import HandlerTuple
from matplotlib.text import Text
from matplotlib.ticker import Formatter, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from gemmlab.measure.measurement import Measurement
from gemmlab.model import Prediction

SOURCE = "source"  # the part that says where the data come from; it is read last

# What has been said of a figure or of axes, by part: each drawing on the same axes has its own.
_SAID: WeakKeyDictionary[Figure | Axes, dict[str, str]] = WeakKeyDictionary()


def describe(shown: Figure | Axes, text: str, part: str = "") -> None:
    """Say what a figure, or one of its axes, shows: its quantities and what can be seen of them.

    The text of a figure stands for all that its axes say, except for the source of the data.
    part : the drawing that is described; another text for the same part replaces the first
    Raises ValueError where the text is empty.

    >>> from gemmlab import plots
    >>> figure, (ax,) = plots.figure()
    >>> plots.describe(figure, f"Speed against n: it doubles from {512} to {1024}.")
    >>> plots.alt(figure)
    'Speed against n: it doubles from 512 to 1024.'
    """
    words = " ".join(text.split())
    if not words:
        raise ValueError(f"the description is {text!r}; say what the figure shows")
    _SAID.setdefault(shown, {})[part] = words


def described(figure: Figure) -> bool:
    """Say whether something says what the figure, or each of its axes, shows."""
    return bool(_own(figure)) or all(map(_own, figure.axes))


def alt(figure: Figure) -> str:
    """The alternative text: what figure or axes say, titles first, and the sources once, last."""
    parts = [_own(figure)] if _own(figure) else [_of_axes(ax) for ax in figure.axes]
    sources = dict.fromkeys(_SAID.get(ax, {}).get(SOURCE, "") for ax in figure.axes)
    return " ".join(filter(None, [*parts, *sources]))


def _own(shown: Figure | Axes) -> str:
    """Everything said of a figure or of axes, without the source."""
    return " ".join(text for part, text in _SAID.get(shown, {}).items() if part != SOURCE)


def _of_axes(ax: Axes) -> str:
    """Return the title and what is said of axes; where nothing is, their quantities."""
    title = " ".join(ax.get_title(loc="left").split())
    labels = [label for label in (ax.get_ylabel(), ax.get_xlabel()) if label]
    said = _own(ax) or " against ".join(labels)
    return f"{title}: {said}" if title and said else title or said


# Told apart by everybody, also in grey with the markers below.
# Source: M. Okabe and K. Ito, Color Universal Design (2008), the palette of eight colours.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
SERIES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
DASHES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)))  # tell series apart without colour
FILLS = ("full", "left", "top", "right", "bottom")  # of markers, as DASHES of lines
IDEAL = "ideal"  # the series of predictions that are not of a kernel
INK, GREY, GRID = "#222222", "#666666", "#DDDDDD"

TITLE, LABEL, TICK, NOTE, SMALLEST = 11, 10, 9, 8.5, 8  # font sizes [pt]
LIFT = 16  # of a title above its axes, so that the source has a line of its own between [pt]


class Mark(NamedTuple):
    """A mark says how points of one origin are drawn."""

    marker: str
    filled: bool


# Whatever its colour, a point's shape says where it comes from.
MARKS = {
    "predicted": Mark("D", False),
    "measured": Mark("o", True),
    "recorded": Mark("s", True),
    "simulated": Mark("^", True),
}
_ORIGIN = {"gpu": "measured", "cpu": "measured", "recorded": "recorded", "simulator": "simulated"}


def origin(item: Prediction | Measurement) -> str:
    """Say where a number comes from, as a key of `MARKS`."""
    return "predicted" if isinstance(item, Prediction) else _ORIGIN[item.backend]


def source(item: Prediction | Measurement) -> str:
    """Say where a number comes from, as figures say it."""
    return "predicted" if isinstance(item, Prediction) else item.source


def series(item: Prediction | Measurement) -> str:
    """The series of an item, which has one colour: kernel and tile; "ideal" without a kernel."""
    return (item.kernel or IDEAL) + (f" {item.tiling}" if item.tiling else "")


def dashes(names: Iterable[str]) -> dict[str, str | tuple]:
    """Return a dash pattern for each name, as `colours` has colours; "ideal" is never broken."""
    others = [name for name in dict.fromkeys(names) if name != IDEAL]
    return {IDEAL: "-", **{name: DASHES[i % len(DASHES)] for i, name in enumerate(others)}}


def colours(names: Iterable[str]) -> dict[str, str]:
    """A colour for each name, in the order in which they first come; "ideal" is always black."""
    others = [name for name in dict.fromkeys(names) if name != IDEAL]
    return {IDEAL: BLACK, **{name: SERIES[i % len(SERIES)] for i, name in enumerate(others)}}


# -------------------------------------------------------------------------------- numbers

_PREFIXES = ["f", "p", "n", "µ", "m", "", "k", "M", "G", "T", "P", "E"]  # 10^-15 to 10^18


def si(value: float, unit: str, like: float | None = None) -> str:
    """Give `value` with three digits and the SI prefix that fits it, or that fits the value `like`.

    >>> si(66.9e12, "FLOP/s"), si(3.37e-7, "s"), si(999.9e9, "B"), si(0, "B")
    ('66.9 TFLOP/s', '337 ns', '1 TB', '0 B')
    >>> si(977e9, "FLOP/s", like=66.9e12)
    '0.977 TFLOP/s'
    """
    rounded = float(f"{value:.3g}")
    power = _thousands(rounded if like is None else like)
    return f"{number(rounded / 1000.0**power)} {_prefix(power)}{unit}"


def _thousands(value: float) -> int:
    """Return the power of a thousand whose prefix fits a value."""
    power = math.floor(math.log10(abs(value)) / 3) if value else 0
    return min(max(power, -5), len(_PREFIXES) - 6)


def _prefix(power: int) -> str:
    return _PREFIXES[power + 5]


def number(value: float) -> str:
    """`value` with three digits, or all of its whole ones, and no exponent where it is readable.

    >>> number(2730.67), number(138.9), number(0.1667), number(2.7e-7)
    ('2,731', '139', '0.167', '2.7·10⁻⁷')
    """
    return f"{value:,.0f}" if 100 <= abs(value) < 1e9 else raised(f"{value:.3g}")


def raised(text: str) -> str:
    """Return a number that was formatted with its power of ten as it is printed.

    No line breaks inside of it, as one may after the hyphen of 1e-07.

    >>> raised("2.7e-07"), raised("1e+09"), raised("0.5")
    ('2.7·10⁻⁷', '10⁹', '0.5')
    """
    digits, _, exponent = text.partition("e")
    if not exponent:
        return text
    ten = power(10, int(exponent))
    return {"1": ten, "-1": f"-{ten}"}.get(digits, f"{digits}·{ten}")


def count(number_of: int, thing: str) -> str:
    """Return a number of things, in words.

    >>> count(1, "sector"), count(1024, "sector")
    ('1 sector', '1,024 sectors')
    """
    return f"{number_of:,} {thing}{'s' * (number_of != 1)}"


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def power(base: int, exponent: int) -> str:
    """Return a power as it is printed.

    >>> power(2, -24), power(10, 6)
    ('2⁻²⁴', '10⁶')
    """
    return f"{base}{str(exponent).translate(_RAISED)}"


class Prefixed(Formatter):
    """The ticks of an axis are plain numbers of a unit, whose prefix its label names: 15 [TFLOP/s].

    The prefix fits the largest tick, or one a thousand times as large as the least, so that none
    has more than three digits after the point. It follows the limits: both are set when ticks are.
    """

    def __init__(self, quantity: str, unit: str) -> None:
        self.quantity, self.unit = quantity, unit
        self.power = 0  # of a thousand

    def set_locs(self, locs: Sequence[float]) -> None:
        """Choose the prefix for the ticks that can be seen, and name it in the label."""
        super().set_locs(locs)
        low, high = sorted(self.axis.get_view_interval())
        seen = [abs(x) for x in locs if low <= x <= high and x]
        if not seen:
            return
        most, least = (_thousands(float(f"{x:.3g}")) for x in (max(seen), 1000 * min(seen)))
        self.power = min(most, least)
        self.axis.set_label_text(f"{self.quantity} [{_prefix(self.power)}{self.unit}]")

    def __call__(self, x: float, pos: int | None = None) -> str:
        return number(float(f"{x / 1000.0**self.power:.3g}"))


def sentence(text: str) -> str:
    """Return a text that begins a sentence.

    >>> sentence("recorded on an H200"), sentence("L2")
    ('Recorded on an H200', 'L2')
    """
    return text[:1].upper() + text[1:]


def si_axis(axis: Axis, quantity: str, unit: str) -> None:
    """Label an axis "quantity [unit]", with the SI prefix that fits it, and write plain ticks."""
    axis.set_major_formatter(Prefixed(quantity, unit))
    axis.set_label_text(f"{quantity} [{unit}]", fontsize=LABEL, color=INK)


def powers_axis(axis: Axis, quantity: str) -> None:
    """Label a logarithmic axis and write its ticks as powers of ten, for what has no unit."""
    axis.set_major_formatter(FuncFormatter(lambda x, _: power(10, round(math.log10(x)))))
    axis.set_label_text(quantity, fontsize=LABEL, color=INK)


def plain_axis(axis: Axis, quantity: str, unit: str = "") -> None:
    """Label an axis "quantity [unit]" and write its ticks as plain numbers."""
    axis.set_major_formatter(FuncFormatter(lambda x, _: number(x)))
    axis.set_label_text(f"{quantity} [{unit}]" if unit else quantity, fontsize=LABEL, color=INK)


def decades(low: float, high: float) -> tuple[float, float]:
    """Return the powers of ten around two positive numbers.

    >>> decades(0.3, 40)
    (0.1, 100.0)
    """
    return 10.0 ** math.floor(math.log10(low)), 10.0 ** math.ceil(math.log10(high))


def steps(low: float, high: float) -> tuple[float, float]:
    """Return the numbers 1, 2 or 5 times a power of ten around two positive numbers.

    >>> steps(0.3, 40), steps(2, 5)
    ((0.2, 50.0), (2.0, 5.0))
    """
    (below, _), (above, _) = decades(low, low), decades(high, high)
    return (
        max(below * step for step in (1, 2, 5, 10) if below * step <= low * (1 + 1e-9)),
        min(above * step for step in (1, 2, 5, 10) if above * step >= high * (1 - 1e-9)),
    )


# ---------------------------------------------------------------------------------- looks


def ink_on(colour: Sequence[float]) -> str:
    """Dark or white, whichever can be read on a colour of three parts from 0 to 1.

    >>> ink_on((1, 1, 0)) == INK, ink_on((0, 0, 1))
    (True, 'white')
    """
    red, green, blue = colour
    luma = 0.299 * red + 0.587 * green + 0.114 * blue  # ITU-R BT.601
    return INK if luma > 0.5 else "white"


APART = 0.45  # of ticks on a logarithmic axis, from one name to the next [in]


def _width(ax: Axes) -> float:
    """Return the width of axes [in]."""
    return ax.get_figure().get_figwidth() * ax.get_position().width


def prepare(ax: Axes, *, log: str = "", base: int = 10) -> None:
    """Give `ax` the common look; the axes named in `log` ("x", "y", "xy") become logarithmic."""
    for name, axis, set_scale, of in (
        ("x", ax.xaxis, ax.set_xscale, base),
        ("y", ax.yaxis, ax.set_yscale, 10),
    ):
        if name in log:
            set_scale("log", base=of)
            ticks = min(7, max(3, round(_width(ax) / APART))) if name == "x" else 7
            axis.set_major_locator(LogLocator(of, numticks=ticks))
        else:
            axis.set_major_locator(MaxNLocator(6))
        axis.set_minor_locator(NullLocator())
    # The grid marks the ticks already.
    ax.tick_params(labelsize=TICK, colors=INK, bottom=False, left=False)
    ax.grid(color=GRID, linewidth=0.7)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def title(ax: Axes, text: str) -> Text:
    """Set the title of `ax`, flush left, above the line of the source."""
    return ax.set_title(text, loc="left", fontsize=TITLE, color=INK, pad=LIFT, y=1)


def provenance(ax: Axes, text: str, label: Text | None = None) -> Text:
    """Say above `ax`, below its title, where its data come from; `label` is changed if given."""
    if label is None:
        above = {"xycoords": "axes fraction", "textcoords": "offset points"}
        label = ax.annotate("", (0, 1), (0, 4), va="bottom", **above)
        label.set(fontsize=NOTE, color=GREY, style="italic")
    label.set_text(text)
    if text:
        describe(ax, f"Source: {text}.", SOURCE)
    return label


def legend(ax: Axes, handles: Iterable, names: Iterable[str], **place: object) -> Legend:
    """A legend in the common look, in place of one that is there; `place` as `Axes.legend` has."""
    return ax.legend(
        list(handles), list(names), fontsize=NOTE, frameon=False, labelcolor=INK,
        labelspacing=0.4, handlelength=2.6, columnspacing=1.2,
        handler_map={tuple: HandlerTuple(None)}, **place,
    )  # fmt: skip
