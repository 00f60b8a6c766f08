"""Microbenchmarks' times, and their files: gemmlab/recorded/<device>/microbenchmarks.json.

It holds one run: what it was measured with, a row for each loop and number of warps, and one for
each launch and number of blocks. Files beside it, such as microbenchmarks_beside.json, are later
runs of some more loops.
"""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemmlab.device import RECORDED
from gemmlab.measure import store

FILE = "microbenchmarks.json"
REQUIRED = (
    *("device", "device_title", "date", "driver", "cuda", "cuda_bindings", "ptxas", "python"),
    *("sm_clock_hz", "power_watts", "throttle", "how"),
)
DIGITS = 16  # of a kept hash
_CURE = "restore the file with git, or run `run.py record --microbenchmarks` again"


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

    def __post_init__(self) -> None:
        _launched(self)

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

    def __post_init__(self) -> None:
        _launched(self)

    @property
    def seconds(self) -> float:
        """The median time of one launch [s]."""
        return statistics.median(self.ns) * 1e-9 / self.launches

    @property
    def bytes_per_second(self) -> float:
        """The bytes that a launch moves by its time [B/s]."""
        return self.bytes / self.seconds


def _launched(row: LoopTiming | LaunchTiming) -> None:
    if not row.ns:
        raise ValueError(f"{row.name} was not launched: ns={row.ns}")


@dataclass(frozen=True)
class Results:
    """Microbenchmarks on a device, with the provenance of the run of most of them."""

    provenance: Mapping[str, str]
    loops: tuple[LoopTiming, ...]
    launches: tuple[LaunchTiming, ...]

    def loop(self, name: str, warps: int) -> LoopTiming:
        """Return the timing of a loop; LookupError where there is none."""
        return self._find(self.loops, name, "warps", warps)

    def launch(self, name: str, blocks: int | None = None) -> LaunchTiming:
        """Give the timing of a launch; `blocks` where there is one for several numbers of them."""
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


TABLES = {"loops": LoopTiming, "launches": LaunchTiming}


def write(path: str | Path, results: Results) -> None:
    """Write results to a file; RecordError where their provenance lacks one of `REQUIRED`."""
    tables = {name: getattr(results, name) for name in TABLES}
    store.write(path, results.provenance, tables, REQUIRED)


def read(path: str | Path) -> Results:
    """Read the results in a file; RecordError for one that was truncated or edited."""
    found = store.read(path, TABLES, REQUIRED, _CURE)
    return Results(found.provenance, **found.tables)


def load(device: str = RECORDED, root: str | Path = store.ROOT) -> Results:
    """Read all that is recorded of a device; a later run's row takes the place of an earlier one.

    Raises LookupError for a device without such a file, and RecordError as `read` does.
    """
    path = store.path_of(device, FILE, root)
    files = [read(file) for file in (path, *sorted(path.parent.glob(file_of("*"))))]
    loops = {(row.name, row.warps): row for one in files for row in one.loops}
    launches = {(row.name, row.blocks): row for one in files for row in one.launches}
    return Results(files[0].provenance, tuple(loops.values()), tuple(launches.values()))


def file_of(part: str) -> str:
    """Give the name of the file of those whose names contain `part`; of all where that is empty."""
    return FILE.replace(".", f"_{part}.") if part else FILE
