"""A measurement as text: one line of what it shares with others, one of its own.

Both are JSON objects. Durations are kept in whole nanoseconds, the shortest and by how much each is
longer; of a problem and a tiling, the fields that differ from their defaults.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, replace
from datetime import datetime, timedelta
from typing import Any

from gemmlab.here.tools import UNKNOWN
from gemmlab.measure.measurement import Measurement
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling

SCHEMA = 2

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

PER_RUN = ("date", "sm_clock_hz", "power_watts", "throttle", "check")  # the rest is shared

_SHARED = ("schema", "kernel", "device", "device_title", "provenance")
_OWN = (
    *("problem", "tiling", "error", "tolerance", "resources", "shortest_ns", "over_ns"),
    *("provenance", "sha256"),
)
SHARED_START = '{"schema"'  # of a line that says what measurements share
_CURE = "restore the file with git, or delete the line and run `gemmlab record` again"


class RecordError(ValueError):
    """A measurement that cannot be stored, or a stored line that cannot be trusted."""


def refusal(where: object, why: str, cure: str = _CURE) -> RecordError:
    """The error for text at `where` that cannot be trusted."""
    return RecordError(f"{where}: {why}; {cure}")


def to_lines(measurement: Measurement) -> tuple[str, str]:
    """The JSON lines of `measurement`, without newlines: what it shares with others, and its own.

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
    own["sha256"] = checksum(shared, own)
    return _json(shared), _json(own)


def _unusual(value: Gemm | Tiling) -> dict[str, Any]:
    """The fields of a problem or a tiling that differ from their defaults."""
    return {f.name: getattr(value, f.name) for f in fields(value) if not _usual(value, f)}


def _usual(value: Gemm | Tiling, f: Field) -> bool:
    """Whether a field has its default, or what another field makes of the default None."""
    if f.default is None:
        return replace(value, **{f.name: None}) == value
    return f.default is not MISSING and getattr(value, f.name) == f.default


def from_lines(shared: str, own: str, where: str = "these lines") -> Measurement:
    """The measurement of two lines, its backend "recorded".

    Raises RecordError, which begins with `where`, for lines that `to_lines` did not write.
    """
    return join(check_shared(parse(shared, where), where), parse(own, where), where)


def check_shared(record: dict[str, Any], where: str) -> dict[str, Any]:
    """The record of what measurements share; RecordError for another."""
    if record.get("schema") != SCHEMA:
        newer = "update gemmlab if a newer one wrote it, or else " + _CURE
        raise refusal(where, f"schema {record.get('schema')!r} is not {SCHEMA}", newer)
    _same_names(record, _SHARED, where)
    return record


def parse(line: str, where: str) -> dict[str, Any]:
    """The JSON object of a line; RecordError for a line that is none."""
    try:
        record = json.loads(line, parse_constant=_no_constant)
    except ValueError as error:
        shown = line if len(line) <= 40 else f"{line[:20]} ... {line[-20:]}"
        why = f"truncated, or not JSON ({error}): {shown!r}"
        raise refusal(where, why) from None
    if not isinstance(record, dict):
        raise refusal(where, f"a JSON {type(record).__name__} instead of an object")
    return record


def _same_names(record: dict[str, Any], names: tuple[str, ...], where: str) -> None:
    wrong = record.keys() ^ {*names}
    if wrong:
        raise refusal(where, f"wrong fields: {', '.join(sorted(wrong))} missing or not known")


def join(shared: dict[str, Any], own: dict[str, Any], where: str) -> Measurement:
    """The measurement that two records describe; RecordError if they describe none."""
    _same_names(own, _OWN, where)
    content = checksum(shared, own)
    if own["sha256"] != content:
        why = f"edited: its content has sha256 {content}, not {own['sha256']}"
        raise refusal(where, why)
    try:
        measurement = _measurement(shared, own)
        fault = _fault(measurement)
    except (TypeError, ValueError, AttributeError) as error:
        fault = str(error)
    if fault:
        raise refusal(where, fault)
    return measurement


def _measurement(shared: dict[str, Any], own: dict[str, Any]) -> Measurement:
    """The measurement that two records describe; TypeError or ValueError if none."""
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
    """Why a measurement is not worth keeping; None if it is."""
    if not measurement.passed:
        return f"its error {measurement.error} is not within {measurement.tolerance}"
    if not measurement.samples or not all(0 < s < math.inf for s in measurement.samples):
        return f"samples={list(measurement.samples)} are not durations in seconds"
    if not all(type(value) is int and value >= 0 for value in measurement.resources.values()):
        return f"resources={dict(measurement.resources)} are not counts"
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


def checksum(shared: dict[str, Any], own: dict[str, Any]) -> str:
    """The first 16 digits of the hash of two records, whatever the order of their keys."""
    content = {name: value for name, value in own.items() if name != "sha256"}
    text = json.dumps([shared, content], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _json(record: dict[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")
