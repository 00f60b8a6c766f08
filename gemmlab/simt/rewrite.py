"""From a kernel's source to the function that runs it in lock-step.

Every value becomes an array over all lanes, so the rewritten function runs once for all threads:
`if` and loops become masks on the machine `m`, subscripts become counted loads and stores, and
names of the enclosing scopes become constants, as Numba freezes them.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gemmlab.simt.expressions import (
    ARRAY,
    INDEX,
    NEXT,
    TUPLE,
    VALUE,
    Expressions,
    M,
    load_name,
    on_machine,
    plain_parameters,
    set_name,
)
from gemmlab.simt.source import Source


@dataclass(frozen=True)
class Rewritten:
    """A kernel or device function in lock-step form, not yet bound to a machine."""

    source: Source
    code: types.CodeType
    constants: dict[str, Any]

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
    rewriter = _Rewriter(function, source, translate)
    tree = ast.Module([rewriter.function(source.tree)], type_ignores=[])
    for node in ast.walk(tree):  # new and old nodes are mixed: places would contradict each other
        if "lineno" in node._attributes:
            node.lineno = node.end_lineno = 1  # type: ignore[attr-defined]
            node.col_offset = node.end_col_offset = 0  # type: ignore[attr-defined]
    code = compile(tree, f"<simulated {source.file}>", "exec")
    return Rewritten(source, code, rewriter.constants)


class _Rewriter(Expressions):
    def function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        a = node.args
        if a.vararg or a.kwarg or a.kwonlyargs or a.posonlyargs:
            raise self.refuse(node, "a parameter other than a plain name", "use plain names")
        parameters = [p.arg for p in a.args]
        own = sorted(self.locals - set(parameters))
        start: list[ast.stmt] = [
            set_name(name, on_machine("unassigned", ast.Constant(name))) for name in own
        ]
        body = start + self.block(node.body)
        arguments = plain_parameters(M, *parameters)
        arguments.defaults = [self.constant(v, node) for v in self.defaults]
        return ast.FunctionDef(node.name, arguments, body, [], lineno=node.lineno, type_params=[])

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for statement in statements:
            result = self.visit(statement)
            out.extend(result if isinstance(result, list) else [result])
        return out or [ast.Pass()]

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        if isinstance(node.value, ast.Constant):
            return ast.Pass()  # a docstring
        return ast.Expr(self.visit(node.value))

    def visit_Pass(self, node: ast.Pass) -> ast.stmt:
        return node

    def store(self, target: ast.expr, value: ast.expr, depth: int = 0) -> list[ast.stmt]:
        """Assign to a name, an element, or a tuple of these, `depth` tuples deep."""
        if isinstance(target, ast.Name):
            named = ast.Constant(target.id), ast.Constant(target.lineno)
            return [set_name(target.id, on_machine("assign", load_name(target.id), value, *named))]
        if isinstance(target, ast.Subscript):
            where = [self.visit(target.value), self.visit(target.slice)]
            return [ast.Expr(on_machine("store", *where, value, ast.Constant(target.lineno)))]
        if isinstance(target, ast.Tuple):
            sizes = ast.Constant(len(target.elts)), ast.Constant(target.lineno)
            name = f"{TUPLE}{depth}"
            out: list[ast.stmt] = [set_name(name, on_machine("unpack", value, *sizes))]
            for i, element in enumerate(target.elts):
                part = ast.Subscript(load_name(name), ast.Constant(i), ast.Load())
                out += self.store(element, part, depth + 1)
            return out
        raise self.refuse(target, type(target).__name__, "assign to a name or an element")

    def visit_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        if len(node.targets) == 1:
            return self.store(node.targets[0], self.visit(node.value))
        out: list[ast.stmt] = [set_name(VALUE, self.visit(node.value))]
        for target in node.targets:
            out += self.store(target, load_name(VALUE))
        return out

    def visit_AnnAssign(self, node: ast.AnnAssign) -> list[ast.stmt]:
        return self.store(node.target, self.visit(node.value)) if node.value else [ast.Pass()]

    def visit_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        target, line = node.target, ast.Constant(node.lineno)
        if isinstance(target, ast.Name):
            old = ast.copy_location(load_name(target.id), target)
            value = ast.copy_location(ast.BinOp(old, node.op, node.value), node)
            return self.store(target, self.visit(value))
        if not isinstance(target, ast.Subscript):
            raise self.refuse(target, ast.unparse(target), "assign to a name or an element")
        # Array and index are evaluated once.
        element = load_name(ARRAY), load_name(INDEX)
        value = self.operation(node, on_machine("load", *element, line), None, node.value)
        return [
            set_name(ARRAY, self.visit(target.value)),
            set_name(INDEX, self.visit(target.slice)),
            ast.Expr(on_machine("store", *element, value, line)),
        ]

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        test = on_machine("if_", self.visit(node.test), ast.Constant(node.lineno))
        out: list[ast.stmt] = [ast.If(test, self.block(node.body), [])]
        if node.orelse:
            out.append(ast.If(on_machine("else_"), self.block(node.orelse), []))
        return [*out, ast.Expr(on_machine("end_if"))]

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        test = on_machine("while_", self.visit(node.test), ast.Constant(node.lineno))
        body = [*self.block(node.body), ast.Expr(on_machine("end_iteration"))]
        return [
            ast.Expr(on_machine("begin_loop")),
            ast.While(test, body, []),
            *self.after_loop(node),
        ]

    def after_loop(self, node: ast.While | ast.For) -> list[ast.stmt]:
        """The end of a loop, and its `else`, for the lanes that have met no `break`."""
        if not node.orelse:
            return [ast.Expr(on_machine("end_loop"))]
        orelse = ast.If(on_machine("loop_else"), self.block(node.orelse), [])
        return [orelse, ast.Expr(on_machine("end_if"))]

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        values = on_machine("iterate", self.visit(node.iter), ast.Constant(node.lineno))
        body = [
            *self.store(node.target, load_name(NEXT)),
            *self.block(node.body),
            ast.Expr(on_machine("end_iteration")),
        ]
        return [
            ast.Expr(on_machine("begin_loop")),
            ast.For(ast.Name(NEXT, ast.Store()), values, body, []),
            *self.after_loop(node),
        ]

    def visit_Break(self, node: ast.Break) -> ast.stmt:
        return ast.Expr(on_machine("break_"))

    def visit_Continue(self, node: ast.Continue) -> ast.stmt:
        return ast.Expr(on_machine("continue_"))

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        value = self.visit(node.value) if node.value else ast.Constant(None)
        return ast.Expr(on_machine("return_", value, ast.Constant(node.lineno)))
