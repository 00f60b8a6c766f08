"""Which tiling a kernel that divides k suggests, once each has its split."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gemmlab.device import Device
from gemmlab.kernels.simt.fours import shared_bytes
from gemmlab.model.in_tiles import RESOLUTION
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling


def fastest(
    problem: Gemm,
    device: Device,
    tilings: Iterable[Tiling],
    predicted: Callable[[Tiling], tuple[float, Tiling]],
    shared: Callable[[Gemm, Tiling], int] = shared_bytes,
) -> Tiling:
    """The first of those that take least time within `RESOLUTION`; the first if no rate is known.

    tilings : the largest tiles first; those that a block of `device` cannot hold are left out
    predicted : tiling -> (seconds, the same tiling with its split); shared : memory of a block [B]
    """
    most = device.shared_bytes_per_block
    fit = [t for t in tilings if most is None or shared(problem, t) <= most]
    if problem.accumulate not in device.peak:
        return fit[0]
    found = [predicted(tiling) for tiling in fit]
    least = min(seconds for seconds, _ in found)
    return next(tiling for seconds, tiling in found if seconds <= (1 + RESOLUTION) * least)
