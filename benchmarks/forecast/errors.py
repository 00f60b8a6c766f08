"""Predictions beside measurements: errors by family of kernels, worst cases, tilings picked."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from benchmarks import held_out_families
from benchmarks.forecast.written import Written
from benchmarks.held_out import size
from gemmlab import kernels
from gemmlab.kernels.hashing import source_hash
from gemmlab.measure.measurement import Measurement
from gemmlab.problem import Gemm

LARGE = 1000  # of n: from here on a product is large, see `benchmarks.held_out.size`
ALIGNED = 4  # elements of float32: 16 bytes, which a thread can load at once
SHORT = 256  # of a side of a large product
FAMILIES = {
    "naive, coalesced, tiled": kernels.LADDER[:3],
    "register_tiled, vectorised, warp_tiled": kernels.LADDER[3:6],
    "pipelined": kernels.LADDER[6:],
    **held_out_families.FAMILIES,
    "cuBLAS": (kernels.REFERENCE,),
}
OURS = [kernel for family in FAMILIES.values() for kernel in family if not kernel.library]


@dataclass(frozen=True)
class Compared:
    """A prediction, its bound, and what was measured [s].

    by : what decides the prediction; blocks : of the launch, None for the library's
    """

    kernel: str
    problem: Gemm
    tiling: str
    measured: float
    predicted: float
    bound: float
    by: str
    blocks: int | None = None

    @property
    def error(self) -> float:
        """Of the prediction, as a part of what was measured: below 0 where it is too fast."""
        return self.predicted / self.measured - 1

    @property
    def bound_error(self) -> float:
        """Of the bound, likewise."""
        return self.bound / self.measured - 1

    @property
    def family(self) -> str:
        """A key of `FAMILIES`; cuBLAS with its format, whose rates differ."""
        name = next(f for f, members in FAMILIES.items() if kernels.get(self.kernel) in members)
        return f"{name}, {self.problem.dtype}" if kernels.get(self.kernel).library else name

    @property
    def large(self) -> bool:
        return size(self.problem) >= LARGE

    def __str__(self) -> str:
        return f"`{self.kernel}` {self.problem}" + (f", tile {self.tiling}" * bool(self.tiling))


def compared(predictions: Written, measurements: Iterable[Measurement]) -> list[Compared]:
    """Each prediction with its measurement; those without one are left out.

    Raises ValueError where a kernel's source has changed between the two, or since.
    """
    known = {(m.kernel, str(m.problem), str(m.tiling or "")): m for m in measurements}
    now = {kernel.name: source_hash(kernel) for kernel in OURS}
    found = []
    for row in predictions.rows:
        measured = known.get((row["kernel"], row["problem"], row["tiling"]))
        if measured is None:
            continue
        kernel = kernels.get(row["kernel"])
        if not kernel.library:
            hashes = row["source_sha256"], measured.provenance["source_sha256"]
            if set(hashes) != {now[kernel.name]}:
                raise ValueError(
                    f"{kernel.name} has changed since it was predicted or timed: measure it again"
                )
        tiling = measured.tiling
        blocks = math.prod(tiling.grid(measured.problem)) if tiling else None
        found.append(
            Compared(
                kernel.name, measured.problem, row["tiling"],
                measured.seconds, row["seconds"], row["bound"], row["by"], blocks,
            )
        )  # fmt: skip
    return found


def mape(errors: Iterable[float]) -> float:
    """The mean of absolute errors."""
    return fmean(abs(e) for e in errors)


def by_family(cases: Iterable[Compared]) -> dict[tuple[str, bool], list[Compared]]:
    """Cases by family and by whether they are large: families in their order, large ones first."""
    found = defaultdict(list)
    for case in cases:
        found[case.family, case.large].append(case)
    names = list(dict.fromkeys(case.family for case in sorted(cases, key=_place)))
    return {(n, large): found[n, large] for n in names for large in (True, False)
            if (n, large) in found}  # fmt: skip


def _place(case: Compared) -> int:
    names = [kernel.name for kernel in (*OURS, kernels.REFERENCE)]
    return names.index(case.kernel)


@dataclass(frozen=True)
class Pick:
    """The tiling that is predicted to be the fastest of a group, and what it costs to take it."""

    kernel: str
    problem: Gemm
    picked: Compared
    fastest: Compared

    @property
    def right(self) -> bool:
        return self.picked is self.fastest

    @property
    def loss(self) -> float:
        """How much longer the picked one takes than the fastest, as a part."""
        return self.picked.measured / self.fastest.measured - 1


def picks(cases: Iterable[Compared], by: str = "predicted") -> list[Pick]:
    """A pick for each kernel and product with several tilings, by "predicted" or "bound"."""
    groups: Mapping[tuple, list[Compared]] = defaultdict(list)
    for case in cases:
        groups[case.kernel, case.problem].append(case)
    return [
        Pick(
            *group,
            min(members, key=lambda case: getattr(case, by)),
            min(members, key=lambda case: case.measured),
        )
        for group, members in groups.items()
        if len(members) > 1
    ]


def worst(cases: Iterable[Compared], count: int) -> Sequence[Compared]:
    """The cases with the largest errors."""
    return sorted(cases, key=lambda case: -abs(case.error))[:count]


def circumstances(case: Compared, sms: int) -> str:
    """What is unusual of a case, and may be why it is missed."""
    p = case.problem
    found = []
    if case.blocks is not None and case.blocks < 2 * sms:
        found.append(f"{case.blocks} blocks for {sms} SMs")
    if any(columns % ALIGNED for _, columns in p.shapes):
        found.append("rows that begin anywhere")
    short = [f"{name} = {value}" for name, value in (("m", p.m), ("n", p.n), ("k", p.k))
             if value < SHORT and case.large]  # fmt: skip
    return ", ".join(found + short) or "nothing unusual"
