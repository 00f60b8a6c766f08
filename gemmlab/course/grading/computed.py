"""What an answer's functions refer to is computed in a copy of the process; data alone comes back.

The statements run as they stand, and may do what they like to the copy. Who sends what comes back
is a stranger: it is read as data once more (`taken`).
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gemmlab.course.grading.submission import Statement
from gemmlab.course.judging import guard
from gemmlab.course.judging.apart import apart

SECONDS = 5.0  # of the processor
MOST = 1 << 20  # elements and characters
DEPTH = 8  # of lists in lists


class NoDataError(Exception):
    """What was computed is no data, or nothing came of it."""


def computed(
    kept: Sequence[Statement], bound: Mapping[str, Any], missing: Mapping[str, Statement]
) -> dict[str, Any]:
    """The data of each name that is missing; NoDataError, in words, where there is none.

    kept : statements that are needed for it; bound : what imports have bound already
    missing : names, with the statements that give them their values
    """
    found: dict[str, Any] = {}
    names = sorted(missing)
    for item in apart(partial(run, list(kept), dict(bound), names), SECONDS):
        if guard.ended(item):
            raise NoDataError(f"{missing[names[0]].place} or above it: {item.what}")
        if type(item) is str:
            raise NoDataError(item[:300])
        found |= taken(item, names)
    return found


def taken(item: Any, names: Sequence[str]) -> dict[str, Any]:
    """One name and its data, of what came back; NoDataError for anything else."""
    try:
        name, value = item
        if type(name) is not str or name not in names:
            raise TypeError
        return {name: data(value, [MOST], DEPTH)}
    except (TypeError, ValueError):
        raise NoDataError("what came back is no data") from None


def run(kept: list[Statement], bound: dict[str, Any], names: list[str]) -> Iterator[Any]:
    """Run the statements, in a copy of the process that judges; (name, data) of each of `names`."""
    space = {name: bound[name] for name in ("__name__", "__builtins__") if name in bound}
    for statement in kept:
        node = statement.node
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            space |= {name: bound[name] for name in statement.binds if name in bound}
            continue
        try:
            code = compile(ast.Module([node], []), statement.cell.file, "exec", dont_inherit=True)
            exec(code, space)
        except BaseException as error:
            yield f"{statement.place}: {type(error).__name__}: {str(error)[:200]}"
            return
    for name in names:
        left = [MOST]
        try:
            value = data(space[name], left, DEPTH)
        except KeyError:
            yield f"{name} has no value where the check stands"
            return
        except TypeError as error:
            yield f"{name} is {error}; hand over a function that is defined with def"
            return
        yield name, value


def data(value: Any, left: list[int], depth: int) -> Any:
    """A copy of what is data; TypeError, with what it is in words, for anything else."""
    kind = type(value)
    size = getattr(value, "size", None) if kind is np.ndarray else None
    size = len(value) if kind in (str, bytes, list, tuple, dict, set, frozenset) else size or 1
    left[0] -= size
    if left[0] < 0 or depth < 0:
        raise TypeError(f"larger than {MOST:,} elements, or deeper than {DEPTH} lists")
    if kind in (type(None), bool, float, complex, str, bytes, range):
        return value
    if kind is int and value.bit_length() <= 1 << 14:
        return value
    if isinstance(value, np.generic) and value.dtype.kind in "biufc":
        return value
    if kind is np.ndarray and value.dtype.kind in "biufc":
        return value.copy()
    if kind in (list, tuple, set, frozenset):
        return kind(data(part, left, depth - 1) for part in value)
    if kind is dict:
        return {data(k, left, depth - 1): data(v, left, depth - 1) for k, v in value.items()}
    raise TypeError(f"a {kind.__name__[:40]}, which is no data")
