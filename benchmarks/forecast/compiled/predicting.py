"""The predicted time of a kernel of another compiler."""

from __future__ import annotations

from typing import Any

from benchmarks.forecast.compiled.case import Case
from benchmarks.forecast.compiled.cubins import Built, kept
from gemmlab.compiled.forecast.kernel import predict_time


def predicted(
    case: Case, device: str, size: int | None = None, code: Built | None = None
) -> dict[str, Any]:
    """A row: the time, what decides it, the time of each part of the GPU, and what is unsure."""
    built, (grid, arguments) = code or kept()[case.name], case.launch(size or case.size)
    found = predict_time(
        built.cubin, grid, case.block, *arguments, device=device, shared_bytes=built.shared_bytes
    )
    return {
        "kernel": case.name,
        "cubin_sha256": built.sha256,
        "seconds": found.seconds,
        "by": found.bottleneck,
        "times": dict(found.times),
        "sampled": found.sampled,
        "registers": found.listing.registers,
        "unsure": found.unsure.share if found.unsure else 0.0,
    }
