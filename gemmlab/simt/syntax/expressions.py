"""Names and expressions of a kernel, rewritten to run over all lanes at once.

What a name means outside of the kernel is known before it runs, and becomes a constant.
"""

import ast
import builtins
import difflib
import enum
import types
from collections import ChainMap
from collections.abc import Callable
from typing import Any

import numpy as np

from gemmlab.instructions.instruction import Instruction
from gemmlab.instructions.memory import takes_constant
from gemmlab.simt.numbers.arithmetic import BINARY
from gemmlab.simt.syntax import nodes
from gemmlab.simt.syntax.assigned import unsure
from gemmlab.simt.syntax.left_out import left_out
from gemmlab.simt.syntax.names import intrinsic_path, is_cuda
from gemmlab.simt.syntax.nodes import load_name, on_machine, place_of, plain_parameters, thunk
from gemmlab.simt.syntax.source import (
    INSTEAD,
    Source,
    UnsupportedError,
    instead_of,
    located,
    unsupported,
)

Path = tuple[str, ...]  # to a value outside of a kernel: ("cuda", "grid"), say

# Of values: of arrays, and of the whole grid.
ATTRIBUTES = ("shape", "size", "ndim", "dtype", "sync")


def _named(value: Any) -> bool:
    """Say whether a value has names of numbers: an enumeration, or a named tuple."""
    return isinstance(value, enum.EnumMeta) or hasattr(value, "_fields")


def _similar(node: ast.Attribute, owner: Any) -> str:
    """Return the text of an error: there is no such name, and another one was perhaps meant."""
    near = {name.lower(): name for name in dir(owner) if not name.startswith("_")}
    found = difflib.get_close_matches(node.attr.lower(), near, 1)
    meant = f"; did you mean {ast.unparse(node.value)}.{near[found[0]]}?" if found else ""
    return f"there is no such name{meant}"


