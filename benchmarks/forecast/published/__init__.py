"""Times that others published, beside what was predicted of their kernels without their GPUs.

`times.toml` says what was timed, how, and where its source is. That source is its authors', and was
compiled outside this repository: here are the predictions alone, as they came first and as later
code has them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.forecast.written import Written, read

HERE = Path(__file__).parent
FIRST, SINCE = "predicted", "predicted_since"


@dataclass(frozen=True)
class Source:
    """A source published the times of its kernels on one GPU.

    what, timed : what was computed, and how its time was taken; clock_hz : None for the boost clock
    """

    key: str
    title: str
    address: str
    commit: str
    device: str
    what: str
    timed: str
    kernels: tuple[Mapping[str, Any], ...]
    clock_hz: float | None = None


@dataclass(frozen=True)
class Published:
    """A kernel's published time [s], and what was predicted: first, and since; None for nothing."""

    source: Source
    name: str
    seconds: float
    first: float | None
    since: float | None
    by: str

    @property
    def errors(self) -> tuple[float | None, float | None]:
        """Of both predictions, as parts of what was published."""
        return tuple(p and p / self.seconds - 1 for p in (self.first, self.since))


@cache
def sources() -> tuple[Source, ...]:
    """All sources, in the order of the file."""
    found = tomllib.loads((HERE / "times.toml").read_text("utf-8"))
    return tuple(
        Source(key, **{**row, "kernels": tuple(row["kernels"])}) for key, row in found.items()
    )


@cache
def predictions(name: str) -> Written:
    """What was written down, under a name; RecordError for a file that was edited."""
    return read(HERE / f"{name}.json")


def published() -> list[Published]:
    """Every kernel; ValueError for a prediction of one that no source has."""
    by_name = {
        name: {(row["source"], row["name"]): row for row in predictions(name).rows}
        for name in (FIRST, SINCE)
    }
    found = [
        Published(
            source, kernel["name"], kernel["seconds"],
            *(by_name[name].get((source.key, kernel["name"]), {}).get("seconds")
              for name in (FIRST, SINCE)),
            by=by_name[SINCE].get((source.key, kernel["name"]), {}).get("by", ""),
        )
        for source in sources() for kernel in source.kernels
    ]  # fmt: skip
    known = {(one.source.key, one.name) for one in found}
    if strange := sorted({*by_name[FIRST], *by_name[SINCE]} - known):
        raise ValueError(f"predicted, and published by nobody: {strange}")
    return found


def errors(found: Iterable[Published], since: bool = True) -> list[float]:
    """Those of one of both predictions, of the kernels that have it."""
    return [e for one in found if (e := one.errors[since]) is not None]
