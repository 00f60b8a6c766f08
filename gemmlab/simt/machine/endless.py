"""A loop without an end is told from a long one.

One turn of a loop is watched: which elements it touches, and whether it changes anything. And
`deciding` finds which variables alone decide whether a `while` goes on: where they stay the same,
it never ends. What a loop looks at in memory, others may change; so nothing is said of a loop that
asks for an element, or calls what may.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from gemmlab.simt.memory.array import Array
from gemmlab.simt.memory.batch import MemoryBatch
from gemmlab.simt.numbers.lanes import Mask, both
from gemmlab.simt.numbers.values import NUMBER


class Touched(NamedTuple):
    """Elements of an array that a turn touches, what they held, and the operation: "load", …"""

    array: Array
    where: tuple[np.ndarray, ...]
    values: np.ndarray
    op: str

    @property
    def awaited(self) -> bool:
        """Whether others may set it."""
        return self.op != "store" and self.array.shadow is not None

    @property
    def changed(self) -> bool:
        """Whether one of the elements holds another value now."""
        if len(self.values) == 1:  # asked often: whoever goes on may end any wait
            now = self.array.buffer.item(*[int(part[0]) for part in self.where])
            return now != self.values.item() and now == now
        return self.array.buffer[self.where].tobytes() != self.values.tobytes()

    def same(self, other: Touched) -> bool:
        """Say whether `other` is a touch of the same elements."""
        return self.array.buffer is other.array.buffer and all(
            np.array_equal(*pair) for pair in zip(self.where, other.where, strict=True)
        )


class Watch:
    """One turn of a loop: the lanes in it, their variables before it, and what it touches."""

    def __init__(self, m: MemoryBatch, variables: Mapping[str, Any]) -> None:
        self.m, self.mask = m, m.masks[-1]
        self.before = kept(variables)
        self.waits = waits(m)
        self.touched: list[Touched] = []
        for watchers in (m.report.watchers, m.memory.watchers):
            watchers.append(self.see)

    def see(self, m: MemoryBatch, line: int, op: str, array: Array, at: Any, mask: Mask) -> None:
        """Keep what the elements of an access hold before it is made."""
        if m is not self.m:
            return
        elements, places = m.lanes.of(at, mask)
        where = (elements,)
        if array.space == "shared":
            where = places // m.lanes.threads, elements
        self.touched.append(Touched(array, where, array.buffer[where], op))

    def end(self) -> None:
        """Stop seeing accesses: the turn is over."""
        for watchers in (self.m.report.watchers, self.m.memory.watchers):
            watchers.remove(self.see)

    def idle(self) -> bool:
        """Say whether the turn waited for others, and left memory as it was."""
        awaits = any(touched.awaited for touched in self.touched)
        if not awaits or self.waits != waits(self.m) or not _same(self.mask, self.m.masks[-1]):
            return False
        return not any(touched.changed for touched in self.touched)

    def repeats(self, variables: Mapping[str, Any]) -> bool:
        """Say whether the turn has left the variables as they were, too."""
        return self.before.keys() == variables.keys() and unchanged(
            self.before, variables, self.before, self.mask
        )

    def spun(self, variables: Mapping[str, Any]) -> bool:
        """Say whether the turn asked by an atomic, in vain for the lanes that are still there."""
        return (
            any(touched.op == "atomic" for touched in self.touched)
            and self.waits == waits(self.m)
            and self.before.keys() == variables.keys()
            and unchanged(self.before, variables, self.before, self.m.masks[-1])
        )

    def frozen(self, variables: Mapping[str, Any]) -> bool:
        """Say whether the turn has left all as it was, and nobody else can change what it saw."""
        return (
            not any(touched.awaited or touched.changed for touched in self.touched)
            and self.waits == waits(self.m)
            and _same(self.mask, self.m.masks[-1])
            and self.repeats(variables)
        )

    def looks_again(self, earlier: Watch | None) -> bool:
        """Say whether the turn touched what an `earlier` one did, all of it open to others."""
        if earlier is None or len(earlier.touched) != len(self.touched):
            return False
        pairs = zip(self.touched, earlier.touched, strict=True)
        return all(now.awaited and now.same(before) for now, before in pairs)


def waits(m: MemoryBatch) -> tuple:
    """Return the counts of the barriers that lanes have passed, to be compared."""
    syncs = m.waits.syncs
    return np.asarray(m.waits.epoch).tobytes(), None if syncs is None else syncs.tobytes()


def kept(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return variables that can be compared later."""
    return {name: _kept(value) for name, value in variables.items()}


def unchanged(
    before: Mapping[str, Any], now: Mapping[str, Any], names: Collection[str], mask: Mask
) -> bool:
    """Say whether variables hold in the lanes of `mask` what was kept of them."""
    return all(_unchanged(before[name], now[name], mask) for name in names)


