"""Recorded times of products of neural networks, by our kernels and by cuBLAS: a file a device."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gemmlab.device import RECORDED
from gemmlab.problem import Gemm
from gemmlab.records import ROOT
from gemmlab.records.lines import checksum, refusal
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

    Raises LookupError for a device without such a file, and RecordError as `read_networks` does.
    """
    path = Path(root) / device / FILE
    if not path.exists():
        known = sorted(p.parent.name for p in Path(root).glob(f"*/{FILE}"))
        raise LookupError(f"nothing of {device!r}; there is {', '.join(known) or 'no device'}")
    return read_networks(path)


def read_networks(path: str | Path) -> Networks:
    """The products in a file. Raises RecordError for one that was truncated or edited."""
    path = Path(path)
    try:
        text = json.loads(path.read_text("utf-8"))
        told, rows = text["provenance"], text["layers"]
        stored, own = text["sha256"], checksum(told, {"layers": rows})
        layers = tuple(map(_layer, rows))
        source = f"recorded on {told['device_title']}, {told['date'][:10]}"
    except (ValueError, KeyError, TypeError) as error:
        why = f"not a record of networks ({type(error).__name__}: {error})"
        raise refusal(path, why) from None
    if stored != own:
        raise refusal(path, f"edited: its content has sha256 {own}, not {stored}")
    return Networks(source, told, layers)


def written(provenance: Mapping[str, Any], layers: Sequence[Layer]) -> str:
    """The text of a file that `read_networks` reads."""
    content = {"provenance": provenance, "layers": [asdict(one) for one in layers]}
    content = json.loads(json.dumps(content))  # tuples as lists, as they are read
    told, rows = content["provenance"], content["layers"]
    text = {"sha256": checksum(told, {"layers": rows}), **content}
    return json.dumps(text).replace('{"name"', '\n{"name"') + "\n"


def _layer(row: Mapping[str, Any]) -> Layer:
    return Layer(
        row["name"], Gemm(**row["problem"]), _timed(row["library"]), tuple(map(_timed, row["ours"]))
    )


def _timed(row: Mapping[str, Any]) -> Timed:
    tiling = row["tiling"]
    return Timed(row["kernel"], None if tiling is None else Tiling(**tiling), row["seconds"])
