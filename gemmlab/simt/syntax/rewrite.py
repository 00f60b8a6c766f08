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

from gemmlab.simt.syntax.source import Source
from gemmlab.simt.syntax.statements import Statements


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
    for node in ast.walk(tree):  # new and old nodes are mixed: places would contradict each other
        if "lineno" in node._attributes:
            node.lineno = node.end_lineno = 1  # type: ignore[attr-defined]
            node.col_offset = node.end_col_offset = 0  # type: ignore[attr-defined]
    code = compile(tree, f"<simulated {source.file}>", "exec")
    return Rewritten(source, tree, code, rewriter.constants)
