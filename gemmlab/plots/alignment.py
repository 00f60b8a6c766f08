"""The terms of a dot product as a Tensor Core lines them up: which bits are kept, which are cut."""

from collections.abc import Sequence
from fractions import Fraction
from math import frexp, trunc
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.text import Text

from gemmlab.numerics import tensor_core
from gemmlab.plots.shared import style

KEPT, CUT, EMPTY = (0.72, 0.86, 0.95), (0.97, 0.75, 0.62), (1.0, 1.0, 1.0)
PRECISION = 24  # bits of a float32 significand


class Row(NamedTuple):
    """A line of the figure has a name, a magnitude, and the weight of the last bit kept."""

    name: str
    value: Fraction
    last: int


class AlignmentArtists(NamedTuple):
    """`alignment` draws these: the boxes, their digits, and the line where terms are cut."""

    image: AxesImage
    digits: list[Text]
    cut: Line2D


def rows(a: Sequence[float], b: Sequence[float], c: float, arch: str) -> tuple[list[Row], int]:
    """c, the products, their sum and the float32 of one block; the exponent E of the largest term.

    Nothing is subnormal, infinite or NaN. Raises ValueError where all terms are zero.
    """
    terms = [
        (Fraction(x) * Fraction(y), _exponent(x) + _exponent(y)) for x, y in zip(a, b, strict=True)
    ]
    exponents = [e for value, e in terms if value] + ([_exponent(c)] if c else [])
    if not exponents:
        raise ValueError("all terms are zero: there is nothing to line up")
    largest = max(exponents)
    last = largest - tensor_core(arch).fraction_bits
    unit = Fraction(2) ** last
    named = [("c", Fraction(c)), *((f"a{i}·b{i}", value) for i, (value, _) in enumerate(terms))]
    total = unit * sum(trunc(value / unit) for _, value in named)
    final = _exponent(total) - PRECISION + 1 if total else last
    return [*(Row(name, value, last) for name, value in named), Row("sum", total, final)], largest


def alignment(
    ax: Axes, a: Sequence[float], b: Sequence[float], c: float, arch: str = "sm_90"
) -> AlignmentArtists:
    """Draw the bits of each term of one block under those of the largest.

    a, b : the factors of at most one block, c : what is added; numbers that are not subnormal
    A box is a bit, from the leading 1 of a term to its last; those in red are cut off. The last row
    is the sum of what is left, and red in it is what rounding toward zero takes.
    """
    found, largest = rows(a, b, c, arch)
    top = max([largest, *(_exponent(row.value) for row in found if row.value)])
    low = min([found[0].last - 2, *(_lowest(row.value) for row in found if row.value)])
    width = top - low + 1
    shades = np.full((len(found), width, 3), EMPTY)
    digits = []
    for y, row in enumerate(found):
        if not row.value:
            continue
        for weight in range(_exponent(row.value), _lowest(row.value) - 1, -1):
            bit = int(abs(row.value) / Fraction(2) ** weight) % 2
            shades[y, top - weight] = KEPT if weight >= row.last else CUT
            digits.append(ax.text(top - weight, y, str(bit), ha="center", va="center"))
    image = ax.imshow(shades, aspect="auto", interpolation="nearest")
    at = top - found[0].last + 0.5
    (cut,) = ax.plot([at, at], [-0.5, len(found) - 1.5], color=style.VERMILION, linewidth=1.5)
    names = [f"{'−' if row.value < 0 else ''}{row.name}" for row in found]
    ax.set_yticks(range(len(found)), names, fontsize=style.TICK)
    marked = [w for w in range(top, low - 1, -1) if w % 5 == 0]
    ax.set_xticks([top - w for w in marked], [f"$2^{{{w}}}$" for w in marked], fontsize=style.TICK)
    ax.axhline(len(found) - 1.5, color=style.GREY, linewidth=0.8)
    for digit in digits:
        digit.set(fontsize=style.SMALLEST, color=style.INK)
    ax.set_xlabel(
        "weight of a bit; right of the line, in red: cut off", fontsize=style.NOTE, color=style.INK
    )
    ax.tick_params(length=0, labelcolor=style.INK)
    ax.spines[:].set_visible(False)
    kept = tensor_core(arch).fraction_bits
    style.title(ax, f"{arch}: E = {largest}, {kept} bits below it are kept")
    style.provenance(ax, "emulated")
    style.describe(ax, _finding(found, names), "alignment")
    return AlignmentArtists(image, digits, cut)


def _finding(found: Sequence[Row], names: Sequence[str]) -> str:
    """Return the weight of the last bit that is kept, and which rows lose bits below it."""
    lost = [
        f"{name} loses {style.count(bits, 'bit')}"
        for name, row in zip(names, found, strict=True)
        if row.value and (bits := row.last - _lowest(row.value)) > 0
    ]
    terms = style.count(len(found) - 1, "term")
    return (
        f"The bits of {terms} of a dot product, lined up, and of their sum. Terms keep bits down "
        f"to 2^{found[0].last}: {', '.join(lost) or 'nothing is lost'}."
    )


def _exponent(x: Fraction | float) -> int:
    """⌊log2 |x|⌋ of a number that float64 has; 0 for 0."""
    return frexp(float(x))[1] - 1 if x else 0


def _lowest(x: Fraction) -> int:
    """Return the weight of the last bit that is 1."""
    numerator = abs(x.numerator)
    return (numerator & -numerator).bit_length() - x.denominator.bit_length()
