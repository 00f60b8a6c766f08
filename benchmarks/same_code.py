"""Rungs whose source reads otherwise than when they were measured, and compiles to the same code.

    python -m benchmarks.same_code --write mma_tuned mma_tma    # of the recorded source
    python -m benchmarks.same_code mma_tuned mma_tma            # of the source that is here

The first command writes down what the recorded source of rungs is compiled to, and how it is
launched, for every case of which something is recorded, before the source is touched. The second
one compares, and prints the line for `hashing.CARRIED` by which records of the old source count as
records of the new one. `tests/benchmarks/test_same_code.py` does so again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import ROOT
from gemmlab import Gemm, Tiling, kernels
from gemmlab.compiled.forecast import recorded
from gemmlab.compiled.forecast.rung_listings import compiled_launch, usual
from gemmlab.compiled.sass.listing import Listing
from gemmlab.here.driver import stamp
from gemmlab.kernels import Kernel
from gemmlab.kernels.hashing import functions_sha256
from gemmlab.kernels.kernel import Launched
from gemmlab.measure import records, store
from gemmlab.measure.measurement import Measurement
from gemmlab.measure.recording import parse_sizes

FILE = Path(__file__).with_suffix(".json")
CAPABILITY = 9, 0  # of the GPUs with records
VARIABLES = 4  # the constant bank with addresses of variables
TOOLS = "python", "numba", "numba_cuda", "ptxas"
FOLDERS = "gemmlab/recorded", "benchmarks/forecast/recorded"
_CURE = "restore the file with git"


class Case(NamedTuple):
    """Something is recorded of a rung: for this product, in this tiling."""

    problem: Gemm
    tiling: Tiling


class Compiled(NamedTuple):
    """One launch of a rung, as the compiler is given it, and the first case that is launched so."""

    key: recorded.Key
    one: Launched
    case: Case


# ------------------------------------------------------------------------------ what is recorded


@cache
def cases(kernel: Kernel) -> tuple[Case, ...]:
    """Return all cases of a rung: of listings, of measurements and of predictions."""
    found = [Case(usual(kernel), tiling) for tiling in kernel.tilings or (kernel.default,)]
    found += [Case(m.problem, m.tiling) for m in _measurements() if m.kernel == kernel.name]
    return tuple(dict.fromkeys([*found, *_rows()[kernel.name]]))


@cache
def _measurements() -> tuple[Measurement, ...]:
    return tuple(m for path in _files("jsonl") for m in records.read(path))


@cache
def _rows() -> Mapping[str, list[Case]]:
    """Return the cases of JSON files, by rung."""
    found: dict[str, list[Case]] = {one.name: [] for one in recorded.RUNGS}
    for path in _files("json"):
        tables = (v for v in json.loads(path.read_text("utf-8")).values() if isinstance(v, list))
        for row in (row for table in tables for row in table):
            if isinstance(row.get("tiling"), str) and row.get("kernel") in found:
                found[row["kernel"]].append(Case(_problem(row["problem"]), _tiling(row["tiling"])))
            for run in (run for run in row.get("ours", ()) if isinstance(run, dict)):
                found[run["kernel"]].append(Case(_problem(row["problem"]), Tiling(**run["tiling"])))
    return found


def _files(ending: str) -> list[Path]:
    return [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob(f"*.{ending}"))]


def _problem(text: str | Mapping[str, Any]) -> Gemm:
    """Read a product as it is printed, or of its fields."""
    if not isinstance(text, str):
        return Gemm(**text)
    (found,) = parse_sizes(text.replace("×", "x").replace(" to ", ":to-").replace(" ", ":"))
    return found


def _tiling(text: str) -> Tiling:
    """Read a tiling as it is printed, such as "64×64×16, thread 4×4, 3 stages, split 2"."""
    block, *more = text.split(", ")
    told: dict[str, Any] = {"block": _numbers(block)}
    for word in more:
        name, value = word.split(" ") if not word[0].isdigit() else word.split(" ")[::-1]
        told[name] = _numbers(value) if name in ("warp", "thread") else int(value)
    found = Tiling(**told)
    if str(found) != text:
        raise ValueError(f"{text!r} is read as {found}")
    return found


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split("×")))


def compilations(kernel: Kernel, of: Iterable[Case]) -> list[Compiled]:
    """Return what a compiler is given for cases of a rung, each launch once."""
    found: dict[recorded.Key, Compiled] = {}
    for case in of:
        for one in kernel.launches:
            key = recorded.key_of(one, kernel, *case, CAPABILITY)
            found.setdefault(key, Compiled(key, one, case))
    return list(found.values())


# ------------------------------------------------------------------------------------ their hashes


def code_sha256(code: Listing) -> str:
    """Hash a launch's compiled code: all that a GPU is given, without names and lines.

    Constants count where an instruction reads their bank. Bank 4 has the addresses of variables, of
    which Numba makes one for each device function, and nobody reads it but code that uses one.
    """
    text = str(code)
    read = {bank: held for bank, held in code.constants.items() if f"c[0x{bank:x}]" in text}
    variables = (code.data, code.pointers) if VARIABLES in read else ()
    given = (
        code.architecture, text, code.registers, code.local_bytes, code.shared_bytes,
        sorted(code.functions.values()), sorted(read.items()), variables,
    )  # fmt: skip
    return hashlib.sha256(repr(given).encode()).hexdigest()


def compiled_sha256(kernel: Kernel, asked: Compiled) -> str:
    """Compile a launch here, and hash its code."""
    return code_sha256(compiled_launch(asked.one, kernel, *asked.case, CAPABILITY))


def launched_sha256(kernel: Kernel, case: Case) -> str:
    """Hash how a case is launched, and what the compiler is told beside the source."""
    told: list[Any] = [kernel.workspace(*case)]
    for one in kernel.launches:
        frozen, options = one.variant(case.problem, CAPABILITY), one.compile(case.tiling)
        told += [
            one.configure(*case), one.dynamic_shared_bytes(*case), one.persistent, one.cluster,
            sorted(frozen.items()), sorted(options.items()),
        ]  # fmt: skip
    return hashlib.sha256(repr(told).encode()).hexdigest()


def tools() -> dict[str, str]:
    """Return the versions of what makes code here; Python's without its last number."""
    found = stamp(*TOOLS)
    return found | {"python": ".".join(found["python"].split(".")[:2])}


