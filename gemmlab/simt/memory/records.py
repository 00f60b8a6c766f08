"""Arrays of records, such as the states of random numbers: one array for each field.

The fields overlap in memory as they do on the host, so that an access is counted where it goes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gemmlab.simt.memory.array import Array

if TYPE_CHECKING:
    from gemmlab.simt.memory.memory import Memory


class Records:
    """An array of records: `fields` are arrays by name, all of one shape."""

    def __init__(self, name: str, fields: dict[str, Array]) -> None:
        self.name, self.fields = name, fields
        first = next(iter(fields.values()))
        self.shape, self.size, self.ndim = first.shape, first.size, first.ndim

    def call(self, name: str) -> None:
        """Give it a name, where it has none."""
        if not self.name:
            self.name = name
            for field, array in self.fields.items():
                array.name = f"{name}.{field}"

    def field(self, name: str) -> Array:
        """The array of one field."""
        if name not in self.fields:
            raise AttributeError(
                f"{self.name} has no field {name!r}; use one of {', '.join(self.fields)}"
            )
        return self.fields[name]


class Record:
    """One record for each lane: the element `index` of an array of records."""

    def __init__(self, records: Records, index: Any) -> None:
        self.records, self.index = records, index
        self.name = records.name


def load(memory: Memory, value: Records | Record, index: Any, line: int) -> Any:
    """A record or its field, a field of all records, or a view of them."""
    if isinstance(value, Record):
        return memory.load(value.records.field(_name(value, index)), value.index, line)
    if isinstance(index, str):
        return value.field(index)
    parts = index if isinstance(index, tuple) else (index,)
    if len(parts) == value.ndim and not any(isinstance(part, slice) for part in parts):
        return Record(value, index)
    views = {name: memory.load(field, index, line) for name, field in value.fields.items()}
    return Records(value.name, views)


def store(memory: Memory, target: Records | Record, index: Any, value: Any, line: int) -> None:
    """Assign to a field of a record, or copy a whole record."""
    if isinstance(target, Record):
        field = target.records.field(_name(target, index))
        memory.store(field, target.index, value, line)
        return
    if not isinstance(value, Record):
        raise TypeError(f"assign to one field at a time, as in {target.name}[i].{_first(target)}")
    for name in target.fields:
        memory.store(target.field(name), index, load(memory, value, name, line), line)


def _name(record: Record, index: Any) -> str:
    if not isinstance(index, str):
        first = _first(record.records)
        raise TypeError(f"a record of {record.name} has fields; write .{first} or [{first!r}]")
    return index


def _first(records: Records) -> str:
    return next(iter(records.fields))
