"""Keeping an answer and its judge apart: copies of values, and a look at what it replaced.

An answer is called on copies (`copied`) and returns plain values (`plain`), so that it shares
nothing with its judge. `difference` says which argument it changed, an `Unreadable` array ends the
process that reads it, and `replaced` tells whether it exchanged a part of what judges it.
"""

import ctypes
import inspect
import mmap
import sys
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from operator import is_
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


ELEMENTS = 100_000  # of an array, or of all lists together; what is judged has a few hundred
TEXT = 100_000  # characters of a text
BITS = 14_000  # of a whole number: Python shows no more than 4,300 digits
DEPTH = 8  # of lists in lists
_SIMPLE = (type(None), type(...), bool, float, complex)
_NUMBERS = {np.dtype(code).type for code in np.typecodes["AllInteger"] + "?efdgFDG"}


@dataclass(frozen=True)
class Other:
    """A value of a kind that nothing asks for; only its name and a short text are kept."""

    kind: str
    text: str

    def __repr__(self) -> str:
        return self.text


def plain(value: Any) -> Any:
    """A copy of `value` made of numbers, texts, lists, tuples and arrays of numbers.

    Anything else is an `Other`: an object of a class of the answer's own may compare, count and
    print as it likes, and what is larger than any result keeps its judge busy.
    """
    left = ELEMENTS

    def copy(value: Any, depth: int) -> Any:
        nonlocal left
        kind = type(value)
        if kind in _SIMPLE or kind in _NUMBERS:
            return value
        if kind is str and len(value) <= TEXT:
            return value
        if kind in (int, Fraction):
            parts = value.numerator, value.denominator
            if all(type(n) is int and n.bit_length() <= BITS for n in parts):
                return value
        if kind in (tuple, list) and depth and len(value) <= left:
            left -= len(value)
            return kind(copy(v, depth - 1) for v in value)
        if kind is np.ndarray and value.dtype.kind in "biufc" and value.size <= left:
            left -= value.size
            return value.copy()
        return Other(kind.__name__, short(value))

    return copy(value, DEPTH)


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


# (module or class, names, functions and classes of these names)
Parts = list[tuple[Any, tuple[str, ...], tuple[Any, ...]]]

# What the simulator is made of and with.
_ROOTS = ("gemmlab", "numpy", "builtins", "ast", "inspect", "linecache", "operator")


def parts() -> Parts:
    """The functions and classes of the modules that judge, and the methods of the course's own."""
    return [
        (owner, names, tuple(map(vars(owner).get, names)))
        for owner, names in places(len(sys.modules))
    ]


@lru_cache(maxsize=1)
def places(modules: int) -> list[tuple[Any, tuple[str, ...]]]:
    """The names of all parts by their owners, which stay while so many modules are there.

    To find them takes longer than most launches do. `input` is not among them: a copy has its own.
    """
    found: list[tuple[Any, tuple[str, ...]]] = []
    for name, module in list(sys.modules.items()):
        if module is None or name.partition(".")[0] not in _ROOTS:
            continue
        called = {k: v for k, v in vars(module).items() if callable(v) and v is not input}
        found.append((module, tuple(called)))
        for value in called.values():
            if isinstance(value, Instruction):
                found.append((value, tuple(vars(value))))
            if inspect.isclass(value) and value.__module__ == name and name.startswith("gemmlab"):
                methods = [key for key, v in vars(value).items() if inspect.isroutine(v)]
                found.append((value, tuple(methods)))
    return found


def replaced(before: Parts) -> str:
    """Name the first part that was replaced, and put all of them back; empty if none was."""
    first = ""
    for owner, names, values in before:
        now = vars(owner)
        if all(map(is_, map(now.get, names), values)):
            continue
        for name, value in zip(names, values, strict=True):
            forgotten = name not in now and "TASK" in now  # by a copy, see `copy_of_process`
            if now.get(name) is value or forgotten:
                continue
            first = first or f"{getattr(owner, '__name__', owner)}.{name}"
            if isinstance(owner, Instruction):
                now[name] = value
            else:
                setattr(owner, name, value)
    return first
