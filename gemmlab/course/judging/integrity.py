"""Keeping an answer and its judge apart: copies of values, and a look at what it replaced.

An answer is called on copies (`copied`) and returns plain values (`plain`), so that it shares
nothing with its judge. `difference` says which argument it changed, an `Unreadable` array ends the
process that reads it, and `replaced` tells whether it exchanged a part of what judges it.
"""

from __future__ import annotations

import ctypes
import inspect
import mmap
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from gemmlab.course.judging.apart import copies
from gemmlab.course.judging.source import short
from gemmlab.instructions.instruction import Instruction

_NO_ACCESS = 0  # PROT_NONE of mprotect


@dataclass(frozen=True)
class Unreadable:
    """A stand-in for an array that cannot be read: code that tries ends its process.

    It is an array of NaN where an answer has no process of its own.
    """

    shape: tuple[int, ...]
    dtype: np.dtype

    def array(self) -> np.ndarray:
        """The array, in memory to which this process has no access."""
        size = int(np.prod(self.shape)) * self.dtype.itemsize
        if not copies():
            return np.full(self.shape, np.nan, self.dtype)
        memory = mmap.mmap(-1, size)
        array = np.frombuffer(memory, self.dtype).reshape(self.shape)
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        if protect(ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(size), _NO_ACCESS):
            raise OSError(ctypes.get_errno(), "mprotect failed")
        return array


ELEMENTS = 1_000_000  # of an array or a list; what is judged has a few hundred
DEPTH = 8  # of lists in lists
_SIMPLE = (type(None), type(...), bool, int, float, complex, str, Fraction)


@dataclass(frozen=True)
class Other:
    """A value of a kind that nothing asks for; only its name and a short text are kept."""

    kind: str
    text: str

    def __repr__(self) -> str:
        return self.text


def plain(value: Any, depth: int = DEPTH) -> Any:
    """A copy of `value` made of numbers, texts, lists, tuples and arrays of numbers.

    Anything else is an `Other`: an object of a class of the answer's own may compare, count and
    print as it likes.
    """
    kind = type(value)
    if kind in _SIMPLE or (isinstance(value, np.generic) and kind.__module__ == "numpy"):
        return value
    if kind in (tuple, list) and depth and len(value) <= ELEMENTS:
        return kind(plain(v, depth - 1) for v in value)
    if kind is np.ndarray and value.dtype.kind in "biufc" and value.size <= ELEMENTS:
        return value.copy()
    return Other(kind.__name__, short(value))


def copied(value: Any) -> Any:
    """A copy of an argument, whose arrays, lists and dictionaries are copies too."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, Unreadable):
        return value.array()
    if type(value) in (tuple, list):
        return type(value)(map(copied, value))
    if type(value) is dict:
        return {key: copied(v) for key, v in value.items()}
    return value


def difference(name: str, before: Any, after: Any) -> str:
    """Say in words where `after` differs from `before`; empty where it does not."""
    if isinstance(before, Unreadable):
        return ""
    if type(before) is not type(after):
        return f"{name} was {short(before)} and is {short(after)}"
    if isinstance(before, np.ndarray):
        return _of_arrays(name, before, after)
    if isinstance(before, (list, tuple)):
        for i, (x, y) in enumerate(zip(before, after, strict=False)):
            if text := difference(f"{name}[{i}]", x, y):
                return text
        sizes = len(before), len(after)
        return "" if sizes[0] == sizes[1] else f"{name} had {sizes[0]} elements and has {sizes[1]}"
    same = before is after or before == after
    return "" if same else f"{name} was {short(before)} and is {short(after)}"


def _of_arrays(name: str, before: np.ndarray, after: np.ndarray) -> str:
    if before.shape != after.shape or before.dtype != after.dtype:
        return f"{name} was {short(before)} and is {short(after)}"
    other = ~((before == after) | ((before != before) & (after != after)))
    if not other.any():
        return ""
    index = tuple(int(i) for i in np.argwhere(other)[0])
    values = f"was {before[index]:g} and is {after[index]:g}"
    return f"{name}[{', '.join(map(str, index))}] {values}"


Parts = dict[tuple[Any, str], Any]  # (module or class, name) -> function or class

# What the simulator is made of and with.
_ROOTS = ("gemmlab", "numpy", "builtins", "ast", "inspect", "linecache", "operator")


def parts() -> Parts:
    """The functions and classes of the modules that judge, and the methods of the course's own."""
    found: Parts = {}
    for name, module in list(sys.modules.items()):
        if module is None or name.partition(".")[0] not in _ROOTS:
            continue
        for key, value in list(vars(module).items()):
            if not callable(value):
                continue
            found[module, key] = value
            if isinstance(value, Instruction):
                found |= {(value, k): v for k, v in vars(value).items()}
            if inspect.isclass(value) and value.__module__ == name and name.startswith("gemmlab"):
                found |= {(value, k): v for k, v in vars(value).items() if inspect.isroutine(v)}
    return found


def replaced(before: Parts) -> str:
    """Name the first part that was replaced, and put all of them back; empty if none was."""
    other, owner, names = [], None, {}
    for (of, key), value in before.items():
        if of is not owner:  # the parts of one owner stand together
            owner, names = of, vars(of)
        if names.get(key) is not value:
            other.append((of, key))
    for owner, key in other:
        if isinstance(owner, Instruction):
            vars(owner)[key] = before[owner, key]
        else:
            setattr(owner, key, before[owner, key])
    return next((f"{getattr(owner, '__name__', owner)}.{key}" for owner, key in other), "")
