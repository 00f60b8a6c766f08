"""Microbenchmarks' times, and their files: gemmlab/recorded/<device>/microbenchmarks.json.

It holds one run: what it was measured with, a row for each loop and number of warps, one for
each launch and number of blocks, and the hash of all of it. Files beside it, such as
microbenchmarks_beside.json, are later runs of some more loops.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from gemmlab.device import RECORDED
from gemmlab.measure.records import ROOT
from gemmlab.measure.records.lines import RecordError, checksum, refusal
from gemmlab.measure.records.tables import path_of

FILE = "microbenchmarks.json"
REQUIRED = (
    *("device", "device_title", "date", "driver", "cuda", "cuda_bindings", "ptxas", "python"),
    *("sm_clock_hz", "power_watts", "throttle", "how"),
)
DIGITS = 16  # of a kept hash
_CURE = "restore the file with git, or run `gemmlab record --microbenchmarks` again"


@dataclass(frozen=True)
class LoopTiming:
    """A loop's time with one number of warps.

    instructions : of a warp, by which the time is divided
    cycles : what was observed of the clocks of each launch, mostly one number
    ns : of each launch, from its first warp's start to the last one's end
    """

    name: str
    warps: int
    blocks: int
    instructions: int
    cycles: tuple[tuple[int, ...], ...]
    ns: tuple[int, ...]
    ptx_sha256: str
    code_sha256: str

    @property
    def each(self) -> float:
        """Cycles for each instruction of a warp, in the shortest of the launches."""
        return min(launch[0] for launch in self.cycles) / self.instructions

    @property
    def clock_hz(self) -> float:
        """The SMs' clock while it ran [Hz]: the median of cycles by nanoseconds."""
        return 1e9 * statistics.median(
            launch[0] / ns for launch, ns in zip(self.cycles, self.ns, strict=True)
        )


@dataclass(frozen=True)
class LaunchTiming:
    """The time of whole launches: `ns` from one event to another, with `launches` between them."""

    name: str
    blocks: int
    launches: int
    bytes: int
    ns: tuple[int, ...]
    ptx_sha256: str
    code_sha256: str

    @property
    def seconds(self) -> float:
        """Of one launch [s], the median."""
        return statistics.median(self.ns) * 1e-9 / self.launches

    @property
    def bytes_per_second(self) -> float:
        """What a launch moves by its time [B/s]."""
        return self.bytes / self.seconds


@dataclass(frozen=True)
class Results:
    """Microbenchmarks on a device, with the provenance of the run of most of them."""

    provenance: Mapping[str, str]
    loops: tuple[LoopTiming, ...]
    launches: tuple[LaunchTiming, ...]

    def loop(self, name: str, warps: int) -> LoopTiming:
        """The timing of a loop; LookupError where there is none."""
        return self._find(self.loops, name, "warps", warps)

    def launch(self, name: str, blocks: int | None = None) -> LaunchTiming:
        """The timing of a launch; `blocks` where there is one for several numbers of them."""
        only = {row.blocks for row in self.launches if row.name == name}
        blocks = next(iter(only)) if blocks is None and len(only) == 1 else blocks
        return self._find(self.launches, name, "blocks", blocks)

    def _find(self, rows: tuple, name: str, key: str, value: int | None) -> Any:
        found = {getattr(row, key): row for row in rows if row.name == name}
        if value not in found:
            device = self.provenance["device_title"]
            known = f"{key} {', '.join(map(str, found))}" if found else "nothing of that name"
            raise LookupError(f"{name!r}, {key}={value}, is not timed on {device}; {known}")
        return found[value]


def text(results: Results) -> str:
    """What a file holds. Raises RecordError where the provenance lacks one of `REQUIRED`."""
    lacks = [name for name in REQUIRED if not str(results.provenance.get(name, "")).strip()]
    if lacks:
        raise RecordError(f"microbenchmarks need their provenance: {', '.join(lacks)} missing")
    content = _content(results)
    rows = {
        kind: ",\n".join(json.dumps(row, separators=(",", ":")) for row in content[kind])
        for kind in _KINDS
    }
    parts = [f'"provenance":{json.dumps(content["provenance"], ensure_ascii=False)}']
    parts += [f'"{kind}":[\n{rows[kind]}\n]' for kind in _KINDS]
    parts += [f'"sha256":"{_checksum(content)}"']
    return "{" + ",\n".join(parts) + "}\n"


_KINDS = {"loops": LoopTiming, "launches": LaunchTiming}


def _content(results: Results) -> dict[str, Any]:
    rows = {kind: [asdict(row) for row in getattr(results, kind)] for kind in _KINDS}
    return {"provenance": dict(results.provenance), **rows}


def _checksum(content: Mapping[str, Any]) -> str:
    return checksum(content["provenance"], {kind: content[kind] for kind in _KINDS})


def load(device: str = RECORDED, root: str | Path = ROOT) -> Results:
    """What is recorded of a device.

    Raises LookupError for one without such a file, and RecordError as `read` does.
    """
    path = path_of(device, FILE, root)
    files = [read(file) for file in (path, *sorted(path.parent.glob(file_of("*"))))]
    rows = {
        kind: tuple({_asked(row): row for one in files for row in getattr(one, kind)}.values())
        for kind in _KINDS
    }
    return Results(files[0].provenance, **rows)


def _asked(row: LoopTiming | LaunchTiming) -> tuple[str, int]:
    """By what a row is found: a later run's takes the place of an earlier one's."""
    return row.name, row.warps if isinstance(row, LoopTiming) else row.blocks


def file_of(part: str) -> str:
    """The file of those whose names contain `part`; of all where that is empty."""
    return FILE.replace(".", f"_{part}.") if part else FILE


def read(path: str | Path) -> Results:
    """The results in a file. Raises RecordError for one that was truncated or edited."""
    path = Path(path)
    status = path.stat()
    return _read(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=16)
def _read(path: Path, mtime_ns: int, size: int) -> Results:
    try:
        content = json.loads(path.read_text("utf-8"))
        stored, own = content["sha256"], _checksum(content)
        rows = {kind: tuple(_row(of, row) for row in content[kind]) for kind, of in _KINDS.items()}
    except (ValueError, KeyError, TypeError) as error:
        why = f"not a record of microbenchmarks ({type(error).__name__}: {error})"
        raise refusal(path, why, _CURE) from None
    if stored != own:
        raise refusal(path, f"edited: its content has sha256 {own}, not {stored}", _CURE)
    lacks = [name for name in REQUIRED if not str(content["provenance"].get(name, "")).strip()]
    if lacks:
        raise refusal(path, f"its provenance lacks {', '.join(lacks)}", _CURE)
    return Results(content["provenance"], **rows)


def _row(of: type, row: dict[str, Any]) -> LoopTiming | LaunchTiming:
    """A row of its kind, lists as tuples; TypeError for missing or other fields."""
    if row.keys() != {f.name for f in fields(of)}:
        raise TypeError(f"a row has the fields {', '.join(row)}")
    plain = dict(row, ns=tuple(row["ns"]))
    if of is LoopTiming:
        plain["cycles"] = tuple(map(tuple, row["cycles"]))
    if not plain["ns"]:
        raise ValueError(f"{row['name']} was not launched")
    return of(**plain)
