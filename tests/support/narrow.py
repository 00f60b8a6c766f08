"""NumPy as it is where its own integers have 32 bits: in Pyodide, the page of a browser.

`narrow` puts a stand-in in the place of `np` in modules of gemmlab. Arrays whose type nobody has
said are of 32 bits there, and so is what comes of them; sums of them wrap without a word.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

OWN = np.int32  # the type of an integer whose type nobody has said
MADE = "arange", "array", "asarray", "atleast_1d", "full", "indices", "linspace", "ones", "zeros"
MADE += "where", "concatenate", "stack", "repeat", "tile"
PLACES = "nonzero", "flatnonzero", "argsort", "bincount", "searchsorted", "argmax", "argmin"
PLACES += "count_nonzero", "lexsort", "unravel_index", "digitize"
SUMS = "sum", "prod", "cumsum", "cumprod"
WIDE = np.dtype(np.int64)


class Narrow(np.ndarray):
    """An array of 32 bits, or of truth values, whose sums have 32 bits too."""

    def sum(self, axis: Any = None, dtype: Any = None, **options: Any) -> Any:
        return np.ndarray.sum(self, axis, _sum_type(self, dtype), **options)

    def prod(self, axis: Any = None, dtype: Any = None, **options: Any) -> Any:
        return np.ndarray.prod(self, axis, _sum_type(self, dtype), **options)

    def cumsum(self, axis: Any = None, dtype: Any = None, **options: Any) -> Any:
        return np.ndarray.cumsum(self, axis, _sum_type(self, dtype), **options)

    def astype(self, dtype: Any, *given: Any, **options: Any) -> Any:
        return np.ndarray.astype(self, OWN if dtype is int else dtype, *given, **options)


def _sum_type(x: np.ndarray, dtype: Any) -> Any:
    return (
        OWN
        if (dtype is None or dtype is int) and x.dtype.kind in "bi" and x.itemsize <= 4
        else dtype
    )


def _narrowed(x: Any) -> Any:
    """Return an array or a number in 32 bits, if it fits; otherwise as it is."""
    if isinstance(x, tuple):
        return tuple(map(_narrowed, x))
    if isinstance(x, np.ndarray | np.generic) and x.dtype == WIDE:
        small = np.asarray(x).astype(OWN)
        return small.view(Narrow) if np.array_equal(small, x) else x
    return x.view(Narrow) if isinstance(x, np.ndarray) and x.dtype == bool else x


def _typed(x: Any) -> bool:
    """Whether 64 bits come of an argument that has them."""
    if isinstance(x, list | tuple):
        return any(map(_typed, x))
    return isinstance(x, np.ndarray | np.generic) and x.dtype == WIDE


class StandIn:
    """The module `numpy`, but for what makes integers."""

    intp = int_ = OWN

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if name in MADE:
            return _maker(found)
        if name in PLACES:
            return lambda *given, **options: _narrowed(found(*given, **options))
        if name in SUMS:
            return _summing(found)
        return found


def _maker(found: Callable) -> Callable:
    def make(*given: Any, **options: Any) -> Any:
        own = any(x is int for x in given) or options.get("dtype") is int
        given = tuple(OWN if x is int else x for x in given)
        if options.get("dtype") is int:
            options["dtype"] = OWN
        made = found(*given, **options)
        typed = "dtype" in options or any(isinstance(x, type | np.dtype) for x in given)
        if own:
            return made.view(Narrow)
        return made if typed or _typed(given) else _narrowed(made)

    return make


def _summing(found: Callable) -> Callable:
    def add(x: Any, *given: Any, **options: Any) -> Any:
        array = x if isinstance(x, np.ndarray) else _narrowed(np.asarray(x))
        options["dtype"] = _sum_type(array, options.get("dtype"))
        return found(array, *given, **options)

    return add


@contextmanager
def narrow() -> Iterator[None]:
    """Put the stand-in into all modules of gemmlab that are loaded."""
    stand_in = StandIn()
    with ExitStack() as stack:
        for name, module in sorted(sys.modules.items()):
            if name.startswith("gemmlab") and getattr(module, "np", None) is np:
                stack.enter_context(patch.object(module, "np", stand_in))
        yield
