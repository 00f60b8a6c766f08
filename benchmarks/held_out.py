"""The held-out sets: products on which the error of predictions is stated.

No constant and no rule of a model may be chosen from them: they are predicted first, then measured.
Once the errors of a set are known it has served; what is mended then is stated on the next one.
Their sizes are drawn by a rule that was written before any of them was, so that nobody picked them:
m, n and k each on its own, uniform on a logarithmic scale between two limits, and rounded down to a
multiple. Most are large, two have one short side, some are small; most are multiples of 16, whose
rows begin at multiples of 64 bytes, and the others are whatever comes. Layouts take turns. Where
time on a GPU is short, a set has `HALF` as many.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from benchmarks.guide_figures import FORMATS, every_tiling
from gemmlab import kernels
from gemmlab.device import Device
from gemmlab.kernels import Kernel
from gemmlab.measure.recording import Point, point
from gemmlab.problem import LAYOUTS, Gemm

KERNELS = (*kernels.LADDER, kernels.REFERENCE)  # whose predictions are judged by them
# The measurements, in a folder below that of a device: apart from those that come with gemmlab, so
# that nobody who looks at records comes across them.
ROOT = Path(__file__).parent / "forecast" / "recorded"
FOLDER = "held_out"
BUDGET = 0.1  # of predicted time for one launch [s]: a kernel that takes longer leaves it out
LARGE, SMALL, SHORT = (1000, 8192), (128, 1000), (32, 256)
ALIGNED, RAGGED = 16, 1


class Drawn(NamedTuple):
    """How many products have m, n and k between such limits, as multiples of a number."""

    count: int
    limits: tuple[tuple[int, int], tuple[int, int], tuple[int, int]]
    multiple: int


RULE = (
    Drawn(4, (LARGE, LARGE, LARGE), ALIGNED),
    Drawn(2, (LARGE, LARGE, LARGE), RAGGED),
    Drawn(1, (LARGE, SHORT, LARGE), ALIGNED),
    Drawn(1, (SHORT, LARGE, LARGE), RAGGED),
    Drawn(1, (SMALL, SMALL, SMALL), ALIGNED),
    Drawn(1, (SMALL, SMALL, SMALL), RAGGED),
)
HALF = (  # of it, for later sets, where time on a GPU is short
    Drawn(2, (LARGE, LARGE, LARGE), ALIGNED),
    Drawn(1, (LARGE, LARGE, LARGE), RAGGED),
    Drawn(1, (SHORT, LARGE, LARGE), RAGGED),
    Drawn(1, (SMALL, SMALL, SMALL), ALIGNED),
)


class Set(NamedTuple):
    """From which random numbers a set is drawn, and by which rule."""

    seed: int
    rule: tuple[Drawn, ...]


SETS = {  # by day
    "held_out": Set(20261122, RULE),
    "held_out_2": Set(20261123, RULE),
    "held_out_3": Set(20261124, HALF),
}


def problems(seed: int, rule: Iterable[Drawn]) -> list[Gemm]:
    """The products of a set, in float32, in the order of its rule.

    >>> for p in problems(*SETS["held_out"])[:2]:
    ...     print(p)
    7776×2880×3728 float32
    4064×1072×3744 float32 nt
    """
    source = random.Random(seed)
    found = []
    for count, limits, multiple in rule:
        for _ in range(count):
            sizes = (_drawn(source, low, high, multiple) for low, high in limits)
            found.append(Gemm(*sizes, layout=LAYOUTS[len(found) % len(LAYOUTS)]))
    return found


def _drawn(source: random.Random, low: int, high: int, multiple: int) -> int:
    """A multiple of `multiple` in [low, high], as likely in each octave."""
    size = low * (high / low) ** source.random()
    return max(-(-low // multiple), int(size / multiple)) * multiple


def plan(
    chosen: Iterable[Kernel],
    device: Device,
    budget: float = BUDGET,
    sets: Iterable[Set] = tuple(SETS.values()),
) -> list[Point]:
    """The points of a campaign: each product with every tiling that a kernel is recorded with.

    A kernel that takes one layout alone computes the same sizes in that one; one that chooses its
    own tiles computes them in each of `FORMATS` that it takes.
    """
    found, drawn = [], [problem for each in sets for problem in problems(*each)]
    for kernel in chosen:
        for problem in drawn:
            layout = problem.layout if problem.layout in kernel.layouts else kernel.layouts[0]
            for dtype in FORMATS:
                asked = replace(problem, layout=layout, dtype=dtype, out_dtype=None)
                if asked.arithmetic in kernel.arithmetic:
                    tilings = every_tiling(kernel) if kernel.default else [None]
                    found += [point(kernel, asked, t, device, budget) for t in tilings]
    return sorted(found, key=lambda p: p.problem.flops)


def size(problem: Gemm) -> float:
    """The n of the cube that takes as many operations, (m·n·k)^⅓."""
    return math.cbrt(problem.m * problem.n * problem.k)
