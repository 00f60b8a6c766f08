"""Names of a kernel: its variables, and what is known before it runs, which are constants."""

from __future__ import annotations

import ast
import builtins
import difflib
import enum
import inspect
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from gemmlab.simt.syntax.assigned import unsure
from gemmlab.simt.syntax.left_out import left_out
from gemmlab.simt.syntax.names import is_cuda
from gemmlab.simt.syntax.nodes import load_name, on_machine, place_of
from gemmlab.simt.syntax.source import (
    INSTEAD,
    Source,
    UnsupportedError,
    instead_of,
    located,
    unsupported,
)

# Of values: of arrays, and of the whole grid.
ATTRIBUTES = ("shape", "size", "ndim", "dtype", "sync")


def _named(value: Any) -> bool:
    """Whether a value has names of numbers: an enumeration, or a named tuple."""
    return isinstance(value, enum.EnumMeta) or hasattr(value, "_fields")


def _similar(node: ast.Attribute, owner: Any) -> str:
    """That there is no such name, and which one was perhaps meant."""
    near = {name.lower(): name for name in dir(owner) if not name.startswith("_")}
    found = difflib.get_close_matches(node.attr.lower(), near, 1)
    meant = f"; did you mean {ast.unparse(node.value)}.{near[found[0]]}?" if found else ""
    return f"there is no such name{meant}"


class Constants(ast.NodeTransformer):
    """Rewrites names; `constants` collects what they name outside the kernel."""

    def __init__(self, function: Callable, source: Source, translate: Callable) -> None:
        self.source, self.translate = source, translate
        self.constants: dict[str, Any] = {}
        self.defaults = function.__defaults__ or ()
        names = inspect.getclosurevars(function)
        self.scope = {**vars(builtins), **function.__globals__, **names.nonlocals}
        self.place = place_of(source.tree)
        self.locals = set(function.__code__.co_varnames) | set(function.__code__.co_cellvars)
        self.left_out = left_out(source.tree, self.static)
        self.unsure = unsure(source.tree)
        self.outer_reads = self.unsure.outer

    def refuse(self, node: ast.AST, what: str, instead: str) -> UnsupportedError:
        line = getattr(node, "lineno", self.source.first_line)
        return unsupported(self.source, line, what, instead)

    def visit(self, node: ast.AST) -> Any:
        """What a node becomes, at the place where the node stands; a loop's is that of its head."""
        made = super().visit(node)
        head = node.test if isinstance(node, (ast.If, ast.While)) else node
        head = node.iter if isinstance(node, ast.For) else head
        for new in made if isinstance(made, list) else [made]:
            if getattr(new, "end_lineno", None) is None:
                ast.copy_location(new, head)
        return made

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Refuse what no method below handles."""
        kind = type(node)
        what = ast.unparse(node) if isinstance(node, ast.expr) else kind.__name__.lower()
        raise self.refuse(node, what, INSTEAD.get(kind, "write it in another way"))

    def constant(self, value: Any, node: ast.AST) -> ast.Name:
        try:
            self.translate(value)
        except TypeError as error:
            instead = instead_of(value) or str(error)
            raise self.refuse(node, ast.unparse(node), instead) from None
        name = f".constant{len(self.constants)}"
        frozen = type(value) is np.ndarray  # a DeviceArray is memory that stays where it is
        self.constants[name] = value.copy() if frozen else value
        return load_name(name)

    def static(self, node: ast.expr) -> tuple[bool, Any]:
        """The value of a global name, or of an attribute of a module, without running it."""
        if isinstance(node, ast.Name) and node.id not in self.locals:
            if node.id not in self.scope:
                text = f"name {node.id!r} is not defined\n  {self.source.place(node.lineno)}"
                raise located(NameError(text), self.source, node.lineno)
            return True, self.scope[node.id]
        if isinstance(node, ast.Attribute):
            known, owner = self.static(node.value)
            if known and (isinstance(owner, types.ModuleType) or is_cuda(owner) or _named(owner)):
                if not hasattr(owner, node.attr):
                    raise self.refuse(node, ast.unparse(node), _similar(node, owner))
                return True, getattr(owner, node.attr)
        return False, None

    def visit_Name(self, node: ast.Name) -> ast.expr:
        known, value = self.static(node)
        if known:
            return self.constant(value, node)
        inside = (node.lineno, node.col_offset) not in self.outer_reads
        if inside and not self.is_unsure(node):
            return node
        named = ast.Constant(node.id), ast.Constant(node.lineno)
        return on_machine(f"variables.read{'' if inside else '_outer'}", node, *named)

    def is_unsure(self, node: ast.Name) -> bool:
        """Whether a lane may read a variable that it has not assigned."""
        return (node.lineno, node.col_offset) in self.unsure.reads

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if isinstance(node.value, str):
            raise self.refuse(node, "text", "use numbers; print can write text")
        if node.value is None:
            return node
        return self.constant(node.value, node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        known, value = self.static(node)
        if known:
            return self.constant(value, node)
        owner = self.visit(node.value)
        if node.attr in ATTRIBUTES or (node.attr in "xyz" and self.static(node.value)[0]):
            return ast.Attribute(owner, node.attr, ast.Load())
        name, line = ast.Constant(node.attr), ast.Constant(node.lineno)
        return on_machine("variables.attribute", owner, name, line)
