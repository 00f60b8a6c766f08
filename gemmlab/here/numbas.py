"""Numba-CUDA itself, also where the simulated GPU has its name `numba.cuda`.

A program under `gemmlab simulate` sees the simulated GPU as `numba.cuda`. What Numba alone can
do, to type and to compile, is done by its own modules, which are put back meanwhile.
"""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from gemmlab.here.driver import numba_cuda

CUDA = "numba.cuda"
_own: dict[str, ModuleType] = {}  # Numba's own modules, while others have their names


def installed() -> bool:
    """Say whether numba-cuda is installed."""
    return has_numba() and find_spec("numba_cuda") is not None


def has_numba() -> bool:
    """Say whether Numba is installed, with or without its part for GPUs."""
    try:
        return find_spec("numba") is not None
    except (ValueError, ImportError):  # of a stand-in; where a finder refuses it
        return False


def has_mlir() -> bool:
    """Say whether numba-cuda-mlir is installed."""
    try:
        return find_spec("numba_cuda_mlir") is not None
    except ValueError:  # of a stand-in that has its name
        return False


def belongs(name: str) -> bool:
    """Say whether a module is `numba.cuda` or a part of it."""
    return name == CUDA or name.startswith(f"{CUDA}.")


@contextmanager
def own() -> Iterator[ModuleType]:
    """Give `numba.cuda` of Numba in the body, under that name; ImportError where there is none."""
    numba: Any = importlib.import_module("numba")
    others = {name: module for name, module in sys.modules.items() if belongs(name)}
    simulated = getattr(others.get(CUDA), "__name__", CUDA) != CUDA
    if not simulated:
        yield numba_cuda()
        return
    finders, named = sys.meta_path[:], numba.cuda
    for name in others:
        del sys.modules[name]
    sys.modules.update(_own)
    sys.meta_path[:] = [finder for finder in finders if not getattr(finder, "simulated", False)]
    if CUDA in _own:
        numba.cuda = _own[CUDA]
    else:
        del numba.cuda
    try:
        yield numba_cuda()
    finally:
        _own.update({name: module for name, module in sys.modules.items() if belongs(name)})
        for name in _own:
            del sys.modules[name]
        sys.modules.update(others)
        sys.meta_path[:], numba.cuda = finders, named


@contextmanager
def hidden(modules: dict[str, ModuleType]) -> Iterator[None]:
    """Keep Numba's own `modules`, whose names others take in the body; it may load more."""
    _own.update(modules)
    try:
        yield
    finally:
        modules.update(_own)
        _own.clear()


def part(name: str) -> ModuleType:
    """Return Numba's own `numba.cuda.NAME`; ImportError where there is none."""
    with own():
        return importlib.import_module(f"{CUDA}.{name}")


def loaded(name: str) -> ModuleType | None:
    """Return Numba's own `numba.cuda.NAME` where it has been loaded."""
    full = f"{CUDA}.{name}"
    found = _own.get(full) or sys.modules.get(full)
    return None if isinstance(found, Later) else found


@cache
def _also(kind: type[Exception], others: tuple[type[Exception], ...]) -> type[Exception]:
    """Return a class of errors that are of a kind, and of others of Numba's."""

    def begin(self: Any, *args: Any) -> None:
        Exception.__init__(self, *args)
        self.msg, self.loc, self._contexts = str(args[0]) if args else "", None, []

    def reduced(self: Any) -> tuple:  # pickled, it is the error that it was
        return kind, self.args, vars(self)

    names = {"__init__": begin, "__module__": kind.__module__, "__str__": kind.__str__}
    names["__reduce__"] = reduced
    return type(kind.__name__, (kind, *others), names)


def also(error: Exception, name: str) -> Exception:
    """Return an error of a kernel as one that Numba would raise, too, for whoever catches that.

    name : of Numba's error, such as "TypingError"
    """
    modules = sys.modules.get("numba.core.errors"), loaded("core.errors")
    kinds = tuple(dict.fromkeys(getattr(m, name) for m in modules if hasattr(m, name)))
    if not kinds or any(isinstance(error, kind) for kind in kinds):
        return error
    made = _also(type(error), kinds)(*error.args)
    vars(made).update(vars(error))
    return made


class Later(ModuleType):
    """A module of Numba's own that is loaded when the first of its names is asked for."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{CUDA}.{name}")
        self._of = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        return getattr(part(self._of), name)


def typing(mlir: bool) -> tuple[ModuleType, Any]:
    """Return `cuda` of Numba-CUDA or of numba-cuda-mlir, and where it looks up types of names."""
    if mlir:
        from numba_cuda_mlir import cuda
        from numba_cuda_mlir.descriptor import mlir_target

        return cuda, mlir_target.typing_context
    from numba import cuda
    from numba.cuda.descriptor import cuda_target

    cuda_target.typing_context.refresh()
    return cuda, cuda_target.typing_context
