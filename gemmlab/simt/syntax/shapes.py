"""Which shapes of shared and local arrays Numba takes: only those that it knows as constants.

Numbers, names of numbers and of tuples outside the kernel, and names that the kernel gives to
these. The compiler folds sums of numbers, such as 16 + 1, but not of names, such as T + 1.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from gemmlab.simt.syntax.nodes import names_in

Static = Callable[[ast.expr], tuple[bool, object]]  # whether an expression is known, and its value


def computed_part(shape: ast.expr, tree: ast.FunctionDef, static: Static) -> ast.expr | None:
    """The first part of a shape that is no constant to Numba; None where all of them are."""
    parts = shape.elts if isinstance(shape, ast.Tuple) else [shape]
    return next((part for part in parts if not _is_constant(part, tree, static)), None)


def _is_constant(node: ast.expr, tree: ast.FunctionDef, static: Static) -> bool:
    if not any(isinstance(n, (ast.Name, ast.Call)) for n in ast.walk(node)):
        return True
    if isinstance(node, ast.Tuple):
        return all(_is_constant(e, tree, static) for e in node.elts)
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and _is_constant(node.value, tree, static)
    if isinstance(node, (ast.Name, ast.Attribute)) and static(node)[0]:
        return True
    if not isinstance(node, ast.Name):
        return False
    values = _assigned(node.id, tree)
    return bool(values) and all(
        value is not None and node.id not in names_in(value) and _is_constant(value, tree, static)
        for value in values
    )


def _assigned(name: str, tree: ast.FunctionDef) -> list[ast.expr | None]:
    """What a name of the function is assigned; None for what is not plain.

    Several assignments are plain only outside of branches and loops.
    """
    values: list[ast.expr | None] = []
    for statement in ast.walk(tree):
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                values += _matching(name, target, statement.value)
        elif isinstance(statement, (ast.AugAssign, ast.For)) and name in names_in(statement.target):
            values.append(None)
    top = [v for s in tree.body if isinstance(s, ast.Assign) for v in ast.walk(s)]
    nested = any(v is not None and not any(v is t for t in top) for v in values)
    return [None] if len(values) > 1 and nested else values


def _matching(name: str, target: ast.expr, value: ast.expr) -> list[ast.expr | None]:
    if isinstance(target, ast.Name):
        return [value] if target.id == name else []
    if not isinstance(target, ast.Tuple) or name not in names_in(target):
        return []
    if not isinstance(value, ast.Tuple) or len(value.elts) != len(target.elts):
        return [None]
    pairs = zip(target.elts, value.elts, strict=True)
    return [found for pair in pairs for found in _matching(name, *pair)]
