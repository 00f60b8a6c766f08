"""The rounding explorer: a number, the bits it becomes, and its neighbours in a format."""

import numpy as np
from matplotlib.colors import ListedColormap

from gemmlab import plots
from gemmlab.explorers.shared.base import Explorer, Picture, row
from gemmlab.explorers.shared.controls import dropdown, real_field
from gemmlab.numerics import FORMATS, ROUNDINGS, Format, decode, encode, round_to, ulp
from gemmlab.plots import number
from gemmlab.plots.shared import style

BITS = 32
CHOICES = [name for name, form in FORMATS.items() if 8 * form.bytes <= BITS]
COLOURS = {"sign": "#F6D591", "exponent": "#B5DDF5", "fraction": "#8CCFBB"}
WORDS = {
    "RN": "to nearest, ties to even",
    "RZ": "toward zero",
    "RNA": "to nearest, ties away from zero",
}
REACH = 3  # numbers of the format to the left of x, and to its right


def parts(form: Format) -> list[str]:
    """Name what each bit of a format is, from the left.

    >>> parts(FORMATS["bfloat16"])[:3], len(parts(FORMATS["tf32"]))
    (['sign', 'exponent', 'exponent'], 19)
    """
    return ["sign"] + ["exponent"] * form.exponent_bits + ["fraction"] * form.fraction_bits


