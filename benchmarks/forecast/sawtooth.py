"""Where the time of a product jumps as n grows: in the records of figures 7 and 8, and by waves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from benchmarks import guide_figures
from gemmlab import kernels
from gemmlab.device import device
from gemmlab.measure.measurement import Measurement
from gemmlab.measure.records import figures
from gemmlab.model.in_tiles import in_tiles
from gemmlab.model.quantization import quantization
from gemmlab.tiling import Tiling

FEWEST = 20  # sizes of a series
GUIDES = guide_figures.TILE  # of which cuBLAS makes most
RISE = 0.1  # of the time, from one size to the next: a jump


class Key(NamedTuple):
    """What stays the same along a series."""

    kernel: str
    m: int
    k: int
    dtype: str
    tiling: Tiling | None

    def __str__(self) -> str:
        return f"{self.kernel} {self.m}×n×{self.k} {self.dtype}"


def series(on: str) -> dict[Key, list[Measurement]]:
    """The records of the figures by what stays the same, with n from small to large."""
    found = defaultdict(dict)
    for m in figures(on):
        p = m.problem
        found[Key(m.kernel, p.m, p.k, p.dtype, m.tiling)][p.n] = m
    return {key: [of[n] for n in sorted(of)] for key, of in found.items() if len(of) >= FEWEST}


def jumps(sizes: Sequence[int], seconds: Sequence[float], rise: float = RISE) -> list[int]:
    """The sizes at which the time is longer by `rise` or more than at the size before.

    >>> jumps([128, 256, 264, 384], [1.0, 1.01, 1.9, 1.91])
    [264]
    """
    steps = pairwise(zip(sizes, seconds, strict=True))
    return [n for (_, before), (n, now) in steps if now >= (1 + rise) * before]


def predicted_seconds(key: Key, of: Sequence[Measurement], on: str) -> list[float]:
    """The time of each size in whole tiles of a kernel's own size."""
    per_sm = of[0].resources["blocks_per_sm"]
    return [
        float(in_tiles(m.problem, device(on), key.tiling.block[:2], per_sm=per_sm).seconds)
        for m in of
    ]


def full_waves(key: Key, of: Sequence[Measurement], on: str, tile: tuple[int, int]) -> list[int]:
    """The sizes that begin a wave of `tile`s: the last full one is the size before."""
    waves = [int(quantization(m.problem, device(on), tile, per_sm=1).waves) for m in of]
    steps = pairwise(zip(of, waves, strict=True))
    return [m.problem.n for (_, before), (m, now) in steps if now > before]


def is_library(key: Key) -> bool:
    return kernels.get(key.kernel).library
