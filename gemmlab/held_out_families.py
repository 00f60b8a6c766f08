"""The held-out set of kernels that divide k, and of those on Tensor Cores.

It is drawn as those of `gemmlab.held_out` are, by another rule: long k and small C for kernels that
divide k, and for Tensor Cores half-precision formats in turn. Each product is computed by every
kernel of its family with the tiling that the kernel chooses for it. Those that the TMA feeds take
the products whose rows it can copy, in float16.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gemmlab import kernels
from gemmlab.device import Device
from gemmlab.held_out import ALIGNED, LARGE, RAGGED, SHORT, SMALL, Drawn, problems
from gemmlab.problem import Gemm
from gemmlab.recording import Point, point

NAME = FOLDER = "held_out_families"  # of predictions, and of measurements below a device's folder
SEED = 20261124
NARROW, LONG = (64, 1024), (4096, 65_536)
SPLIT_RULE = (
    Drawn(6, (NARROW, NARROW, LONG), ALIGNED),
    Drawn(2, (NARROW, NARROW, LONG), RAGGED),
)
TENSOR_RULE = (
    Drawn(4, (LARGE, LARGE, LARGE), ALIGNED),
    Drawn(1, (LARGE, LARGE, LARGE), RAGGED),
    Drawn(1, (LARGE, SHORT, LARGE), ALIGNED),
    Drawn(1, (SHORT, LARGE, LARGE), ALIGNED),
    Drawn(1, (SMALL, SMALL, SMALL), ALIGNED),
)
HALVES = ("float16", "bfloat16")  # in turn
FAMILIES = {
    "k divided": kernels.SPLIT_K,
    "mma.sync": kernels.TENSOR_CORE,
    "wgmma and TMA": (kernels.warp_specialised,),
}


def products(family: str) -> Iterator[Gemm]:
    """The products of a family, a key of `FAMILIES`; ValueError for another.

    >>> print(next(products("wgmma and TMA")))
    5648×4128×1008 float16 to float32
    """
    if family not in FAMILIES:
        raise ValueError(f"family {family!r} is not known; use one of {', '.join(FAMILIES)}")
    if family == "k divided":
        yield from problems(SEED, SPLIT_RULE)
        return
    for i, problem in enumerate(problems(SEED, TENSOR_RULE)):
        form = HALVES[i % len(HALVES)] if family == "mma.sync" else HALVES[0]
        if family == "mma.sync" or all(
            size % ALIGNED == 0 for size in (problem.m, problem.n, problem.k)
        ):
            yield replace(problem, dtype=form, out_dtype="float32")


def plan(device: Device) -> list[Point]:
    """The points of the set: each product with the tiling that each kernel chooses."""
    return [
        point(kernel, problem, kernel.choose(None, problem, device), device)
        for family, members in FAMILIES.items()
        for problem in products(family)
        for kernel in members
    ]
