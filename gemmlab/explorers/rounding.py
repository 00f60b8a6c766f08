"""The rounding explorer: a number, the bits it becomes, and its neighbours in a format."""

from __future__ import annotations

import ipywidgets as widgets
import numpy as np
from matplotlib.patches import Rectangle

from gemmlab import plots
from gemmlab.explorers.base import Explorer, Picture
from gemmlab.explorers.controls import NAMES, dropdown
from gemmlab.numerics import FORMATS, ROUNDINGS, Format, decode, encode, round_to, ulp
from gemmlab.plots import number, style

BITS = 32
CHOICES = [name for name, form in FORMATS.items() if 8 * form.bytes <= BITS]
COLOURS = {"sign": style.ORANGE, "exponent": style.SKY, "fraction": style.GREEN}
WORDS = {
    "RN": "to nearest, ties to even",
    "RZ": "toward zero",
    "RNA": "to nearest, ties away from zero",
}
REACH = 3  # numbers of the format to the left of x, and to its right


def parts(form: Format) -> list[str]:
    """What each bit of a format is, from the left.

    >>> parts(FORMATS["bfloat16"])[:3], len(parts(FORMATS["tf32"]))
    (['sign', 'exponent', 'exponent'], 19)
    """
    return ["sign"] + ["exponent"] * form.exponent_bits + ["fraction"] * form.fraction_bits


def digits(x: float, form: Format) -> str:
    """The bits of a number of the format, without those that do not count.

    >>> digits(1.5, FORMATS["bfloat16"])
    '0011111111000000'
    """
    width = len(parts(form))
    return f"{int(encode(x, form.name)) >> form.padding:0{width}b}"


def neighbours(x: float, form: Format) -> np.ndarray:
    """The finite numbers of the format around x ≥ 0, at most REACH on either side, ascending."""
    below = int(encode(round_to(x, form.name, "RZ"), form.name)) >> form.padding
    end = int(encode(form.largest, form.name)) >> form.padding
    # The words of numbers ≥ 0 ascend as the numbers do.
    words = np.arange(max(below - REACH, 0), min(below + REACH, end) + 1)
    return decode(words << form.padding, form.name).astype(np.float64)


def told_apart(values: np.ndarray) -> list[str]:
    """Numbers as texts with as many digits as it takes for no two to look alike, but at least 7.

    >>> told_apart(neighbours(0.1, FORMATS["float32"])[2:5])
    ['0.099999987', '0.099999994', '0.1']
    """
    for digits in range(7, 18):  # float64 is told apart by 17
        texts = [f"{value:.{digits}g}" for value in values]
        if len(set(texts)) == len(texts):
            break
    return texts


