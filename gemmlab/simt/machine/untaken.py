"""Branches that no thread took are looked at for their types, because Numba compiles them too.

The kernel runs once more, by no lane, through both ways of each `if` and one turn of each loop:
nothing is loaded, stored or counted, but a value of a wrong type is met. Tests that a compiler
knows, such as `x is None` or `x.ndim == 1`, leave one way out, as Numba does.

A variable that a branch assigns has its type there in the branch, and one into which both ways fit
behind it. Nothing here sees where a branch ends, so a type is wrong that is so in both readings.
"""

import ast
from collections.abc import Callable
from types import CodeType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from gemmlab.simt.machine.machine import Machine
from gemmlab.simt.machine.operations import BOTH, ENTERED
from gemmlab.simt.memory.array import Array, Record, Records
from gemmlab.simt.syntax.source import Source

# Kernels that were looked at, with the types of their arguments.
_seen: WeakKeyDictionary[CodeType, set[tuple]] = WeakKeyDictionary()


def check(
    function: Callable,
    source: Source,
    values: list[Any],
    taken: dict[int, int],
    machine: Callable[[np.ndarray], Machine],
    kernel: Callable[[Machine], Callable[[], None]],
) -> None:
    """Look for wrong types where no lane went, once for a kernel and types of arguments.

    taken : the ways of each `if` that lanes went. Raises TypeError, and IndexError for too many
    indices, as the kernel would where a thread went there.
    """
    types = tuple(map(_type, values))
    known = _seen.setdefault(function.__code__, set())
    if types in known:
        return
    known.add(types)
    if not _left(source, taken):
        return
    error = _met(machine(np.arange(1)), kernel, False)
    if error and _met(machine(np.arange(1)), kernel, True):
        known.discard(types)
        raise error


def _met(m: Machine, kernel: Callable[[Machine], Callable[[], None]], joined: bool) -> Any:
    """Return the error of a wrong type, if a kernel meets one; `joined` as `Variables` has it."""
    report, kept = m.report, list(m.report.printed)
    m.masks[:] = [False]
    m.branches.all_ways = m.loops.all_ways = True
    m.variables.joined = joined
    try:
        with np.errstate(all="ignore"):
            kernel(m)()
    except (TypeError, IndexError) as error:
        return error
    except Exception:  # of values, which are none here
        pass
    finally:
        report.printed[:] = kept
    m.take_apart()
    return None


def _left(source: Source, taken: dict[int, int]) -> bool:
    """Say whether a way of an `if` that was met has statements that no lane executed."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.If):
            ways = taken.get(node.lineno, 0)
            if not ways & ENTERED or (node.orelse and ways != BOTH):
                return True
    return False


def _type(value: Any) -> Any:
    """Return what of an argument decides over types."""
    if isinstance(value, tuple):
        return tuple(map(_type, value))
    if isinstance(value, (Array, Records)):
        kind = value.dtype if isinstance(value, Array) else tuple(value.fields)
        return str(kind), value.ndim
    if isinstance(value, Record):
        return _type(value.records)
    return str(getattr(value, "dtype", type(value).__name__))
