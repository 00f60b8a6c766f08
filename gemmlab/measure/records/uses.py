"""Recorded timings of the three uses of fragments: a JSON file for each device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemmlab.device import RECORDED
from gemmlab.kernels.fragments import WHERE
from gemmlab.measure.records import ROOT
from gemmlab.measure.records.tables import path_of, read_tables

FILE = "fragment_uses.json"
PERCENTILES = (10, 50, 90)  # that are kept of a kernel's samples


@dataclass(frozen=True)
class FragmentUse:
    """How long a batch of products Y = X·M takes, for each place where M is made."""

    name: str  # prefix sum | householder | givens, arguments | givens, embedded
    m: int  # X and M are m×m
    batch: int
    bytes: int  # that a launch has to read and write at least
    seconds: Mapping[str, tuple[float, float, float]]  # by WHERE: 10th, 50th, 90th percentile

    def speedup(self, over: str) -> float:
        """How often the version in registers runs while the version `over` runs once."""
        return self.seconds[over][1] / self.seconds[WHERE[0]][1]


@dataclass(frozen=True)
class FragmentUses:
    """One run of `benchmarks/fragment_uses.py`: its rows and where they come from."""

    source: str  # as figures say it
    provenance: Mapping[str, Any]
    rows: tuple[FragmentUse, ...]


def fragment_uses(device: str = RECORDED, root: str | Path = ROOT) -> FragmentUses:
    """The timings of the three uses that are recorded on `device`.

    Raises LookupError for a device without such a file, and RecordError for one that was edited.
    """
    source, told, tables = read_tables(path_of(device, FILE, root), {"rows": _row})
    return FragmentUses(source, told, **tables)


def _row(use: str, m: int, batch: int, bytes: int, ns: dict, **checked: object) -> FragmentUse:
    """A row, without the error and the resources that were checked when it was recorded."""
    seconds = {where: tuple(each * 1e-9 for each in ns[where]) for where in WHERE}
    return FragmentUse(use, m, batch, bytes, seconds)
