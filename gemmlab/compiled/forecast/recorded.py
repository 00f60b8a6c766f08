"""Listings that come with gemmlab: the kernels' compiled code, for readers without the compiler.

`recorded/<architecture>/<kernel>.json.gz` holds, of one kernel, a listing of each of its launches
for each tiling that is recorded, with the versions of the tools that made them and the hash of the
kernel's source. Of a source that has changed since there is no recorded listing.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gemmlab import Gemm, Tiling, kernels
from gemmlab.compiled.sass.listing import Line, Listing, instructions
from gemmlab.device import name_of
from gemmlab.here.driver import WHEELS, stamp
from gemmlab.kernels.hashing import source_hash
from gemmlab.kernels.kernel import Kernel, Launched
from gemmlab.measure import store

RUNGS = *kernels.GPU, *kernels.HOPPER_CLUSTERS  # of which there are listings
# The function that builds the launch, the tiling, what source and operands freeze of a problem and
# a GPU, and the arithmetic.
Key = tuple[str, str, str, str]
_CURE = "restore the file with git, or run `gemmlab record --listings` again"


def path_of(kernel: Kernel, architecture: str, root: Path = store.ROOT) -> Path:
    """Return where the listings of a kernel for an architecture, "sm_90" say, are kept."""
    return root / architecture / f"{kernel.name}.json.gz"


def key_of(
    one: Launched, kernel: Kernel, problem: Gemm, tiling: Tiling, capability: tuple[int, int]
) -> Key:
    """Return what tells the listings of one kernel apart: all that the compiler is given."""
    frozen = {**kernel.variant(problem, capability), **one.variant(problem, capability)}
    text = ", ".join(f"{name}={value!r}" for name, value in sorted(frozen.items()))
    return one.build.__name__, str(tiling.unsplit), text, str(problem.arithmetic)


def find(
    one: Launched,
    kernel: Kernel,
    problem: Gemm,
    tiling: Tiling,
    capability: tuple[int, int],
    root: Path = store.ROOT,
) -> Listing | None:
    """The recorded listing of a launch; None where there is none of this source for such a problem.

    one : the launch, of `kernel.launches`
    """
    path = path_of(kernel, name_of(capability), root)
    if not path.is_file() or provenance(path)["source_sha256"] != source_hash(kernel):
        return None
    return read(path).get(key_of(one, kernel, problem, tiling, capability))


def provenance(path: Path) -> Mapping[str, str]:
    """Return the origin of a file: with what, when and of which source its listings were made."""
    return _stored(path).provenance


def read(path: Path) -> dict[Key, Listing]:
    """Read the listings of a file, by their keys. Raises RecordError for one that was edited."""
    return dict(_stored(path).tables["listings"])


def _stored(path: Path) -> store.Stored:
    return store.read(path, {"listings": _unpacked}, ("kernel", "source_sha256"), _CURE)


def tools() -> dict[str, str]:
    """Return the versions of what makes a listing here; RuntimeError where the compiler is missing.

    Python's is one: from another one's bytecode Numba makes other code of the same source.
    """
    return stamp("python", "numba", "numba_cuda", *WHEELS)


def write(
    path: Path, kernel: Kernel, listings: Mapping[Key, Listing], tools: Mapping[str, str]
) -> None:
    """Write a kernel's file."""
    known = {
        "kernel": kernel.name,
        "date": stamp("date")["date"].partition("T")[0],
        **tools,
        "source_sha256": source_hash(kernel),
    }
    rows = [{"of": key, **_packed(listing)} for key, listing in listings.items()]
    store.write(path, known, {"listings": rows})


def _packed(listing: Listing) -> dict[str, Any]:
    table = list(dict.fromkeys(listing.lines))
    return {
        "architecture": listing.architecture,
        "registers": listing.registers,
        "local_bytes": listing.local_bytes,
        "shared_bytes": listing.shared_bytes,
        "functions": dict(listing.functions),
        "constants": {str(bank): held.hex() for bank, held in listing.constants.items()},
        "data": listing.data.hex(),
        "pointers": listing.pointers,
        "source": table,
        "lines": [table.index(line) for line in listing.lines],
        "code": str(listing),
    }


def _unpacked(of: list[str], **entry: Any) -> tuple[Key, Listing]:
    table = [line and Line(*line) for line in entry["source"]]
    listing = Listing(
        architecture=entry["architecture"],
        instructions=instructions(entry["code"]),
        registers=entry["registers"],
        local_bytes=entry["local_bytes"],
        shared_bytes=entry["shared_bytes"],
        functions=entry["functions"],
        constants={int(bank): bytes.fromhex(held) for bank, held in entry["constants"].items()},
        data=bytes.fromhex(entry["data"]),
        pointers=tuple((offset, place) for offset, place in entry["pointers"]),
        lines=tuple(table[i] for i in entry["lines"]),
    )
    return tuple(of), listing
