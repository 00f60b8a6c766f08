"""Repetitions and provenance of timed runs, alike for the CPU and the GPU."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib import metadata

import numpy as np

from gemmlab.kernels.hashing import source_hash
from gemmlab.kernels.kernel import Kernel

DATA = "normal, seed 0"  # the operands of a run that was given none: `Gemm.operands()`
OWN_DATA = "given by the caller"
FEWEST, MOST = 5, 100
SECONDS = 0.3  # of timed runs


def repetitions(seconds: float, repeats: int | None) -> int:
    """Choose how often to time a run that takes `seconds`: `repeats` times where it is given."""
    if repeats is not None:
        return repeats
    return int(min(MOST, max(FEWEST, SECONDS / max(seconds, 1e-9))))


def provenance(kernel: Kernel, data: str = DATA) -> dict[str, str]:
    """The provenance known before a run starts: date, versions, data, hash of the source."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": version("numba"),
        "data": data,
        "source_sha256": source_hash(kernel),
    }


def version(package: str) -> str:
    """The version of an installed package, or "not installed"."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
