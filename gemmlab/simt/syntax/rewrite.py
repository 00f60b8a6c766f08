"""From a kernel's source to the function that runs it in lock-step.

Every value becomes an array over all lanes, so the rewritten function runs once for all threads:
`if` and loops become masks, subscripts become counted loads and stores, all of them calls of the
parts of the machine `m`; names of the enclosing scopes become constants, as Numba freezes them.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gemmlab.simt.syntax.nodes import place_of
from gemmlab.simt.syntax.source import Source
from gemmlab.simt.syntax.statements import Statements

SOURCE = ".source"  # the global name by which a lock-step function knows its kernel's source


@dataclass(frozen=True)
class Rewritten:
    """A kernel or device function in lock-step form, not yet bound to a machine."""

    source: Source
    tree: ast.Module = field(repr=False)
    code: types.CodeType = field(repr=False)
    constants: dict[str, Any]

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


# The functions of a kernel in lock-step form, each rewritten when it is first met.
Program = dict[Callable, Rewritten]


def rewrite(function: Callable, source: Source, translate: Callable[[Any], Any]) -> Rewritten:
    """The lock-step form of a kernel or device function; arrays that it names are copied.

    `translate` turns a value of an enclosing scope into what a machine works with; it raises
    TypeError for what kernels cannot use, which becomes an UnsupportedError at the value's line.
    """
    rewriter = Statements(function, source, translate)
    tree = ast.Module([rewriter.function(source.tree)], type_ignores=[])
    _locate(tree, rewriter.place)
    code = compile(tree, source.file, "exec")
    return Rewritten(source, tree, code, rewriter.constants)


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
