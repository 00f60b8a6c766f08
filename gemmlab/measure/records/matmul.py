"""Recorded times of `gemmlab.matmul` beside those of cuBLAS: a JSON file for each device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemmlab.device import RECORDED
from gemmlab.measure.records import ROOT
from gemmlab.measure.records.tables import path_of, read_tables

FILE = "matmul.json"


@dataclass(frozen=True)
class Product:
    """A product by `matmul` and by the library, one or many: medians of one run, in seconds.

    gpu : from the first to the last that a call queues; host : of Python for a call; loop : of a
    call, where one follows another; the same of cuBLAS, called by CuPy; errors relative to |A||B|
    """

    batch: int
    m: int
    n: int
    k: int
    kernel: str
    gpu: float
    host: float
    loop: float
    cublas_gpu: float
    cublas_host: float
    cublas_loop: float
    error: float
    cublas_error: float

    @property
    def flops(self) -> int:
        """Multiplications and additions."""
        return 2 * self.batch * self.m * self.n * self.k

    @property
    def name(self) -> str:
        """As tables have it."""
        one = f"{self.m}×{self.n}×{self.k}"
        return f"{self.batch} of {one}" if self.batch > 1 else one


@dataclass(frozen=True)
class Part:
    """What one of the things takes that `matmul` queues for a product."""

    product: str
    what: str
    seconds: float


@dataclass(frozen=True)
class MatmulTimes:
    """One run of `benchmarks/matmul.py`."""

    source: str  # as figures say it
    provenance: Mapping[str, Any]
    products: tuple[Product, ...]
    parts: tuple[Part, ...]


TABLES = {"products": Product, "parts": Part}


def matmul_times(device: str = RECORDED, root: str | Path = ROOT) -> MatmulTimes:
    """The times that are recorded on `device`.

    Raises LookupError for a device without such a file, and RecordError for one that was edited.
    """
    source, told, tables = read_tables(path_of(device, FILE, root), TABLES)
    return MatmulTimes(source, told, **tables)
