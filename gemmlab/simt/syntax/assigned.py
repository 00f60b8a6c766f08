"""A function may read some local variables before they are assigned: these are found here.

Read in the order in which it runs, a name is *sure* where every way to it assigns it. Reads of
names that are not sure are checked while a kernel runs, lane by lane; all others are not. A branch
adds what both of its ways assign, a loop nothing, for it may turn no time, except `while True`,
which ends by `break` alone.
"""

import ast
from dataclasses import dataclass, field
from functools import lru_cache

from gemmlab.simt.syntax.nodes import children

Place = tuple[int, int]  # line and column of a name
Sure = frozenset[str] | None  # names; None where no lane goes on

ENDS = (ast.Return, ast.Raise, ast.Break, ast.Continue)


@dataclass(frozen=True)
class Unsure:
    """The names and places in a function that are not sure.

    reads : where its variables are read before they are sure; names : of these variables
    outer : where functions that are defined in it read them
    ends : whether it may come to its end, or `return` without a value, and returns one elsewhere
    """

    reads: set[Place] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    outer: set[Place] = field(default_factory=set)
    ends: bool = False


@lru_cache(maxsize=256)  # the functions of a kernel that is built with other numbers are the same
def unsure(tree: ast.FunctionDef) -> Unsure:
    """Find what is not sure in a function; functions defined in it are looked at apart."""
    flow = Flow(tree)
    parameters = frozenset(a.arg for a in tree.args.args)
    after = flow.block(tree.body, parameters)
    returns = [n for n in _own(tree) if isinstance(n, ast.Return)]
    with_value = [n for n in returns if gives_value(n)]
    partly = bool(with_value) and (after is not None or len(with_value) < len(returns))
    return Unsure(flow.reads, flow.names, flow.outer, partly)


def gives_value(node: ast.Return) -> bool:
    """Say whether a `return` gives a value other than None."""
    none = isinstance(node.value, ast.Constant) and node.value.value is None
    return node.value is not None and not none


class Flow:
    """Reads a function in the order in which it runs, and keeps what is sure on the way."""

    def __init__(self, tree: ast.FunctionDef) -> None:
        stored = {n.id for n in _own(tree) if isinstance(n, ast.Name) and _is_store(n)}
        functions = {n.name for n in _own(tree) if isinstance(n, ast.FunctionDef)}
        self.variables = stored - functions
        self.reads: set[Place] = set()
        self.names: set[str] = set()
        self.outer: set[Place] = set()
        self.breaks: list[list[Sure]] = []

    def block(self, statements: list[ast.stmt], sure: Sure) -> Sure:
        """Return the names that are sure after statements."""
        for statement in statements:
            if sure is None:
                return None
            sure = self.statement(statement, sure)
        return sure

    def statement(self, node: ast.stmt, sure: frozenset[str]) -> Sure:
        if isinstance(node, ast.FunctionDef):
            self._inner(node, sure)
            return sure
        if isinstance(node, ast.If):
            self.read(node.test, sure)
            return _common(self.block(node.body, sure), self.block(node.orelse, sure))
        if isinstance(node, (ast.For, ast.While)):
            return self._loop(node, sure)
        self.read(node, sure)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            self._name(node.target, sure)
        if isinstance(node, ast.Break) and self.breaks:
            self.breaks[-1].append(sure)
        return None if isinstance(node, ENDS) else sure | _stored(node)

    def _loop(self, node: ast.For | ast.While, sure: frozenset[str]) -> Sure:
        self.breaks.append([])
        ended: Sure = sure
        if isinstance(node, ast.For):
            self.read(node.iter, sure)
            self.read(node.target, sure)
            self.block(node.body, sure | _stored(node.target))
        else:
            self.read(node.test, sure)
            self.block(node.body, sure)
            if isinstance(node.test, ast.Constant) and node.test.value:
                ended = None
        breaks = self.breaks.pop()
        return _common(self.block(node.orelse, ended), *breaks)

    def read(self, node: ast.AST, sure: frozenset[str]) -> None:
        """Look at the names that an expression or a simple statement reads."""
        for part in _own(node):
            if isinstance(part, ast.Name) and not _is_store(part):
                self._name(part, sure)
            elif isinstance(part, ast.Lambda):
                self._inner(part, sure)

    def _name(self, node: ast.Name, sure: frozenset[str]) -> None:
        if node.id in self.variables - sure:
            self.reads.add((node.lineno, node.col_offset))
            self.names.add(node.id)

    def _inner(self, node: ast.FunctionDef | ast.Lambda, sure: frozenset[str]) -> None:
        """Look at a function in the function: what is sure here is so wherever it is called."""
        names = [n for n in _own(node) if isinstance(n, ast.Name)]
        own = {n.id for n in names if _is_store(n)} | {a.arg for a in node.args.args}
        for name in names:
            if name.id in self.variables - sure - own:
                self.outer.add((name.lineno, name.col_offset))
                self.names.add(name.id)


def _common(*ways: Sure) -> Sure:
    """Return the names that are sure whichever way a lane came."""
    ends = [way for way in ways if way is not None]
    return frozenset.intersection(*ends) if ends else None


def _own(node: ast.AST) -> list[ast.AST]:
    """Return a node and its parts, without what stands in functions that it defines."""
    parts, left = [node], [node]
    while left:
        for child in children(left.pop()):
            parts.append(child)
            if not isinstance(child, (ast.FunctionDef, ast.Lambda)):
                left.append(child)
    return parts


def _stored(node: ast.AST) -> set[str]:
    return {n.id for n in _own(node) if isinstance(n, ast.Name) and _is_store(n)}


def _is_store(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)
