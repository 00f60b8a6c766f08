"""Which variables alone decide whether a `while` goes on: where they stay the same, it never ends.

A loop that is longer than a limit is told from one without an end by this. What a loop looks at in
memory, others may change; so nothing is said of a loop that asks for an element, or calls what may.
"""

import ast

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