def digits(x: float, form: Format) -> str:
    """Return the bits of a number of the format, without those that do not count.

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

    x : any number, infinities and NaN included; dtype : a format of `numerics.FORMATS`
    rounding : "RN", "RZ" or "RNA"

    Raises ValueError for values that no control could show.

    >>> explorer = Rounding(0.1, "bfloat16")
    >>> float(explorer.rounded)
    0.10009765625
    """

    def __init__(self, x: float = 0.1, dtype: str = "bfloat16", rounding: str = "RN") -> None:
        bits, (self.bit_axes,) = plots.figure(6.8, 1.4)
        line, (self.line_axes,) = plots.figure(6.8, 1.6)
        plots.describe(
            line, "The numbers of the format around x, x itself, and what it is rounded to"
        )
        super().__init__(Picture(bits, line))
        round_to(x, dtype, rounding)  # refuses what is not known
        if dtype not in CHOICES:
            raise ValueError(
                f"dtype={dtype!r} is that of x itself; use one of {', '.join(CHOICES)}"
            )
        self.x = real_field("x", float(x))
        self.dtype = dropdown("format", CHOICES, dtype)
        self.rounding = dropdown("rounding", ROUNDINGS, rounding)
        self.rounded = 0.0
        self._prepare_bits()
        self._prepare_line()
        digits_ = (marks for (marks,) in self.digits.values())
        self.moving = self.boxes, *digits_, *self.on_line
        controls = self.x, self.dtype, self.rounding
        self.arrange([row(*controls)], watched=controls)

    def show(self) -> str:
        x, form, mode = self.x.value, FORMATS[self.dtype.value], self.rounding.value
        self.rounded = float(round_to(x, form.name, mode))
        self._draw_bits(x, form)
        self._draw_line(x, form)
        self.frames = form, form
        return self._describe(x, form, mode)

    def _describe(self, x: float, form: Format, mode: str) -> str:
        text = f"{x!r} in {form.name}, {WORDS[mode]}: {self.rounded!r}."
        bits, e = digits(self.rounded, form), form.exponent_bits
        text += f"\nSign {bits[0]}, exponent {bits[1 : 1 + e]}, fraction {bits[1 + e :]}."
        if np.isnan(self.rounded):
            fraction = "that is not 0" if form.infinities else "of ones"
            text += f"\nAn exponent of ones with a fraction {fraction} is NaN: no number."
        elif np.isinf(self.rounded):
            text += "\nAn exponent of ones with a fraction of 0 is an infinity."
        if not np.isfinite(self.rounded):
            none = "" if form.infinities else " and it has no infinity"
            largest = f" The largest number of {form.name} is {form.largest!r}{none and ','}{none}."
            return text if np.isnan(x) else text + largest
        place = float(ulp(x, form.name))
        text += f"\nNumbers are {style.raised(f'{place:.4g}')} apart here (one ulp)."
        if x == self.rounded:
            return text + " x is one of them."
        relative = abs(self.rounded - x) / abs(x)
        text += (
            f" The error is {number(abs(self.rounded - x) / place)} ulp. Its ratio to x is "
            f"{number(relative)}; that is {number(relative / form.unit_roundoff)} u, with the unit "
            f"roundoff u = {style.power(2, -form.precision)}."
        )
        if abs(x) < form.smallest_normal:
            text += " x is below the normal numbers: the relative error has no bound here."
        return text

    # --------------------------------------------------------------------------------- the bits

    def _prepare_bits(self) -> None:
        ax = self.bit_axes
        ax.set_position((0.1, 0.02, 0.89, 0.62))
        self.boxes = ax.pcolormesh(
            np.zeros((2, BITS)), cmap=ListedColormap([*COLOURS.values()]), vmin=0,
            vmax=len(COLOURS), edgecolors="white", linewidth=2,
        )  # fmt: skip
        self.digits = {
            digit: ax.plot(
                [], [], marker=f"${digit}$", linestyle="", color=style.INK, markersize=7,
                markeredgewidth=0.2,
            )
            for digit in "01"
        }  # fmt: skip
        ax.set(xlim=(0, BITS), ylim=(2, 0), xticks=[])
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        style.title(ax, "sign, exponent and fraction")
        style.provenance(ax, "computed")

    def _draw_bits(self, x: float, form: Format) -> None:
        rows = [(FORMATS["float32"], float(round_to(x, "float32"))), (form, self.rounded)]
        kinds = np.ma.masked_all((2, BITS))
        places: dict[str, list[tuple[float, float]]] = {"0": [], "1": []}
        for down, (shown, value) in enumerate(rows):
            for i, (part, bit) in enumerate(zip(parts(shown), digits(value, shown), strict=True)):
                kinds[down, i] = list(COLOURS).index(part)
                places[bit].append((i + 0.5, down + 0.5))
        self.boxes.set_array(kinds)
        for digit, (marks,) in self.digits.items():
            marks.set_data(np.reshape(places[digit], (-1, 2)).T)
        names = "float32", form.name.replace("_", "\n")
        self.bit_axes.set_yticks([0.5, 1.5], names, fontsize=style.TICK)

    # --------------------------------------------------------------------------------- the line

    def _prepare_line(self) -> None:
        ax = self.line_axes
        ax.set_position((0.02, 0.02, 0.96, 0.68))
        ax.set_axis_off()
        ax.set_ylim(-0.7, 1.4)
        line = ax.axhline(0, color=style.GREY, linewidth=1, zorder=1)
        (self.marks,) = ax.plot([], [], "|", color=style.BLUE, markersize=18, markeredgewidth=2)
        (self.here,) = ax.plot([], [], "v", color=style.VERMILION, markersize=9)
        middle = {"ha": "center", "color": style.INK}
        self.names = [ax.text(0, 0, "", va="top", **middle) for _ in range(2 * REACH + 1)]
        self.name = ax.text(0, 1.0, "", va="bottom", fontsize=style.LABEL, **middle)
        self.infinity = ax.text(0, 0.75, "", va="center", **middle)
        self.arrow = ax.annotate(
            "", (0, 0), (0, 0),
            arrowprops={"arrowstyle": "->", "color": style.VERMILION, "shrinkA": 0, "shrinkB": 0},
        )  # fmt: skip
        texts = *self.names, self.name, self.infinity
        self.on_line = line, self.marks, self.here, *texts, self.arrow

    def _draw_line(self, x: float, form: Format) -> None:
        """Move marks and names to the numbers around x, and x to its place, or to the end."""
        ax = self.line_axes
        style.title(ax, f"The numbers of {form.name} around x")
        for artist in self.on_line:
            artist.set_visible(not np.isnan(x))
        if np.isnan(x):
            self.name.set(visible=True, text="NaN has no place among the numbers", x=0)
            ax.set_xlim(-1, 1)
            return
        values = np.copysign(neighbours(abs(x), form), x)
        middle, place = values[len(values) // 2], float(ulp(min(abs(x), form.largest), form.name))
        at = (values - middle) / place
        first, last = at.min() - 1, at.max() + 1
        here = min(max((x - middle) / place, first), last)
        if np.isfinite(self.rounded):
            goal, end = (self.rounded - middle) / place, 0.15
        else:
            goal, end = (last if x > 0 else first) + 0.8 * np.sign(x), 0.75
        outside = "∞" if form.infinities else "NaN"
        infinite = "" if np.isfinite(self.rounded) else outside if x > 0 else f"−{outside}"
        self.infinity.set(text=infinite, x=goal + 0.15 * np.sign(x))
        ax.set_xlim(min(first, goal) - 0.4, max(last, goal) + 0.4)
        self.marks.set_data(at, np.zeros_like(at))
        texts = told_apart(values)
        size = style.NOTE - (2 if max(map(len, texts)) > 11 else 0.5)
        for i, name in enumerate(self.names):
            name.set_text(texts[i] if i < len(at) else "")
            name.set(x=at[i] if i < len(at) else 0, y=-0.3, fontsize=size)
        self.here.set_data([here], [0.75])
        beyond = here != (x - middle) / place
        self.name.set(text="x, further out" if beyond else "x", x=here)
        self.arrow.xy = goal, end
        self.arrow.set_position((here, 0.6 if end < 0.7 else end))
