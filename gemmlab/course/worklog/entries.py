"""An entry of a work log: a kernel as text, its launch, what was said of it and what was found.

The text makes the kernel again without the notebook (`text_of`, `rung_of_text`): a league judges
that, and nothing else of a file.
"""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from gemmlab import instructions
from gemmlab.course.grading.definitions import Definitions, RefusedError
from gemmlab.course.grading.submission import Check, read
from gemmlab.course.judging import guard
from gemmlab.course.judging.source import unwrapped
from gemmlab.course.worklog.judging import Judged
from gemmlab.kernels import Kernel, own
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling

SENTENCES = ("changed", "expected", "came")
LONGEST = 20_000  # characters of a kernel, and of all else that is text


@dataclass(frozen=True)
class Entry:
    """One kernel of a log.

    name : of the function; source : all that makes it; tiling, block : of its launch
    grid : two sizes, or the name of a function of the source, empty where the tiling decides
    changed, expected, came : the learner's three sentences
    measured : seconds by the name of a GPU
    """

    name: str
    source: str
    tiling: Tiling
    judged: Judged
    grid: tuple[int, ...] | str = ()
    block: tuple[int, ...] = ()
    changed: str = ""
    expected: str = ""
    came: str = ""
    measured: dict[str, float] = field(default_factory=dict)

    @property
    def made_of(self) -> tuple:
        """All that decides what is found of it."""
        return self.source, self.name, self.tiling, self.grid, self.block

    @property
    def data(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return json.loads(json.dumps(asdict(self)))

    @classmethod
    def of(cls, data: Any) -> Entry:
        """What `data` was made from; ValueError, TypeError or KeyError for something else."""
        given = dict(data)
        found = dict(given.pop("judged"))
        found["facts"] = tuple((str(a), str(b)) for a, b in found["facts"])
        found["lines"] = tuple((str(a), float(b)) for a, b in found.get("lines", ()))
        found["depth"] = int(found.get("depth", 0))
        tiling = Tiling(**given.pop("tiling"))
        for name in ("block", "grid"):
            if not isinstance(given[name], str):
                given[name] = tuple(int(size) for size in given[name])
        entry = cls(tiling=tiling, judged=Judged(**found), **given)
        texts = (entry.name, entry.source, *(getattr(entry, s) for s in SENTENCES))
        if not all(isinstance(text, str) and len(text) <= LONGEST for text in texts):
            raise ValueError("a text is none, or too long")
        numbers = [*entry.judged.seconds.values(), *entry.measured.values()]
        if not all(type(number) is float and number > 0 for number in numbers):
            raise ValueError("a time is none")
        return entry


# ------------------------------------------------------------------------------ a kernel as text


def text_of(*functions: Callable) -> str:
    """Python that makes these functions: imports, then what they refer to, then they themselves.

    Raises TypeError for one that refers to variables of a function around it, and OSError where a
    source cannot be found.
    """
    imports: dict[str, None] = {}
    pieces: dict[str, str] = {}
    for function in functions:
        _collect(unwrapped(function), imports, pieces)
    head = "".join(f"{line}\n" for line in sorted(imports))
    return f"{head}\n\n" + "\n\n".join(pieces.values()).rstrip() + "\n"


def _collect(function: Callable, imports: dict[str, None], pieces: dict[str, str]) -> None:
    name = function.__name__
    if function.__code__.co_freevars:
        outer = ", ".join(function.__code__.co_freevars)
        raise TypeError(
            f"{name} uses {outer} of a function around it; hand over build(tiling), which returns "
            "the kernel"
        )
    if name == "<lambda>":
        raise TypeError("a lambda cannot be kept as text; use def")
    text = textwrap.dedent(inspect.getsource(function))
    pieces[name] = ""  # its place, for one that calls itself
    for used in sorted({n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}):
        if used in function.__globals__ and used not in pieces:
            _refer(used, function.__globals__[used], function, imports, pieces)
    del pieces[name]
    pieces[name] = text


def _refer(
    name: str, value: Any, function: Callable, imports: dict[str, None], pieces: dict[str, str]
) -> None:
    """Keep what a name of a module or a notebook stands for."""
    plain = unwrapped(value)
    if isinstance(value, ModuleType):
        home, _, last = value.__name__.rpartition(".")
        if last == "cuda":
            home = "gemmlab"
        what = f"from {home} import {last}" if home else f"import {last}"
        imports[what if name == last else f"{what} as {name}"] = None
    elif inspect.isfunction(plain) and plain.__module__ == function.__module__:
        _collect(plain, imports, pieces)
    elif getattr(np, name, None) is value:
        imports[f"from numpy import {name}"] = None
    elif getattr(instructions, name, None) is value:
        imports[f"from gemmlab.instructions import {name}"] = None
    elif value is Tiling or value is Gemm:
        imports[f"from gemmlab import {name}"] = None
    elif str(getattr(type(value), "__module__", "")).startswith("numba"):
        imports[f"from numba import {name}"] = None
    else:
        imports |= {"import numpy as np": None} if "np." in repr(value) else {}
        pieces[name] = f"{name} = {value!r}\n"


def rung_of(kernel: Any, tile: Any, grid: Any = None, block: Any = None) -> Kernel:
    """The rung that `kernels.own` makes; a function build(T), as in 04.2, gets a tile's side."""
    plain = unwrapped(kernel)
    if not inspect.isfunction(plain) or list(inspect.signature(plain).parameters) != ["T"]:
        return own(kernel, tile, grid=grid, block=block)

    def build(tiling: Tiling) -> Callable:
        side = tiling.block[0]
        if tiling != Tiling.square(side):
            raise ValueError(
                f"{plain.__name__}(T) takes the side of a square tile, not {tiling}; call its "
                "argument tiling to get all sizes, and begin with T = tiling.block[0]"
            )
        return plain(side)

    build.__name__ = plain.__name__
    if isinstance(tile, Tiling):
        build(tile)
    return own(build, tile, grid=grid, block=block)


def rung_of_text(entry: Entry) -> Kernel:
    """The rung that an entry's text makes; no line of it runs here, now or later.

    Raises RefusedError, in words, where the text makes none.
    """
    names = [entry.name, entry.grid] if isinstance(entry.grid, str) and entry.grid else [entry.name]
    if not all(name.isidentifier() for name in names):
        raise RefusedError("not-defined", f"{entry.name[:80]!r} is no name of a function")
    cells = [{"cell_type": "code", "source": s} for s in (entry.source, ", ".join(names))]
    submission = read(json.dumps({"cells": cells}).encode())
    if submission.cells[0].fault:
        raise RefusedError("no-python", submission.cells[0].fault)
    _asks_nothing(submission.cells[0].source)
    arguments = tuple(ast.Name(name, ast.Load()) for name in names)
    check = Check("worklog", len(submission.statements) - 1, arguments)
    function, *grids = Definitions(submission, check).answers()
    grid = _apart(grids[0]) if grids else entry.grid or None
    try:
        return rung_of(function, entry.tiling, grid, entry.block or None)
    except TypeError as error:
        raise RefusedError("wrong-type", str(error)) from None


def _asks_nothing(source: str) -> None:
    """Refuse a text that asks where it runs, or takes the course's kernels."""
    tree = ast.parse(source)
    members = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    for node in ast.walk(tree):
        at = f"line {getattr(node, 'lineno', 0)}:"
        if isinstance(node, ast.Name) and node.id == "cuda" and id(node) not in members:
            raise RefusedError("reaches-out", f"{at} it asks what cuda is, not for its members")
        if isinstance(node, ast.Attribute) and node.attr == "strides":
            raise RefusedError("reaches-out", f"{at} it asks how the rows of an array lie")
        if isinstance(node, ast.ImportFrom) and "kernels" in {a.name for a in node.names}:
            raise RefusedError("borrowed", f"{at} it takes the course's kernels")
        if isinstance(node, ast.Attribute) and node.attr == "kernels":
            raise RefusedError("borrowed", f"{at} it takes the course's kernels")


def _apart(grid: Callable) -> Callable[[int, int], tuple[int, ...]]:
    """A function for the grid that is called in a copy of this process, once for each size."""

    @lru_cache(maxsize=64)
    def called(m: int, n: int) -> tuple[int, ...]:
        outcome = guard.attempt(grid, m, n)
        if outcome.fault:
            raise ValueError("; ".join(text for _, text in outcome.fault.facts))
        return tuple(outcome.value) if isinstance(outcome.value, (tuple, list)) else outcome.value

    return called


def launch_of(grid: Any, block: Any, rung: Kernel) -> Mapping[str, Any]:
    """The grid and the block of an entry as it keeps them."""
    named = grid.__name__ if callable(grid) else tuple(grid or ())
    return {"grid": named, "block": tuple(block or ()), "tiling": rung.default}
