"""Outcomes of simulated SMs are recorded for what the chapters show, for a Python without Numba.

The loop over cycles takes a fraction of a second where Numba compiles it, and minutes in plain
Python, such as that in the page of a browser. `python -m benchmarks.ready` writes the file. An
outcome is found by a hash of all that it follows from; any other simulation runs.
"""

import hashlib
import lzma
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from gemmlab.compiled.sm.result import Result, Timeline
from gemmlab.device import RECORDED
from gemmlab.measure import store

REQUIRED = "date", "gemmlab"
ARRAYS = "issued", "lost", "kinds", "block_ends", "issued_then"  # of a result
SHOWN = {"issued": np.int32, "reasons": np.int8, "opened": np.int8}  # of a timeline


def key(parts: Iterable[Any]) -> str:
    """Hash what an outcome follows from: numbers, texts and arrays, also in tuples."""
    known = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            known.update(f"{part.dtype}{part.shape}".encode())
            known.update(np.ascontiguousarray(part).tobytes())
        elif isinstance(part, tuple):
            known.update(f"({key(part)})".encode())
        else:
            known.update(f"{part!r};".encode())
    return known.hexdigest()


def path_of(root: str | Path = store.ROOT) -> Path:
    """Return the file of all outcomes."""
    return Path(root) / RECORDED / "outcomes.json"


def find(wanted: str, root: str | Path = store.ROOT) -> Result | None:
    """Return what is recorded under a hash; None where nothing is."""
    try:
        stored = store.read(path_of(root), {"outcomes": dict}, REQUIRED)
    except FileNotFoundError:
        return None
    found = next((row for row in stored.tables["outcomes"] if row["key"] == wanted), None)
    if found is None:
        return None
    arrays = {name: _unpacked(found[name]) for name in ARRAYS}
    shown = found["timeline"]
    timeline = shown and Timeline(
        shown["first"],
        *(_unpacked(shown[name], step=True).astype(kind) for name, kind in SHOWN.items()),
    )
    return Result(found["cycles"], **arrays, timeline=timeline, drained=found["drained"])


def write(
    outcomes: Mapping[str, Result], told: Mapping[str, str], root: str | Path = store.ROOT
) -> None:
    """Write the file of all outcomes; `told` is their provenance."""
    rows = []
    for asked, result in outcomes.items():
        row = {name: _packed(getattr(result, name)) for name in ARRAYS}
        t = result.timeline
        shown = t and {name: _packed(getattr(t, name), step=True) for name in SHOWN}
        row |= {"key": asked, "cycles": result.cycles, "drained": result.drained}
        rows.append({**row, "timeline": shown and {"first": t.first, **shown}})
    store.write(path_of(root), told, {"outcomes": rows}, REQUIRED)


def _packed(array: np.ndarray, step: bool = False) -> dict[str, Any]:
    """Write an array as text; `step`: the differences along its last axis, since loops repeat."""
    whole = array.astype(np.int64)
    if step:
        whole = np.diff(whole, prepend=0, axis=-1)
    data = lzma.compress(whole.astype("<i4").tobytes(), preset=9)
    if not np.array_equal(whole, whole.astype("<i4")):
        raise ValueError("an outcome has a number that is too large for its file")
    return {"shape": list(array.shape), "data": b64encode(data).decode()}


def _unpacked(packed: Mapping[str, Any], step: bool = False) -> np.ndarray:
    whole = np.frombuffer(lzma.decompress(b64decode(packed["data"])), "<i4").astype(np.int64)
    whole = whole.reshape(packed["shape"])
    return whole.cumsum(axis=-1) if step else whole


assert {*ARRAYS, "cycles", "timeline", "drained"} == {field.name for field in fields(Result)}
