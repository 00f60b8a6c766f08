"""Results in files: `NAME.json` has a row for each piece, `NAME.npz` their arrays, PIECE/KEY.

`recorded/<device>/` holds what a GPU gave, to be compared with on machines that have none. It lies
beside the checks, and not in the package, because only they read it. Where a piece comes from is
said in its row, since pieces may be measured on different days; the provenance that all rows share
is the hash of their arrays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.hardware.check import Result
from gemmlab.measure import store

RECORDED = Path(__file__).resolve().parent / "recorded"
DEVICES = sorted(path.name for path in RECORDED.iterdir())
ARRAYS = "arrays_sha256"  # in the provenance of a file whose pieces have arrays


@cache
def recorded(device: str, check: str) -> dict[str, Result]:
    """What was recorded of a check on a device, by piece; empty where nothing was."""
    return read(RECORDED / device / check)


def write(path: Path, results: Iterable[Result]) -> None:
    """Write results to `path`.json and, where they have arrays, `path`.npz."""
    arrays: dict[str, np.ndarray] = {}
    rows = []
    for result in results:
        plain = {}
        for key, value in result.measured.items():
            if isinstance(value, np.ndarray):
                arrays[f"{result.piece}/{key}"] = value
            else:
                plain[key] = value
        row = asdict(replace(result, measured=plain))
        rows.append({k: v for k, v in row.items() if v or v == 0})
    path.parent.mkdir(parents=True, exist_ok=True)
    file, archive = files(path)
    provenance = {}
    if arrays:
        file.unlink(missing_ok=True)  # an interrupt leaves no row beside other arrays than its own
        np.savez_compressed(archive, **arrays)
        provenance[ARRAYS] = _hash(archive)
    store.write(file, provenance, {"pieces": rows})
    if not arrays:
        archive.unlink(missing_ok=True)


def read(path: Path) -> dict[str, Result]:
    """Read the results that `write` wrote, by piece; there are none where nothing was written.

    Raises RecordError for a file or an archive of arrays that was edited.
    """
    file, archive = files(path)
    if not file.exists():
        return {}
    found = store.read(file, {"pieces": _result})
    results = {result.piece: result for result in found.tables["pieces"]}
    if ARRAYS not in found.provenance:
        return results
    if (sha256 := _hash(archive)) != found.provenance[ARRAYS]:
        raise store.edited(archive, sha256, found.provenance[ARRAYS])
    with np.load(archive) as arrays:
        for name, array in arrays.items():
            piece, key = name.split("/", 1)
            measured = {**results[piece].measured, key: array}
            results[piece] = replace(results[piece], measured=measured)
    return results


def _result(texts: Iterable[str] = (), **columns: Any) -> Result:
    return Result(**columns, texts=tuple(texts))


def files(path: Path) -> tuple[Path, Path]:
    """The file of rows and the archive of arrays of the results at `path`."""
    return path.with_name(f"{path.name}.json"), path.with_name(f"{path.name}.npz")


def _hash(archive: Path) -> str:
    return hashlib.sha256(archive.read_bytes()).hexdigest()
