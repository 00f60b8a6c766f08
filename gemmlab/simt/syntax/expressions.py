"""Expressions of a kernel, rewritten to run over all lanes at once."""

from __future__ import annotations

import ast

from gemmlab.instructions.instruction import Instruction
from gemmlab.instructions.memory import takes_constant
from gemmlab.simt.numbers.arithmetic import BINARY
from gemmlab.simt.syntax.constants import Constants
from gemmlab.simt.syntax.literals import folded, known_truth
from gemmlab.simt.syntax.names import intrinsic_path
from gemmlab.simt.syntax.nodes import (
    load_name,
    on_machine,
    plain_parameters,
    thunk,
)
from gemmlab.simt.syntax.shapes import computed_part


def _is_product(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)


class Expressions(Constants):
    """Rewrites expressions."""

    def visit_Tuple(self, node: ast.Tuple) -> ast.expr:
        return ast.Tuple([self.visit(e) for e in node.elts], ast.Load())

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        known = folded(node)
        if known is not None:
            return self.constant(known, node)
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
            raise self.refuse(node, ast.unparse(node), "write a loop over elements")
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
        known = folded(node)
        if known is not None:
            return self.constant(known, node)
        operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return on_machine("operations.not_", operand)
        name = ast.Constant(type(node.op).__name__)
        return on_machine("operations.unary", name, operand, ast.Constant(node.lineno))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        return self.joined(node, "")

    def joined(self, node: ast.BoolOp, last: str) -> ast.expr:
        """A chain of `and` or `or`; with `last`, of which the value of the last part alone is used.

        So it is of an `and` that is not the last part of an `or`: where an earlier part of it is
        false, the `or` goes on to its next part. The same holds for an `or` in an `and`.
        """
        decides = isinstance(node.op, ast.Or)
        truths = [known_truth(value) for value in node.values[:-1]]
        reached = truths.index(decides) if decides in truths else len(truths)
        inner = [v for v, t in zip(node.values[:reached], truths, strict=False) if t is None]
        name, end = "or_" if decides else "and_", node.values[reached]
        parts = [
            self.joined(v, "last")
            if isinstance(v, ast.BoolOp) and type(v.op) is not type(node.op)
            else self.visit(v)
            for v in inner
        ]
        first, *rest = [*parts, self.visit(end)]
        for value in rest:
            first = on_machine(f"branches.{name}{last}", first, thunk(value))
        return first

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        tests = (ast.In, ast.NotIn, ast.Is, ast.IsNot)
        if any(isinstance(op, tests) for op in node.ops):
            if len(node.ops) > 1:
                raise self.refuse(node, ast.unparse(node), "join two comparisons by and")
            return self.membership(node)
        values = [self.visit(v) for v in (node.left, *node.comparators)]
        return self.chain(values, node.ops, ast.Constant(node.lineno))

    def membership(self, node: ast.Compare) -> ast.expr:
        """`a in items` and `a is None`, or their opposites."""
        (op,), (other,) = node.ops, node.comparators
        pair = self.visit(node.left), self.visit(other)
        if isinstance(op, (ast.In, ast.NotIn)):
            found = on_machine("memory.contains", *pair, ast.Constant(node.lineno))
        else:
            found = on_machine("operations.same", *pair)
        negative = isinstance(op, (ast.NotIn, ast.IsNot))
        return on_machine("operations.not_", found) if negative else found

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        names = self.parameters(node)
        outer, self.locals = self.locals, self.locals | set(names)
        body = self.visit(node.body)
        self.locals = outer
        made = ast.Lambda(plain_parameters(*names), body)
        return on_machine("calls.inner", made)

    def parameters(self, node: ast.FunctionDef | ast.Lambda) -> list[str]:
        """The names of the parameters of a function: plain ones, without defaults in a kernel."""
        a = node.args
        inside = node is not self.source.tree
        if a.vararg or a.kwarg or a.kwonlyargs or a.posonlyargs or (inside and a.defaults):
            raise self.refuse(node, "a parameter other than a plain name", "use plain names")
        return [argument.arg for argument in a.args]

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
        known = known_truth(node.test)
        if known is not None:
            return self.visit(node.body if known else node.orelse)
        return on_machine(
            "branches.select",
            self.visit(node.test),
            thunk(self.visit(node.body)),
            thunk(self.visit(node.orelse)),
            ast.Constant(node.lineno),
        )

    def visit_Slice(self, node: ast.Slice) -> ast.expr:
        bounds = node.lower, node.upper, node.step
        parts = [self.visit(p) if p else ast.Constant(None) for p in bounds]
        return ast.Call(self.constant(slice, node), parts, [])

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        return self.load(node, self.visit(node.value), self.index(node))

    def load(self, node: ast.Subscript, array: ast.expr, index: ast.expr) -> ast.expr:
        """The element of `node`, loaded as often as the compiler leaves it."""
        line = ast.Constant(node.lineno)
        if node in self.left_out.again:
            return on_machine("memory.load_again", array, index, line)
        if node in self.left_out.once:
            turns = ast.Constant(self.left_out.once[node])
            return on_machine("memory.load_once", array, index, line, turns)
        return on_machine("memory.load", array, index, line)

    def index(self, node: ast.Subscript) -> ast.expr:
        """What stands in the brackets, which may be the name of a field."""
        return self.argument(node.slice)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        known, function = self.static(node.func)
        if known and not hasattr(getattr(function, "py_func", function), "__code__"):
            return self.call(node)
        return on_machine("variables.returned", self.call(node), ast.Constant(node.lineno))

    def call(self, node: ast.Call) -> ast.expr:
        """A call; of a device function, what it returns may be missing in some lanes."""
        if any(k.arg is None for k in node.keywords):
            raise self.refuse(node, "**", "write the arguments out")
        self.check_callee(node)
        if self.static(node.func) == (True, ord):
            return self.constant(self.character(node), node)
        # The machine notes where the call is made: for hazards, and to know shared arrays apart.
        place = ast.Constant((self.source.file, node.lineno, node.col_offset))
        arguments = [self.argument(a) for a in node.args]
        name = self.shuffled(node)
        if name:
            arguments[1] = on_machine("variables.offered", load_name(name), ast.Constant(name))
        call = on_machine("calls.call", place, self.visit(node.func), *arguments)
        call.keywords = [ast.keyword(k.arg, self.argument(k.value)) for k in node.keywords]
        return call

    def shuffled(self, node: ast.Call) -> str:
        """The variable that a shuffle takes from lanes that may not have assigned it, or "".

        A lane reads that of another one; its own may have no value.
        """
        shuffles = (intrinsic_path(self.static(node.func)[1]) or "").startswith("shfl_")
        value = node.args[1] if shuffles and len(node.args) == 3 else None
        unsure = isinstance(value, ast.Name) and self.is_unsure(value)
        return value.id if unsure else ""  # type: ignore[union-attr]

    def character(self, node: ast.Call) -> int:
        """The number of the character in `ord("a")`."""
        given = [a.value if isinstance(a, ast.Constant) else None for a in node.args]
        if [isinstance(text, str) and len(text) for text in given] != [1]:
            raise self.refuse(node, ast.unparse(node), 'write one character, as in ord("a")')
        return ord(given[0])

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
        if "shape" not in given:
            raise self.refuse(node, ast.unparse(node), "it takes a shape and a dtype")
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
        if dtype is not None and any(self.static(dtype)[1] is t for t in (bool, int, float)):
            raise self.refuse(node, ast.unparse(dtype), "use a type with a size, such as float32")
