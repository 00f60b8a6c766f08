"""Kernels that are no GEMM: predictions beside times."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from benchmarks.forecast.others.case import CLASSES, Case
from benchmarks.forecast.others.sets import asked, entry
from benchmarks.forecast.written import Written


@dataclass(frozen=True)
class Beside:
    """A kernel's predicted and measured time [s]; `memory` is what its arrays take alone."""

    case: Case
    predicted: float
    memory: float
    by: str
    measured: float | None = None

    @property
    def error(self) -> float:
        """Of the prediction, as a part of what was measured."""
        return self.predicted / self.measured - 1

    @property
    def memory_error(self) -> float:
        """Of the time that memory takes alone, likewise."""
        return self.memory / self.measured - 1


def beside(predictions: Written, timings: Written | None) -> list[Beside]:
    """Every kernel that was predicted, by class, with its time where it was timed.

    Raises ValueError for a kernel that has changed since, or whose result was wrong.
    """
    timed = {row["kernel"]: row for row in timings.rows} if timings else {}
    found = []
    for row in predictions.rows:
        name, measured = row["kernel"], timed.get(row["kernel"])
        case = asked(name)
        if {row["source_sha256"], (measured or row)["source_sha256"]} != {case.source_sha256}:
            raise ValueError(
                f"{name} has changed since it was predicted or timed: predict and time it again"
            )
        if measured and not measured["right"]:
            raise ValueError(f"{name} gave a wrong result when it was timed")
        seconds = statistics.median(measured["ns"]) * 1e-9 if measured else None
        found.append(Beside(case, row["seconds"], row["times"]["dram"], row["by"], seconds))
    return sorted(found, key=lambda one: (CLASSES.index(one.case.kind), entry(one.case)))