# ---------------------------------------------------------------------------------------- the file


def written() -> Mapping[str, tuple[Mapping[str, Any], ...]]:
    """Read the file: what is recorded of rungs, and their launches as a compiler was given them."""
    if not FILE.exists():
        return {"cases": (), "compiled": ()}
    return store.read(FILE, {"cases": dict, "compiled": dict}, (), _CURE).tables


def cases_of(kernel: Kernel) -> dict[Case, str]:
    """Return the cases that were written of a rung, and how each was launched."""
    return {
        Case(_problem(row["problem"]), _tiling(row["tiling"])): row["launched_sha256"]
        for row in written()["cases"]
        if row["kernel"] == kernel.name
    }


def code_of(kernel: Kernel) -> dict[recorded.Key, str]:
    """Return the hashes of a rung's recorded code, as the tools that are here made it."""
    told = {"kernel": kernel.name, **tools()}
    return {
        tuple(row["of"]): row["code_sha256"]
        for row in written()["compiled"]
        if told.items() <= row.items()
    }


def recorded_source(kernel: Kernel) -> str:
    """Return the hash of the source of which a rung's code was written; LookupError for none."""
    found = {row["source_sha256"] for row in written()["cases"] if row["kernel"] == kernel.name}
    if not found:
        raise LookupError(f"nothing was written of {kernel.name}: --write its recorded source")
    (one,) = found
    return one


def write(kernel: Kernel, own: bool) -> int:
    """Compile launches of a rung and add them to the file; the number of new rows.

    own : of its own tiling, as it is shown, alone
    Raises ValueError where another source of the rung was written.
    """
    told = {"kernel": kernel.name, "source_sha256": functions_sha256(kernel)}
    found = {case: launched_sha256(kernel, case) for case in cases(kernel)}
    if (known := cases_of(kernel)) and (recorded_source(kernel), known) != (
        told["source_sha256"], found
    ):  # fmt: skip
        raise ValueError(f"of {kernel.name} another source or other cases were written")
    rows = [
        {**told, "problem": str(case.problem), "tiling": str(case.tiling), "launched_sha256": sha}
        for case, sha in found.items()
        if case not in known
    ]
    made = [
        {**told, **tools(), "of": one.key, "code_sha256": compiled_sha256(kernel, one)}
        for one in compilations(kernel, [*found][: 1 if own else None])
        if one.key not in code_of(kernel)
    ]
    there = written()
    tables = {"cases": [*there["cases"], *rows], "compiled": [*there["compiled"], *made]}
    store.write(FILE, {}, tables)
    return len(made)


def launched_otherwise(kernel: Kernel) -> list[str]:
    """Return the cases of a rung that are launched otherwise than when they were written."""
    return [
        f"{kernel.name} {case.problem}, {case.tiling} is launched otherwise"
        for case, sha256 in cases_of(kernel).items()
        if launched_sha256(kernel, case) != sha256
    ]


def other_code(kernel: Kernel, of: Iterable[Compiled]) -> list[str]:
    """Compile launches of a rung; return those that are not the code that was written."""
    known = code_of(kernel)
    return [
        f"{kernel.name} {one.key} is other code"
        for one in of
        if known.get(one.key) != compiled_sha256(kernel, one)
    ]


def main() -> int:
    """Write, or compare; 1 where a rung has become other code."""
    asking = argparse.ArgumentParser("benchmarks.same_code", description=__doc__.partition("\n")[0])
    asking.add_argument("kernels", nargs="+", metavar="KERNEL")
    asking.add_argument("--write", action="store_true", help="write what the source is compiled to")
    asking.add_argument("--own", action="store_true", help="in its own tiling and layout alone")
    asked = asking.parse_args()
    status = 0
    for kernel in map(kernels.get, asked.kernels):
        if asked.write:
            print(f"{kernel.name}: {write(kernel, asked.own)} launches written", flush=True)
            continue
        every = compilations(kernel, [*cases_of(kernel)][: 1 if asked.own else None])
        if found := launched_otherwise(kernel) + other_code(kernel, every):
            status = 1
            print("\n".join(found), flush=True)
            continue
        print(f"{kernel.name}: {len(every)} launches are the same; in hashing.CARRIED:")
        now, then = functions_sha256(kernel), recorded_source(kernel)
        print(f'    "{now}": (  # {kernel.name}\n        "{then}"\n    ),', flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
