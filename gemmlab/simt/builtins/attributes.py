"""Attributes that depend on what a value is: fields of records and of named tuples, views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gemmlab.simt.memory import records
from gemmlab.simt.memory.array import Array, row_major
from gemmlab.simt.memory.records import Record, Records
from gemmlab.simt.numbers.values import Cast
from gemmlab.simt.syntax.source import unsupported

if TYPE_CHECKING:
    from gemmlab.simt.machine.machine import Machine


def attribute(m: Machine, value: Any, name: str, line: int) -> Any:
    """`value.name`; UnsupportedError where the value has no such attribute."""
    if isinstance(value, Record):
        return records.load(m.memory, value, name, line)
    if isinstance(value, Records):
        return value.field(name)
    if isinstance(value, np.dtype) and name == "type":
        return Cast(value)
    if isinstance(value, Array) and name in VIEWS:
        return VIEWS[name](value)
    fields = getattr(value, "_fields", "xyz")  # of a named tuple, or of cuda.threadIdx
    if name in fields and hasattr(value, name):
        return getattr(value, name)
    has = f"this has {', '.join(fields)}" if isinstance(value, tuple) and fields != "xyz" else ""
    has = has or f"arrays have .shape, .size, .ndim and .dtype, {', '.join(VIEWS)}"
    raise unsupported(m.calls.source, line, f".{name}", has)


def _ravel(array: Array) -> Any:
    if array.strides != row_major(array.shape):
        raise TypeError(f"{array.name}.ravel() needs an array without gaps, in C order")
    return lambda: array.view((array.size,), (1,), array.offset)


VIEWS = {
    "T": lambda array: array.view(array.shape[::-1], array.strides[::-1], array.offset),
    "ravel": _ravel,
    "itemsize": lambda array: np.int64(array.itemsize),
    "nbytes": lambda array: array.size * array.itemsize,
    "strides": lambda array: tuple(np.int64(s * array.itemsize) for s in array.strides),
}
