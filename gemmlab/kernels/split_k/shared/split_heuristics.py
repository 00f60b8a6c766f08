"""A kernel that divides k suggests a tiling, once each of its tilings has its split."""

import math
from collections.abc import Callable
from dataclasses import replace

from gemmlab import Device, Gemm, Tiling
from gemmlab.kernels.kernel import Kernel
from gemmlab.model import predict
from gemmlab.model.in_tiles import RESOLUTION, in_tiles

FILLS = (1 / 4, 1 / 2, 1, 2, 3, 4)  # of the processors, by parts of tiles that `filled` tries


def fastest(
    problem: Gemm,
    device: Device,
    kernel: Kernel,
    predicted: Callable[[Gemm, Device, Kernel, Tiling], tuple[float, Tiling]],
) -> Tiling:
    """Choose the first tiling that takes least time within `RESOLUTION`; the first if no rate is
    known.

    The kernel's tilings have the largest tiles first; those are left out that a block of `device`
    cannot hold.
    predicted : (problem, device, kernel, tiling) -> (seconds, the same tiling with its split)
    """
    most = device.shared_bytes_per_block
    fit = [t for t in kernel.tilings if most is None or kernel.shared_bytes(problem, t) <= most]
    if problem.accumulate not in device.peak:
        return fit[0]
    found = [predicted(problem, device, kernel, tiling) for tiling in fit]
    least = min(seconds for seconds, _ in found)
    return next(tiling for seconds, tiling in found if seconds <= (1 + RESOLUTION) * least)


def by_a_launch(problem: Gemm, device: Device, tiling: Tiling) -> float:
    """Return the time to store parts, and to add them up in a launch of its own [s]."""
    return in_tiles(problem, device, tiling.block[:2], tiling.split).reduction


def by_atomics(problem: Gemm, device: Device, tiling: Tiling) -> float:
    """Return the time in which L2 adds all parts to C [s]; 0 where its rate is not known."""
    additions = tiling.split * problem.m * problem.n
    return additions / device.l2_additions if device.l2_additions else 0.0


def filled(
    problem: Gemm,
    device: Device,
    kernel: Kernel,
    tiling: Tiling,
    sums: Callable[[Gemm, Device, Tiling], float] = by_a_launch,
) -> tuple[float, Tiling]:
    """Give (seconds, `tiling` with the split that takes least by `predict` and the model of sums).

    Blocks wait for memory where they are few, which the model of tiles alone does not know: so each
    of some splits is predicted, with as many parts of tiles as fill the processors a quarter, a
    half, once, twice, …
    sums : seconds of what is done with the parts
    """
    tiles, most = math.prod(tiling.grid(problem)), tiling.steps(problem)
    splits = {max(1, min(int(fill * device.sms / tiles), most)) for fill in FILLS}
    found = [replace(tiling, split=parts) for parts in sorted({1, *splits})]
    return min(
        (
            (predict(problem, device, kernel, t).seconds + sums(problem, device, t), t)
            for t in found
        ),
        key=lambda timed: timed[0],
    )
