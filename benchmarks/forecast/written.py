"""Files of predictions and of timings: written once, with their origin, and refused if edited."""

from __future__ import annotations

import argparse
import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import ROOT
from gemmlab.compiled.forecast import library, meeting, power
from gemmlab.compiled.forecast.power import of_chip
from gemmlab.device import text_of
from gemmlab.here.driver import stamp
from gemmlab.kernels.hashing import tokens
from gemmlab.measure import store

RECORDED = Path(__file__).parent / "recorded"  # <device>/<what>.json
PREDICTOR = ("compiled", "model")  # parts of gemmlab that a prediction is made by
SINCE = "_since"  # after the name of what later code predicts, once measurements are known
RECORDS = power.FILE, meeting.FILE, library.FILE, library.PRODUCTS  # which predictions rest on, too
DIGITS = 6  # of a number that is written


@dataclass(frozen=True)
class Written:
    """The content of a file: its origin and its rows."""

    provenance: Mapping[str, str]
    rows: tuple[dict[str, Any], ...]


def write(path: Path, provenance: Mapping[str, str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a file; FileExistsError where it is there: what was predicted stays as it was."""
    if path.exists():
        raise FileExistsError(f"{path} is there already; what was written down stays as it was")
    store.write(path, provenance, {"rows": map(_rounded, rows)})


def parser(program: str, text: str, device: str) -> tuple[argparse.ArgumentParser, Any]:
    """Return what reads a program's options: into which file it predicts, or times.

    text : its docstring; device : the default. The group of the two comes, too, for a third one.
    """
    asking = argparse.ArgumentParser(program, description=text.partition("\n")[0])
    what = asking.add_mutually_exclusive_group(required=True)
    what.add_argument("--predict", type=Path, metavar="FILE")
    what.add_argument("--time", type=Path, metavar="FILE")
    asking.add_argument("--device", default=device, help="to predict for (default: %(default)s)")
    return asking, what


def read(path: Path) -> Written:
    """Read what `write` wrote; RecordError for a file that was edited."""
    found = store.read(path, {"rows": dict})
    return Written(found.provenance, found.tables["rows"])


def stored(device: str, name: str) -> Written | None:
    """Read what is recorded under a name; None where nothing is."""
    path = RECORDED / device / f"{name}.json"
    return read(path) if path.exists() else None


def first_and_since(device: str, name: str) -> list[Written]:
    """Read what was predicted before anything was measured, and since then if it was asked."""
    return [found for suffix in ("", SINCE) if (found := stored(device, name + suffix))]


def latest(device: str, name: str) -> Written | None:
    """Read what is recorded under a name, or was predicted again since by later code."""
    return stored(device, name + SINCE) or stored(device, name)


def origin(device: str) -> dict[str, str]:
    """By what, when and for which GPU something is predicted."""
    return {
        "device": device,
        **stamp("date"),
        "predictor_sha256": predictor_sha256(),
        "facts_sha256": facts_sha256(device),
        **compilers(),
    }


def compilers() -> dict[str, str]:
    """The versions of what makes a kernel's compiled code."""
    return stamp("numba_cuda", "ptxas", "python", "numpy")


def other_compilers(written: Written) -> str:
    """Which tool makes other code here than where something was predicted; "" where none does."""
    now, then = compilers(), written.provenance
    others = [tool for tool in ("numba_cuda", "ptxas") if now[tool] != then[tool]]
    return ", ".join(f"predicted with {tool} {then[tool]}, not {now[tool]}" for tool in others)


def predictor_sha256() -> str:
    """Hash of the code that predicts, without comments and layout."""
    text = [tokens(import_module(name)) for name in _modules()]
    return hashlib.sha256("\n".join(text).encode()).hexdigest()


def _modules() -> list[str]:
    """The modules of `PREDICTOR` by name."""
    files = [path for part in PREDICTOR for path in (ROOT / "gemmlab" / part).rglob("*.py")]
    names = [path.relative_to(ROOT).with_suffix("").parts for path in files]
    return sorted(".".join(name).removesuffix(".__init__") for name in names)


def facts_sha256(device: str) -> str:
    """Hash of what the file of a device says of it and of its SM, and of the records beside it."""
    of_device = tomllib.loads(text_of(device))
    said = [of_device, *([of_device.pop("sm")] if "sm" in of_device else [])]
    found = (of_chip(device, name, store.ROOT) for name in RECORDS)
    said += [hashlib.sha256(path.read_bytes()).hexdigest() for path in found if path]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _rounded(value: Any) -> Any:
    """The same with floats of `DIGITS` digits, at any depth."""
    if isinstance(value, Mapping):
        return {key: _rounded(part) for key, part in value.items()}
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
