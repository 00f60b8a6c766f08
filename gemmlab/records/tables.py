"""Tables of a benchmark in a JSON file, with provenance, refused if edited."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gemmlab.records.lines import checksum, refusal


def read_tables(
    path: str | Path, kinds: Mapping[str, type]
) -> tuple[str, Mapping[str, Any], dict[str, tuple]]:
    """The source as figures say it, the provenance, and the tables of a file.

    kinds : the dataclass of a table's rows, by the table's name
    Raises RecordError for a file that was truncated or edited.
    """
    path = Path(path)
    try:
        text = json.loads(path.read_text("utf-8"))
        told, tables = text["provenance"], {name: text[name] for name in kinds}
        stored, own = text["sha256"], checksum(told, tables)
        rows = {name: tuple(kind(**row) for row in tables[name]) for name, kind in kinds.items()}
        source = f"recorded on {told['device_title']}, {told['date'][:10]}"
    except (ValueError, KeyError, TypeError) as error:
        why = f"not such a record ({type(error).__name__}: {error})"
        raise refusal(path, why) from None
    if stored != own:
        raise refusal(path, f"edited: its content has sha256 {own}, not {stored}")
    return source, told, rows


def written(provenance: Mapping[str, Any], **tables: list[Mapping[str, Any]]) -> str:
    """The text of a file that `read_tables` reads; tables: rows by the names of their tables."""
    provenance = json.loads(json.dumps(provenance))
    text = {"sha256": checksum(provenance, tables), "provenance": provenance, **tables}
    return json.dumps(text).replace("}, {", "},\n{") + "\n"
