"""Predicted times of the ladder and of cuBLAS, written down.

    python -m benchmarks.forecast.ladder held_out_3 FILE [--device h100_sxm] [--jobs 2]
    python -m benchmarks.forecast.ladder looked_at FILE
    python -m benchmarks.forecast.ladder readme FILE

The rungs are predicted from their compiled code, cuBLAS by the tiles that are recorded of it.
The sets of `benchmarks.held_out` and `benchmarks.held_out_families` have their points, `looked_at`
those that are recorded already: rules and facts may have been chosen with an eye on them. `readme`
are the rungs of README.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import held_out, held_out_families, readme
from benchmarks.forecast.written import origin, write
from gemmlab import kernels, predict, records
from gemmlab.compiled.forecast.library import predict_library
from gemmlab.compiled.forecast.rungs import predict_rung
from gemmlab.device import device
from gemmlab.kernels.hashing import source_hash
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling


class Case(NamedTuple):
    """What is predicted."""

    kernel: str
    problem: Gemm
    tiling: Tiling | None

    @property
    def key(self) -> tuple[str, str, str]:
        """As text, by which predictions and measurements find each other."""
        return self.kernel, str(self.problem), str(self.tiling or "")


@cache
def held_out_cases(on: str, which: str = "held_out") -> list[Case]:
    """A held-out set, without what would take too long."""
    points = held_out.plan(held_out.KERNELS, device(on), sets=[held_out.SETS[which]])
    return [Case(p.kernel.name, p.problem, p.tiling) for p in points if not p.skip]


@cache
def families_cases(on: str, which: str = "held_out_families") -> list[Case]:
    """A held-out set of other families."""
    points = held_out_families.plan(device(on), [which])
    return [Case(p.kernel.name, p.problem, p.tiling) for p in points if not p.skip]


def looked_at_cases(on: str) -> list[Case]:
    """What is recorded of the ladder and of cuBLAS."""
    return [Case(m.kernel, m.problem, m.tiling) for m in records.load(on)]


def readme_cases(on: str) -> list[Case]:
    """The rungs of README's tables, with the tilings that they are shown with."""
    return [
        Case(rung.name, ladder.problem, rung.choose(None, ladder.problem, on))
        for ladder in readme.LADDERS
        for rung in ladder.rungs
    ]


SETS = {which: partial(held_out_cases, which=which) for which in held_out.SETS}
SETS |= {"looked_at": looked_at_cases, "readme": readme_cases}
SETS |= {which: partial(families_cases, which=which) for which in held_out_families.SETS}


def row(case: Case, on: str) -> dict[str, Any]:
    """A prediction: the time and what decides it, and the bound by counting beside it."""
    kernel = kernels.get(case.kernel)
    name, problem, tiling = case.key
    said = {"kernel": name, "problem": problem, "tiling": tiling}
    if kernel.library:
        found = predict_library(case.problem, on)
        return said | {
            "seconds": found.seconds,
            "by": found.limiter,
            "bound": predict(case.problem, on).seconds,
            "tile": [*found.row.tile, found.split],
        }
    found = predict_rung(case.problem, on, kernel, case.tiling)
    return said | {
        "seconds": found.seconds,
        "by": found.bottleneck,
        "bound": predict(case.problem, on, kernel, case.tiling).seconds,
        "times": dict(found.times),
        "source_sha256": source_hash(kernel),
    }


def rows(cases: Iterable[Case], on: str, jobs: int = 1) -> list[dict[str, Any]]:
    """Predictions in the order of `cases`, made by `jobs` processes."""
    with ProcessPoolExecutor(jobs) as pool:
        return list(pool.map(partial(row, on=on), cases, chunksize=4))


def main() -> None:
    parser = argparse.ArgumentParser(
        "benchmarks.forecast.ladder", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("cases", choices=SETS)
    parser.add_argument("file", type=Path)
    parser.add_argument("--device", default="h200")
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    before = origin(asked.device)
    made = rows(SETS[asked.cases](asked.device), asked.device, asked.jobs)
    write(asked.file, before, made)
    print(f"{len(made)} predictions for {asked.device} in {asked.file}")


if __name__ == "__main__":
    main()
