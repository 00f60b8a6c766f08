"""An answer's functions are made here, without running a line of what was submitted.

This happens in the process that judges. A ``def`` becomes a function whose decorators and defaults
come from a small set of expressions that nothing hides behind: constants, names, members of known
modules, entries of tables, arithmetic of numbers, and calls of a few constructors
(`Definitions._value`). An assignment that needs more is computed in a copy of this process, and its
data alone comes back. What is no data, and whatever else would have to run here, is refused in
words.
"""

import ast
import contextlib
import functools
import linecache
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from gemmlab.course.grading import allowed
from gemmlab.course.grading.allowed import ForbiddenError
from gemmlab.course.grading.computed import NoDataError, computed
from gemmlab.course.grading.submission import Check, Statement, Submission, bare
from gemmlab.device import device
from gemmlab.instructions import layout
from gemmlab.instructions.fragments import Layout
from gemmlab.problem import Gemm
from gemmlab.simt import cuda
from gemmlab.simt.numbers.types import NumberType
from gemmlab.tiling import Tiling


class RefusedError(Exception):
    """An answer cannot be made: a diagnosis, and the reason in words."""

    def __init__(self, diagnosis: str, why: str) -> None:
        super().__init__(why)
        self.diagnosis = diagnosis


class _MoreError(Exception):
    """An expression needs more than is evaluated here."""


class _Pending:
    """The value of a name that is still to be computed apart."""


PENDING = _Pending()
BUILTINS = {
    f.__name__: f
    for f in (abs, bool, bytes, complex, dict, divmod, float, frozenset, int, len, list, max, min)
} | {f.__name__: f for f in (pow, range, reversed, round, set, slice, sorted, str, sum, tuple, zip)}
OPERATORS: dict[type, Callable] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
}
BITS = 64  # of a whole number in arithmetic that is done here
STEPS = 100_000  # expressions that are evaluated here for one check
NUMBERS = (bool, int, float, complex, np.number, np.bool_)
FUNCTIONS = (
    *(math.ceil, math.floor, math.sqrt, math.log, math.log2, math.log10, math.exp, math.gcd),
    *(int, float, complex, bool, abs, min, max, range, Gemm, Tiling, Tiling.square, device, layout),
)
DECORATORS = (cuda.jit, allowed.plain, functools.cache, functools.lru_cache)


