"""The dot product explorer: the error of a sum over its length, by the way it is summed."""

from functools import cache

import ipywidgets as widgets
import numpy as np
from matplotlib.lines import Line2D

from gemmlab import numerics, plots
from gemmlab.device import architecture
from gemmlab.explorers.shared.base import Explorer, Picture, row
from gemmlab.explorers.shared.controls import NAMES, dropdown
from gemmlab.plots import number
from gemmlab.plots.shared import style

CORES = {f"{architecture(name).generation} ({name})": name for name in numerics.TENSOR_CORES}
ANY = "sm_90"  # CUDA cores are alike in all of them
VALUES = ("positive", "either sign")
OPERANDS = tuple(numerics.tensor_core(ANY).block)
SHORT, LONG = 4, 12  # 2^4 = 16 to 2^12 = 4096 products
LENGTHS = [2**i for i in range(SHORT, LONG + 1)]
DOTS = 64  # dot products of each kind
UNIT = numerics.FORMATS["float32"].unit_roundoff
SHOWN = ("cuda", "inside", "outside")  # float16 sums have errors thousands of times as large
WAYS = dict(zip(numerics.ACCUMULATIONS, style.SERIES, strict=False))  # the colour of each
NAMES_AT_LINES = {
    "cuda": "CUDA cores",
    "inside": "Tensor Core",
    "outside": "added outside",
    "float16": "float16 sums",
}
APART = 0.055  # of the height of the axes: names at lines that are nearer would overlap


def errors(way: str, dtype: str, arch: str, values: str) -> np.ndarray:
    """Return (sum − exact) / Σ |a_i·b_i| of dot products of each length, (lengths, DOTS).

    The operands are normal, or the magnitudes of such; the Tensor Core is emulated to the bit.
    """
    return _errors(way, dtype, ANY if numerics.ACCUMULATIONS[way].unit == "cuda" else arch, values)


@cache
def _errors(way: str, dtype: str, arch: str, values: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, DOTS, LENGTHS[-1]))
    if values == "positive":
        a, b = np.abs(a), np.abs(b)
    a, b = (numerics.round_to(x, dtype) for x in (a, b))
    products = a.astype(np.float64) * b
    exact, scale = np.cumsum(products, axis=1), np.cumsum(np.abs(products), axis=1)
    last = np.array(LENGTHS) - 1
    sums = numerics.running_sums(a, b, LENGTHS, way, dtype=dtype, arch=arch)
    return (sums - exact[:, last].T) / scale[:, last].T


def ways(dtype: str) -> list[str]:
    """Return the ways of summing that operands of this format can take."""
    return [w for w in numerics.ACCUMULATIONS if w != "float16" or dtype == "float16"]


def spread(heights: dict[str, float], apart: float) -> dict[str, float]:
    """Heights moved up from the lowest on, so that no two are nearer than `apart`.

    >>> spread({"a": 0.5, "b": 0.0, "c": 0.01}, 0.1)
    {'b': 0.0, 'c': 0.1, 'a': 0.5}
    """
    found: dict[str, float] = {}
    least = -np.inf
    for name, height in sorted(heights.items(), key=lambda item: item[1]):
        found[name] = max(height, least)
        least = found[name] + apart
    return found


