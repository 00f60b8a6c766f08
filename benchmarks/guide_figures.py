"""Counterparts of the figures of NVIDIA's Matrix Multiplication Background User's Guide: what to
measure on the device in hand.

The guide measured cuBLAS on a V100 (figure 2) and an A100; a wave there is 108 tiles. Here sizes
follow from the device's own SMs, so that figures 5, 7 and 8 fill its waves as the guide's do, and
are the guide's own on an A100. The library chooses its tiles itself; gemmlab's kernels are forced
to one of theirs. Sizes that the guide does not state are chosen here: m = n in figures 2 and 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from gemmlab.device import Device
from gemmlab.kernels import Kernel
from gemmlab.measure.recording import BUDGET, Point, point
from gemmlab.measure.records import ALIGNMENTS
from gemmlab.model.quantization import Tile
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling

Size = tuple[int, int, int]  # m, n, k
TILE = (256, 128)  # that the guide forces cuBLAS to use
FORMATS = ("float16", "tf32", "float32")
K = 4096  # in figures 3, 5, 7 and 8


def alignment(device: Device, tile: Tile) -> list[Size]:
    """Figure 2: time over k, of every residue by 8 and by 64; the tile does not count."""
    return ALIGNMENTS


def footprint(device: Device, tile: Tile) -> list[Size]:
    """Figure 3: speed over m = n; the tile does not count."""
    return [(n, n, K) for n in range(256, 8193, 256)]


def depth(device: Device, tile: Tile) -> list[Size]:
    """Figure 4: speed over k at a large m = n; the tile does not count."""
    return [(8192, 8192, part * 2**p) for p in range(5, 13) for part in (2, 3)]


def efficiency(device: Device, tile: Tile) -> list[Size]:
    """Figure 5: one product, four full waves of 256×128 tiles: 6912×2048×4096 on 108 SMs."""
    columns = 4 * math.gcd(device.sms, 4)
    rows = 4 * device.sms // columns
    return [(TILE[0] * rows, TILE[1] * columns, K)]


def tile_quantization(device: Device, tile: Tile) -> list[Size]:
    """Figure 7: time over n where each column of tiles is a wave: m = 27648 on 108 SMs.

    n goes by 8 through the second wave, as the guide's does, by quarters of a tile through four,
    and by 8 past each full one.
    """
    bm, bn = tile
    quarters = range(bn // 4, 4 * bn + 1, bn // 4)
    steps = {*range(bn, 2 * bn + 1, 8), *quarters, *(w * bn + 8 for w in range(1, 5))}
    return [(bm * device.sms, n, K) for n in sorted(steps)]


def wave_quantization(device: Device, tile: Tile) -> list[Size]:
    """Figure 8: time over n, through four waves: m = 2304 and a wave at n = 1536 on 108 SMs.

    A wave is as square as the SMs allow; n goes by half tiles, and by 8 past each full wave.
    """
    bm, bn = tile
    rows = max(d for d in range(1, math.isqrt(device.sms) + 1) if device.sms % d == 0)
    wave = bn * device.sms // rows
    steps = {*range(bn // 2, 4 * wave + bn + 1, bn // 2), *(w * wave + 8 for w in range(1, 5))}
    return [(bm * rows, n, K) for n in sorted(steps)]


class Figure(NamedTuple):
    """A figure: its problems on a device in tiles of a size, and the tilings it forces on a kernel.

    tilings : of a kernel that takes one; none where the figure is the library's alone
    """

    sizes: Callable[[Device, Tile], list[Size]]
    tilings: Callable[[Kernel], Iterable[Tiling]]


def no_tiling(kernel: Kernel) -> list[Tiling]:
    """None: the figure is the library's alone."""
    return []


def own_tiling(kernel: Kernel) -> list[Tiling]:
    """The kernel's default."""
    return [kernel.default]


def every_tiling(kernel: Kernel) -> list[Tiling]:
    """All that are recorded of the kernel, the default first."""
    return [kernel.default, *(tiling for tiling in kernel.tilings if tiling != kernel.default)]


FIGURES = {
    2: Figure(alignment, no_tiling),
    3: Figure(footprint, no_tiling),
    4: Figure(depth, no_tiling),
    5: Figure(efficiency, every_tiling),
    7: Figure(tile_quantization, own_tiling),
    8: Figure(wave_quantization, own_tiling),
}


def parse_figures(text: str) -> list[Figure]:
    """Figures from a list of numbers such as "2,7"; ValueError for one that is not in `FIGURES`."""
    known = {str(number): figure for number, figure in FIGURES.items()}
    numbers = [number.strip() for number in text.split(",")]
    for number in numbers:
        if number not in known:
            raise ValueError(f"figure {number!r} is not known; use {', '.join(known)}")
    return [known[number] for number in numbers]


def plan(
    figures: Iterable[Figure], chosen: Sequence[Kernel], device: Device, budget: float = BUDGET
) -> list[Point]:
    """The points of a campaign for these figures, each once.

    A kernel that chooses its own tiles gets every figure, with sizes for the tile `TILE`; others
    get those that force a tile, with sizes for their tilings. Each is measured in those of
    `FORMATS` that it computes.
    """
    points = {}
    for figure in figures:
        for kernel in chosen:
            for tiling in figure.tilings(kernel) if kernel.default else [None]:
                tile = tiling.block[:2] if tiling else TILE
                for size in figure.sizes(device, tile):
                    for problem in (Gemm(*size, dtype=dtype) for dtype in FORMATS):
                        if problem.arithmetic in kernel.arithmetic:
                            found = point(kernel, problem, tiling, device, budget)
                            points[kernel.name, problem, tiling] = found
    return list(points.values())
