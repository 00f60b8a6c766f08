"""The names that an answer may use, and those that reach out of it.

An answer is judged with Python, math, NumPy, Numba's `cuda` and gemmlab's instructions: what every
exercise can be solved with. Modules are looked up here and not by Python's import, so that a name
means the same on every machine: `cuda` is the simulated GPU, with Numba installed or without.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable, Container, Iterator
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from gemmlab.simt import cuda
from gemmlab.simt.numbers.types import TYPES

PYTHON = (
    *("cmath", "collections", "fractions", "functools", "itertools", "math", "numbers"),
    *("operator", "typing"),
)
COURSE = (  # of `gemmlab`
    *("Device", "Gemm", "Gemms", "Tiling", "cuda", "device", "instructions", "kernels", "model"),
    *("numerics", "predict"),
)
PARTS = ("device", "formats", "instructions", "model", "numerics", "problem", "tiling")
GIVEN = {  # what chapters hand out for an exercise: module -> names
    "gemmlab.course.ch12_tcec.q3_quads": ("ZERO", "three_products"),
    "gemmlab.kernels.tcec.shared.splitting": ("split_two",),
}
WORDS = "math, NumPy, numba.cuda and gemmlab's instructions, among others"


class NumbaStandIn(ModuleType):
    """What answers take from Numba: its types, `cuda`, and `njit`, which leaves plain Python."""

    def __getattr__(self, name: str) -> Any:
        if name in TYPES:
            return TYPES[name]
        raise AttributeError(f"numba.{name} is not for answers; use {WORDS}")


def plain(function: Any = None, *signatures: Any, **options: Any) -> Any:
    """Leave a function as it is, where Numba would compile it for the CPU."""
    return function if callable(function) else plain


NUMBA = NumbaStandIn("numba")
NUMBA.cuda, NUMBA.types, NUMBA.jit, NUMBA.njit = cuda, cuda.types, plain, plain  # type: ignore[attr-defined]


class ForbiddenError(Exception):
    """A name reaches out of an answer."""


def module(name: str) -> ModuleType:
    """The module that ``import name`` gives an answer; ForbiddenError for one not for answers."""
    top, _, rest = name.partition(".")
    if top in PYTHON and not rest:
        return importlib.import_module(name)
    if name == "numpy":
        return np
    if name == "numba":
        return NUMBA
    if name in ("numba.cuda", "gemmlab.simt.cuda"):
        return cuda
    if name in ("numba.types", "numba.cuda.types"):
        return cuda.types
    if top == "gemmlab" and (not rest or rest.partition(".")[0] in PARTS):
        return importlib.import_module(name)
    raise ForbiddenError(f"it imports {name}; an answer takes {WORDS}")


def member(of: Any, name: str) -> Any:
    """What `of.name` is in an answer, where `of` is a module; AttributeError if it has none."""
    if name.startswith("_") or name in FILES:
        raise ForbiddenError(f"it takes {name} from {of.__name__}")
    if of.__name__ == "gemmlab":
        if name not in COURSE:
            raise ForbiddenError(f"it takes gemmlab.{name}; an answer takes {WORDS}")
        if name == "cuda":
            return cuda
    found = getattr(of, name)
    if isinstance(found, ModuleType) and not _known(found):
        raise ForbiddenError(f"it takes the module {name} from {of.__name__}")
    return found


@cache
def _mine() -> tuple[ModuleType, ...]:
    return (cuda, cuda.types, NUMBA, *map(module, PYTHON))


def _known(found: ModuleType) -> bool:
    names = (f"gemmlab.{part}" for part in (*PARTS, "kernels", "simt.cuda"))
    own = found.__name__.startswith(("numpy", *names))
    return own or any(found is one for one in _mine())


# --------------------------------------------------------------------------------- in functions

# Members that lead to files, to other modules and to what is below Python.
FILES = frozenset(
    [
        *("DataSource", "fromfile", "genfromtxt", "load", "loadtxt", "memmap", "save", "savetxt"),
        *("savez", "savez_compressed", "tofile"),
        *("char", "ctypeslib", "distutils", "f2py", "fft", "lib", "ma", "matlib", "polynomial"),
        *("random", "rec", "strings", "testing", "version"),
        *("abc", "builtins", "ctypes", "gc", "importlib", "inspect", "io", "modules", "os", "sys"),
        *("attrgetter", "methodcaller", "mro", "subprocess"),
    ]
)
CALLS = frozenset(
    [
        *("__build_class__", "__builtins__", "__import__", "__loader__", "__spec__", "breakpoint"),
        *("compile", "delattr", "eval", "exec", "globals", "input", "open", "setattr", "vars"),
    ]
)
SOLVED = frozenset(("answers", "exercises", "exercise_modules", "solution", "task", "TASK"))
_HARMLESS = frozenset(("__doc__", "__len__", "__name__"))


def reaching(node: ast.AST) -> Iterator[tuple[str, int, str]]:
    """What in a function reaches out of it: (diagnosis, line, words)."""
    for part in ast.walk(node):
        line = getattr(part, "lineno", 0)
        if isinstance(part, (ast.Import, ast.ImportFrom)):
            yield from (("reaches-out", line, words) for words in _imports(part))
        elif isinstance(part, ast.Attribute):
            if part.attr in SOLVED:
                yield "borrowed", line, f"it reads .{part.attr}"
            elif part.attr in FILES or (part.attr[:1] == "_" and part.attr not in _HARMLESS):
                yield "reaches-out", line, f"it reaches .{part.attr}"
        elif isinstance(part, ast.Name):
            if part.id in ("exercises", "exercise_modules"):
                yield "borrowed", line, f"it reads {part.id}"
            elif part.id in CALLS:
                yield "reaches-out", line, f"it uses {part.id}"
            elif part.id == "getattr":
                yield from (("reaches-out", line, w) for w in _by_name(node, part))
        elif isinstance(part, ast.Constant) and part.value == "__builtins__":
            yield "reaches-out", line, "it names __builtins__"


def _imports(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    try:
        if isinstance(node, ast.Import):
            for alias in node.names:
                module(alias.name)
        else:
            every = {alias.asname or alias.name for alias in node.names}
            imported_from(node, lambda name, value: None, every)
    except (ForbiddenError, ImportError, AttributeError) as error:
        yield str(error)


def _by_name(node: ast.AST, used: ast.Name) -> Iterator[str]:
    """Why `getattr` reaches out: its name is not spelled out."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and call.func is used:
            name = call.args[1] if len(call.args) > 1 else None
            text = str(name.value) if isinstance(name, ast.Constant) else "_"
            if text[:1] != "_" and text not in FILES | SOLVED:
                return
    yield "it uses getattr with a name that is not spelled out"


def imported_from(
    node: ast.ImportFrom, bind: Callable[[str, Any], None], names: Container[str]
) -> None:
    """Bind those of `names` that an import has; ForbiddenError for what is not for answers."""
    if node.level or not node.module:
        raise ForbiddenError("it imports a file of its own; an answer stands in the notebook")
    given = GIVEN.get(node.module, ())
    home = importlib.import_module(node.module) if given else module(node.module)
    for alias in node.names:
        if alias.name == "*":
            raise ForbiddenError(f"it imports * from {node.module}; name what you need")
        if given and alias.name not in given:
            raise ForbiddenError(f"it imports {alias.name} from {node.module}")
        if (alias.asname or alias.name) in names:
            bind(alias.asname or alias.name, member(home, alias.name))
