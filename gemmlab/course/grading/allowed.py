"""The names that an answer may use, and those that reach out of it.

An answer is judged with Python, math, NumPy, Numba's `cuda` and gemmlab's instructions: what every
exercise can be solved with. Modules are looked up here and not by Python's import, so that a name
means the same on every machine: `cuda` is the simulated GPU, with Numba installed or without.

What is written is looked at first (`reaching`). What cannot be seen there meets a fence when it
runs: Python's own functions without those that reach out (`builtins_of`), and of modules that lead
to others a stand-in, which has what is for answers (`StandIn`).
"""

import ast
import builtins
import importlib
from collections.abc import Callable, Container, Iterator
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from gemmlab.simt import cuda
from gemmlab.simt.numbers.types import TYPES

PYTHON = (
    *("cmath", "collections", "collections.abc", "fractions", "functools", "itertools", "math"),
    *("numbers", "operator", "typing"),
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


class StandIn(ModuleType):
    """What answers have of a module in Python: its members that are for them."""

    def __getattr__(self, name: str) -> Any:
        try:
            return member(importlib.import_module(self.__name__), name)
        except ForbiddenError as error:
            raise AttributeError(str(error)) from None

    def __dir__(self) -> list[str]:
        return [name for name in dir(importlib.import_module(self.__name__)) if hasattr(self, name)]


_stand_in = cache(StandIn)


def module(name: str) -> ModuleType:
    """The module that ``import name`` gives an answer; ForbiddenError for one not for answers."""
    top, _, rest = name.partition(".")
    if name in PYTHON:
        found = importlib.import_module(name)
        return _stand_in(name) if hasattr(found, "__file__") and name != "numbers" else found
    if name == "numpy.typing":
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
        importlib.import_module(name)
        return _stand_in(name)
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
    if isinstance(found, ModuleType):
        if not _known(found):
            raise ForbiddenError(f"it takes the module {name} from {of.__name__}")
        return _stand_in(found.__name__) if _leads_on(found) else found
    if of.__name__.startswith("gemmlab") and not _home(found).startswith(HOMES):
        raise ForbiddenError(f"it takes {name} from {of.__name__}, which is not its home")
    return found


HOMES = ("gemmlab.", "numpy", "builtins", "math", "fractions", "types")


def _home(value: Any) -> str:
    """The module that a value comes from, or its class."""
    own = getattr(value, "__module__", None)
    return own if isinstance(own, str) else type(value).__module__


def _leads_on(found: ModuleType) -> bool:
    """Whether a module is the course's, and no part of the simulated GPU."""
    own = found.__name__.startswith("gemmlab.")
    return own and not found.__name__.startswith("gemmlab.simt.cuda")


@cache
def all_of(module_name: str) -> frozenset[str]:
    """The names that ``from module import *`` gives an answer; none of a module not for answers."""
    try:
        found = module(module_name)
        names = getattr(found, "__all__", None) or dir(found)
    except (ForbiddenError, ImportError, AttributeError):
        return frozenset()
    return frozenset(name for name in names if name[:1] != "_" and name not in FILES)


@cache
def _mine() -> tuple[ModuleType, ...]:
    return (cuda, cuda.types, NUMBA, *map(importlib.import_module, PYTHON))


def _known(found: ModuleType) -> bool:
    names = (f"gemmlab.{part}" for part in (*PARTS, "kernels"))
    own = found.__name__.startswith(("numpy", *names))
    return own or any(found is one for one in _mine())


def builtins_of() -> dict[str, Any]:
    """Python's own names, for answers: without those that reach out, and with imports of theirs."""
    hidden = CALLS | {"help", "license", "credits", "copyright"}
    found = {name: value for name, value in vars(builtins).items() if name not in hidden}
    return found | {"__build_class__": __build_class__, "__import__": _importing}


def _importing(
    name: str, space: Any = None, own: Any = None, some: Any = (), level: int = 0
) -> Any:
    """The import statement of an answer, which has been looked at as it is written.

    A list comes from what is written in C, NumPy for one, which takes its own parts when it needs
    them; a statement gives a tuple. Source: PyImport_Import in Python's Python/import.c.
    """
    if isinstance(some, list):
        return importlib.import_module(name)
    if level:
        raise ImportError("it imports a file of its own; an answer stands in the notebook")
    try:
        found = importlib.import_module(name) if name in GIVEN else module(name)
    except ForbiddenError as error:
        raise ImportError(str(error)) from None
    return found if some else module(name.partition(".")[0])


# --------------------------------------------------------------------------------- in functions

# Members that lead to files, to other modules and to what is below Python.
FILES = frozenset(
    [
        *("DataSource", "fromfile", "genfromtxt", "load", "loadtxt", "memmap", "save", "savetxt"),
        *("savez", "savez_compressed", "tofile"),
        *("char", "ctypeslib", "distutils", "f2py", "fft", "lib", "ma", "matlib", "polynomial"),
        *("random", "rec", "strings", "testing", "version"),
        *("dump", "fromregex", "core", "builtins", "ctypes", "gc", "importlib", "inspect", "io"),
        *("modules", "os", "sys", "attrgetter", "methodcaller", "mro", "subprocess"),
        # attributes by names that are texts, and texts that are evaluated
        *("update_wrapper", "wraps", "singledispatch", "singledispatchmethod", "get_type_hints"),
        *("ForwardRef", "evaluate_forward_ref", "FunctionType", "LambdaType", "CodeType"),
        # frames, and what is compiled
        *("f_back", "f_builtins", "f_code", "f_globals", "f_locals", "tb_frame", "tb_next"),
        *("gi_code", "gi_frame", "gi_yieldfrom", "cr_code", "cr_frame", "cr_await", "cr_origin"),
        *("ag_code", "ag_frame", "ag_await"),
        # of the simulated GPU, what is behind it
        *(
            "cudadrv",
            "compiling",
            "gufuncs",
            "numbas",
            "overloads",
            "vectorizers",
            "SimpleNamespace",
        ),
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
    parts = list(ast.walk(node))
    spelt = {part.func for part in parts if isinstance(part, ast.Call) and _spelt(part)}
    bound = {getattr(part, "name", "") for part in parts} | {
        part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }
    for part in parts:
        line = getattr(part, "lineno", 0)
        if isinstance(part, (ast.Import, ast.ImportFrom)):
            yield from (("reaches-out", line, words) for words in _imports(part))
        elif isinstance(part, ast.Attribute):
            if part.attr in SOLVED:
                yield "borrowed", line, f"it reads .{part.attr}"
            elif _behind_cuda(part):
                yield "reaches-out", line, f"it reaches cuda.{part.attr}"
            elif part.attr in FILES or (part.attr[:1] == "_" and part.attr not in _HARMLESS):
                yield "reaches-out", line, f"it reaches .{part.attr}"
        elif isinstance(part, ast.Name):
            if part.id in ("exercises", "exercise_modules"):
                yield "borrowed", line, f"it reads {part.id}"
            elif part.id in CALLS:
                yield "reaches-out", line, f"it uses {part.id}"
            elif part.id == "getattr" and part not in spelt:
                yield "reaches-out", line, "it uses getattr with a name that is not spelled out"
        elif isinstance(part, ast.MatchClass):
            yield from (("reaches-out", line, words) for words in _matched(part, bound))
        elif isinstance(part, ast.Constant) and part.value == "__builtins__":
            yield "reaches-out", line, "it names __builtins__"


def _behind_cuda(part: ast.Attribute) -> bool:
    """Whether a member of `cuda` is a module that the simulated GPU is made of."""
    named = isinstance(part.value, ast.Name) and part.value.id == "cuda"
    return named and part.attr != "types" and isinstance(vars(cuda).get(part.attr), ModuleType)


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


def _spelt(call: ast.Call) -> bool:
    """Whether a call is of `getattr`, say, with a name that is spelled out and reaches nothing."""
    name = call.args[1] if len(call.args) > 1 else None
    text = name.value if isinstance(name, ast.Constant) else None
    return isinstance(text, str) and text[:1] != "_" and text not in FILES | SOLVED


PLAIN = (
    "bool",
    "bytes",
    "complex",
    "dict",
    "float",
    "frozenset",
    "int",
    "list",
    "set",
    "str",
    "tuple",
)


def _matched(pattern: ast.MatchClass, bound: Container[str]) -> Iterator[str]:
    """Why a class's pattern reaches out: it reads members, by names that the class may choose."""
    for name in pattern.kwd_attrs:
        if name in FILES | SOLVED or name[:1] == "_":
            yield f"it matches .{name}"
    name = pattern.cls.id if isinstance(pattern.cls, ast.Name) else ""
    if pattern.patterns and (name not in PLAIN or name in bound):
        yield f"it matches members of {ast.unparse(pattern.cls)[:60]} by their order; name them"


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
            for name in (name for name in all_of(node.module) if name in names):
                bind(name, member(home, name))
            continue
        if given and alias.name not in given:
            raise ForbiddenError(f"it imports {alias.name} from {node.module}")
        if (alias.asname or alias.name) in names:
            bind(alias.asname or alias.name, member(home, alias.name))
