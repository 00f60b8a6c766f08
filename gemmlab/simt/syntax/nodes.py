"""Parts of a syntax tree: those that the rewriter makes, names in one, and what is known of one.

Python computes with numbers that the source writes out before Numba sees them. As shapes of shared
and local arrays Numba takes only what it knows as constants: numbers, names of numbers and of
tuples outside the kernel, and names that the kernel gives to these. The compiler folds sums of
numbers, such as 16 + 1, but not of names, such as T + 1.
"""

import ast
import operator
from collections.abc import Callable

from gemmlab.simt.numbers import arithmetic

# Names of the rewriter's own begin with a dot, so that no name of a kernel can be one of them.
M, TUPLE, VALUE, NEXT, ARRAY, INDEX = ".m", ".tuple", ".value", ".next", ".array", ".index"


def load_name(identifier: str) -> ast.Name:
    """Return the value of a name."""
    return ast.Name(identifier, ast.Load())


def set_name(identifier: str, value: ast.expr) -> ast.Assign:
    """Return `identifier = value`."""
    return ast.Assign([ast.Name(identifier, ast.Store())], value)


def on_machine(method: str, *args: ast.expr) -> ast.Call:
    """Return a call of a method of a part of the machine, such as "loops.begin"."""
    part, _, name = method.partition(".")
    owner = ast.Attribute(load_name(M), part, ast.Load())
    return ast.Call(ast.Attribute(owner, name, ast.Load()), list(args), [])


def plain_parameters(*names: str) -> ast.arguments:
    """Return a parameter list of plain names."""
    return ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])


def thunk(expression: ast.expr) -> ast.Lambda:
    """Return a function without parameters that gives the expression, when it is called."""
    return ast.Lambda(plain_parameters(), expression)


def place_of(node: ast.AST) -> tuple[int, int, int, int]:
    """Return the place of a node: its first and last line, its first and last column."""
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset  # type: ignore


def children(node: ast.AST) -> list[ast.AST]:
    """Return the parts of a node, as `ast.iter_child_nodes`, which takes twice as long, gives them.

    Trees of kernels are read in many passes, each of which asks every node for them.
    """
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            found.append(value)
        elif type(value) is list:
            found += [part for part in value if isinstance(part, ast.AST)]
    return found


def names_in(node: ast.AST) -> set[str]:
    """Return the names that stand anywhere in a part of a tree."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


OPERATORS: dict[type, Callable] = {
    **{getattr(ast, name): function for name, function in arithmetic.BINARY.items()},
    **{ast.Pow: operator.pow, ast.UAdd: operator.pos, ast.USub: operator.neg},
    **{ast.Invert: operator.invert, ast.Not: operator.not_},
}
LONGEST = 128  # the longest integer that Python computes beforehand, in bits


def folded(node: ast.expr) -> int | float | complex | None:
    """Return the number that operators on written numbers give; None for anything else.

    >>> folded(ast.parse("2**-2 + 1", mode="eval").body)
    1.25
    """
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, (int, float, complex)) else None
    if not isinstance(node, (ast.BinOp, ast.UnaryOp)) or type(node.op) not in OPERATORS:
        return None
    parts = [node.operand] if isinstance(node, ast.UnaryOp) else [node.left, node.right]
    values = [folded(part) for part in parts]
    if None in values:
        return None
    if isinstance(node.op, (ast.Pow, ast.LShift)) and abs(values[1]) > LONGEST:
        return None
    try:
        result = OPERATORS[type(node.op)](*values)
    except (ArithmeticError, TypeError, ValueError):  # left to the kernel
        return None
    return result if not isinstance(result, int) or result.bit_length() <= LONGEST else None


def known_truth(test: ast.expr) -> bool | None:
    """Say whether a condition holds, where written numbers decide it; None elsewhere.

    Numba then leaves the other branch out, with the types of its values.

    >>> known_truth(ast.parse("x or 2.0", mode="eval").body)
    True
    """
    value = folded(test)
    if value is not None:
        return bool(value)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        truth = known_truth(test.operand)
        return None if truth is None else not truth
    if isinstance(test, ast.IfExp):
        chosen = known_truth(test.test)
        return None if chosen is None else known_truth(test.body if chosen else test.orelse)
    if not isinstance(test, ast.BoolOp):
        return None
    truths = {known_truth(part) for part in test.values}
    decides = isinstance(test.op, ast.Or)
    if decides in truths:
        return decides
    return None if None in truths else not decides


Static = Callable[[ast.expr], tuple[bool, object]]  # whether an expression is known, and its value


def computed_part(shape: ast.expr, tree: ast.FunctionDef, static: Static) -> ast.expr | None:
    """Return the first part of a shape that is no constant to Numba; None where all of them are."""
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
    """Return the values that a name of the function is assigned; None for one that is not plain.

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
