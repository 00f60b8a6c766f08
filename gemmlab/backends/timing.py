"""What CPU and GPU backends share: how often to repeat, and what to write down about a run."""

from __future__ import annotations

import hashlib
import inspect
import platform
from datetime import UTC, datetime
from importlib import metadata

import numpy as np

from gemmlab.kernels.kernel import Kernel

FEWEST, MOST = 5, 100
SECONDS = 0.3  # of timed runs


def repetitions(seconds: float, repeats: int | None) -> int:
    """How often to time a run that takes `seconds`; `repeats` itself where it is given."""
    if repeats is not None:
        return repeats
    return int(min(MOST, max(FEWEST, SECONDS / max(seconds, 1e-9))))


def poisoned(c: np.ndarray, beta: float) -> np.ndarray:
    """C as a run finds it: where β = 0 it is not to be read, and holds NaN."""
    return np.full_like(c, np.nan) if beta == 0 else c.copy()


def provenance(kernel: Kernel) -> dict[str, str]:
    """What is known of a run before it starts: date, versions, and the kernel's source."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": version("numba"),
        "data": "normal, seed 0",
        "source_sha256": source_hash(kernel),
    }


def source_hash(kernel: Kernel) -> str:
    """SHA-256 of the file that `kernel` is written in, whatever its line ends."""
    text = inspect.getsource(inspect.getmodule(kernel.build))
    return hashlib.sha256(text.encode()).hexdigest()


def version(package: str) -> str:
    """The version of an installed package, or "not installed"."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
