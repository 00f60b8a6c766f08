"""The store of what was recorded: files of rows with their provenance, refused if edited.

A file is one JSON object: its schema, the checksum of all else, the provenance of its rows, and its
tables, lists with a line for each row. A name that ends in ".gz" is that of a compressed file. What
a row is, and what its provenance has to say, is up to the module that reads it. Measurements, which
are added one by one, have lines of their own (`gemmlab.measure.records`), with the same checksums.
"""

import gzip
import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from gemmlab.here import files

ROOT = Path(str(resources.files("gemmlab"))) / "recorded"  # <device>/<file>, as gemmlab has them
SCHEMA = 1
HEADER = ("schema", "sha256", "provenance")
CURE = "restore the file with git, or record it again"


class RecordError(ValueError):
    """Something cannot be recorded, or a recorded text cannot be trusted."""


@dataclass(frozen=True)
class Stored:
    """The content of a file: where its rows come from, and the rows by the names of its tables."""

    provenance: Mapping[str, Any]
    tables: Mapping[str, tuple]


def path_of(device: str, file: str, root: str | Path = ROOT) -> Path:
    """Find the file of a device. Raises LookupError, which lists the devices that have one.

    >>> path_of("v100", "matmul.json", "nowhere")
    Traceback (most recent call last):
    ...
    LookupError: no matmul.json of 'v100'; there is one of no device
    """
    path = Path(root) / device / file
    if not path.exists():
        known = sorted(p.parent.name for p in Path(root).glob(f"*/{file}"))
        raise LookupError(
            f"no {file} of {device!r}; there is one of {', '.join(known) or 'no device'}"
        )
    return path


def write(
    path: str | Path,
    provenance: Mapping[str, Any],
    tables: Mapping[str, Iterable[Any]],
    required: Iterable[str] = (),
) -> None:
    """Write a file whole.

    tables : rows by the names of their tables; a row is a dataclass or a dictionary
    Raises RecordError where the provenance lacks one of `required`.
    """
    path = Path(path)
    if lacks := lacking(provenance, required):
        raise RecordError(f"{path} cannot be written: its provenance lacks {', '.join(lacks)}")
    rows = {name: list(map(_plain, table)) for name, table in tables.items()}
    sha256 = checksum(provenance, rows)
    header = zip(HEADER, (SCHEMA, sha256, provenance), strict=True)
    parts = [f'"{name}":{line(value)}' for name, value in header]
    for name, table in rows.items():
        parts.append("\n".join([f'"{name}":[', ",\n".join(map(line, table)), "]"]))
    content = ("{" + ",\n".join(parts) + "}\n").encode()
    files.put(path, gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


def read(
    path: str | Path,
    rows: Mapping[str, Callable[..., Any]],
    required: Iterable[str] = (),
    cure: str = CURE,
) -> Stored:
    """Read a file that `write` wrote; one that has not changed is not read again.

    rows : what makes a table's row of its columns, a dataclass or `dict` say, by the table's name
    required : what the provenance has to say
    cure : what to do about a file that is refused
    Raises RecordError for a file that was edited, is cut short or is not such a file, and OSError
    for one that cannot be read.
    """
    path = Path(path)
    status = path.stat()
    key = path, status.st_mtime_ns, status.st_size
    return _read(*key, tuple(rows.items()), tuple(required), cure)


@lru_cache(maxsize=64)
def _read(
    path: Path,
    mtime_ns: int,
    size: int,
    rows: tuple[tuple[str, Callable[..., Any]], ...],
    required: tuple[str, ...],
    cure: str,
) -> Stored:
    content = parse(_text(path, cure), path, cure)
    if content.get("schema") != SCHEMA:
        raise other_schema(path, content.get("schema"), SCHEMA, cure)
    same_names(content, (*HEADER, *(name for name, _ in rows)), path, cure)
    told = content["provenance"]
    sha256 = checksum(told, {name: content[name] for name, _ in rows})
    if content["sha256"] != sha256:
        raise edited(path, sha256, content["sha256"], cure)
    if lacks := lacking(told, required):
        raise refusal(path, f"its provenance lacks {', '.join(lacks)}", cure)
    tables = {}
    for name, make in rows:
        try:
            tables[name] = tuple(_row(make, columns) for columns in content[name])
        except (TypeError, ValueError, LookupError) as error:
            why = f"a row of {name!r} is not right ({type(error).__name__}: {error})"
            raise refusal(path, why, cure) from None
    return Stored(told, tables)


def _text(path: Path, cure: str) -> str:
    """Read the text of a file, without its compression."""
    content = path.read_bytes()
    try:
        return (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    except UnicodeDecodeError as error:
        raise refusal(path, f"not UTF-8 ({error})", cure) from None
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise refusal(path, f"truncated, or not compressed by gzip ({error})", cure) from None


def _plain(row: Any) -> Mapping[str, Any]:
    return asdict(row) if is_dataclass(row) else row


def _row(make: Callable[..., Any], columns: Mapping[str, Any]) -> Any:
    """Make a row of its columns; a dataclass gets tuples, since it is not to change."""
    return make(**(_tuples(columns) if is_dataclass(make) else columns))


def _tuples(value: Any) -> Any:
    """Put tuples in the place of lists, at any depth of a value."""
    if isinstance(value, Mapping):
        return {name: _tuples(part) for name, part in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


# -------------------------------------------------------------- what all recorded texts share


def line(value: Any) -> str:
    """Write a value as JSON in one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def checksum(*parts: Any) -> str:
    """Give the first 16 digits of the hash of what is recorded, whatever the order of its keys."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def lacking(provenance: Mapping[str, Any], required: Iterable[str]) -> list[str]:
    """List the required names of which a provenance says nothing."""
    return [name for name in required if not str(provenance.get(name, "")).strip()]


def parse(text: str, where: object, cure: str = CURE) -> dict[str, Any]:
    """Read the JSON object of a text; RecordError for a text that is none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        shown = text if len(text) <= 40 else f"{text[:20]} ... {text[-20:]}"
        raise refusal(where, f"truncated, or not JSON ({error}): {shown!r}", cure) from None
    if not isinstance(found, dict):
        raise refusal(where, f"a JSON {type(found).__name__} instead of an object", cure)
    return found


def same_names(
    found: Mapping[str, Any], names: Iterable[str], where: object, cure: str = CURE
) -> None:
    """Raise RecordError unless an object has the fields `names` and no other."""
    if wrong := found.keys() ^ {*names}:
        why = f"wrong fields: {', '.join(sorted(wrong))} missing or not known"
        raise refusal(where, why, cure)


def refusal(where: object, why: str, cure: str = CURE) -> RecordError:
    """Make the error for a text at `where` that cannot be trusted."""
    return RecordError(f"{where}: {why}; {cure}")


def edited(where: object, found: str, said: str, cure: str = CURE) -> RecordError:
    """Make the error for a text whose checksum is not the one that it says."""
    return refusal(where, f"edited: its content has sha256 {found}, not {said}", cure)


def other_schema(where: object, found: object, known: int, cure: str = CURE) -> RecordError:
    """Make the error for a text of another schema than the one that is known here."""
    newer = f"update gemmlab if a newer one wrote it, or else {cure}"
    return refusal(where, f"schema {found!r} is not {known}", newer)
