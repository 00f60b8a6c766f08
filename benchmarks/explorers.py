"""How long explorers take from a control's change to the bytes of the picture, without a browser.

    python -m benchmarks.explorers [NAME ...]

NAME is an explorer, such as KernelLab (default: all that the kernel draws). Prints, for each of its
controls with values to choose from, medians over its changes, walked there and back twice: wall
time, and the time of the processor, which others on the machine do not lengthen. What is computed
once and kept is left out by the first walk; its longest change is printed beside.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

import ipywidgets as widgets

from gemmlab import explorers
from gemmlab.explorers.shared.base import Explorer
from gemmlab.explorers.shared.controls import Number

MOST = 8  # values of a control that are walked


def values(control: Any) -> list[Any]:
    """Some of the values that a control offers, in order; none where it is a field to type in."""
    if isinstance(control, Number):
        offered = list(control.stops)
    elif isinstance(control, widgets.IntSlider):
        offered = list(range(control.min, control.max + 1, control.step))
    else:
        options = getattr(control, "options", ())
        offered = [option[1] if isinstance(option, tuple) else option for option in options]
    return offered[:: -(-len(offered) // MOST) or 1]


def controls(explorer: Explorer) -> list[Any]:
    """The controls of an explorer that are its own, from the first to the last."""
    every = [
        x
        for own in vars(explorer).values()
        for x in (own.values() if isinstance(own, dict) else [own])
    ]
    return [c for c in every if isinstance(c, Number | widgets.IntSlider) or hasattr(c, "options")]


def settle(explorer: Explorer) -> None:
    """Wait for a picture that is made in the background."""
    if hasattr(explorer, "wait"):
        explorer.wait()


def times(explorer: Explorer, control: Any) -> tuple[list[float], list[float], float]:
    """Wall and processor seconds of each change but the first walk's, and the longest of that."""
    there, before = values(control), control.value
    wall, cpu = [], []
    for value in 3 * (there + there[-2:0:-1]):
        start, busy = time.perf_counter(), time.process_time()
        control.value = value
        settle(explorer)
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - busy)
    control.value = before
    first = len(wall) // 3
    return wall[first:], cpu[first:], max(cpu[:first])


def name_of(control: Any) -> str:
    """The name that stands beside a control."""
    return (control.slider if isinstance(control, Number) else control).description


def main(names: Sequence[str]) -> None:
    """Print a table [ms]."""
    print(f"{'':32}{'wall':>8}{'processor':>12}{'longest at first':>20}")
    for name in names or explorers.__all__:
        explorer = getattr(explorers, name)()
        if not isinstance(explorer, Explorer):  # the browser draws it
            continue
        settle(explorer)
        for control in controls(explorer):
            if len(values(control)) > 1:
                wall, cpu, longest = times(explorer, control)
                row = statistics.median(wall), statistics.median(cpu), longest
                told = f"{name}, {name_of(control)}"
                print(f"{told:32}{1e3 * row[0]:8.0f}{1e3 * row[1]:12.0f}{1e3 * row[2]:20.0f}")


if __name__ == "__main__":
    main(sys.argv[1:])
