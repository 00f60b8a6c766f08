"""How long explorers take to the bytes of a picture, without a browser.

    python -m benchmarks.explorers [--first] [NAME ...]

NAME is an explorer, such as KernelLab (default: all). Prints, for each control with values to
choose from of an explorer that the kernel draws, medians over its changes, walked there and back
twice: wall time, and the time of the processor, which others on the machine do not lengthen. What
is computed once and kept is left out by the first walk; its longest change is printed beside.
`--first` prints the time from a new process to an explorer's first picture instead, of which the
imports are a part: a chapter's first cell has most of them behind it.
"""

from __future__ import annotations

import statistics
import subprocess
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


FIRST = """
import time
from gemmlab.explorers import {name}
start = time.perf_counter()
explorer = {name}()
if hasattr(explorer, "wait"):
    explorer.wait()
print(time.perf_counter() - start)
"""


def first_picture(name: str) -> tuple[float, float]:
    """Seconds of a new process to an explorer's first picture: all, and without the imports."""
    start = time.perf_counter()
    command = [sys.executable, "-c", FIRST.format(name=name)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return time.perf_counter() - start, float(done.stdout)


def main(arguments: Sequence[str]) -> None:
    """Print a table [ms]."""
    names = [name for name in arguments if name != "--first"] or explorers.__all__
    if "--first" in arguments:
        print(f"{'':32}{'process':>8}{'picture':>12}")
        for name in names:
            whole, picture = first_picture(name)
            print(f"{name:32}{1e3 * whole:8.0f}{1e3 * picture:12.0f}")
        return
    print(f"{'':32}{'wall':>8}{'processor':>12}{'longest at first':>20}")
    for name in names:
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
