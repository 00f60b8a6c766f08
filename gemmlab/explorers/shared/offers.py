"""Explorers offer what a device and its records can show: kernels, tiles and problems."""

import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache

from gemmlab import Device, Gemm, Tiling, kernels
from gemmlab.arguments import whole_number
from gemmlab.kernels import Kernel
from gemmlab.measure import records
from gemmlab.measure.measurement import Measurement
from gemmlab.model import Prediction, predict
from gemmlab.model.occupancy import check_block

SCALES = (-3, -2, -1, 0, 1, 2)  # of a kernel's own tile, as powers of two
ANY = Gemm(64, 64, 64)  # what a block takes does not depend on the problem


def scaled(tiling: Tiling, side: int) -> Tiling:
    """`tiling` with its block tile scaled to be `side` high; an error where threads do not fit."""
    whole = tiling.block[0]
    block = tuple(max(1, s * side // whole) if s > 1 else 1 for s in tiling.block)
    return replace(tiling, block=block)


@lru_cache(maxsize=256)
def tilings(kernel: Kernel, device: Device) -> tuple[Tiling, ...]:
    """List what `kernel` can use on `device`: its own tilings, recorded ones, its own scaled."""
    if kernel.default is None:
        return ()
    found = [kernel.default, *kernel.tilings]
    for power in SCALES:
        with suppress(ValueError):  # a warp or a thread tile does not divide it
            found.append(scaled(kernel.default, int(kernel.default.block[0] * 2.0**power)))
    fitting = (t for t in distinct(found) if _fits(kernel, t, device))
    return tuple(sorted(fitting, key=order))


def check(kernel: Kernel, tiling: Tiling, device: Device) -> None:
    """Raise ValueError for a tiling that `kernel` or `device` cannot use."""
    kernel.choose(tiling)
    if kernel.configure and device.kind == "gpu":
        _, block = kernel.configure(ANY, tiling)
        check_block(device, math.prod(block), kernel.shared_bytes(ANY, tiling))


def _fits(kernel: Kernel, tiling: Tiling, device: Device) -> bool:
    try:
        check(kernel, tiling, device)
    except ValueError:
        return False
    return True


def wanted(kernel: Kernel, tile: int | Tiling | None, device: Device) -> Tiling | None:
    """The tiling of `kernel` that is asked for, by its side or as it is, once it is checked."""
    tiling = kernel.default if tile is None else tile
    if tiling is not None and not isinstance(tiling, Tiling):
        side = whole_number("tile", tile)
        tiling = scaled(kernel.default, side) if kernel.default else Tiling.square(side)
    if tiling is not None:
        check(kernel, tiling, device)
    return tiling


def cube(problem: Gemm) -> bool:
    """Say whether a curve over m = n = k passes through a problem."""
    return problem == Gemm(*[problem.m] * 3)


def order(tiling: Tiling | None) -> tuple:
    """Small tiles before large ones."""
    return (math.prod(tiling.block[:2]), tiling.block, str(tiling)) if tiling else ()


def recorded(device: Device) -> list[Measurement]:
    """List what is recorded on `device`, in the order of the ladders; nothing if nothing is."""
    rungs = *kernels.GPU, *kernels.HOPPER_CLUSTERS, kernels.REFERENCE, *kernels.CPU
    order = [k.name for k in rungs]
    try:
        found = records.load(device.name)
    except LookupError:
        return []
    return sorted(found, key=lambda m: order.index(m.kernel))


def distinct(items: Iterable) -> list:
    """Return the items without repetitions, in their order."""
    return list(dict.fromkeys(items))


@lru_cache(maxsize=4096)
def predicted(
    kernel: Kernel, problem: Gemm, tiling: Tiling | None, target: Device
) -> Prediction:  # fmt: skip
    """Return the kernel's prediction, or the ideal one where there is no model of the kernel."""
    if kernel.work is None:
        return predict(problem, target)
    return predict(problem, target, kernel, tiling)
