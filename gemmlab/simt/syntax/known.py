"""What a thread knows of memory, having loaded or stored it, and what could change that."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gemmlab.simt.syntax.names import intrinsic_path
from gemmlab.simt.syntax.nodes import names_in
from gemmlab.simt.syntax.source import UnsupportedError

ORDERING = ("syncthreads", "syncwarp", "threadfence", "cg.")  # how names of barriers begin
PURE = ("builtins", "math", "numpy", "cmath", "operator")  # modules whose functions touch no memory

Static = Callable[[ast.expr], tuple[bool, Any]]  # whether an expression is known, and its value


@dataclass(frozen=True)
class Element:
    """What an element depends on: the names in its text, and the memory that it may be in.

    places : "global"; "shared" or "local" with the name of the array; "dynamic" shared memory
    """

    names: frozenset[str]
    places: frozenset[str]


Known = dict[str, Element]  # by the text of the source


def common(first: Known | None, *rest: Known | None) -> Known:
    """What is known whichever way a thread came."""
    ways = [way for way in (first, *rest) if way is not None]
    return {t: e for t, e in ways[0].items() if all(t in way for way in ways[1:])}


def without(
    known: Known, names: frozenset[str] = frozenset(), places: frozenset[str] = frozenset()
) -> Known:
    """What is still known after the names are assigned, or the places have changed."""
    if not names and not places:
        return known
    return {t: e for t, e in known.items() if not (e.names & names or e.places & places)}


class Arrays:
    """The arrays of a function: where each may be, and which of them a call may change.

    everywhere : all places in which an array of the function may be
    named : the places of each name
    """

    def __init__(self, tree: ast.FunctionDef, static: Static) -> None:
        self.static = static
        made = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
        named = [(t.id, n.value) for n in made for t in n.targets if isinstance(t, ast.Name)]
        self.everywhere = frozenset({"global"}).union(*(self._made(*name) for name in named))
        self.named = {a.arg: frozenset({"global"}) for a in tree.args.args}
        swapped = [t for n in made for t in n.targets if isinstance(t, ast.Tuple)]
        for name in {name for t in swapped for name in names_in(t)}:
            self.named[name] = self.everywhere  # the compiler loses track of them
        for name, value in named:
            place = self._made(name, value) or self.everywhere
            self.named[name] = self.named.get(name, frozenset()) | place

    def _made(self, name: str, value: ast.expr) -> frozenset[str]:
        """The memory of a shared or local array that a name is given; none for other values."""
        path = intrinsic_path(self._value(value.func)) if isinstance(value, ast.Call) else None
        space = (path or "").partition(".array")[0]
        if space not in ("shared", "local"):
            return frozenset()
        sizes = [n.value for n in ast.walk(value) if isinstance(n, ast.Constant)]
        return frozenset({"dynamic" if 0 in sizes else f"{space} {name}"})

    def _value(self, node: ast.expr) -> Any:
        try:
            return self.static(node)[1]
        except (NameError, UnsupportedError):  # the rewriter says so, when it comes there
            return None

    def places(self, node: ast.expr) -> frozenset[str]:
        """The places in which the array of an element, or of a view, may be."""
        while isinstance(node, ast.Subscript):
            node = node.value
        name = node.id if isinstance(node, ast.Name) else ""
        return self.named.get(name, self.everywhere)

    def element(self, node: ast.Subscript) -> Element:
        """What the element of a subscript depends on."""
        return Element(frozenset(names_in(node)), self.places(node))

    def changed_by(self, call: ast.Call) -> frozenset[str]:
        """The places that a call may change, or whose changes by others it waits for."""
        function = self._value(call.func)
        path = intrinsic_path(function)
        if path is not None and path.startswith("atomic."):
            return self.places(call.args[0]) if call.args else self.everywhere
        if path is not None:
            return self.everywhere if path.startswith(ORDERING) else frozenset()
        module = (getattr(function, "__module__", None) or "").partition(".")[0]
        harmless = isinstance(function, np.ufunc) or (module in PURE and function is not print)
        numba_type = module == "numba" and not hasattr(function, "py_func")
        return frozenset() if harmless or numba_type else self.everywhere
