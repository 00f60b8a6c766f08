"""Stored measurements: one JSON line each, with provenance, refused if edited or incomplete.

The lines that come with gemmlab lie in ``gemmlab/recorded/<device>/<kernel>.jsonl``. A line has the
fields of a `Measurement`, times in seconds with six digits, and ``sha256``: the start of the hash
of everything else in it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from gemmlab.kernels.kernel import Kernel
from gemmlab.measurement import Measurement
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling

SCHEMA = 1
ROOT = Path(str(resources.files("gemmlab"))) / "recorded"

# What a line must say about its origin.
REQUIRED = (
    "date",  # ISO 8601 with its offset from UTC, which is zero
    "driver",
    "cuda",
    "python",
    "numpy",
    "sm_clock_hz",  # observed while it ran; a number, or UNKNOWN
    "power_watts",  # likewise
    "data",  # distribution and seed of the operands
    "l2",  # state of the L2 cache before each run
    "source_sha256",
)
MADE_BY = ("numba", "cublas")  # and the version of at least one of these
UNKNOWN = "unknown"  # of a clock or a power that the driver does not report

_FIELDS = "schema kernel problem tiling device device_title error tolerance samples provenance"
_PROBLEM = ("m", "n", "k", "alpha", "beta", "dtype", "accumulate")
_TILING = ("block", "thread", "stages")
_CURE = "restore the file with git, or delete the line and run `gemmlab record` again"


class RecordError(ValueError):
    """A measurement that cannot be stored, or a stored line that cannot be trusted."""


def to_line(measurement: Measurement) -> str:
    """The JSON line of `measurement`, without a newline.

    Raises RecordError if its result is wrong, if nothing was timed, or if its provenance lacks
    one of `REQUIRED`.
    """
    problem, tiling = measurement.problem, measurement.tiling
    record = {
        "schema": SCHEMA,
        "kernel": measurement.kernel,
        "problem": {name: getattr(problem, name) for name in _PROBLEM},
        "tiling": tiling and {name: getattr(tiling, name) for name in _TILING},
        "device": measurement.device,
        "device_title": measurement.device_title,
        "error": float(measurement.error),
        "tolerance": float(measurement.tolerance),
        "samples": [float(f"{s:.6g}") for s in measurement.samples],
        "provenance": {name: str(value) for name, value in measurement.provenance.items()},
    }
    fault = _fault(measurement)
    if fault:
        raise RecordError(f"{measurement.kernel} on {problem} cannot be recorded: {fault}")
    record["sha256"] = _checksum(record)
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def from_line(line: str, where: str = "this line") -> Measurement:
    """The measurement of a line, its backend "recorded".

    Raises RecordError, which begins with `where`, for a line that `to_line` did not write.
    """

    def refuse(why: str, cure: str = _CURE) -> RecordError:
        return RecordError(f"{where}: {why}; {cure}")

    try:
        record = json.loads(line, parse_constant=_no_constant)
    except ValueError as error:
        shown = line if len(line) <= 40 else f"{line[:20]} ... {line[-20:]}"
        raise refuse(f"truncated, or not JSON ({error}): {shown!r}") from None
    if not isinstance(record, dict):
        raise refuse(f"a JSON {type(record).__name__} instead of an object")
    if record.get("schema") != SCHEMA:
        newer = "update gemmlab if a newer one wrote it, or else " + _CURE
        raise refuse(f"schema {record.get('schema')!r} is not {SCHEMA}", newer)
    wrong = record.keys() ^ {*_FIELDS.split(), "sha256"}
    if wrong:
        raise refuse(f"wrong fields: {', '.join(sorted(wrong))} missing or not known")
    stated = record.pop("sha256")
    if stated != _checksum(record):
        raise refuse(f"edited: its content has sha256 {_checksum(record)}, not {stated}")
    try:
        measurement = _measurement(record)
        fault = _fault(measurement)
    except (TypeError, ValueError, AttributeError) as error:
        fault = str(error)
    if fault:
        raise refuse(fault)
    return measurement


def _measurement(record: dict[str, Any]) -> Measurement:
    """The measurement that the fields of a line describe; TypeError or ValueError if none."""
    tiling = record["tiling"]
    return Measurement(
        kernel=record["kernel"],
        problem=Gemm(**record["problem"]),
        tiling=None if tiling is None else Tiling(**tiling),
        backend="recorded",
        device=record["device"],
        device_title=record["device_title"],
        error=record["error"],
        tolerance=record["tolerance"],
        samples=tuple(record["samples"]),
        provenance=record["provenance"],
    )


def _fault(measurement: Measurement) -> str | None:
    """Why a measurement is not worth keeping; None if it is."""
    if not measurement.passed:
        return f"its error {measurement.error} is not within {measurement.tolerance}"
    if not measurement.samples or not all(0 < s < math.inf for s in measurement.samples):
        return f"samples={list(measurement.samples)} are not durations in seconds"
    told = measurement.provenance
    missing = [name for name in REQUIRED if not str(told.get(name, "")).strip()]
    if missing:
        return f"its provenance lacks {', '.join(missing)}"
    if not any(told.get(name, "")[:1].isdigit() for name in MADE_BY):
        return f"its provenance needs the version of one of {', '.join(MADE_BY)}"
    if not _holds(lambda: datetime.fromisoformat(told["date"]).utcoffset() == timedelta(0)):
        return f"date={told['date']!r} is not ISO 8601 in UTC, such as 2026-01-31T12:00:00+00:00"
    for name in ("sm_clock_hz", "power_watts"):
        if told[name] != UNKNOWN and not _holds(lambda n=name: 0 < float(told[n]) < math.inf):
            return f"{name}={told[name]!r} is neither a positive number nor {UNKNOWN!r}"
    return None


def _holds(test: Callable[[], bool]) -> bool:
    """Whether a test of a text passes; a text that cannot be read does not."""
    try:
        return test()
    except ValueError:
        return False


def _checksum(record: dict[str, Any]) -> str:
    """The first 16 digits of the hash of a record, whatever the order of its keys."""
    ordered = json.dumps(record, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(ordered.encode()).hexdigest()[:16]


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def append(path: str | Path, measurement: Measurement) -> None:
    """Add `measurement` to the file at `path` and wait until it is on the disk.

    An interrupt leaves at most one truncated line, the last. Raises RecordError as `to_line` does,
    and for a file whose last line is truncated.
    """
    path, line = Path(path), to_line(measurement)
    path.parent.mkdir(parents=True, exist_ok=True)
    if tail(path):
        raise RecordError(f"{path} ends in the middle of a line; `gemmlab record` mends it")
    with open(path, "ab", buffering=0) as file:
        file.write(line.encode() + b"\n")
        os.fsync(file.fileno())


def tail(path: Path) -> bytes:
    """What follows the last newline of a file: nothing, or a line that an interrupt cut short."""
    return path.read_bytes().rpartition(b"\n")[2] if path.exists() else b""


def read(path: str | Path) -> list[Measurement]:
    """Every measurement in one file, in its order.

    Raises RecordError for the first line that is not right, and OSError for a file that cannot be
    read. A file that has not changed is not read again.
    """
    path = Path(path)
    status = path.stat()
    return list(_read(path, status.st_mtime_ns, status.st_size))


@lru_cache(maxsize=256)
def _read(path: Path, mtime_ns: int, size: int) -> tuple[Measurement, ...]:
    try:
        lines = path.read_text("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise RecordError(f"{path}: not UTF-8 ({error}); {_CURE}") from None
    return tuple(
        from_line(line, f"{path}, line {number}")
        for number, line in enumerate(lines, start=1)
        if line.strip()
    )


def devices(root: str | Path = ROOT) -> list[str]:
    """The devices on which something is recorded.

    >>> isinstance(devices(), list)
    True
    """
    return sorted({path.parent.name for path in Path(root).glob("*/*.jsonl")})


def load(
    device: str = "h200", kernel: str | Kernel | None = None, root: str | Path = ROOT
) -> list[Measurement]:
    """What is recorded on `device`, of one kernel or of all, in order of kernel and problem.

    Of several measurements of one kernel, problem and tiling only the latest is given.
    Raises LookupError for a device or a kernel without measurements, and RecordError for files
    that were truncated or edited.
    """
    if device not in devices(root):
        known = ", ".join(devices(root)) or "no device"
        raise LookupError(f"nothing is recorded on {device!r}; there are measurements of {known}")
    latest: dict[tuple, Measurement] = {}
    for path in sorted((Path(root) / device).glob("*.jsonl")):
        for m in read(path):
            if m.device != device:
                raise RecordError(f"{path}: a measurement of {m.device} among those of {device}")
            key = m.kernel, m.problem, m.tiling
            if key not in latest or _date(latest[key]) <= _date(m):
                latest[key] = m
    found = sorted(latest.values(), key=_order)
    if kernel is None:
        return found
    name = kernel.name if isinstance(kernel, Kernel) else kernel
    chosen = [m for m in found if m.kernel == name]
    if not chosen:
        known = ", ".join(sorted({m.kernel for m in found})) or "no kernel"
        raise LookupError(
            f"{name!r} is not recorded on {device}; there are measurements of {known}"
        )
    return chosen


def find(
    kernel: Kernel,
    problem: Gemm,
    tiling: Tiling | None = None,
    device: str = "h200",
    root: str | Path = ROOT,
) -> Measurement:
    """The measurement of `kernel` on `problem` with `tiling` (None: the kernel's own).

    Raises LookupError, which lists the nearest that are recorded, RecordError as `load` does, and
    ValueError for a tiling that the kernel cannot use.
    """
    wanted = problem, kernel.choose(tiling)
    recorded = load(device, kernel, root)
    for m in recorded:
        if (m.problem, m.tiling) == wanted:
            return m
    nearest = sorted(recorded, key=lambda m: _distance(m, *wanted))[:5]
    raise LookupError(
        f"{_say(kernel.name, *wanted)} is not recorded on {device}; "
        f"the nearest are {'; '.join(_say(m.kernel, m.problem, m.tiling) for m in nearest)}"
    )


def _date(m: Measurement) -> datetime:
    return datetime.fromisoformat(m.provenance["date"])


def _order(m: Measurement) -> tuple:
    p, t = m.problem, m.tiling
    return m.kernel, (t.block, t.thread, t.stages) if t else (), p.flops, p.m, p.n, p.k, str(p)


def _distance(m: Measurement, problem: Gemm, tiling: Tiling | None) -> tuple[float, bool]:
    """How far a measurement is from what was asked: by size first, in octaves."""
    sizes = zip(*((p.m, p.n, p.k) for p in (m.problem, problem)), strict=True)
    return sum(abs(math.log2(a / b)) for a, b in sizes), m.tiling != tiling


def _say(kernel: str, p: Gemm, tiling: Tiling | None) -> str:
    scalars = "" if (p.alpha, p.beta) == (1, 0) else f", α={p.alpha:g}, β={p.beta:g}"
    accumulate = "" if p.accumulate == "float32" else f", accumulated in {p.accumulate}"
    return f"{kernel} {p}{scalars}{accumulate}" + (f" with tile {tiling}" if tiling else "")
