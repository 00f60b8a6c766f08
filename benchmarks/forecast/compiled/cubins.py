"""Kernels are compiled once, and their cubins kept: the same bytes are predicted and timed.

Triton and nvcc are no part of gemmlab's environments. They are found in the Python that is named,
whose packages `triton` and `nvidia-cuda-nvcc`, `-nvvm`, `-crt`, `-runtime`, `-cccl` of CUDA 13.0
need no GPU.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import re
import subprocess
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.forecast.compiled.case import HERE, Case
from gemmlab.here.driver import stamp
from gemmlab.measure import store

KEPT = HERE / "cubins.json"
CAPABILITY = 90


@dataclass(frozen=True)
class Built:
    """A kernel as a compiler made it; `shared_bytes` are dynamic, of a block.

    entry : the kernel's name in the cubin, None for that of its case
    """

    cubin: bytes
    source_sha256: str
    shared_bytes: int = 0
    entry: str | None = None

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.cubin).hexdigest()


@cache
def kept() -> Mapping[str, Built]:
    """Return what was built, by the kernels' names."""
    rows = store.read(KEPT, {"rows": dict}).tables["rows"]
    return {
        row["kernel"]: Built(
            lzma.decompress(b64decode(row["cubin"])), row["source_sha256"], row["shared_bytes"]
        )
        for row in rows
    }


def build(cases: Iterable[Case], python: Path) -> None:
    """Compile kernels with the tools of a Python's environment, and keep them."""
    ours, theirs = [], []
    for case in cases:
        (theirs if case.made else ours).append(case)
    nvcc = next(python.parents[1].rglob("nvidia/cu13/bin/nvcc"), Path("nvcc"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case in ours:
            _by_nvcc(nvcc, case.source, folder)
        about = _by_triton(python, theirs, folder)
        rows = [_row(case, folder, about) for case in (*ours, *theirs)]
    version = subprocess.run([nvcc, "--version"], capture_output=True, encoding="utf-8").stdout
    told = {"nvcc": re.search(r"V([\d.]+)", version)[1], "triton": about["triton"]}
    store.write(KEPT, {**stamp("date"), **told}, {"rows": rows})


def _by_nvcc(nvcc: Path, source: Path, folder: Path) -> None:
    options = f"-arch=sm_{CAPABILITY}", "-lineinfo", "-cubin"
    subprocess.run(
        [nvcc, *options, "-o", folder / f"{source.stem}.cubin", source.name],
        check=True, cwd=source.parent,
    )  # fmt: skip


def _by_triton(python: Path, cases: Iterable[Case], folder: Path) -> dict[str, Any]:
    made = {case.name: case.made for case in cases}
    asked = {name: vars(one) for name, one in made.items()}
    (folder / "kernels.json").write_text(json.dumps({"for": CAPABILITY, "kernels": asked}))
    script = HERE / "make_triton.py"
    subprocess.run([python, script, folder / "kernels.json", folder], check=True)
    return json.loads((folder / "triton.json").read_text())


def _row(case: Case, folder: Path, about: Mapping[str, Any]) -> dict[str, Any]:
    cubin = (folder / f"{case.name}.cubin").read_bytes()
    return {
        "kernel": case.name,
        "source_sha256": case.source_sha256,
        "shared_bytes": about.get(case.name, {}).get("shared_bytes", 0),
        "cubin": b64encode(lzma.compress(cubin, preset=9)).decode(),
    }
