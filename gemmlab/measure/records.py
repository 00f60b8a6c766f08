"""Recorded measurements: JSON lines with their provenance, refused if edited or incomplete.

The lines that come with gemmlab lie in ``gemmlab/recorded/<device>/<kernel>.jsonl``. What many
measurements share (kernel, device, versions, hash of the source, and so on) stands once, in a line
of its own above them. A measurement's line ends in ``sha256``, the checksum of everything that
belongs to it, shared or not. It has durations in whole nanoseconds, the shortest and by how much
each is longer; of a problem and a tiling it has the fields that differ from their defaults.
"""

import math
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, replace
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from gemmlab import Gemm, Tiling
from gemmlab.device import RECORDED
from gemmlab.here import files
from gemmlab.here.driver import UNKNOWN
from gemmlab.kernels.kernel import Kernel
from gemmlab.measure import store
from gemmlab.measure.measurement import Measurement
from gemmlab.measure.store import ROOT, RecordError

__all__ = [
    "ALIGNMENTS", "FIGURES", "REQUIRED", "ROOT", "UNKNOWN", "RecordError", "append", "devices",
    "figures", "find", "from_lines", "load", "read", "series", "to_lines",
]  # fmt: skip

SCHEMA = 2
FIGURES = "figures"  # the folder of the counterparts of the guide's figures, below that of a device
ALIGNMENTS = [(4096, 4096, k) for k in range(1024, 1024 + 65)]  # figure 2: each k modulo 64

# What a measurement's provenance must say.
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
PER_RUN = ("date", "sm_clock_hz", "power_watts", "throttle", "check")  # the rest is shared

_SHARED = ("schema", "kernel", "device", "device_title", "provenance")
_OWN = (
    *("problem", "tiling", "error", "tolerance", "resources", "shortest_ns", "over_ns"),
    *("provenance", "sha256"),
)
_SHARED_START = '{"schema"'  # of a line that says what measurements share
_CURE = "restore the file with git, or delete the line and run `gemmlab record` again"


# ------------------------------------------------------------------------------------------- files


def append(path: str | Path, measurement: Measurement) -> None:
    """Add `measurement` to the file at `path`, below the line of what it shares with others.

    An interrupt or a full disk leaves the file as it was, or with the measurement; writers at the
    same time wait for each other. Raises RecordError as `to_lines` does, and for a file whose last
    line is cut short, and OSError where it cannot be written.
    """
    path, (shared, own) = Path(path), to_lines(measurement)
    with files.locked(path.parent):
        before = path.read_text("utf-8") if path.exists() else ""
        if not before.endswith("\n") and before:
            raise RecordError(f"{path} ends in the middle of a line; {_CURE}")
        above = [line for line in before.split("\n") if line.startswith(_SHARED_START)]
        new = (own,) if above[-1:] == [shared] else (shared, own)
        files.put(path, (before + "".join(f"{line}\n" for line in new)).encode())


def read(path: str | Path) -> list[Measurement]:
    """Read every measurement of one file, in its order.

    Raises RecordError for the first line that is not right, and OSError for a file that cannot be
    read. A file that has not changed is not read again.
    """
    path = Path(path)
    return list(_read(path, *_stamp(path)))


