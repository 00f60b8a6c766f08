"""A kernel's source becomes the function that runs it in lock-step: its statements, and the whole.

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

from gemmlab.simt.syntax import assigned, nodes
from gemmlab.simt.syntax.expressions import ATTRIBUTES, Expressions, Path, frozen, scope_of
from gemmlab.simt.syntax.nodes import (
    load_name,
    on_machine,
    place_of,
    plain_parameters,
    set_name,
    thunk,
)
from gemmlab.simt.syntax.source import Source


class Statements(Expressions):
    """Rewrites statements, and with them a whole function."""

    def function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Return the function f(m, *args) that does for all lanes what `node` does for one."""
        parameters = self.parameters(node)
        own = self.locals - set(parameters)
        body = self.unassigned(own, node) + self.block(node.body) + self.without_value(node)
        arguments = plain_parameters(nodes.M, *parameters)
        arguments.defaults = [self.constant(v, node) for v in self.defaults]
        return ast.FunctionDef(node.name, arguments, body, [], type_params=[])

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """Statements one after the other; those that no thread comes to are left out."""
        out: list[ast.stmt] = []
        for i, statement in enumerate(statements, 1):
            result = self.visit(statement)
            out.extend(result if isinstance(result, list) else [result])
            if i < len(statements) and _leaves(statement):
                rest = self.block(statements[i:])
                return [*out, ast.If(on_machine("branches.anybody"), rest, [])]
        return out or [ast.Pass()]

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        if isinstance(node.value, ast.Constant):
            return ast.Pass()  # a docstring
        if isinstance(node.value, ast.Call):
            return ast.Expr(self.call(node.value))
        return ast.Expr(self.visit(node.value))

    def visit_Pass(self, node: ast.Pass) -> ast.stmt:
        return node

    def store(self, target: ast.expr, value: ast.expr, depth: int = 0) -> list[ast.stmt]:
        """Assign to a name, an element, or a tuple of these, `depth` tuples deep."""
        if isinstance(target, ast.Name):
            method = "variables.assign" + "_noted" * (target.id in self.unsure.names)
            values = load_name(target.id), value, ast.Constant(target.id)
            return [set_name(target.id, on_machine(method, *values))]
        of_record = isinstance(target, ast.Attribute) and target.attr not in ATTRIBUTES
        if isinstance(target, ast.Subscript) or of_record:
            array = self.visit(target.value)
            index = ast.Constant(target.attr) if of_record else self.index(target)
            line = ast.Constant(target.lineno)
            return [ast.Expr(on_machine("memory.store", array, index, value, line))]
        if isinstance(target, ast.Tuple):
            sizes = ast.Constant(len(target.elts)), ast.Constant(target.lineno)
            name = f"{nodes.TUPLE}{depth}"
            out: list[ast.stmt] = [set_name(name, on_machine("variables.unpack", value, *sizes))]
            for i, element in enumerate(target.elts):
                part = ast.Subscript(load_name(name), ast.Constant(i), ast.Load())
                out += self.store(element, part, depth + 1)
            return out
        raise self.refuse(target, type(target).__name__, "assign to a name or an element")

    def visit_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        if len(node.targets) == 1:
            return self.store(node.targets[0], self.visit(node.value))
        out: list[ast.stmt] = [set_name(nodes.VALUE, self.visit(node.value))]
        for target in node.targets:
            out += self.store(target, load_name(nodes.VALUE))
        return out

    def visit_AnnAssign(self, node: ast.AnnAssign) -> list[ast.stmt]:
        return self.store(node.target, self.visit(node.value)) if node.value else [ast.Pass()]

    def visit_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        target, line = node.target, ast.Constant(node.lineno)
        if isinstance(target, ast.Name):
            old = ast.copy_location(load_name(target.id), target)
            value = ast.copy_location(ast.BinOp(old, node.op, node.value), node)
            return self.store(target, self.visit(value))
        # Array or record, and index, are evaluated once.
        element = load_name(nodes.ARRAY), load_name(nodes.INDEX)
        if isinstance(target, ast.Subscript):
            where, old = self.index(target), self.load(target, *element)
        elif isinstance(target, ast.Attribute) and target.attr not in ATTRIBUTES:
            where = ast.Constant(target.attr)
            old = on_machine("variables.attribute", *element, line)
        else:
            raise self.refuse(target, ast.unparse(target), "assign to a name or an element")
        value = self.operation(node, old, None, node.value)
        return [
            set_name(nodes.ARRAY, self.visit(target.value)),
            set_name(nodes.INDEX, where),
            ast.Expr(on_machine("memory.store", *element, value, line)),
        ]

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        both = isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And)
        parts = node.test.values if both else [node.test]  # type: ignore[attr-defined]
        fixed = [self.visit(part) for part in parts if self.is_fixed(part)]
        known: list[ast.expr] = []
        if fixed:  # Numba prunes by it
            known = [thunk(ast.Tuple(fixed, ast.Load())), ast.Constant(len(fixed) == len(parts))]
        line = ast.Constant(node.lineno)
        test = on_machine("branches.if_", self.visit(node.test), line, *known)
        ways = self.block(node.body), self.block(node.orelse)
        after: list[ast.stmt] = [_aside(node, on_machine("branches.end_if"))]
        if node in self.left_out.together:
            place = ast.Constant((node.lineno, node.col_offset))
            for way in ways:
                last = way[-1]
                while isinstance(last, ast.If):  # after a statement that some threads leave
                    last = last.body[-1]
                store = last.value  # type: ignore[attr-defined]
                store.func.attr = "store_together"
                store.args.append(place)
            after.append(ast.Expr(on_machine("memory.count_together", place)))
        out: list[ast.stmt] = [ast.If(test, ways[0], [])]
        if node.orelse:
            out.append(ast.If(on_machine("branches.else_"), ways[1], []))
        return out + after

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        test = on_machine("loops.while_", self.visit(node.test), ast.Constant(node.lineno))
        end = _aside(node, on_machine("loops.end_iteration"))
        body = [*self.rest(node), *self.block(node.body), end]
        return [
            ast.Expr(on_machine("loops.begin")),
            ast.While(test, body, []),
            *self.after_loop(node),
        ]

    def after_loop(self, node: ast.While | ast.For) -> list[ast.stmt]:
        """Return the end of a loop, and its `else`, for the lanes that have met no `break`."""
        if not node.orelse:
            return [_aside(node, on_machine("loops.end"))]
        orelse = ast.If(on_machine("loops.else_"), self.block(node.orelse), [])
        return [orelse, _aside(node, on_machine("loops.end_else"))]

    def rest(self, node: ast.While | ast.For) -> list[ast.stmt]:
        """Statements by which a long loop ends at once, when its rest has run thread by thread."""
        parts = list(ast.walk(node))
        names = {p.id for p in parts if isinstance(p, ast.Name) and isinstance(p.ctx, ast.Store)}
        if node.orelse or names & self.unsure.names or any(isinstance(p, WHOLE) for p in parts):
            return []
        self.loops += 1
        loops = ast.Attribute(load_name(nodes.M), "loops", ast.Load())
        left = ast.Attribute(loops, "left", ast.Load())
        values = [
            statement
            for name in sorted(names)
            for statement in self.store(
                ast.Name(name, ast.Store()), ast.Subscript(left, ast.Constant(name), ast.Load())
            )
        ]
        end = [ast.Expr(on_machine("loops.end_iteration")), ast.Break()]
        over = ast.If(on_machine("loops.rest", ast.Constant(self.loops)), [*values, *end], [])
        return [_aside(node, over)]

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        values = on_machine("loops.iterate", self.visit(node.iter), ast.Constant(node.lineno))
        body = [
            *self.store(node.target, load_name(nodes.NEXT)),
            *self.rest(node),
            *self.block(node.body),
            _aside(node, on_machine("loops.end_iteration")),
        ]
        return [
            ast.Expr(on_machine("loops.begin")),
            ast.For(ast.Name(nodes.NEXT, ast.Store()), values, body, []),
            *self.after_loop(node),
        ]

    def visit_Break(self, node: ast.Break) -> ast.stmt:
        return ast.Expr(on_machine("loops.break_"))

    def visit_Continue(self, node: ast.Continue) -> ast.stmt:
        return ast.Expr(on_machine("loops.continue_"))

    def visit_Return(self, node: ast.Return) -> list[ast.stmt]:
        value = self.visit(node.value) if node.value else ast.Constant(None)
        leave = ast.Expr(on_machine("calls.return_", value, ast.Constant(node.lineno)))
        return [leave] if assigned.gives_value(node) else [*self.without_value(node), leave]

    def without_value(self, node: ast.stmt) -> list[ast.stmt]:
        """Statements that note the lanes that end without a value, where others return one."""
        return [_aside(node, on_machine("calls.without_value"))] if self.unsure.ends else []

    def visit_FunctionDef(self, node: ast.FunctionDef) -> list[ast.stmt]:
        """A function that the kernel defines: it sees the kernel's variables."""
        names = self.parameters(node)
        own_names = (n for n in ast.walk(node) if isinstance(n, ast.Name))
        own = {n.id for n in own_names if not isinstance(n.ctx, ast.Load)}
        outer = self.locals, self.unsure
        self.locals, self.unsure = self.locals | own | set(names), assigned.unsure(node)
        self.outer_reads = self.outer_reads | self.unsure.outer
        start = self.unassigned(own - set(names), node)
        body = start + self.block(node.body) + self.without_value(node)
        self.locals, self.unsure = outer
        inner = ast.FunctionDef(node.name, plain_parameters(*names), body, [], type_params=[])
        value = on_machine("calls.inner", load_name(node.name))
        return [inner, set_name(node.name, value)]

    def unassigned(self, names: set[str], node: ast.stmt) -> list[ast.stmt]:
        """Statements that give local variables the value that cannot be read."""
        return [
            _aside(node, set_name(name, on_machine("variables.unassigned", ast.Constant(name))))
            for name in sorted(names)
        ]

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        text = ast.Constant(_text(node.msg) or ast.unparse(node.test))
        values = self.constant(AssertionError, node), text, self.visit(node.test)
        return ast.Expr(on_machine("branches.fail", *values))

    def visit_Raise(self, node: ast.Raise) -> ast.stmt:
        made = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        known, kind = self.static(made) if made is not None else (False, None)
        if not known or not (isinstance(kind, type) and issubclass(kind, Exception)):
            raise self.refuse(
                node,
                ast.unparse(node),
                "raise one of Python's own exceptions, or a class of exceptions",
            )
        text = _text(node.exc.args[0]) if isinstance(node.exc, ast.Call) and node.exc.args else ""
        values = self.constant(kind, node), ast.Constant(text), ast.Constant(False)
        return ast.Expr(on_machine("branches.fail", *values))


