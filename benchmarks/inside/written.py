"""The files of simulated clocks: what was written before measuring, and what later code says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gemmlab.measure import store

PREDICTED = Path(__file__).with_name("predicted.json")
SINCE = Path(__file__).with_name("predicted_since.json")


def read(path: Path = PREDICTED) -> tuple[dict[str, Any], ...]:
    """Return a row for each kernel; RecordError for a file that was edited."""
    return store.read(path, {"rows": dict}).tables["rows"]
