"""Stored measurements: one JSON line each, with provenance, refused if edited or incomplete.

The lines that come with gemmlab lie in ``gemmlab/recorded/<device>/<kernel>.jsonl``. What many
measurements share (kernel, device, versions, hash of the source, and so on) stands once, in a line
of its own above them. A measurement's line ends in ``sha256``, the start of the hash of everything
that belongs to it, shared or not.
"""

from __future__ import annotations

import math
import os
from datetime import datetime
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from gemmlab.device import RECORDED
from gemmlab.kernels.kernel import Kernel
from gemmlab.measure.measurement import Measurement
from gemmlab.measure.records import lines
from gemmlab.measure.records.lines import REQUIRED, UNKNOWN, RecordError
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling

__all__ = [
    "REQUIRED",
    "ROOT",
    "UNKNOWN",
    "RecordError",
    "append",
    "devices",
    "find",
    "load",
    "read",
    "tail",
]

ROOT = Path(str(resources.files("gemmlab"))) / "recorded"


def append(path: str | Path, measurement: Measurement) -> None:
    """Add `measurement` to the file at `path` and wait until it is on the disk.

    The line of what it shares is written first, unless the last such line of the file is the same.
    An interrupt leaves at most one truncated line, the last. Raises RecordError as `lines.to_lines`
    does, and for a file whose last line is truncated.
    """
    path, (shared, own) = Path(path), lines.to_lines(measurement)
    path.parent.mkdir(parents=True, exist_ok=True)
    if tail(path):
        raise RecordError(f"{path} ends in the middle of a line; `gemmlab record` mends it")
    new = (own,) if _last_shared(path) == shared else (shared, own)
    with open(path, "ab", buffering=0) as file:
        file.write("".join(line + "\n" for line in new).encode())
        os.fsync(file.fileno())


def _last_shared(path: Path) -> str | None:
    """The line under which the next measurement of a file would stand."""
    text = path.read_text("utf-8").split("\n") if path.exists() else []
    return next((line for line in reversed(text) if line.startswith(lines.SHARED_START)), None)


def tail(path: Path) -> bytes:
    """The bytes after a file's last newline: none, or a line that an interrupt cut short."""
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
        text = path.read_text("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise lines.refusal(path, f"not UTF-8 ({error})") from None
    found: list[Measurement] = []
    shared: dict[str, Any] | None = None
    for number, line in enumerate(text, start=1):
        where = f"{path}, line {number}"
        if not line.strip():
            continue
        record = lines.parse(line, where)
        if "schema" in record or shared is None:
            shared = lines.check_shared(record, where)
        else:
            found.append(lines.join(shared, record, where))
    return tuple(found)


def devices(root: str | Path = ROOT) -> list[str]:
    """The devices on which something is recorded.

    >>> isinstance(devices(), list)
    True
    """
    return sorted({path.parent.name for path in Path(root).glob("*/*.jsonl")})


def load(
    device: str = RECORDED, kernel: str | Kernel | None = None, root: str | Path = ROOT
) -> list[Measurement]:
    """The measurements recorded on `device`, of one kernel or of all, by kernel and problem.

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
    device: str = RECORDED,
    root: str | Path = ROOT,
) -> Measurement:
    """The measurement of `kernel` on `problem` with `tiling` (None: the kernel's own).

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


def _date(m: Measurement) -> datetime:
    return datetime.fromisoformat(m.provenance["date"])


def _order(m: Measurement) -> tuple:
    p, t = m.problem, m.tiling
    return m.kernel, (t.block, str(t)) if t else (), p.flops, p.m, p.n, p.k, str(p)


def _distance(m: Measurement, problem: Gemm, tiling: Tiling | None) -> tuple[float, bool]:
    """How far a measurement is from what was asked: by size first, in octaves."""
    sizes = zip(*((p.m, p.n, p.k) for p in (m.problem, problem)), strict=True)
    return sum(abs(math.log2(a / b)) for a, b in sizes), m.tiling != tiling


def _say(kernel: str, p: Gemm, tiling: Tiling | None) -> str:
    scalars = "" if (p.alpha, p.beta) == (1, 0) else f", α={p.alpha:g}, β={p.beta:g}"
    return f"{kernel} {p}{scalars}" + (f" with tile {tiling}" if tiling else "")
