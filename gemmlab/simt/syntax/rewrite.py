"""From a kernel's source to the function that runs it in lock-step.

Every value becomes an array over all lanes, so the rewritten function runs once for all threads:
`if` and loops become masks, subscripts become counted loads and stores, all of them calls of the
parts of the machine `m`; names of the enclosing scopes become constants, as Numba freezes them.
"""

from __future__ import annotations

import ast
import types
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from gemmlab.simt.syntax.expressions import Path, frozen, scope_of
from gemmlab.simt.syntax.nodes import place_of
from gemmlab.simt.syntax.source import Source
from gemmlab.simt.syntax.statements import Statements

SOURCE = ".source"  # the global name by which a lock-step function knows its kernel's source


@dataclass(frozen=True)
class Rewritten:
    """A kernel or device function in lock-step form, not yet bound to a machine.

    outside : what decided over the form beside the text: `_kind` of all names outside, by path
    paths : of those constants that are names outside
    """

    source: Source
    tree: ast.Module = field(repr=False)
    code: types.CodeType = field(repr=False)
    constants: dict[str, Any]
    outside: dict[Path, Any]
    paths: dict[str, Path]

    @property
    def text(self) -> str:
        """The lock-step form as text; the names that begin with a dot are the rewriter's own."""
        return ast.unparse(self.tree)

    def bind(self, translate: Callable[[Any], Any]) -> Callable:
        """The function f(m, *args), its constants put into the form of one machine."""
        namespace = {name: translate(value) for name, value in self.constants.items()}
        namespace[SOURCE] = self.source
        exec(self.code, namespace)
        return namespace[self.source.tree.name]

    def again(self, function: Callable, source: Source) -> Rewritten | None:
        """The form of another function of the same text; None where that has another form."""
        scope, values = scope_of(function), {}
        for path, kind in self.outside.items():
            try:
                values[path] = reduce(getattr, path[1:], scope[path[0]])
            except (KeyError, AttributeError):
                return None
            if _kind(values[path]) != kind:
                return None
        outer = {name: frozen(values[path]) for name, path in self.paths.items()}
        return replace(self, source=source, constants={**self.constants, **outer})


def _kind(value: Any) -> Any:
    """What of a value outside decides over a form: all but which one of equal functions it is.

    Such functions come from one `def` or `lambda`, which ran several times.
    """
    function = getattr(value, "py_func", value)
    if isinstance(function, types.FunctionType):
        return type(value), function.__code__, function.__module__
    return tuple(map(_kind, value)) if type(value) is tuple else (type(value), value)


# The functions of a kernel in lock-step form, each rewritten when it is first met.
Program = dict[Callable, Rewritten]


def rewrite(function: Callable, source: Source, translate: Callable[[Any], Any]) -> Rewritten:
    """The lock-step form of a kernel or device function; arrays that it names are copied.

    `translate` turns a value of an enclosing scope into what a machine works with; it raises
    TypeError for what kernels cannot use, which becomes an UnsupportedError at the value's line.
    """
    known = _of_one_text(source.file, source.lines, place_of(source.tree))
    for one in known:
        same = one.again(function, source)
        if same is not None:
            return same
    rewriter = Statements(function, source, translate)
    tree = ast.Module([rewriter.function(source.tree)], type_ignores=[])
    _locate(tree, rewriter.place)
    code = compile(tree, source.file, "exec")
    outside = {path: _kind(value) for path, value in rewriter.outside.items()}
    made = Rewritten(source, tree, code, rewriter.constants, outside, rewriter.paths)
    if not rewriter.defaults and not any(map(_is_large, rewriter.outside.values())):
        known.appendleft(made)
    return made


@lru_cache(maxsize=256)
def _of_one_text(file: str, lines: tuple[str, ...], place: tuple) -> deque[Rewritten]:
    """The last forms of functions with one text, which a kernel has that is built again."""
    return deque(maxlen=8)


def _is_large(value: Any) -> bool:
    """Whether to keep a value would keep the memory of an array."""
    return isinstance(value, np.ndarray)


def _locate(node: ast.AST, place: tuple) -> None:
    """Give nodes that stand in no file the place of what they are a part of.

    So the lock-step function has the kernel's own lines, in a traceback as in a debugger.
    """
    if "lineno" in node._attributes:
        if getattr(node, "end_lineno", None) is None:
            line, end, column, end_column = place
            node.lineno, node.end_lineno = line, end  # type: ignore[attr-defined]
            node.col_offset, node.end_col_offset = column, end_column  # type: ignore[attr-defined]
        place = place_of(node)
    for child in ast.iter_child_nodes(node):
        _locate(child, place)