@dataclass
class Definitions:
    """What the answers of one check need, as it is made.

    space : the names that the functions of the answers see
    """

    submission: Submission
    check: Check
    space: dict[str, Any] = field(
        default_factory=lambda: {"__name__": "submission", "__builtins__": allowed.builtins_of()}
    )
    deferred: list[Statement] = field(default_factory=list)
    missing: dict[str, Statement] = field(default_factory=dict)  # to be computed apart
    _steps: int = 0
    _owner: Statement | None = None  # in which functions without a name stand

    def __post_init__(self) -> None:
        self.kept, self.names = self.submission.needed(self.check)

    def answers(self) -> tuple[Any, ...]:
        """The answers; RefusedError where one cannot be made."""
        for cell in self.submission.cells:
            lines = cell.source.splitlines(keepends=True)
            linecache.cache[cell.file] = (len(cell.source), None, lines, cell.file)
        for statement in self.kept:
            self._reaching(statement)
        for statement in self.kept:
            self._bind(statement)
        if self.missing:
            self._compute()
        for statement in self.deferred:
            self._owner = statement
            self._define_later(statement)
        self._owner = self.submission.statements[self.check.at]
        return tuple(map(self._answer, self.check.arguments))

    def _answer(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Name) and node.id not in self.space and node.id not in BUILTINS:
            raise RefusedError("not-defined", f"{node.id} is not defined in the notebook")
        try:
            found = self._value(node)
        except (_MoreError, ForbiddenError):
            text = ast.unparse(node)[:80]
            why = f"q.check({text}): hand over the name of a function that the notebook defines"
            raise RefusedError("not-defined", why) from None
        if callable(found) and not self._own(found):
            text = ast.unparse(node)[:80]
            raise RefusedError("borrowed", f"{text} is not a function that the notebook defines")
        return found

    def _own(self, found: Any) -> bool:
        """Whether a value is a function of the notebook's, marked or not."""
        plain = getattr(found, "py_func", getattr(found, "__wrapped__", found))
        return isinstance(plain, FunctionType) and plain.__globals__ is self.space

    def _reaching(self, statement: Statement) -> None:
        node = statement.node
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            return
        for diagnosis, line, words in allowed.reaching(node):
            raise RefusedError(diagnosis, f"cell {statement.cell.number}, line {line}: {words}")

    # ------------------------------------------------------------------------------- statements

    def _bind(self, statement: Statement) -> None:
        """Bind what a statement binds, or note that it is to be computed apart."""
        node = statement.node
        self._owner = statement
        try:
            if isinstance(node, ast.Import):
                self._import(node)
            elif isinstance(node, ast.ImportFrom):
                allowed.imported_from(node, self._set, self.names)
            elif isinstance(node, ast.FunctionDef):
                self._define(statement)
            elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                self._assign(node)
            else:
                raise _MoreError
        except _MoreError:
            if isinstance(node, ast.FunctionDef):
                self.deferred.append(statement)
                self.space[node.name] = PENDING
                return
            for name in statement.binds | (statement.touches & self.missing.keys()) or {""}:
                self._pend(name, statement)
            for name in statement.touches & self.space.keys():
                if isinstance(self.space[name], (list, dict, set, np.ndarray)):
                    self._pend(name, statement)
        except (ForbiddenError, AttributeError, ImportError) as error:
            raise RefusedError("reaches-out", f"{statement.place}: {error}") from None

    def _pend(self, name: str, statement: Statement) -> None:
        if name.startswith("__"):
            raise RefusedError("reaches-out", f"{statement.place}: it binds {name}")
        if name:
            self.missing[name] = statement
            self.space[name] = PENDING

    def _set(self, name: str, value: Any) -> None:
        if name.startswith("__"):
            raise ForbiddenError(f"it binds {name}")
        self.space[name] = value
        self.missing.pop(name, None)

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            if (alias.asname or top) not in self.names:
                continue
            found = allowed.module(alias.name)
            self._set(alias.asname or top, found if alias.asname else allowed.module(top))

    def _assign(self, node: ast.Assign | ast.AnnAssign) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        value = self._value(node.value)
        for target in targets:
            if isinstance(target, ast.Name):
                self._set(target.id, value)
                continue
            names = getattr(target, "elts", [])
            several = isinstance(value, (tuple, list)) and len(value) == len(names)
            if not several or not all(isinstance(name, ast.Name) for name in names):
                raise _MoreError
            for name, one in zip(names, value, strict=True):
                self._set(name.id, one)

    def _define(self, statement: Statement) -> None:
        node = statement.node
        assert isinstance(node, ast.FunctionDef)
        if getattr(node, "type_params", None):
            raise ForbiddenError("it has parameters for types, def f[T]")
        marks = [self._decorator(mark) for mark in reversed(node.decorator_list)]
        plain = ast.FunctionDef(node.name, node.args, node.body, [], None)
        plain.type_params = []  # type: ignore[attr-defined]
        function = self._function(ast.copy_location(plain, node), node.args, statement)
        for mark in marks:
            function = mark(function)
        self._set(node.name, function)

    def _decorator(self, node: ast.expr) -> Callable:
        """A decorator that only marks a function; a signature of types is left out."""
        call = node if isinstance(node, ast.Call) else None
        try:
            mark = self._value(call.func if call else node)
            options = {k.arg or "": self._value(k.value) for k in call.keywords} if call else {}
        except _MoreError:
            mark, options = None, {}
        if not any(mark is one for one in DECORATORS) or "" in options or "link" in options:
            known = "cuda.jit, numba.njit, functools.cache and functools.lru_cache"
            raise ForbiddenError(f"the decorator @{ast.unparse(node)[:60]} is none of {known}")
        options = {key: value for key, value in options.items() if type(value) in (bool, int)}
        if call is None or mark in (allowed.plain, functools.cache):
            return mark if mark is not allowed.plain else lambda function: function
        if mark is functools.lru_cache:
            return functools.lru_cache(**options)
        return partial(cuda.jit, **options)

    def _function(self, node: ast.AST, args: ast.arguments, statement: Statement) -> FunctionType:
        """A function, with defaults that are evaluated here; no line of it runs."""
        defaults = tuple(map(self._value, args.defaults))
        of_names = {
            argument.arg: self._value(default)
            for argument, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)
            if default is not None
        }
        plain = bare(args)
        plain.kw_defaults = [d and _nothing(d) for d in args.kw_defaults]
        plain.defaults = [_nothing(d) for d in args.defaults]
        node.args = plain  # type: ignore[attr-defined]
        file = statement.cell.file
        made: dict[str, Any] = {}
        if isinstance(node, ast.Lambda):
            code = compile(ast.Expression(node), file, "eval", dont_inherit=True)
            function = eval(code, self.space)
        else:
            code = compile(ast.Module([node], []), file, "exec", dont_inherit=True)
            exec(code, self.space, made)
            (function,) = made.values()
        function.__defaults__ = defaults or None
        function.__kwdefaults__ = of_names or None
        return function

    def _define_later(self, statement: Statement) -> None:
        try:
            self._define(statement)
        except _MoreError:
            node = statement.node
            assert isinstance(node, ast.FunctionDef)
            why = f"{statement.place}: a default of {node.name} has to be a number or a text"
            raise RefusedError("reaches-out", why) from None
        except (ForbiddenError, AttributeError) as error:
            raise RefusedError("reaches-out", f"{statement.place}: {error}") from None

    # ------------------------------------------------------------------------------- expressions

    def _value(self, node: ast.expr) -> Any:
        """The value of an expression that nothing hides behind; _MoreError for others."""
        self._steps += 1
        if self._steps > STEPS:
            raise _MoreError
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            found = self.space.get(node.id, BUILTINS.get(node.id, PENDING))
            if found is PENDING:
                raise _MoreError
            return found
        if isinstance(node, ast.Attribute):
            return self._member(node)
        if isinstance(node, ast.Subscript):
            return self._entry(node)
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            kind = {ast.Tuple: tuple, ast.List: list, ast.Set: set}[type(node)]
            return _made(kind, [self._value(part) for part in node.elts])
        if isinstance(node, ast.Dict) and None not in node.keys:
            keys = [self._value(key) for key in node.keys if key is not None]
            return _made(dict, zip(keys, map(self._value, node.values), strict=True))
        if isinstance(node, ast.UnaryOp):
            return _computed(node.op, self._value(node.operand))
        if isinstance(node, ast.BinOp):
            return _computed(node.op, self._value(node.left), self._value(node.right))
        if isinstance(node, ast.Lambda):
            return self._lambda(node)
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return self._each(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        raise _MoreError

    def _entry(self, node: ast.Subscript) -> Any:
        """The entry of a table, such as the instruction `WGMMA[256, "nn"]`."""
        table, key = self._value(node.value), self._value(node.slice)
        if type(table) is not dict:
            raise _MoreError
        try:
            return table[key]
        except (KeyError, TypeError):  # not there; no key
            raise _MoreError from None

    def _each(self, node: ast.ListComp | ast.GeneratorExp) -> list[Any]:
        """The values of a comprehension over few things, with one name and no condition."""
        (over, *further) = node.generators
        if further or over.ifs or over.is_async or not isinstance(over.target, ast.Name):
            raise _MoreError
        items, name = self._value(over.iter), over.target.id
        if name.startswith("__"):
            raise ForbiddenError(f"it binds {name}")
        if not isinstance(items, (str, tuple, list, range)) or len(items) > BITS:
            raise _MoreError
        before = self.space.get(name, PENDING)
        found = []
        try:
            for item in items:
                self.space[name] = item
                found.append(self._value(node.elt))
        finally:
            del self.space[name]
            if before is not PENDING:
                self.space[name] = before
        return found

    def _lambda(self, node: ast.Lambda) -> FunctionType:
        copy = ast.copy_location(ast.Lambda(node.args, node.body), node)
        assert self._owner is not None
        return self._function(copy, node.args, self._owner)

    def _member(self, node: ast.Attribute) -> Any:
        of = self._value(node.value)
        if of is Tiling and node.attr == "square":
            return Tiling.square
        if isinstance(of, Layout) and node.attr in ("element", "holds"):
            return getattr(of, node.attr)
        if not isinstance(of, ModuleType):
            raise _MoreError
        return allowed.member(of, node.attr)

    def _call(self, node: ast.Call) -> Any:
        if len(node.args) == 1 and isinstance(node.args[0], ast.Name) and not node.keywords:
            with contextlib.suppress(ForbiddenError, _MoreError):
                if self._own(marked := self._value(node.args[0])):
                    return self._decorator(node.func)(marked)
        function = self._value(node.func)
        scalar = isinstance(function, NumberType) or (
            isinstance(function, type) and issubclass(function, np.number)
        )
        known = callable(function) and any(function == one for one in FUNCTIONS)
        if not scalar and not known:
            raise _MoreError
        given = [self._value(a) for a in node.args]
        named = {k.arg or "": self._value(k.value) for k in node.keywords}
        if not all(_is_small(value) for value in (*given, *named.values())) or "" in named:
            raise _MoreError
        try:
            return function(*given, **named)
        except Exception as error:
            raise _MoreError from error

    # ------------------------------------------------------------------------------- apart

    def _compute(self) -> None:
        """Compute in a copy of this process what is missing, and take its data."""
        try:
            self.space |= computed(self.kept, self.space, self.missing)
        except NoDataError as error:
            raise RefusedError("not-computed", str(error)) from None


def _nothing(default: ast.expr) -> ast.expr:
    """What stands in a function's text for a default, which it gets later."""
    return ast.copy_location(ast.Constant(None), default)


def _made(kind: Callable, of: Any) -> Any:
    try:
        return kind(of)
    except TypeError:  # of what has no hash
        raise _MoreError from None


def _is_small(value: Any) -> bool:
    """Whether a value is a number of few digits, a short text, or few of them."""
    if isinstance(value, int):
        return value.bit_length() <= BITS
    if isinstance(value, (tuple, list)):
        return len(value) <= BITS and all(map(_is_small, value))
    return isinstance(value, (float, complex, np.number, np.bool_)) or (
        isinstance(value, str) and len(value) <= BITS
    )


def _computed(sign: ast.operator | ast.unaryop, *values: Any) -> Any:
    """The arithmetic of small numbers; _MoreError for anything else."""
    powers = isinstance(sign, (ast.Pow, ast.LShift)) and abs(values[-1]) > BITS if all(
        isinstance(v, NUMBERS) for v in values
    ) else True  # fmt: skip
    if type(sign) not in OPERATORS or powers or not all(map(_is_small, values)):
        raise _MoreError
    try:
        return OPERATORS[type(sign)](*values)
    except Exception as error:
        raise _MoreError from error