def _aside(node: ast.stmt, made: ast.stmt | ast.expr) -> ast.stmt:
    """Return a statement of the rewriter's own: of no width, so that a debugger passes over it."""
    line, _, column, _ = place_of(node)
    places = {"lineno": line, "end_lineno": line, "col_offset": column, "end_col_offset": column}
    statement = ast.Expr(made) if isinstance(made, ast.expr) else made
    vars(statement).update(places)
    return statement


def _text(message: ast.expr | None) -> str:
    """Return the text of an exception, as far as the source has it."""
    if message is None:
        return ""
    return str(message.value) if isinstance(message, ast.Constant) else ast.unparse(message)


# Statements of which a loop that has one stays in lock-step.
WHOLE = (ast.FunctionDef, ast.Lambda, ast.Return, ast.Raise, ast.Assert)
SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Pass)


def _leaves(statement: ast.stmt) -> bool:
    """Whether threads may leave the function, the loop or its turn in the middle of a statement."""
    if isinstance(statement, SIMPLE):  # as most are: these hold no statements
        return False
    kinds = (ast.Return, ast.Break, ast.Continue)
    return any(isinstance(node, kinds) for node in ast.walk(statement))


# The global names by which a lock-step function knows its kernel's source, and its own form.
SOURCE, TREE = ".source", ".tree"


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
        """Return the function f(m, *args), its constants put into the form of one machine."""
        namespace = {name: translate(value) for name, value in self.constants.items()}
        namespace[SOURCE], namespace[TREE] = self.source, self.tree
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
    """Return the lock-step form of a kernel or device function; arrays that it names are copied.

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
    arrays = any(isinstance(value, np.ndarray) for value in rewriter.outside.values())
    if not rewriter.defaults and not arrays:  # to keep one would keep its memory
        known.appendleft(made)
    return made


@lru_cache(maxsize=256)
def _of_one_text(file: str, lines: tuple[str, ...], place: tuple) -> deque[Rewritten]:
    """The last forms of functions with one text, which a kernel has that is built again."""
    return deque(maxlen=8)


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
    for child in nodes.children(node):
        _locate(child, place)
