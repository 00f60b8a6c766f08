"""The predicted time of a kernel that is no GEMM."""

from __future__ import annotations

from typing import Any

from benchmarks.forecast.others.case import Case
from benchmarks.forecast.others.sets import entry
from gemmlab.compiled.forecast.kernel import predict_time


def predicted(case: Case, device: str) -> dict[str, Any]:
    """A row: the time, what decides it, and the time of each part of the GPU."""
    grid, block, arguments = case.launch(case.size)
    found = predict_time(case.kernel, grid, block, *arguments, device=device, **case.options)
    return {
        "kernel": entry(case),
        "source_sha256": case.source_sha256,
        "seconds": found.seconds,
        "by": found.bottleneck,
        "times": dict(found.times),
        "sampled": found.sampled,
        "registers": found.listing.registers,
    }