class DotError(Explorer):
    """Errors of emulated dot products below their bounds, by length and by way of summing.

    k : products, a power of two from 16 to 4096; dtype : "float16", "bfloat16", "tf32",
        "float8_e4m3fn" or "float8_e5m2"
    arch : "sm_70", "sm_75", "sm_80" or "sm_90"; values : "positive" or "either sign"

    Raises ValueError for values that no control could show.

    >>> explorer = DotError(k=1024)
    >>> explorer.largest["inside"] > explorer.largest["outside"]
    True
    """

    def __init__(
        self, k: int = 1024, dtype: str = "float16", arch: str = "sm_90", values: str = "positive"
    ) -> None:
        curves, (self.curve_axes,) = plots.figure(4.4, 3.4)
        self.curve_axes.set_position((0.16, 0.15, 0.6, 0.72))  # names stand at its right
        dots, (self.dot_axes,) = plots.figure(3.8, 3.4)
        self.dot_axes.set_position((0.04, 0.15, 0.92, 0.72))
        plots.describe(
            dots, "Errors of all float32 sums at this k, in a row for each way of summing"
        )
        super().__init__(Picture(curves, dots))
        for name, value, known in (
            ("k", k, LENGTHS), ("dtype", dtype, OPERANDS), ("values", values, VALUES)
        ):  # fmt: skip
            if value not in known:
                raise ValueError(f"{name}={value!r} is not offered; use one of {list(known)}")
        chosen = numerics.tensor_core(arch).arch
        self.k = widgets.SelectionSlider(
            options=LENGTHS, value=k, description="k", style=NAMES,
            layout={"width": "34em", "max_width": "100%"},
        )  # fmt: skip
        self.dtype = dropdown("operands", OPERANDS, dtype)
        self.arch = dropdown("Tensor Core", list(CORES.items()), chosen)
        self.values = dropdown("values", VALUES, values)
        self.largest: dict[str, float] = {}
        self.dots: dict[str, tuple[Line2D, Line2D]] = {}  # of each way: all errors, their mean
        self._prepare_dots()
        lists = row(self.dtype, self.arch, self.values)
        self.arrange([lists, self.k], watched=(self.k, self.dtype, self.arch, self.values))

    def show(self) -> str:
        k, dtype, arch = self.k.value, self.dtype.value, self.arch.value
        if dtype not in numerics.TENSOR_CORES[arch].block:
            known = ", ".join(numerics.TENSOR_CORES[arch].block)
            raise ValueError(f"{arch} does not multiply {dtype}; it has {known}")
        found = {way: errors(way, dtype, arch, self.values.value) for way in ways(dtype)}
        at = LENGTHS.index(k)
        self.largest = {way: float(np.abs(e[at]).max()) for way, e in found.items()}
        frame = dtype, arch, self.values.value
        if (frame, None) != self.frames:
            self.frames, self.here = (frame, None), self._draw_curves(found, dtype, arch)
            self.moving = (self.here,)
        self.here.set_xdata([k, k])
        self._draw_dots({way: e[at] for way, e in found.items()}, k)
        lines = [f"{DOTS} dot products of {k} products, {self.values.value}, in {dtype}."]
        for way, largest in self.largest.items():
            how = numerics.ACCUMULATIONS[way]
            bound = how.bound(k, dtype, arch)
            lines.append(
                f"{how.title}: largest error {number(largest / UNIT)} u (emulated), "
                f"{number(100 * largest / bound)} % of its bound, {number(bound / UNIT)} u."
            )
        return "\n".join(lines) + "\nErrors are relative to Σ|a·b|, and u = 2⁻²⁴."

    def _draw_curves(self, found: dict, dtype: str, arch: str) -> Line2D:
        """Draw errors and bounds over k; return the vertical line that marks the chosen k."""
        ax = self.curve_axes
        ax.clear()
        style.prepare(ax, log="xy", base=2)
        ends = {}
        for way, of_way in found.items():
            largest = np.maximum(np.abs(of_way).max(axis=1), UNIT / 64)  # 0 has no logarithm
            bounds = [numerics.ACCUMULATIONS[way].bound(n, dtype, arch) for n in LENGTHS]
            ax.plot(LENGTHS, bounds, "--", color=WAYS[way], linewidth=1)
            ax.plot(LENGTHS, largest, "^-", color=WAYS[way], markersize=5, linewidth=1)
            ends[way] = largest[-1]
        here = ax.axvline(LENGTHS[0], color=style.GREY, linewidth=1, zorder=0)
        ax.set_xlabel("products, k", fontsize=style.LABEL)
        ax.set_ylabel("error / Σ|a·b|", fontsize=style.LABEL)
        ax.plot([], [], "^-", color=style.INK, markersize=5, linewidth=1, label="largest error")
        ax.plot([], [], "--", color=style.INK, linewidth=1, label="bound (predicted)")
        ax.legend(loc="upper left", frameon=False, fontsize=style.NOTE)
        low, high = np.log(ax.get_ylim())
        heights = {way: (np.log(end) - low) / (high - low) for way, end in ends.items()}
        for way, height in spread(heights, APART).items():
            ax.text(
                1.02, height, NAMES_AT_LINES[way], color=WAYS[way], fontsize=style.NOTE,
                va="center", transform=ax.transAxes,
            )  # fmt: skip
        style.title(ax, "Errors and bounds")
        style.provenance(ax, "emulated")
        return here

    def _prepare_dots(self) -> None:
        ax = self.dot_axes
        style.prepare(ax)
        spot = np.linspace(-0.25, 0.25, DOTS)
        for place, way in enumerate(SHOWN):
            (dots,) = ax.plot(0 * spot, place + spot, ".", color=WAYS[way], markersize=4)
            (bar,) = ax.plot([0, 0], [place - 0.32, place + 0.32], color=style.INK, linewidth=1.5)
            self.dots[way] = dots, bar
            look = {"transform": ax.get_yaxis_transform(), "fontsize": style.NOTE, "va": "bottom"}
            ax.text(0.01, place - 0.36, numerics.ACCUMULATIONS[way].title, **look)
        ax.axvline(0, color=style.GREY, linewidth=1, zorder=0)
        ax.set(yticks=[], ylim=(len(SHOWN) - 0.5, -0.7))
        ax.set_xlabel("error / (u·Σ|a·b|), u = 2⁻²⁴", fontsize=style.LABEL)
        style.provenance(ax, "emulated")

    def _draw_dots(self, found: dict, k: int) -> None:
        for way, (dots, bar) in self.dots.items():
            dots.set_xdata(found[way] / UNIT)
            bar.set_xdata([found[way].mean() / UNIT] * 2)
        self.dot_axes.relim()
        self.dot_axes.autoscale_view(scaley=False)
        style.title(self.dot_axes, f"float32 sums at k = {k}, bar: mean")
