"""Kernels of others' repositories and courses: predicted from cubins that are not kept here.

`cases.toml` says of which lines of which file at which commit each cubin is made, and its hash.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.forecast.compiled.cubins import Built
from benchmarks.forecast.public import launches

CASES = {case.name: case for case in launches.CASES}
ABOUT = Path(__file__).parent / "cases.toml"


@cache
def about() -> dict[str, Mapping[str, Any]]:
    """Return whence each kernel is, by its name here: its table with its repository and commit."""
    said = tomllib.loads(ABOUT.read_text("utf-8"))
    return {
        kernel["name"]: {"repository": one["name"], "commit": one["commit"], **kernel}
        for one in said["repository"]
        for kernel in one["kernels"]
    }


def built(folder: Path, name: str) -> Built:
    """Read a kernel's cubin; ValueError where it is another than that of `cases.toml`."""
    cubin, said = (folder / f"{name}.cubin").read_bytes(), about()[name]
    found = hashlib.sha256(cubin).hexdigest()
    if found != said["cubin_sha256"]:
        raise ValueError(f"{folder / name}.cubin has the hash {found}, not {said['cubin_sha256']}")
    return Built(cubin, "", said.get("shared_bytes", 0), said["entry"])
