"""Recorded timings of the three uses of fragments: a JSON file for each device."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemmlab.device import RECORDED
from gemmlab.kernels.fragments import WHERE
from gemmlab.records import ROOT
from gemmlab.records.lines import checksum, refusal

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

    Raises LookupError for a device without such a file, and RecordError as `read_uses` does.
    """
    path = Path(root) / device / FILE
    if not path.exists():
        known = sorted(p.parent.name for p in Path(root).glob(f"*/{FILE}"))
        raise LookupError(f"nothing of {device!r}; there is {', '.join(known) or 'no device'}")
    return read_uses(path)


def read_uses(path: str | Path) -> FragmentUses:
    """The timings in a file. Raises RecordError for one that was truncated or edited."""
    path = Path(path)
    try:
        text = json.loads(path.read_text("utf-8"))
        stored, own = text["sha256"], checksum(text["provenance"], {"rows": text["rows"]})
        rows = tuple(
            FragmentUse(
                row["use"], row["m"], row["batch"], row["bytes"],
                {where: tuple(ns * 1e-9 for ns in row["ns"][where]) for where in WHERE},
            )
            for row in text["rows"]
        )  # fmt: skip
    except (ValueError, KeyError, TypeError) as error:
        why = f"not a record of uses ({type(error).__name__}: {error})"
        raise refusal(path, why) from None
    if stored != own:
        raise refusal(path, f"edited: its content has sha256 {own}, not {stored}")
    told = text["provenance"]
    return FragmentUses(f"recorded on {told['device_title']}, {told['date'][:10]}", told, rows)