def _kept(value: Any) -> Any:
    """Return a value that can be compared later; of a local array, also what it holds now."""
    if isinstance(value, tuple):
        return tuple(_kept(v) for v in value)
    if getattr(value, "space", "") == "local":
        return _Local(value, [a.buffer.copy() for a in _arrays(value)])
    return value


class _Local(NamedTuple):
    """A local array, or several of which lanes choose one, and what they hold."""

    value: Any
    held: list[np.ndarray]


def _arrays(value: Any) -> tuple[Array, ...]:
    return (value,) if isinstance(value, Array) else value.options


def _unchanged(known: Any, value: Any, mask: Mask) -> bool:
    """Say whether a variable of the lanes of `mask` holds what was kept of it."""
    if known is value:
        return True
    if isinstance(known, _Local):
        held = [a.buffer for a in _arrays(value)] if value is known.value else []
        return len(held) == len(known.held) and all(
            a.tobytes() == b.tobytes() for a, b in zip(held, known.held, strict=True)
        )
    if isinstance(known, tuple) and isinstance(value, tuple) and len(known) == len(value):
        return all(_unchanged(*pair, mask) for pair in zip(known, value, strict=True))
    numbers = all(isinstance(v, NUMBER) for v in (known, value))
    if not numbers or known.dtype != value.dtype:
        return False
    differs = np.not_equal(known, value) & (np.equal(known, known) | np.equal(value, value))
    return both(mask, differs) is False


def _same(a: Mask, b: Mask) -> bool:
    return a is b or (isinstance(a, np.ndarray) and np.array_equal(a, b))


# ----------------------------------------------------------------------- what alone decides

PURE = {"abs", "bool", "float", "int", "len", "max", "min", "range", "round"}
FIXED = {"x", "y", "z", "shape", "size", "ndim", "real", "imag"}  # of a number, array or index
MODULES = {"math", "np", "numpy"}
LEAVES = (ast.Break, ast.Continue, ast.Return, ast.Raise)
DECIDES = (ast.If, ast.While, ast.For, ast.IfExp)


def deciding(tree: ast.AST, line: int) -> frozenset[str] | None:
    r"""Return the variables that decide whether the `while` at a line of a function turns again.

    None where elements of memory, or calls, may decide that as well, or where it surely ends.

    >>> loop = "def f(n):\n while n > 0:\n  if x: continue\n  n -= 1\n  y = n"
    >>> sorted(deciding(ast.parse(loop), 2))
    ['n', 'x']
    """
    loops = [n for n in ast.walk(tree) if isinstance(n, ast.While) and n.lineno == line]
    return _Deciding(loops[0]).names if len(loops) == 1 else None


class _Deciding:
    """Finds the names that a loop's end depends on, until there are no more."""

    def __init__(self, loop: ast.While) -> None:
        self.known: set[str] = set()
        self.pure = not any(isinstance(node, LEAVES) for node in loop.body)  # without a condition
        self._note(loop.test)
        before = -1
        while self.pure and before < len(self.known):
            before = len(self.known)
            for node in loop.body:
                self._visit(node)
        self.names = frozenset(self.known) if self.pure else None

    def _visit(self, node: ast.AST) -> None:
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr)):
            if self._assigns(node) and node.value is not None:
                self._note(node.value)
        elif isinstance(node, DECIDES) and any(map(self._matters, ast.walk(node))):
            self._note(node.iter if isinstance(node, ast.For) else node.test)
        for child in ast.iter_child_nodes(node):
            self._visit(child)

    def _matters(self, node: ast.AST) -> bool:
        return isinstance(node, LEAVES) or self._assigns(node)

    def _assigns(self, node: ast.AST) -> bool:
        """Say whether a node sets a name that is known to decide."""
        is_set = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        if is_set or isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr)):
            names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)
                     and isinstance(n.ctx, ast.Store)}  # fmt: skip
            return not self.known.isdisjoint(names)
        return False

    def _note(self, node: ast.AST) -> None:
        """Note the names in an expression, which must depend on nothing else."""
        self.pure &= all(map(_is_pure, ast.walk(node)))
        called = {n.func for n in ast.walk(node) if isinstance(n, ast.Call)}
        names = {n for n in ast.walk(node) if isinstance(n, ast.Name)} - called
        self.known |= {n.id for n in names}


def _is_pure(node: ast.AST) -> bool:
    """Say whether a part of an expression is the same where its variables are."""
    if isinstance(node, ast.Call):
        function = node.func
        if isinstance(function, ast.Attribute):
            return isinstance(function.value, ast.Name) and function.value.id in MODULES
        return isinstance(function, ast.Name) and function.id in PURE
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    if isinstance(node, ast.Attribute):
        root = node.value
        return node.attr in FIXED or (isinstance(root, ast.Name) and root.id in {*MODULES, "cuda"})
    return not isinstance(node, (ast.Lambda, ast.Await, ast.Starred))
