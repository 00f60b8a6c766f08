"""Results in files: `NAME.jsonl` has a line for each piece, `NAME.npz` their arrays, PIECE/KEY.

`recorded/<device>/` holds what a GPU gave, to be compared with on machines that have none. It lies
beside the checks, and not in the package, because only they read it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.hardware.check import Result

RECORDED = Path(__file__).resolve().parent / "recorded"
DEVICES = sorted(path.name for path in RECORDED.iterdir())


@cache
def recorded(device: str, check: str) -> dict[str, Result]:
    """What was recorded of a check on a device, by piece; empty where nothing was."""
    return read(RECORDED / device / check)


def write(path: Path, results: Iterable[Result]) -> None:
    """Write results to `path`.jsonl and, where they have arrays, `path`.npz."""
    arrays: dict[str, np.ndarray] = {}
    lines = []
    for result in results:
        plain = {}
        for key, value in result.measured.items():
            if isinstance(value, np.ndarray):
                arrays[f"{result.piece}/{key}"] = value
            else:
                plain[key] = value
        line = {k: v for k, v in asdict(replace(result, measured=plain)).items() if v or v == 0}
        lines.append(json.dumps(line, separators=(",", ":"), ensure_ascii=False))
    path.parent.mkdir(parents=True, exist_ok=True)
    archive = path.with_name(f"{path.name}.npz")
    archive.unlink(missing_ok=True)
    if arrays:
        np.savez_compressed(archive, **arrays)
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_text("\n".join(lines) + "\n", "utf-8", newline="\n")
    fresh.replace(path.with_name(f"{path.name}.jsonl"))  # last, so that a line's arrays are there


def read(path: Path) -> dict[str, Result]:
    """The results that `write` wrote, by piece; empty where nothing was written."""
    file, archive = (path.with_name(f"{path.name}.{kind}") for kind in ("jsonl", "npz"))
    if not file.exists():
        return {}
    lines = map(json.loads, file.read_text("utf-8").splitlines())
    found = {line["piece"]: Result(**{**line, "texts": tuple(line.get("texts", ()))})
             for line in lines}  # fmt: skip
    if archive.exists():
        with np.load(archive) as arrays:
            for name, array in arrays.items():
                piece, key = name.split("/", 1)
                found[piece].measured[key] = array
    return found