class Rounding(Explorer):
    """A number rounded to a format: its bits, its neighbours, and the error.

    x : any finite number; dtype : a format of `numerics.FORMATS`; rounding : "RN", "RZ" or "RNA"

    Raises ValueError for values that no control could show.

    >>> explorer = Rounding(0.1, "bfloat16")
    >>> float(explorer.rounded)
    0.10009765625
    """

    def __init__(self, x: float = 0.1, dtype: str = "bfloat16", rounding: str = "RN") -> None:
        figure, (self.line_axes,) = plots.figure(9.2, 2.7)
        super().__init__(Picture(figure))
        self.line_axes.set_position((0.05, 0.04, 0.92, 0.38))
        self.bit_axes = figure.add_axes((0.12, 0.62, 0.85, 0.26))
        if not np.isfinite(x):
            raise ValueError(f"x={x!r} is not finite; use a number")
        round_to(x, dtype, rounding)  # refuses what is not known
        if dtype not in CHOICES:
            raise ValueError(
                f"dtype={dtype!r} is that of x itself; use one of {', '.join(CHOICES)}"
            )
        self.x = widgets.FloatText(
            x, description="x", style=NAMES, layout={"width": "18em"}, tooltip="any number"
        )
        self.dtype = dropdown("format", CHOICES, dtype)
        self.rounding = dropdown("rounding", ROUNDINGS, rounding)
        self.rounded = 0.0
        row = widgets.HBox([self.x, self.dtype, self.rounding], layout={"flex_flow": "row wrap"})
        self.arrange([row], watched=(self.x, self.dtype, self.rounding))

    def show(self) -> str:
        """Draw bits and number line; return the value, its bits and the error in words."""
        x, form, mode = self.x.value, FORMATS[self.dtype.value], self.rounding.value
        if not np.isfinite(x):
            raise ValueError(f"x = {x} is not finite; use a number")
        self.rounded = float(round_to(x, form.name, mode))
        self._draw_bits(x, form)
        self._draw_line(x, form)
        return self._describe(x, form, mode)

    def _describe(self, x: float, form: Format, mode: str) -> str:
        text = f"{x!r} in {form.name}, {WORDS[mode]}: {self.rounded!r}."
        if not np.isfinite(self.rounded):
            return f"{text}\nThe largest number of {form.name} is {form.largest!r}."
        bits, e = digits(self.rounded, form), form.exponent_bits
        text += f"\nSign {bits[0]}, exponent {bits[1 : 1 + e]}, fraction {bits[1 + e :]}."
        place = float(ulp(x, form.name))
        text += f"\nNumbers are {place:.4g} apart here (one ulp)."
        if x == self.rounded:
            return text + " x is one of them."
        relative = abs(self.rounded - x) / abs(x)
        text += (
            f" The error is {number(abs(self.rounded - x) / place)} ulp; relative to x it is "
            f"{relative:.3g}, {number(relative / form.unit_roundoff)} times the unit roundoff "
            f"u = 2^-{form.precision}."
        )
        if abs(x) < form.smallest_normal:
            text += " x is below the normal numbers: the relative error has no bound here."
        return text

    def _draw_bits(self, x: float, form: Format) -> None:
        """Draw a box for each bit: float32 above, the format below."""
        ax = self.bit_axes
        ax.clear()
        ax.set(xlim=(0, BITS), ylim=(2.1, -0.1))
        rows = [(FORMATS["float32"], float(round_to(x, "float32"))), (form, self.rounded)]
        for row, (shown, value) in enumerate(rows):
            for i, (part, bit) in enumerate(zip(parts(shown), digits(value, shown), strict=True)):
                colour = COLOURS[part]
                ax.add_patch(Rectangle((i, row), 1, 0.9, fc=colour, ec="white", alpha=0.45))
                ax.text(i + 0.5, row + 0.5, bit, ha="center", va="center", fontsize=style.TICK)
        ax.set_yticks([0.5, 1.5], ["float32", form.name], fontsize=style.LABEL)
        ax.set_xticks([])
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        style.title(ax, "sign, exponent and fraction")
        style.provenance(ax, "computed")

    def _draw_line(self, x: float, form: Format) -> None:
        """Draw the numbers around x, x itself (at the end if beyond them), and its rounding."""
        ax = self.line_axes
        ax.clear()
        values = np.copysign(neighbours(abs(x), form), x)
        middle, place = values[len(values) // 2], float(ulp(min(abs(x), form.largest), form.name))
        at = (values - middle) / place
        first, last = at.min() - 1, at.max() + 1
        here = min(max((x - middle) / place, first), last)
        if np.isfinite(self.rounded):
            goal, end = (self.rounded - middle) / place, 0.1
        else:
            goal, end = (last if x > 0 else first) + 0.8 * np.sign(x), 0.75
            ax.text(goal, end, "∞" if x > 0 else "−∞", ha="center", va="center")
        ax.set(xlim=(min(first, goal) - 0.4, max(last, goal) + 0.4), ylim=(-0.6, 1.4))
        ax.axhline(0, color=style.GREY, linewidth=1, zorder=1)
        ax.plot(at, np.zeros_like(at), "|", color=style.BLUE, markersize=18, markeredgewidth=2)
        texts = told_apart(values)
        size = style.NOTE - (1.5 if max(map(len, texts)) > 11 else 0)
        for place_of, text in zip(at, texts, strict=True):
            ax.text(place_of, -0.3, text, ha="center", va="top", fontsize=size, color=style.INK)
        ax.plot([here], [0.75], "v", color=style.VERMILION, markersize=9)
        beyond = here != (x - middle) / place
        name = "x, further out" if beyond else "x"
        ax.text(here, 1.0, name, ha="center", va="bottom", fontsize=style.LABEL)
        ax.annotate(
            "", (goal, end), (here, 0.7 if end < 0.7 else end),
            arrowprops={"arrowstyle": "->", "color": style.VERMILION, "shrinkB": 8 * (end > 0.7)},
        )  # fmt: skip
        ax.set_axis_off()
        style.title(ax, f"The numbers of {form.name} around x")
