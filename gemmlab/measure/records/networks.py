"""Recorded times of products of neural networks, by our kernels and by cuBLAS: a file a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemmlab.device import RECORDED
from gemmlab.measure.records import ROOT
from gemmlab.measure.records.tables import path_of, read_tables
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling

FILE = "networks.json"


@dataclass(frozen=True)
class Timed:
    """The median time of a kernel with a tiling [s]."""

    kernel: str
    tiling: Tiling | None  # None for a library's own
    seconds: float


@dataclass(frozen=True)
class Layer:
    """A product that a network has to compute, and what it takes.

    library : by cuBLAS
    ours : in the order of what was expected of them before, the fastest first
    """

    name: str
    problem: Gemm
    library: Timed
    ours: tuple[Timed, ...]

    @property
    def picked(self) -> Timed:
        """What was expected to be the fastest of ours."""
        return self.ours[0]

    @property
    def best(self) -> Timed:
        """What was the fastest of ours."""
        return min(self.ours, key=lambda run: run.seconds)

    def of_library(self, run: Timed) -> float:
        """The speed of a run as a part of the library's."""
        return self.library.seconds / run.seconds


@dataclass(frozen=True)
class Networks:
    """One run of `benchmarks/networks.py`: its layers and where they come from."""

    source: str  # as figures say it
    provenance: Mapping[str, Any]
    layers: tuple[Layer, ...]


def networks(device: str = RECORDED, root: str | Path = ROOT) -> Networks:
    """The products of networks that are recorded on `device`.

    Raises LookupError for a device without such a file, and RecordError for one that was edited.
    """
    source, told, tables = read_tables(path_of(device, FILE, root), {"layers": _layer})
    return Networks(source, told, **tables)


def _layer(name: str, problem: dict, library: dict, ours: list[dict]) -> Layer:
    return Layer(name, Gemm(**problem), _timed(**library), tuple(_timed(**run) for run in ours))


def _timed(kernel: str, tiling: dict | None, seconds: float) -> Timed:
    return Timed(kernel, None if tiling is None else Tiling(**tiling), seconds)
