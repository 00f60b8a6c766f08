"""Predicted times of the ladder and of cuBLAS, written down.

    python -m benchmarks.forecast.ladder held_out_3 FILE [--device h100_sxm] [--jobs 2]
    python -m benchmarks.forecast.ladder looked_at FILE
    python -m benchmarks.forecast.ladder readme FILE
    python -m benchmarks.forecast.ladder held_out_3 --since

The rungs are predicted from their compiled code, cuBLAS by the tiles that are recorded of it.
The sets of `benchmarks.held_out` and `benchmarks.held_out_families` have their points, `looked_at`
those that are recorded already: rules and facts may have been chosen with an eye on them. `readme`
are the rungs of README.md. With `--since`, what was predicted first and is timed is predicted by
today's code, and takes the place of what older code said since.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import held_out, held_out_families, readme
from benchmarks.forecast.written import RECORDED, SINCE, origin, stored, write
from gemmlab import kernels, predict, records
from gemmlab.compiled.forecast.library import predict_library
from gemmlab.compiled.forecast.rungs import predict_rung
from gemmlab.device import device
from gemmlab.kernels.hashing import source_hash
from gemmlab.measure.measurement import Measurement
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


def measurements(which: str, name: str) -> list[Measurement]:
    """What is recorded of a set on a device."""
    if which == "looked_at":
        return records.load(name) if name in records.devices() else []
    if which == "readme":
        found = (readme.recorded(kernels.get(c.kernel), c.problem) for c in readme_cases(name))
        return [m for m in found if m]
    if which in held_out_families.SETS:
        folder = held_out.ROOT / name / held_out_families.FOLDER
        asked = {case.key: case.kernel for case in families_cases(name, which)}
        found = [
            m
            for kernel in dict.fromkeys(asked.values())
            for path in folder.glob(f"{kernel}.jsonl")
            for m in records.read(path)
        ]
        return [m for m in found if Case(m.kernel, m.problem, m.tiling).key in asked]
    folder = held_out.ROOT / name / held_out.FOLDER
    drawn = {(p.m, p.n, p.k) for p in held_out.problems(*held_out.SETS[which])}
    found = [m for path in sorted(folder.glob("*.jsonl")) for m in records.read(path)]
    return [m for m in found if (m.problem.m, m.problem.n, m.problem.k) in drawn]


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


def timed_cases(which: str, on: str) -> list[Case]:
    """What was predicted first of a set, as far as it has been timed.

    Raises ValueError for a set that was not predicted, and for a kernel that has changed since.
    """
    first = stored(on, f"{which}_predicted")
    if first is None:
        raise ValueError(f"{which} was not predicted for {on}: there is nothing to predict anew")
    timed = {Case(m.kernel, m.problem, m.tiling).key for m in measurements(which, on)}
    told = {(row["kernel"], row["problem"], row["tiling"]): row for row in first.rows}
    found = [case for case in SETS[which](on) if case.key in timed & told.keys()]
    for case in found:
        kernel = kernels.get(case.kernel)
        if not kernel.library and told[case.key]["source_sha256"] != source_hash(kernel):
            raise ValueError(f"{case.kernel} has changed since {which} was predicted for {on}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        "benchmarks.forecast.ladder", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("cases", choices=SETS)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("file", type=Path, nargs="?")
    where.add_argument("--since", action="store_true", help="predict anew what is timed")
    parser.add_argument("--device", default="h200")
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    on, which = asked.device, asked.cases
    before = origin(on)
    todo = timed_cases(which, on) if asked.since else SETS[which](on)
    made = rows(todo, on, asked.jobs)
    path = asked.file or RECORDED / on / f"{which}_predicted{SINCE}.json"
    if asked.since:
        path.unlink(missing_ok=True)
    write(path, before, made)
    print(f"{len(made)} predictions for {on} in {path}")


if __name__ == "__main__":
    main()
