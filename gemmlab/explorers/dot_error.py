"""The dot product explorer: the error of a sum over its length, by the way it is summed."""

from __future__ import annotations

from functools import cache

import ipywidgets as widgets
import numpy as np

from gemmlab import plots
from gemmlab.explorers.base import Explorer, Picture
from gemmlab.explorers.controls import NAMES, dropdown
from gemmlab.numerics import (
    ACCUMULATIONS,
    FORMATS,
    TENSOR_CORES,
    round_to,
    running_sums,
    tensor_core,
)
from gemmlab.plots import number, style

ARCHITECTURES = {
    "Volta (sm_70)": "sm_70",
    "Turing (sm_75)": "sm_75",
    "Ampere (sm_80)": "sm_80",
    "Hopper (sm_90)": "sm_90",
}
ANY = "sm_90"  # CUDA cores are alike in all of them
VALUES = ("positive", "either sign")
OPERANDS = ("float16", "bfloat16", "tf32")
SHORT, LONG = 4, 12  # 2^4 = 16 to 2^12 = 4096 products
LENGTHS = [2**i for i in range(SHORT, LONG + 1)]
DOTS = 64  # dot products of each kind
UNIT = FORMATS["float32"].unit_roundoff
SHOWN = ("cuda", "inside", "outside")  # float16 sums have errors thousands of times as large
WAYS = dict(zip(ACCUMULATIONS, style.SERIES, strict=False))  # the colour of each


def errors(way: str, dtype: str, arch: str, values: str) -> np.ndarray:
    """(sum − exact) / Σ |a_i·b_i| of dot products of each length, (lengths, DOTS).

    The operands are normal, or the magnitudes of such; the Tensor Core is emulated to the bit.
    """
    return _errors(way, dtype, ANY if ACCUMULATIONS[way].unit == "cuda" else arch, values)


@cache
def _errors(way: str, dtype: str, arch: str, values: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, DOTS, LENGTHS[-1]))
    if values == "positive":
        a, b = np.abs(a), np.abs(b)
    a, b = (round_to(x, dtype) for x in (a, b))
    products = a.astype(np.float64) * b
    exact, scale = np.cumsum(products, axis=1), np.cumsum(np.abs(products), axis=1)
    last = np.array(LENGTHS) - 1
    sums = running_sums(a, b, LENGTHS, way, dtype=dtype, arch=arch)
    return (sums - exact[:, last].T) / scale[:, last].T


def ways(dtype: str) -> list[str]:
    """The ways of summing that operands of this format can take."""
    return [w for w in ACCUMULATIONS if w != "float16" or dtype == "float16"]


