"""Tables of a benchmark in a JSON file for each device, with provenance, refused if edited."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gemmlab.measure.records.lines import checksum, refusal


def path_of(device: str, file: str, root: str | Path) -> Path:
    """Where the file of a device lies. Raises LookupError, which lists the devices that have one.

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


def read_tables(
    path: Path, rows: Mapping[str, Callable]
) -> tuple[str, Mapping[str, Any], dict[str, tuple]]:
    """The source as figures say it, the provenance, and the tables of a file.

    rows : what makes a table's row of its columns, by the table's name
    Raises RecordError for a file that was truncated or edited.
    """
    try:
        text = json.loads(path.read_text("utf-8"))
        told, tables = text["provenance"], {name: text[name] for name in rows}
        stored, own = text["sha256"], checksum(told, tables)
        made = {name: tuple(row(**each) for each in tables[name]) for name, row in rows.items()}
        source = f"recorded on {told['device_title']}, {told['date'][:10]}"
    except (ValueError, KeyError, TypeError) as error:
        why = f"not a record of {' and '.join(rows)} ({type(error).__name__}: {error})"
        raise refusal(path, why) from None
    if stored != own:
        raise refusal(path, f"edited: its content has sha256 {own}, not {stored}")
    return source, told, made


def written(provenance: Mapping[str, Any], **tables: Sequence[Mapping[str, Any]]) -> str:
    """The text of a file that `read_tables` reads, a line for each row.

    tables : rows by the names of their tables
    """
    told, tables = json.loads(json.dumps([provenance, tables]))  # tuples as lists, as read
    parts = [f'{{"sha256": {json.dumps(checksum(told, tables))}']
    parts += [f'"provenance": {json.dumps(told)}']
    for name, rows in tables.items():
        lines = ",\n".join(map(json.dumps, rows))
        parts += [f'"{name}": [\n{lines}\n]']
    return ", ".join(parts) + "}\n"
