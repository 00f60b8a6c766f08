"""Parts of a syntax tree: those that the rewriter makes, and the names in one."""

from __future__ import annotations

import ast

# Names of the rewriter's own begin with a dot, so that no name of a kernel can be one of them.
M, TUPLE, VALUE, NEXT, ARRAY, INDEX = ".m", ".tuple", ".value", ".next", ".array", ".index"


def load_name(identifier: str) -> ast.Name:
    """The value of a name."""
    return ast.Name(identifier, ast.Load())


def set_name(identifier: str, value: ast.expr) -> ast.Assign:
    """`identifier = value`."""
    return ast.Assign([ast.Name(identifier, ast.Store())], value)


def on_machine(method: str, *args: ast.expr) -> ast.Call:
    """A call of a method of a part of the machine, such as "loops.begin"."""
    part, _, name = method.partition(".")
    owner = ast.Attribute(load_name(M), part, ast.Load())
    return ast.Call(ast.Attribute(owner, name, ast.Load()), list(args), [])


def plain_parameters(*names: str) -> ast.arguments:
    """A parameter list of plain names."""
    return ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])


def thunk(expression: ast.expr) -> ast.Lambda:
    """A function without parameters that gives the expression, when it is called."""
    return ast.Lambda(plain_parameters(), expression)


def place_of(node: ast.AST) -> tuple[int, int, int, int]:
    """Where a node stands: its first and last line, its first and last column."""
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset  # type: ignore


def names_in(node: ast.AST) -> set[str]:
    """The names that stand anywhere in a part of a tree."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
