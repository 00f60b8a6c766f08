"""From a kernel's source to the function that runs it in lock-step.

Every value becomes an array over all lanes, so the rewritten function runs once for all threads:
`if` and loops become masks on the machine `m`, subscripts become counted loads and stores, and
names of the enclosing scopes become constants, as Numba freezes them.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gemmlab.simt.language import is_cuda
from gemmlab.simt.source import INSTEAD, Source, UnsupportedError, read_source

_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
_BITWISE = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift)


@dataclass(frozen=True)
class Rewritten:
    """A kernel or device function in lock-step form, not yet bound to a machine."""

    name: str
    code: types.CodeType
    constants: dict[str, Any]

    def bind(self, translate: Callable[[Any], Any]) -> Callable:
        """The function f(m, *args), its constants put into the form of one machine."""
        namespace = {name: translate(value) for name, value in self.constants.items()}
        exec(self.code, namespace)
        return namespace[self.name]


def rewrite(function: Callable, translate: Callable[[Any], Any]) -> Rewritten:
    """The lock-step form of a kernel or device function.

    `translate` turns a value of an enclosing scope into what a machine works with; it raises
    TypeError for what kernels cannot use, which becomes an UnsupportedError at the value's line.
    """
    source = read_source(function)
    rewriter = _Rewriter(function, source, translate)
    tree = ast.Module([rewriter.function(source.tree)], type_ignores=[])
    for node in ast.walk(tree):  # new and old nodes are mixed: places would contradict each other
        for place in ("lineno", "col_offset", "end_lineno", "end_col_offset"):
            vars(node).pop(place, None)
    code = compile(ast.fix_missing_locations(tree), f"<simulated {source.file}>", "exec")
    return Rewritten(source.tree.name, code, rewriter.constants)


def _name(identifier: str) -> ast.Name:
    return ast.Name(identifier, ast.Load())


# Names of the rewriter's own begin with a dot, so that no name of a kernel can be one of them.
_M, _TUPLE, _VALUE, _NEXT, _ARRAY, _INDEX = ".m", ".tuple", ".value", ".next", ".array", ".index"


def _set(identifier: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([ast.Name(identifier, ast.Store())], value)


def _machine(method: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(_name(_M), method, ast.Load()), list(args), [])


def _parameters(*names: str) -> ast.arguments:
    return ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])


def _thunk(expression: ast.expr) -> ast.Lambda:
    return ast.Lambda(_parameters(), expression)


class _Rewriter(ast.NodeTransformer):
    def __init__(self, function: Callable, source: Source, translate: Callable) -> None:
        self.source, self.translate = source, translate
        self.constants: dict[str, Any] = {}
        names = inspect.getclosurevars(function)
        self.scope = {**vars(builtins), **function.__globals__, **names.nonlocals}
        self.locals = set(function.__code__.co_varnames) | set(function.__code__.co_cellvars)

    def refuse(self, node: ast.AST, what: str, instead: str) -> UnsupportedError:
        line = getattr(node, "lineno", self.source.first_line)
        return UnsupportedError(
            f"{what} is not supported in a simulated kernel: {instead}\n"
            f"  {self.source.file}, line {line}: {self.source.code(line)}"
        )

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Refuse what no method below handles."""
        kind = type(node)
        raise self.refuse(node, kind.__name__, INSTEAD.get(kind, "write it in another way"))

    def function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        a = node.args
        if a.vararg or a.kwarg or a.kwonlyargs or a.posonlyargs or a.defaults:
            raise self.refuse(node, "a parameter other than a plain name", "use plain names")
        parameters = [p.arg for p in a.args]
        own = sorted(self.locals - set(parameters))
        start: list[ast.stmt] = [_set(v, _machine("unassigned", ast.Constant(v))) for v in own]
        body = start + self.block(node.body)
        arguments = _parameters(_M, *parameters)
        return ast.FunctionDef(node.name, arguments, body, [], lineno=node.lineno, type_params=[])

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for statement in statements:
            result = self.visit(statement)
            out.extend(result if isinstance(result, list) else [result])
        return out or [ast.Pass()]

    # Names and constants

    def constant(self, value: Any, node: ast.AST) -> ast.Name:
        try:
            self.translate(value)
        except TypeError as error:
            raise self.refuse(node, ast.unparse(node), str(error)) from None
        name = f".constant{len(self.constants)}"
        self.constants[name] = value
        return _name(name)

    def static(self, node: ast.expr) -> tuple[bool, Any]:
        """The value of a global name, or of an attribute of a module, without running it."""
        if isinstance(node, ast.Name) and node.id not in self.locals:
            if node.id not in self.scope:
                raise NameError(
                    f"name {node.id!r} is not defined\n  line {node.lineno}: "
                    f"{self.source.code(node.lineno)}"
                )
            return True, self.scope[node.id]
        if isinstance(node, ast.Attribute):
            known, owner = self.static(node.value)
            if known and (isinstance(owner, types.ModuleType) or is_cuda(owner)):
                if not hasattr(owner, node.attr):
                    raise self.refuse(node, ast.unparse(node), "there is no such name")
                return True, getattr(owner, node.attr)
        return False, None

    def visit_Name(self, node: ast.Name) -> ast.expr:
        known, value = self.static(node)
        return self.constant(value, node) if known else node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if isinstance(node.value, (bool, type(None), str)):
            return node
        return self.constant(node.value, node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        known, value = self.static(node)
        if known:
            return self.constant(value, node)
        if node.attr not in ("x", "y", "z", "shape", "size", "ndim", "dtype"):
            raise self.refuse(node, f".{node.attr}", "arrays have .shape, .size, .ndim and .dtype")
        return ast.Attribute(self.visit(node.value), node.attr, ast.Load())

    # Expressions

    def visit_Tuple(self, node: ast.Tuple) -> ast.expr:
        return ast.Tuple([self.visit(e) for e in node.elts], ast.Load())

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        return self.operation(node, self.visit(node.left), self.visit(node.right))

    def operation(
        self, node: ast.BinOp | ast.AugAssign, left: ast.expr, right: ast.expr
    ) -> ast.expr:
        if not isinstance(node.op, _OPERATORS + _BITWISE):
            raise self.refuse(node, type(node.op).__name__, "write a loop over elements")
        return ast.BinOp(left, node.op, right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return _machine("not_", operand)
        return ast.UnaryOp(node.op, operand)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        method = "and_" if isinstance(node.op, ast.And) else "or_"
        first, *rest = (self.visit(v) for v in node.values)
        for value in rest:
            first = _machine(method, first, _thunk(value))
        return first

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if any(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops):
            raise self.refuse(node, "in", "compare with each value")
        if any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            raise self.refuse(node, "is", "use ==")
        values = [self.visit(v) for v in (node.left, *node.comparators)]
        return self.chain(values, node.ops)

    def chain(self, values: list[ast.expr], ops: list[ast.cmpop]) -> ast.expr:
        """Comparisons a < b < c as (lambda b: a < b and b < c)(b): b is evaluated once."""
        left, right, *more = values
        if not more:
            return ast.Compare(left, ops[:1], [right])
        middle = f".operand{len(more)}"
        first = ast.Compare(left, ops[:1], [_name(middle)])
        rest = _thunk(self.chain([_name(middle), *more], ops[1:]))
        both = ast.Lambda(_parameters(middle), _machine("and_", first, rest))
        return ast.Call(both, [right], [])

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        return _machine(
            "select",
            self.visit(node.test),
            _thunk(self.visit(node.body)),
            _thunk(self.visit(node.orelse)),
        )

    def visit_Slice(self, node: ast.Slice) -> ast.expr:
        parts = [self.visit(p) if p else ast.Constant(None) for p in (node.lower, node.upper)]
        if node.step is not None:
            raise self.refuse(node, "a slice with a step", "index element by element")
        return ast.Call(self.constant(slice, node), parts, [])

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        return _machine(
            "load", self.visit(node.value), self.visit(node.slice), ast.Constant(node.lineno)
        )

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if any(k.arg is None for k in node.keywords):
            raise self.refuse(node, "**", "write the arguments out")
        # The machine notes where the call is made: for hazards, and to know shared arrays apart.
        place = ast.Constant((self.source.file, node.lineno, node.col_offset))
        call = _machine("call", place, self.visit(node.func), *(self.visit(a) for a in node.args))
        call.keywords = [ast.keyword(k.arg, self.visit(k.value)) for k in node.keywords]
        return call

    # Statements

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        if isinstance(node.value, ast.Constant):
            return ast.Pass()  # a docstring
        return ast.Expr(self.visit(node.value))

    def visit_Pass(self, node: ast.Pass) -> ast.stmt:
        return node

    def store(self, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
        if isinstance(target, ast.Name):
            named = ast.Constant(target.id), ast.Constant(target.lineno)
            return [_set(target.id, _machine("assign", _name(target.id), value, *named))]
        if isinstance(target, ast.Subscript):
            where = [self.visit(target.value), self.visit(target.slice)]
            return [ast.Expr(_machine("store", *where, value, ast.Constant(target.lineno)))]
        if isinstance(target, ast.Tuple):
            sizes = ast.Constant(len(target.elts)), ast.Constant(target.lineno)
            out: list[ast.stmt] = [_set(_TUPLE, _machine("unpack", value, *sizes))]
            for i, element in enumerate(target.elts):
                if isinstance(element, ast.Tuple):
                    raise self.refuse(target, "nested unpacking", "unpack in two lines")
                part = ast.Subscript(_name(_TUPLE), ast.Constant(i), ast.Load())
                out += self.store(element, part)
            return out
        raise self.refuse(target, type(target).__name__, "assign to a name or an element")

    def visit_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        if len(node.targets) == 1:
            return self.store(node.targets[0], self.visit(node.value))
        out: list[ast.stmt] = [_set(_VALUE, self.visit(node.value))]
        for target in node.targets:
            out += self.store(target, _name(_VALUE))
        return out

    def visit_AnnAssign(self, node: ast.AnnAssign) -> list[ast.stmt]:
        return self.store(node.target, self.visit(node.value)) if node.value else [ast.Pass()]

    def visit_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        target, line = node.target, ast.Constant(node.lineno)
        if isinstance(target, ast.Name):
            old = ast.copy_location(_name(target.id), target)
            value = ast.copy_location(ast.BinOp(old, node.op, node.value), node)
            return self.store(target, self.visit(value))
        if not isinstance(target, ast.Subscript):
            raise self.refuse(target, ast.unparse(target), "assign to a name or an element")
        # Array and index are evaluated once.
        element = _name(_ARRAY), _name(_INDEX)
        value = self.operation(node, _machine("load", *element, line), self.visit(node.value))
        return [
            _set(_ARRAY, self.visit(target.value)),
            _set(_INDEX, self.visit(target.slice)),
            ast.Expr(_machine("store", *element, value, line)),
        ]

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        out: list[ast.stmt] = [
            ast.If(_machine("if_", self.visit(node.test)), self.block(node.body), [])
        ]
        if node.orelse:
            out.append(ast.If(_machine("else_"), self.block(node.orelse), []))
        return [*out, ast.Expr(_machine("end_if"))]

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        if node.orelse:
            raise self.refuse(node, "while … else", "set a flag")
        test = _machine("while_", self.visit(node.test), ast.Constant(node.lineno))
        body = [*self.block(node.body), ast.Expr(_machine("end_iteration"))]
        return [
            ast.Expr(_machine("begin_loop")),
            ast.While(test, body, []),
            ast.Expr(_machine("end_loop")),
        ]

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        if node.orelse:
            raise self.refuse(node, "for … else", "set a flag")
        if not isinstance(node.target, ast.Name):
            raise self.refuse(node, "unpacking in for", "unpack in the loop's body")
        values = _machine("iterate", self.visit(node.iter), ast.Constant(node.lineno))
        body = [
            *self.store(node.target, _name(_NEXT)),
            *self.block(node.body),
            ast.Expr(_machine("end_iteration")),
        ]
        return [
            ast.Expr(_machine("begin_loop")),
            ast.For(ast.Name(_NEXT, ast.Store()), values, body, []),
            ast.Expr(_machine("end_loop")),
        ]

    def visit_Break(self, node: ast.Break) -> ast.stmt:
        return ast.Expr(_machine("break_"))

    def visit_Continue(self, node: ast.Continue) -> ast.stmt:
        return ast.Expr(_machine("continue_"))

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        value = self.visit(node.value) if node.value else ast.Constant(None)
        return ast.Expr(_machine("return_", value, ast.Constant(node.lineno)))
