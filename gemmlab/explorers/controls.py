"""Controls that explorers share, all usable by keyboard."""

from __future__ import annotations

import math
from collections.abc import Sequence

import ipywidgets as widgets
import traitlets

from gemmlab.problem import Gemm

NAMES = {"description_width": "6em"}  # a control's name stands left of it


def dropdown(name: str, options: Sequence[str], value: str) -> widgets.Dropdown:
    """A list to choose from."""
    return widgets.Dropdown(
        options=options, value=value, description=name, style=NAMES, layout={"width": "24em"}
    )


def field(name: str, value: int, most: int, indent: str = "6em") -> widgets.BoundedIntText:
    """A field for a whole number from 1 to `most`; its name takes `indent`."""
    return widgets.BoundedIntText(
        value, min=1, max=most, description=name, style={"description_width": indent},
        layout={"width": f"calc({indent} + 6em)"},
    )  # fmt: skip


class Size(widgets.HBox):
    """A whole number from 1 to 2^high: a slider over powers of two from 2^low, and a field for any.

    (The number beside ipywidgets' own logarithmic slider is rounded to the slider's steps.)
    """

    value = traitlets.Int(1)

    def __init__(self, name: str, value: int, high: int, low: int = 0) -> None:
        self.slider = widgets.IntSlider(
            low, low, high, description=name, readout=False, style=NAMES, layout={"width": "24em"}
        )
        self.number = widgets.BoundedIntText(
            value, min=1, max=2**high, tooltip=f"{name}, typed", layout={"width": "6em"}
        )
        super().__init__([self.slider, self.number])
        self._following = False
        self.observe(self._follow, "value")
        self.slider.observe(self._slide, "value")
        self.value = value
        traitlets.link((self, "value"), (self.number, "value"))

    def _follow(self, _change: object) -> None:
        """Move the slider to the power of two that is nearest to a number set otherwise."""
        self._following = True
        self.slider.value = max(round(math.log2(self.value)), self.slider.min)
        self._following = False

    def _slide(self, _change: object) -> None:
        if not self._following:
            self.value = 2**self.slider.value


def sizes_of(problem: Gemm, largest: int) -> dict[str, int]:
    """m, n and k of a problem; ValueError where one is above 2^largest, the end of its slider."""
    sizes = {name: getattr(problem, name) for name in "mnk"}
    for name, value in sizes.items():
        if value > 2**largest:
            raise ValueError(f"{name}={value} is too large; use 1 to {2**largest}")
    return sizes
