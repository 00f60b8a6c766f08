"""Attributes that depend on what a value is: fields of records and of named tuples, views."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gemmlab.simt.builtins import array_methods
from gemmlab.simt.memory import records
from gemmlab.simt.memory.array import Array, row_major
from gemmlab.simt.memory.choice import Choice
from gemmlab.simt.memory.records import Record, Records
from gemmlab.simt.numbers.no_numbers import NUMBER
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
    if isinstance(value, (Array, Choice)) and name in array_methods.METHODS:
        return partial(array_methods.METHODS[name], m, value)
    if isinstance(value, NUMBER) and name in ("real", "imag"):
        return getattr(value, name)
    if isinstance(value, NUMBER) and name == "conjugate":
        return lambda: np.conj(value)
    fields = getattr(value, "_fields", "xyz")  # of a named tuple, or of cuda.threadIdx
    if name in fields and hasattr(value, name):
        return getattr(value, name)
    has = f"this has {', '.join(fields)}" if isinstance(value, tuple) and fields != "xyz" else ""
    if isinstance(value, (Array, Choice)):
        has = array_methods.INSTEAD.get(name, "")
    known = ", ".join((*VIEWS, *array_methods.METHODS))
    has = has or f"arrays have .shape, .size, .ndim and .dtype, {known}"
    raise unsupported(m.calls.source, line, f".{name}", has)


def _in_shape(array: Array, name: str, shape: tuple) -> Array:
    """The same elements in another shape."""
    if array.strides != row_major(array.shape):
        raise TypeError(f"{array.name}.{name} needs an array without gaps, in C order")
    return array.view(shape, row_major(shape), array.offset)


def _reshaped(array: Array, *sizes: Any) -> Array:
    """`array.reshape(sizes)`, of which one may be -1: what is left for it."""
    shape = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], tuple) else sizes
    if any(np.ndim(size) for size in (*shape, array.size)):
        raise TypeError(f"{array.name}.reshape() needs sizes that are the same in all threads")
    known = math.prod(int(size) for size in shape if size != -1)
    open_ones = sum(int(size == -1) for size in shape)
    rest = int(array.size) // known if known else 0
    whole = tuple(np.int64(rest if size == -1 else size) for size in shape)
    if open_ones > 1 or math.prod(map(int, whole)) != array.size:
        wanted = ", ".join(str(int(size)) for size in shape)
        raise ValueError(
            f"{array.name} has {int(array.size)} elements, which do not make the shape ({wanted})"
        )
    return _in_shape(array, "reshape", whole)


def _transposed(array: Array) -> Array:
    return array.view(array.shape[::-1], array.strides[::-1], array.offset)


VIEWS = {
    "T": _transposed,
    "flat": lambda array: array if array.ndim == 1 else _in_shape(array, "flat", (array.size,)),
    "transpose": lambda array: lambda: _transposed(array),
    "ravel": lambda array: lambda: _in_shape(array, "ravel", (array.size,)),
    "reshape": lambda array: partial(_reshaped, array),
    "itemsize": lambda array: np.int64(array.itemsize),
    "nbytes": lambda array: array.size * array.itemsize,
    "strides": lambda array: tuple(np.int64(s * array.itemsize) for s in array.strides),
}