class DotError(Explorer):
    """Errors of emulated dot products below their bounds, by length and by way of summing.

    k : products, a power of two from 16 to 4096; dtype : "float16", "bfloat16" or "tf32"
    arch : "sm_70", "sm_75", "sm_80" or "sm_90"; values : "positive" or "either sign"

    Raises ValueError for values that no control could show.

    >>> explorer = DotError(k=1024)
    >>> explorer.largest["inside"] > explorer.largest["outside"]
    True
    """

    def __init__(
        self, k: int = 1024, dtype: str = "float16", arch: str = "sm_90", values: str = "positive"
    ) -> None:
        figure, (self.curve_axes, self.dot_axes) = plots.figure(9.4, 4.2, columns=2, wspace=0.25)
        super().__init__(Picture(figure))
        self.curve_axes.set_position((0.09, 0.14, 0.38, 0.74))
        self.dot_axes.set_position((0.56, 0.14, 0.42, 0.74))
        for name, value, known in (
            ("k", k, LENGTHS), ("dtype", dtype, OPERANDS), ("values", values, VALUES)
        ):  # fmt: skip
            if value not in known:
                raise ValueError(f"{name}={value!r} is not offered; use one of {list(known)}")
        chosen = tensor_core(arch).arch
        self.k = widgets.SelectionSlider(
            options=LENGTHS, value=k, description="k", style=NAMES, layout={"width": "34em"}
        )
        self.dtype = dropdown("operands", OPERANDS, dtype)
        self.arch = widgets.Dropdown(
            options=ARCHITECTURES, value=chosen, description="Tensor Core", style=NAMES,
            layout={"width": "24em"},
        )  # fmt: skip
        self.values = dropdown("values", VALUES, values)
        self.largest: dict[str, float] = {}
        row = widgets.HBox([self.dtype, self.arch, self.values], layout={"flex_flow": "row wrap"})
        self.arrange([row, self.k], watched=(self.k, self.dtype, self.arch, self.values))

    def show(self) -> str:
        """Draw errors and bounds over k, and all errors at this k; the same in words."""
        k, dtype, arch = self.k.value, self.dtype.value, self.arch.value
        if dtype not in TENSOR_CORES[arch].block:
            known = ", ".join(TENSOR_CORES[arch].block)
            raise ValueError(f"{arch} does not multiply {dtype}; it has {known}")
        found = {way: errors(way, dtype, arch, self.values.value) for way in ways(dtype)}
        at = LENGTHS.index(k)
        self.largest = {way: float(np.abs(e[at]).max()) for way, e in found.items()}
        self._draw_curves(found, dtype, arch, k)
        self._draw_dots({way: e[at] for way, e in found.items()}, k)
        lines = [f"{DOTS} dot products of {k} products, {self.values.value}, in {dtype}."]
        for way, largest in self.largest.items():
            bound = ACCUMULATIONS[way].bound(k, dtype, arch)
            lines.append(
                f"{ACCUMULATIONS[way].title}: largest error {number(largest / UNIT)} u (emulated), "
                f"{number(100 * largest / bound)} % of its bound, {number(bound / UNIT)} u."
            )
        return "\n".join(lines) + "\nErrors are relative to Σ|a·b|, and u = 2^-24."

    def _draw_curves(self, found: dict, dtype: str, arch: str, k: int) -> None:
        ax = self.curve_axes
        ax.clear()
        style.prepare(ax, log="xy", base=2)
        for way, of_way in found.items():
            largest = np.maximum(np.abs(of_way).max(axis=1), UNIT / 64)  # 0 has no logarithm
            bounds = [ACCUMULATIONS[way].bound(n, dtype, arch) for n in LENGTHS]
            ax.plot(LENGTHS, bounds, "--", color=WAYS[way], linewidth=1)
            ax.plot(LENGTHS, largest, "^-", color=WAYS[way], markersize=5, linewidth=1)
            if way not in SHOWN:
                ax.text(
                    LENGTHS[0], 0.55 * largest[0], ACCUMULATIONS[way].title, va="top",
                    color=WAYS[way], fontsize=style.NOTE,
                )  # fmt: skip
        ax.axvline(k, color=style.GREY, linewidth=1, zorder=0)
        ax.set_xlabel("products, k", fontsize=style.LABEL)
        ax.set_ylabel("error / Σ|a·b|", fontsize=style.LABEL)
        ax.plot([], [], "^-", color=style.INK, markersize=5, linewidth=1, label="largest error")
        ax.plot([], [], "--", color=style.INK, linewidth=1, label="bound (predicted)")
        ax.legend(loc="upper left", frameon=False, fontsize=style.NOTE)
        style.title(ax, "Errors and bounds")
        style.provenance(ax, "emulated")

    def _draw_dots(self, found: dict, k: int) -> None:
        ax = self.dot_axes
        ax.clear()
        style.prepare(ax)
        spread = np.linspace(-0.25, 0.25, DOTS)
        for row, way in enumerate(SHOWN):
            of_way = found[way]
            ax.plot(of_way / UNIT, row + spread, ".", color=WAYS[way], markersize=4)
            ax.plot([of_way.mean() / UNIT] * 2, [row - 0.32, row + 0.32], color=style.INK, lw=1.5)
            ax.text(
                0.01, row - 0.36, ACCUMULATIONS[way].title, transform=ax.get_yaxis_transform(),
                fontsize=style.NOTE, va="bottom",
            )  # fmt: skip
        ax.axvline(0, color=style.GREY, linewidth=1, zorder=0)
        ax.set(yticks=[], ylim=(len(SHOWN) - 0.5, -0.7))
        ax.set_xlabel("error / (u·Σ|a·b|), u = 2^-24", fontsize=style.LABEL)
        style.title(ax, f"float32 sums at k = {k}, bar: mean")
        style.provenance(ax, "emulated")
