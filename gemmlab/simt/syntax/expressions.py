"""Names and expressions of a kernel, rewritten to run over all lanes at once."""

from __future__ import annotations

import ast
import builtins
import inspect
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from gemmlab.instructions.instruction import Instruction
from gemmlab.instructions.views import takes_constant
from gemmlab.simt.numbers.arithmetic import BINARY
from gemmlab.simt.syntax.left_out import left_out
from gemmlab.simt.syntax.names import intrinsic_path, is_cuda
from gemmlab.simt.syntax.shapes import computed_part
from gemmlab.simt.syntax.source import INSTEAD, Source, UnsupportedError, unsupported

# Of values: of indices, arrays, complex numbers, and the whole grid.
ATTRIBUTES = ("x", "y", "z", "shape", "size", "ndim", "dtype", "real", "imag", "sync")


def load_name(identifier: str) -> ast.Name:
    """The value of a name."""
    return ast.Name(identifier, ast.Load())


# Names of the rewriter's own begin with a dot, so that no name of a kernel can be one of them.
M, TUPLE, VALUE, NEXT, ARRAY, INDEX = ".m", ".tuple", ".value", ".next", ".array", ".index"


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


def _is_product(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)


class Expressions(ast.NodeTransformer):
    """Rewrites expressions; `constants` collects what they name outside the kernel."""

    def __init__(self, function: Callable, source: Source, translate: Callable) -> None:
        self.source, self.translate = source, translate
        self.constants: dict[str, Any] = {}
        self.defaults = function.__defaults__ or ()
        names = inspect.getclosurevars(function)
        self.scope = {**vars(builtins), **function.__globals__, **names.nonlocals}
        self.locals = set(function.__code__.co_varnames) | set(function.__code__.co_cellvars)
        self.left_out = left_out(source.tree, self.static)

    def refuse(self, node: ast.AST, what: str, instead: str) -> UnsupportedError:
        line = getattr(node, "lineno", self.source.first_line)
        return unsupported(self.source, line, what, instead)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Refuse what no method below handles."""
        kind = type(node)
        raise self.refuse(node, kind.__name__, INSTEAD.get(kind, "write it in another way"))

    # Names and constants

    def constant(self, value: Any, node: ast.AST) -> ast.Name:
        try:
            self.translate(value)
        except TypeError as error:
            raise self.refuse(node, ast.unparse(node), str(error)) from None
        name = f".constant{len(self.constants)}"
        frozen = type(value) is np.ndarray  # a DeviceArray is memory that stays where it is
        self.constants[name] = value.copy() if frozen else value
        return load_name(name)

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
        if isinstance(node.value, str):
            raise self.refuse(node, "text", "use numbers; print can write text")
        if isinstance(node.value, (bool, type(None))):
            return node
        return self.constant(node.value, node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        known, value = self.static(node)
        if known:
            return self.constant(value, node)
        owner = self.visit(node.value)  # what is refused in it has better advice
        if node.attr not in ATTRIBUTES:
            raise self.refuse(node, f".{node.attr}", "arrays have .shape, .size, .ndim and .dtype")
        return ast.Attribute(owner, node.attr, ast.Load())

    # Expressions

    def visit_Tuple(self, node: ast.Tuple) -> ast.expr:
        return ast.Tuple([self.visit(e) for e in node.elts], ast.Load())

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        return self.operation(node, self.visit(node.left), node.left, node.right)

    def operation(
        self,
        node: ast.BinOp | ast.AugAssign,
        left: ast.expr,
        before: ast.expr | None,
        right: ast.expr,
    ) -> ast.expr:
        """`left op right`; `before` is `left` as the source has it, or None for an element."""
        name, line = type(node.op).__name__, ast.Constant(node.lineno)
        if name not in BINARY:
            raise self.refuse(node, name, "write a loop over elements")
        if name in ("Add", "Sub"):  # a sum with a product may be one FMA
            if before is not None and _is_product(before):
                factors = self.visit(before.left), self.visit(before.right)
                values = *factors, self.visit(right)
                return on_machine("operations.fused_left", ast.Constant(name), *values, line)
            if _is_product(right):
                values = left, self.visit(right.left), self.visit(right.right)
                return on_machine("operations.fused_right", ast.Constant(name), *values, line)
        return on_machine("operations.binary", ast.Constant(name), left, self.visit(right), line)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return on_machine("operations.not_", operand)
        signed = isinstance(node.op, (ast.USub, ast.UAdd))
        if signed and isinstance(node.operand, ast.Constant):  # a negative number is a constant too
            return self.constant(ast.literal_eval(ast.unparse(node)), node)
        name = ast.Constant(type(node.op).__name__)
        return on_machine("operations.unary", name, operand, ast.Constant(node.lineno))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        method = "branches.and_" if isinstance(node.op, ast.And) else "branches.or_"
        first, *rest = (self.visit(v) for v in node.values)
        for value in rest:
            first = on_machine(method, first, thunk(value))
        return first

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if any(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops):
            raise self.refuse(node, "in", "compare with each value")
        if any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            raise self.refuse(node, "is", "use ==")
        values = [self.visit(v) for v in (node.left, *node.comparators)]
        return self.chain(values, node.ops, ast.Constant(node.lineno))

    def chain(self, values: list[ast.expr], ops: list[ast.cmpop], line: ast.Constant) -> ast.expr:
        """Comparisons a < b < c as (lambda b: a < b and b < c)(b): b is evaluated once."""
        left, right, *more = values
        name = ast.Constant(type(ops[0]).__name__)
        if not more:
            return on_machine("operations.compare", name, left, right, line)
        middle = f".operand{len(more)}"
        first = on_machine("operations.compare", name, left, load_name(middle), line)
        rest = thunk(self.chain([load_name(middle), *more], ops[1:], line))
        both = ast.Lambda(plain_parameters(middle), on_machine("branches.and_", first, rest))
        return ast.Call(both, [right], [])

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        return on_machine(
            "branches.select",
            self.visit(node.test),
            thunk(self.visit(node.body)),
            thunk(self.visit(node.orelse)),
            ast.Constant(node.lineno),
        )

    def visit_Slice(self, node: ast.Slice) -> ast.expr:
        parts = [self.visit(p) if p else ast.Constant(None) for p in (node.lower, node.upper)]
        if node.step is not None:
            raise self.refuse(node, "a slice with a step", "index element by element")
        return ast.Call(self.constant(slice, node), parts, [])

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        return self.load(node, self.visit(node.value), self.visit(node.slice))

    def load(self, node: ast.Subscript, array: ast.expr, index: ast.expr) -> ast.expr:
        """The element of `node`, loaded as often as the compiler leaves it."""
        line = ast.Constant(node.lineno)
        if node in self.left_out.again:
            return on_machine("memory.load_again", array, index, line)
        if node in self.left_out.once:
            turns = ast.Constant(self.left_out.once[node])
            return on_machine("memory.load_once", array, index, line, turns)
        return on_machine("memory.load", array, index, line)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if any(k.arg is None for k in node.keywords):
            raise self.refuse(node, "**", "write the arguments out")
        self.check_callee(node)
        # The machine notes where the call is made: for hazards, and to know shared arrays apart.
        place = ast.Constant((self.source.file, node.lineno, node.col_offset))
        arguments = [self.argument(a) for a in node.args]
        call = on_machine("calls.call", place, self.visit(node.func), *arguments)
        call.keywords = [ast.keyword(k.arg, self.argument(k.value)) for k in node.keywords]
        return call

    def argument(self, node: ast.expr) -> ast.expr:
        """An argument of a call, which may be text: to print, or the name of a type."""
        text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        return node if text else self.visit(node)

    def check_callee(self, node: ast.Call) -> None:
        """Refuse calls that Numba does not compile."""
        if isinstance(node.func, ast.Subscript) and self.static(node.func.value)[0]:
            name = ast.unparse(node.func.value)
            raise self.refuse(node, f"launching {name} in a kernel", "launch it from the host")
        known, function = self.static(node.func)
        if known and function is print and node.keywords:
            raise self.refuse(node, "print with options", "print values alone")
        makes = intrinsic_path(function) in ("shared.array", "local.array")
        if not known or not (makes or (node.args and takes_constant(function))):
            return
        given = dict(zip(("shape", "dtype"), node.args, strict=False))
        given.update({k.arg: k.value for k in node.keywords if k.arg})
        computed = computed_part(given["shape"], self.source.tree, self.static)
        if computed is not None:
            what, name = ast.unparse(computed), ast.unparse(node.func)
            raise self.refuse(
                node,
                f"{name} of {'' if isinstance(function, Instruction) else 'a shape with '}{what}",
                f"Numba takes constants there; compute {what} outside of the kernel, where it is "
                "known, and give it a name",
            )
        dtype = given.get("dtype")
        if dtype is not None and self.static(dtype)[1] in (bool, int, float):
            raise self.refuse(node, ast.unparse(dtype), "use a type with a size, such as float32")
