"""How long explorers take from a control's change to the bytes of the picture, without a browser.

    python benchmarks/explorers.py

Prints medians over the changes of one control, walked there and back twice: wall time, and the
time of the processor, which others on the machine do not lengthen. What is computed once and kept
is left out by the first walk; its longest change is printed beside.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gemmlab import explorers
from gemmlab.explorers.shared.base import Explorer

SIZES = [2**i for i in range(7, 13)]


class Walk(NamedTuple):
    """An explorer, the control that is changed, and its values in turn."""

    name: str
    make: Callable[[], Explorer]
    control: str
    values: Sequence[Any]


WALKS = (
    Walk("Roofline", explorers.Roofline, "n", SIZES),
    Walk("Coalescing", explorers.Coalescing, "stride", range(2, 12)),
    Walk(
        "KernelLab, simulator", lambda: explorers.KernelLab(backend="simulator"), "size", SIZES[:3]
    ),
    Walk("KernelLab, recorded", lambda: explorers.KernelLab(backend="recorded"), "stored", ()),
    Walk("Quantization, simulator", explorers.Quantization, "n", range(8, 61, 4)),
    Walk(
        "Quantization, recorded", lambda: explorers.Quantization("h200"), "n", range(512, 8192, 512)
    ),
    Walk("ThreadTiles", lambda: explorers.ThreadTiles(backend="recorded"), "size", SIZES),
    Walk("Swizzle", explorers.Swizzle, "piece", range(8)),
    Walk("Timeline", explorers.Timeline, "start", range(0, 512, 64)),
    Walk("Timeline, effects", explorers.Timeline, "left_out", ()),
    Walk("StageTimeline", explorers.StageTimeline, "step", range(16)),
    Walk("Rounding", explorers.Rounding, "x", (0.1, 1.5, 65519.0, 1e-40, 3e38, float("inf"))),
    Walk("DotError", explorers.DotError, "k", [2**i for i in range(4, 12)]),
)


def times(walk: Walk) -> tuple[list[float], list[float], float]:
    """Wall and processor seconds of each change but the first walk's, and the longest of that."""
    explorer = walk.make()
    control = getattr(explorer, walk.control)
    values = list(walk.values) or [value for _, value in control.options]
    wall, cpu = [], []
    for value in 3 * (values + values[-2:0:-1]):
        before, busy = time.perf_counter(), time.process_time()
        control.value = value
        wall.append(time.perf_counter() - before)
        cpu.append(time.process_time() - busy)
    first = len(wall) // 3
    return wall[first:], cpu[first:], max(cpu[:first])


def main() -> None:
    """Print a table [ms]."""
    print(f"{'':24}{'wall':>8}{'processor':>12}{'longest at first':>20}")
    for walk in WALKS:
        wall, cpu, longest = times(walk)
        row = statistics.median(wall), statistics.median(cpu), longest
        print(f"{walk.name:24}{1e3 * row[0]:8.0f}{1e3 * row[1]:12.0f}{1e3 * row[2]:20.0f}")


if __name__ == "__main__":
    main()