def scope_of(function: Callable) -> ChainMap[str, Any]:
    """The values of the names outside of a function: of closures, of its module, of Python."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    nonlocals = {name: cell.cell_contents for name, cell in cells}
    return ChainMap(nonlocals, function.__globals__, vars(builtins))


def frozen(value: Any) -> Any:
    """A constant of a kernel: an array is copied, but a DeviceArray is memory that stays where it
    is.
    """
    return value.copy() if type(value) is np.ndarray else value


def _path(node: ast.expr) -> Path:
    """The path of a name, or of an attribute of one."""
    return (*_path(node.value), node.attr) if isinstance(node, ast.Attribute) else (node.id,)


class Constants(ast.NodeTransformer):
    """Rewrites names; `constants` collects what they name outside the kernel.

    outside : the values of all names outside that were looked at, by their paths
    paths : of the constants that are such names
    """

    def __init__(self, function: Callable, source: Source, translate: Callable) -> None:
        self.source, self.translate = source, translate
        self.constants: dict[str, Any] = {}
        self.outside: dict[Path, Any] = {}
        self.paths: dict[str, Path] = {}
        self.loops = 0  # so many so far whose rest may run thread by thread
        self.defaults = function.__defaults__ or ()
        self.scope = scope_of(function)
        self.place = place_of(source.tree)
        self.locals = set(function.__code__.co_varnames) | set(function.__code__.co_cellvars)
        self.left_out = left_out(source.tree, self.static)
        self.unsure = unsure(source.tree)
        self.outer_reads = self.unsure.outer
        self.of_callers: dict[
            ast.expr, tuple[str, str]
        ] = {}  # shapes -> what is refused in kernels

    def refuse(self, node: ast.AST, what: str, instead: str) -> UnsupportedError:
        line = getattr(node, "lineno", self.source.first_line)
        return unsupported(self.source, line, what, instead)

    def visit(self, node: ast.AST) -> Any:
        """Rewrite a node, and give the result its place; that of a loop is its head's."""
        made = super().visit(node)
        head = node.test if isinstance(node, (ast.If, ast.While)) else node
        head = node.iter if isinstance(node, ast.For) else head
        for new in made if isinstance(made, list) else [made]:
            if getattr(new, "end_lineno", None) is None:
                ast.copy_location(new, head)
        return made

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Refuse what no method below handles."""
        kind = type(node)
        what = ast.unparse(node) if isinstance(node, ast.expr) else kind.__name__.lower()
        raise self.refuse(node, what, INSTEAD.get(kind, "write it in another way"))

    def constant(self, value: Any, node: ast.AST, path: Path = ()) -> ast.Name:
        try:
            self.translate(value)
        except TypeError as error:
            instead = getattr(value, "instead", None) or instead_of(value) or str(error)
            raise self.refuse(node, ast.unparse(node), instead) from None
        name = f".constant{len(self.constants)}"
        self.constants[name] = frozen(value)
        if path:
            self.paths[name] = path
        return load_name(name)

    def static(self, node: ast.expr) -> tuple[bool, Any]:
        """Return the value of a global name, or of an attribute of a module, without running it."""
        if isinstance(node, ast.Name) and node.id not in self.locals:
            try:
                value = self.scope[node.id]
            except KeyError:
                text = f"name {node.id!r} is not defined\n  {self.source.place(node.lineno)}"
                raise located(NameError(text), self.source, node.lineno) from None
            return True, self._asked(node, value)
        if isinstance(node, ast.Attribute):
            known, owner = self.static(node.value)
            if known and (isinstance(owner, types.ModuleType) or is_cuda(owner) or _named(owner)):
                if not hasattr(owner, node.attr):
                    raise self.refuse(node, ast.unparse(node), _similar(node, owner))
                return True, self._asked(node, getattr(owner, node.attr))
        return False, None

    def _asked(self, node: ast.expr, value: Any) -> Any:
        self.outside[_path(node)] = value
        return value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        known, value = self.static(node)
        if known:
            return self.constant(value, node, _path(node))
        inside = (node.lineno, node.col_offset) not in self.outer_reads
        if inside and not self.is_unsure(node):
            return node
        named = ast.Constant(node.id), ast.Constant(node.lineno)
        return on_machine(f"variables.read{'' if inside else '_outer'}", node, *named)

    def is_fixed(self, test: ast.expr) -> bool:
        """Say whether a test is of values outside of the kernel, numbers and `x.ndim` alone."""
        parts = list(ast.walk(test))
        computed = any(isinstance(part, (ast.Call, ast.Subscript, ast.Lambda)) for part in parts)
        sized = [p.value for p in parts if isinstance(p, ast.Attribute) and p.attr == "ndim"]
        names = [p for p in parts if isinstance(p, ast.Name) and not any(p is s for s in sized)]
        return not computed and all(name.id not in self.locals for name in names)

    def is_unsure(self, node: ast.Name) -> bool:
        """Say whether a lane may read a variable that it has not assigned."""
        return (node.lineno, node.col_offset) in self.unsure.reads

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if isinstance(node.value, str):
            raise self.refuse(node, "text", "use numbers; print can write text")
        if node.value is None:
            return node
        return self.constant(node.value, node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        known, value = self.static(node)
        if known:
            return self.constant(value, node, _path(node))
        owner = self.visit(node.value)
        if node.attr in ATTRIBUTES or (node.attr in "xyz" and self.static(node.value)[0]):
            return ast.Attribute(owner, node.attr, ast.Load())
        name, line = ast.Constant(node.attr), ast.Constant(node.lineno)
        return on_machine("variables.attribute", owner, name, line)


def _is_product(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)


class Expressions(Constants):
    """Rewrites expressions."""

    def visit_Tuple(self, node: ast.Tuple) -> ast.expr:
        return ast.Tuple([self.visit(e) for e in node.elts], ast.Load())

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        known = nodes.folded(node)
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
        """Give `left op right`; `before` is `left` as the source has it, or None for an element."""
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
        known = nodes.folded(node)
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
        truths = [nodes.known_truth(value) for value in node.values[:-1]]
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
        """Return `a in items` and `a is None`, or their opposites."""
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
        known = nodes.known_truth(node.test)
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
        """Return the element of `node`, loaded as often as the compiler leaves it."""
        line = ast.Constant(node.lineno)
        if node in self.left_out.again:
            return on_machine("memory.load_again", array, index, line)
        if node in self.left_out.once:
            turns = ast.Constant(self.left_out.once[node])
            return on_machine("loops.load_once", array, index, line, turns)
        return on_machine("memory.load", array, index, line)

    def index(self, node: ast.Subscript) -> ast.expr:
        """Return the expression in the brackets, which may be the name of a field."""
        return self.argument(node.slice)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        known, function = self.static(node.func)
        if known and not hasattr(getattr(function, "py_func", function), "__code__"):
            return self.call(node)
        return on_machine("variables.returned", self.call(node), ast.Constant(node.lineno))

    def call(self, node: ast.Call) -> ast.expr:
        """Return a call; of a device function, what it returns may be missing in some lanes."""
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
        """Return the variable that a shuffle takes from lanes that may not have assigned it, or "".

        A lane reads that of another one; its own may have no value.
        """
        shuffles = (intrinsic_path(self.static(node.func)[1]) or "").startswith("shfl_")
        value = node.args[1] if shuffles and len(node.args) == 3 else None
        unsure = isinstance(value, ast.Name) and self.is_unsure(value)
        return value.id if unsure else ""  # type: ignore[union-attr]

    def character(self, node: ast.Call) -> int:
        given = [a.value if isinstance(a, ast.Constant) else None for a in node.args]
        if [isinstance(text, str) and len(text) for text in given] != [1]:
            raise self.refuse(node, ast.unparse(node), 'write one character, as in ord("a")')
        return ord(given[0])

    def argument(self, node: ast.expr) -> ast.expr:
        """Return an argument of a call, which may be text: to print, or the name of a type."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node
        if node in self.of_callers:
            refused = map(ast.Constant, (*self.of_callers[node], node.lineno))
            return on_machine("calls.of_caller", self.visit(node), *refused)
        return self.visit(node)

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
        computed = nodes.computed_part(given["shape"], self.source.tree, self.static)
        if computed is not None:
            what, name = ast.unparse(computed), ast.unparse(node.func)
            refused = (
                f"{name} of {'' if isinstance(function, Instruction) else 'a shape with '}{what}",
                f"Numba takes constants there; compute {what} outside of the kernel, where it is "
                "known, and give it a name",
            )
            parameters = {a.arg for a in self.source.tree.args.args}
            if not (makes and computed is given["shape"] and what in parameters):
                raise self.refuse(node, *refused)
            self.of_callers[computed] = refused  # Numba knows it if the caller writes it out
        dtype = given.get("dtype")
        if dtype is not None and any(self.static(dtype)[1] is t for t in (bool, int, float)):
            raise self.refuse(node, ast.unparse(dtype), "use a type with a size, such as float32")