def _stamp(path: Path) -> tuple[int, int]:
    """Say by what a file that has changed is told from what it was."""
    status = path.stat()
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=256)
def _read(path: Path, mtime_ns: int, size: int) -> tuple[Measurement, ...]:
    try:
        text = path.read_text("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise store.refusal(path, f"not UTF-8 ({error})", _CURE) from None
    found: list[Measurement] = []
    shared: dict[str, Any] | None = None
    for number, line in enumerate(text, start=1):
        where = f"{path}, line {number}"
        if not line.strip():
            continue
        record = store.parse(line, where, _CURE)
        if "schema" in record or shared is None:
            shared = _checked(record, where)
        else:
            found.append(_joined(shared, record, where))
    return tuple(found)


def devices(root: str | Path = ROOT) -> list[str]:
    """List the devices on which something is recorded.

    >>> isinstance(devices(), list)
    True
    """
    return sorted({path.parent.name for path in Path(root).glob("*/*.jsonl")})


def load(
    device: str = RECORDED, kernel: str | Kernel | None = None, root: str | Path = ROOT
) -> list[Measurement]:
    """Read the measurements on `device`, of one kernel or of all, sorted by kernel and problem.

    Of several measurements of one kernel, problem and tiling only the latest is given.
    Raises LookupError for a device or a kernel without measurements, and RecordError for files
    that were truncated or edited.
    """
    if device not in devices(root):
        known = ", ".join(devices(root)) or "no device"
        raise LookupError(f"nothing is recorded on {device!r}; there are measurements of {known}")
    files = [(p, *_stamp(p)) for p in sorted((Path(root) / device).glob("*.jsonl"))]
    found = list(_latest(device, tuple(files)))
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


@lru_cache(maxsize=16)
def _latest(device: str, files: tuple[tuple[Path, int, int], ...]) -> tuple[Measurement, ...]:
    """Sort the latest measurements of files, each given with its `_stamp`."""
    latest: dict[tuple, Measurement] = {}
    for path, *stamp in files:
        for m in _read(path, *stamp):
            if m.device != device:
                raise RecordError(f"{path}: a measurement of {m.device} among those of {device}")
            key = m.kernel, m.problem, m.tiling
            if key not in latest or _date(latest[key]) <= _date(m):
                latest[key] = m
    return tuple(sorted(latest.values(), key=_order))


def find(
    kernel: Kernel,
    problem: Gemm,
    tiling: Tiling | None = None,
    device: str = RECORDED,
    root: str | Path = ROOT,
) -> Measurement:
    """Find the measurement of `kernel` on `problem` with `tiling` (None: the kernel's own).

    Raises LookupError, which lists the nearest that are recorded, RecordError as `load` does, and
    ValueError for a tiling that the kernel cannot use.
    """
    wanted = problem, kernel.choose(tiling, problem, device)
    recorded = load(device, kernel, root)
    for m in recorded:
        if (m.problem, m.tiling) == wanted:
            return m
    nearest = sorted(recorded, key=lambda m: _distance(m, *wanted))[:5]
    raise LookupError(
        f"{_say(kernel.name, *wanted)} is not recorded on {device}; "
        f"the nearest are {'; '.join(_say(m.kernel, m.problem, m.tiling) for m in nearest)}"
    )


def series(
    kernel: Kernel,
    along: str,
    device: str = RECORDED,
    tiling: Tiling | None = None,
    dtype: str = "float32",
    root: str | Path = ROOT,
    **sizes: int,
) -> list[Measurement]:
    """Collect the measurements of `kernel` where only the size `along` changes, in its order.

    along : "m", "n" or "k"; sizes : the two others, m=4096
    tiling : of the kernel; its own where None
    They show a sawtooth over n, say, or an alignment over k. Problems are plain: C ← AB, row by
    row. Raises TypeError unless `along` and `sizes` are m, n and k, and ValueError for a tiling
    that the kernel cannot use.

    >>> from gemmlab import kernels
    >>> [m.problem.k for m in series(kernels.cublas, "k", m=4096, n=4096) if m.problem.k >= 4096]
    [4096, 4097, 4098, 4100, 4104]
    """
    if sorted((along, *sizes)) != ["k", "m", "n"]:
        given = ", ".join((along, *sizes))
        raise TypeError(f"the sizes are {given}; use one of m, n, k as `along`, and set the others")
    wanted, found = kernel.choose(tiling), {}
    for m in (*load(device, root=root), *figures(device, root)):
        size = getattr(m.problem, along)
        plain = Gemm(**{along: size, **sizes}, dtype=dtype)
        if (m.kernel, m.tiling, m.problem) == (kernel.name, wanted, plain):
            found[size] = m
    return [found[size] for size in sorted(found)]


def figures(device: str = RECORDED, root: str | Path = ROOT) -> list[Measurement]:
    """Read the measurements behind the guide's figures on a device (`run.py record --figures`).

    They come file by file; there are none of a device without such a folder. Raises RecordError
    for files that were truncated or edited.
    """
    files = sorted((Path(root) / device / FIGURES).glob("*.jsonl"))
    return [measurement for path in files for measurement in read(path)]


def _date(m: Measurement) -> datetime:
    return datetime.fromisoformat(m.provenance["date"])


def _order(m: Measurement) -> tuple:
    p, t = m.problem, m.tiling
    return m.kernel, (t.block, str(t)) if t else (), p.flops, p.m, p.n, p.k, str(p)


def _distance(m: Measurement, problem: Gemm, tiling: Tiling | None) -> tuple[float, bool]:
    """Say how far a measurement is from what was asked: by size first, in octaves."""
    sizes = zip(*((p.m, p.n, p.k) for p in (m.problem, problem)), strict=True)
    return sum(abs(math.log2(a / b)) for a, b in sizes), m.tiling != tiling


def _say(kernel: str, p: Gemm, tiling: Tiling | None) -> str:
    scalars = "" if (p.alpha, p.beta) == (1, 0) else f", α={p.alpha:g}, β={p.beta:g}"
    return f"{kernel} {p}{scalars}" + (f" with tile {tiling}" if tiling else "")


# --------------------------------------------------------------------------- a measurement's lines


def to_lines(measurement: Measurement) -> tuple[str, str]:
    """Write `measurement` as two JSON lines: what it shares with others, and its own.

    Raises RecordError if its result is wrong, if nothing was timed, or if its provenance lacks
    one of `REQUIRED`.
    """
    problem, tiling = measurement.problem, measurement.tiling
    fault = _fault(measurement)
    if fault:
        raise RecordError(f"{measurement.kernel} on {problem} cannot be recorded: {fault}")
    told = {name: str(value) for name, value in measurement.provenance.items()}
    nanoseconds = [round(s * 1e9) for s in measurement.samples]
    shortest = min(nanoseconds)
    shared = {
        "schema": SCHEMA,
        "kernel": measurement.kernel,
        "device": measurement.device,
        "device_title": measurement.device_title,
        "provenance": {name: text for name, text in told.items() if name not in PER_RUN},
    }
    own = {
        "problem": _unusual(problem),
        "tiling": tiling and _unusual(tiling),
        "error": float(f"{measurement.error:.6g}"),
        "tolerance": float(f"{measurement.tolerance:.6g}"),
        "resources": dict(measurement.resources),
        "shortest_ns": shortest,
        "over_ns": [ns - shortest for ns in nanoseconds],
        "provenance": {name: text for name, text in told.items() if name in PER_RUN},
    }
    return store.line(shared), store.line({**own, "sha256": store.checksum(shared, own)})


def _unusual(value: Gemm | Tiling) -> dict[str, Any]:
    """Collect the fields of a problem or a tiling that differ from their defaults."""
    return {f.name: getattr(value, f.name) for f in fields(value) if not _usual(value, f)}


def _usual(value: Gemm | Tiling, f: Field) -> bool:
    """Say whether a field has its default, or what another field makes of the default None."""
    if f.default is None:
        return replace(value, **{f.name: None}) == value
    return f.default is not MISSING and getattr(value, f.name) == f.default


def from_lines(shared: str, own: str, where: str = "these lines") -> Measurement:
    """Read the measurement of two lines; its backend is "recorded".

    Raises RecordError, which begins with `where`, for lines that `to_lines` did not write.
    """
    above, below = (store.parse(line, where, _CURE) for line in (shared, own))
    return _joined(_checked(above, where), below, where)


def _checked(record: dict[str, Any], where: str) -> dict[str, Any]:
    """Check the record of what measurements share; RecordError for another."""
    if record.get("schema") != SCHEMA:
        raise store.other_schema(where, record.get("schema"), SCHEMA, _CURE)
    store.same_names(record, _SHARED, where, _CURE)
    return record


def _joined(shared: dict[str, Any], own: dict[str, Any], where: str) -> Measurement:
    """Join two records to the measurement that they describe; RecordError if they are none."""
    store.same_names(own, _OWN, where, _CURE)
    said = own["sha256"]
    content = store.checksum(shared, {name: own[name] for name in _OWN if name != "sha256"})
    if said != content:
        raise store.edited(where, content, said, _CURE)
    try:
        measurement = _measurement(shared, own)
        fault = _fault(measurement)
    except (TypeError, ValueError, AttributeError, ArithmeticError) as error:
        fault = str(error)
    if fault:
        raise store.refusal(where, fault, _CURE)
    return measurement


def _measurement(shared: dict[str, Any], own: dict[str, Any]) -> Measurement:
    """Make the measurement that two records describe; TypeError or ValueError if none."""
    tiling = own["tiling"]
    return Measurement(
        kernel=shared["kernel"],
        problem=Gemm(**own["problem"]),
        tiling=None if tiling is None else Tiling(**tiling),
        backend="recorded",
        device=shared["device"],
        device_title=shared["device_title"],
        error=own["error"],
        tolerance=own["tolerance"],
        samples=tuple((own["shortest_ns"] + over) / 1e9 for over in own["over_ns"]),
        resources=own["resources"],
        provenance={**shared["provenance"], **own["provenance"]},
    )


def _fault(measurement: Measurement) -> str | None:
    """Say why a measurement is not worth keeping; None if it is."""
    if not measurement.passed:
        return f"its error {measurement.error} is not within {measurement.tolerance}"
    if not measurement.samples or not all(0 < s < math.inf for s in measurement.samples):
        return f"samples={list(measurement.samples)} are not durations in seconds"
    if not all(type(value) is int and value >= 0 for value in measurement.resources.values()):
        return f"resources={dict(measurement.resources)} are not counts"
    told = measurement.provenance
    if lacks := store.lacking(told, REQUIRED):
        return f"its provenance lacks {', '.join(lacks)}"
    if not any(told.get(name, "")[:1].isdigit() for name in MADE_BY):
        return f"its provenance needs the version of one of {', '.join(MADE_BY)}"
    if not _holds(lambda: datetime.fromisoformat(told["date"]).utcoffset() == timedelta(0)):
        return f"date={told['date']!r} is not ISO 8601 in UTC, such as 2026-01-31T12:00:00+00:00"
    for name in ("sm_clock_hz", "power_watts"):
        if told[name] != UNKNOWN and not _holds(lambda n=name: 0 < float(told[n]) < math.inf):
            return f"{name}={told[name]!r} is neither a positive number nor {UNKNOWN!r}"
    return None


def _holds(test: Callable[[], bool]) -> bool:
    """Say whether a test of a text passes; a text that cannot be read does not."""
    try:
        return test()
    except ValueError:
        return False
