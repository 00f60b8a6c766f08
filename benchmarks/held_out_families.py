"""The held-out sets of kernels that divide k, of those on Tensor Cores, of both, and of TCEC.

They are drawn as those of `benchmarks.held_out` are, by other rules: long k and small C for kernels
that divide k, and for Tensor Cores half-precision formats in turn. Each product is computed by
every kernel of its family with the tiling that the kernel chooses for it. Those of Hopper that do
not divide k take the products whose rows the TMA can copy, in float16.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from benchmarks.held_out import ALIGNED, LARGE, RAGGED, SHORT, SMALL, Drawn, problems
from gemmlab import kernels
from gemmlab.device import Device
from gemmlab.measure.recording import Point, point
from gemmlab.problem import Gemm

FOLDER = "held_out_families"  # of all measurements, below a device's folder
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
    "TCEC": kernels.TCEC,
    "k divided on Tensor Cores": kernels.TENSOR_CORE_SPLIT_K,
    "mma.sync and TMA": kernels.TENSOR_CORE_TMA,
    "wgmma": (kernels.wgmma_pipelined, kernels.tma_stored),
    "k divided by wgmma": kernels.HOPPER_SPLIT_K,
}
# Long k and small C.
DIVIDED = ("k divided", "k divided on Tensor Cores", "k divided by wgmma")


class Set(NamedTuple):
    """Families that were predicted together, and from which random numbers theirs are drawn."""

    seed: int
    families: tuple[str, ...]


HOPPER = ("mma.sync and TMA", "wgmma", "k divided by wgmma")
SETS = {
    "held_out_families": Set(20261124, ("k divided", "mma.sync", "wgmma and TMA")),
    "held_out_tcec": Set(20261125, ("TCEC",)),
    "held_out_mma_split_k": Set(20261126, ("k divided on Tensor Cores",)),
    "held_out_tcec_2": Set(20261127, ("TCEC",)),
    "held_out_mma_split_k_2": Set(20261128, ("k divided on Tensor Cores",)),
    "held_out_tcec_3": Set(20261129, ("TCEC",)),
    "held_out_mma_split_k_3": Set(20261130, ("k divided on Tensor Cores",)),
    "held_out_hopper": Set(20261201, HOPPER),
    "held_out_hopper_2": Set(20261202, HOPPER),
}


def products(which: str, family: str) -> Iterator[Gemm]:
    """The products of a family in a set, one of its `families`; ValueError for another.

    >>> print(next(products("held_out_families", "wgmma and TMA")))
    5648×4128×1008 float16 to float32
    """
    seed, families = SETS[which]
    if family not in families:
        raise ValueError(f"{which} has no family {family!r}; use one of {', '.join(families)}")
    rule = SPLIT_RULE if family in DIVIDED else TENSOR_RULE
    for i, problem in enumerate(problems(seed, rule)):
        if family in ("k divided", "TCEC"):
            yield problem
        elif family in ("mma.sync", *DIVIDED):
            yield replace(problem, dtype=HALVES[i % len(HALVES)], out_dtype="float32")
        elif all(size % ALIGNED == 0 for size in (problem.m, problem.n, problem.k)):
            yield replace(problem, dtype=HALVES[0], out_dtype="float32")


def plan(device: Device, sets: Iterable[str] = tuple(SETS)) -> list[Point]:
    """The points of sets: each product with the tiling that each kernel chooses."""
    return [
        point(kernel, problem, kernel.choose(None, problem, device), device)
        for which in sets
        for family in SETS[which].families
        for problem in products(which, family)
        for kernel in FAMILIES[family]
    ]
