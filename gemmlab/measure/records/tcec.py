"""Recorded errors of float32 products, by TCEC and by others: a JSON file for each device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemmlab.device import RECORDED
from gemmlab.measure.records import ROOT
from gemmlab.measure.records.tables import path_of, read_tables

FILE = "tcec_errors.json"


@dataclass(frozen=True)
class Errors:
    """How far the result of one way is from the exact one."""

    way: str  # a kernel's name, or a library's way
    data: str
    side: int  # rows and columns of C
    k: int
    by_norm: float  # in the Frobenius norm, relative
    largest: float  # of an element, relative to |A||B|


@dataclass(frozen=True)
class Flush:
    """What it costs and brings to add main products in FP32 every so many of k."""

    interval: int
    by_norm: float
    largest: float
    predicted: float  # error in the norm, of a part of C, by the emulator of the Tensor Core
    measured: float  # the same, of what the GPU computed
    same_bits: bool  # of that part
    seconds: float


@dataclass(frozen=True)
class Way:
    """A way to a float32 product; without times where the library does not have it here."""

    way: str
    n: int
    seconds: float | None
    by_norm: float | None
    largest: float | None
    least_magnitude: float  # of elements, from which on they are represented as well as they can be
    largest_magnitude: float
    workspace_bytes: int
    note: str  # why there are no times, or whose bits it has
    shared_bytes: int | None = None  # of a block; libraries do not say


@dataclass(frozen=True)
class TcecErrors:
    """One run of `benchmarks/tcec_errors.py`: its three tables and where they come from."""

    source: str  # as figures say it
    provenance: Mapping[str, Any]
    errors: tuple[Errors, ...]
    flush: tuple[Flush, ...]
    ways: tuple[Way, ...]


TABLES = {"errors": Errors, "flush": Flush, "ways": Way}


def tcec_errors(device: str = RECORDED, root: str | Path = ROOT) -> TcecErrors:
    """The errors that are recorded on `device`.

    Raises LookupError for a device without such a file, and RecordError for one that was edited.
    """
    source, told, tables = read_tables(path_of(device, FILE, root), TABLES)
    return TcecErrors(source, told, **tables)
