"""A kernel's source text is read here, and what kernels cannot say is refused."""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
import sys
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType

import numpy as np

# What to write instead of a construct that is refused.
INSTEAD = {
    ast.Try: "check beforehand with if",
    ast.With: "write its effect out",
    ast.ListComp: "fill a cuda.local.array in a loop",
    ast.GeneratorExp: "write a loop",
    ast.Import: "import outside the kernel",
    ast.ImportFrom: "import outside the kernel",
    ast.Dict: "use arrays",
    ast.List: "use a tuple or cuda.local.array",
    ast.JoinedStr: "format text outside the kernel",
    ast.NamedExpr: "assign on a line of its own",
    ast.Starred: "write the values out",
    ast.Delete: "leave it out",
    ast.Global: "pass an array",
}


INSTEAD_OF = {  # functions of the host -> what a kernel has for them
    **dict.fromkeys(
        (np.zeros, np.empty, np.ones, np.full, np.array, np.zeros_like, np.empty_like),
        "make a cuda.local.array or a cuda.shared.array, and fill it",
    ),
    **dict.fromkeys(
        (np.dot, np.matmul, np.max, np.min, np.any, np.all, np.nditer, np.ndindex, np.ndenumerate),
        "write a loop over elements",
    ),
    np.shape: "write x.shape",
    np.size: "write x.size",
    **dict.fromkeys((builtins.sorted, np.sort, np.argsort), "sort in a loop over elements"),
    **dict.fromkeys((builtins.list, builtins.dict, builtins.set), "use arrays"),
    **dict.fromkeys((builtins.input, builtins.open), "read before the launch, and pass an array"),
}


def instead_of(function: Callable) -> str | None:
    """Give the advice on what a kernel has for a function of the host; None where there is none."""
    if "random" in type(getattr(function, "__self__", None)).__module__:
        return "draw with numba.cuda.random, as xoroshiro128p_uniform_float32 does"
    return INSTEAD_OF.get(function) if isinstance(function, Hashable) else None


class UnsupportedError(Exception):
    """A construct that kernels cannot use here, with its line and what to write instead.

    No `SyntaxError`: IPython shows the frames of the library above one of these.
    """


def unsupported(source: Source, line: int, what: str, instead: str) -> UnsupportedError:
    """Return the refusal of `what`, at a line of `source`, with what to write instead."""
    text = f"{what} is not supported in a simulated kernel: {instead}"
    return located(UnsupportedError(f"{text}\n  {source.place(line)}"), source, line)


def located(error: Exception, source: Source, line: int) -> Exception:
    """Give an error of a kernel's source that knows its place: the file, the line, the function."""
    error.place = source.file, line, source.tree.name  # type: ignore[attr-defined]
    return error


@dataclass(frozen=True, eq=False)
class Source:
    """A kernel's text: its tree, where it starts in its file, and its lines."""

    tree: ast.FunctionDef
    file: str
    first_line: int
    lines: tuple[str, ...]

    def place(self, line: int) -> str:
        """Return the file, the number and the text of `line`."""
        return f"{self.file}, line {line}: {self.code(line)}"

    def code(self, line: int) -> str:
        """Return the text of `line`, a line of the file, which may belong to a device function."""
        index = line - self.first_line
        inside = 0 <= index < len(self.lines)
        return (self.lines[index] if inside else linecache.getline(self.file, line)).strip()

    @property
    def stored_parameters(self) -> frozenset[str]:
        """The parameters that the kernel may store to.

        Those whose elements are assigned or updated by atomics; all of them, where an array gets a
        second name that hides what is stored to: a view, or a device function's parameter.
        """
        return _stored_parameters(self.tree)


@lru_cache(maxsize=256)  # a kernel is launched again and again
def _stored_parameters(tree: ast.FunctionDef) -> frozenset[str]:
    parameters = {a.arg for a in tree.args.args}
    nodes = list(ast.walk(tree))
    indexed = [n for n in nodes if isinstance(n, (ast.Subscript, ast.Attribute))]
    owned = {id(n.value) for n in indexed}
    stored = {
        n.value.id if isinstance(n.value, ast.Name) else ""
        for n in indexed
        if isinstance(n.ctx, ast.Store)
    }
    calls = [n for n in nodes if isinstance(n, ast.Call)]
    names = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    methods = [
        n
        for n in calls
        if isinstance(n.func, ast.Attribute) and _root(n.func) in parameters | names
    ]
    stored |= {_root(n.func.value) for n in methods if n.func.attr == "fill"}
    made = {
        target.id
        for n in nodes
        if isinstance(n, ast.Assign) and n.value in calls and n.value not in methods
        for target in n.targets
        if isinstance(target, ast.Name)
    }
    # The functions of `cuda.atomic` store to their first argument alone.
    atomics = [n for n in calls if ast.unparse(n.func).startswith("cuda.atomic.")]
    updated = {_root(n.args[0]) for n in atomics if n.args}
    arguments = [
        a
        for n in calls
        for a in (*n.args[n in atomics :], *(keyword.value for keyword in n.keywords))
    ]
    passed = {a.id for a in arguments if isinstance(a, ast.Name) and id(a) not in owned}
    viewed = {_root(a) for a in arguments if isinstance(a, ast.Subscript)}  # or an element
    if stored | updated <= parameters | made and not passed & parameters:
        return frozenset((stored | viewed | updated) & parameters)
    return frozenset(parameters)


def _root(node: ast.expr) -> str:
    """Return the name of the array that an element, a view or a method is taken from."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def read_source(function: Callable) -> Source:
    """Parse a kernel; UnsupportedError where it has no source or is not a plain function."""
    _keep_command(function)
    try:
        text, start = inspect.findsource(inspect.unwrap(function))
        lines = _block(tuple(text[start:]))
        file = inspect.getsourcefile(function) or "<unknown>"
    except (OSError, TypeError) as error:
        raise UnsupportedError(
            f"the source of {function!r} cannot be read ({error}); define kernels with def "
            "in a file or a notebook cell"
        ) from None
    first = start + 1
    tree = _tree(lines, first)
    if tree is None:
        tree = _lambda(function, file)
        lines = lines[: tree.body[0].end_lineno - first + 1]
    return Source(tree, file, first, tuple(line.rstrip("\n") for line in lines))


# A kernel is read at each launch, and its text is mostly the one of the launch before.
@lru_cache(maxsize=256)
def _block(text: tuple[str, ...]) -> tuple[str, ...]:
    """Return the lines of the function that begins a text."""
    return tuple(inspect.getblock(text))


@lru_cache(maxsize=256)
def _tree(lines: tuple[str, ...], first: int) -> ast.FunctionDef | None:
    """Parse the text of a function that begins in line `first`; None for what is not one."""
    # An indented kernel is parsed below a line of its own: its comments may stand further left.
    header = "if True:\n" if lines[0][:1].isspace() else ""
    above = "\n" * (first - 1 - bool(header))  # so that the tree has the file's line numbers
    try:
        tree = ast.parse(above + header + "".join(lines)).body[0]
    except SyntaxError:  # a lambda in the middle of a statement
        return None
    if isinstance(tree, ast.If):
        tree = tree.body[0]
    return _Debuggers().visit(tree) if isinstance(tree, ast.FunctionDef) else None


class _Debuggers(ast.NodeTransformer):
    """Turns `import pdb` in a kernel, and what it is imported for, into `breakpoint()`."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}  # in the kernel -> of what

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> ast.stmt:
        prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        named = {one.asname or one.name: f"{prefix}{one.name}" for one in node.names}
        if not set(named.values()) <= {"pdb", "pdb.set_trace"}:
            return node
        self.names |= named
        return ast.copy_location(ast.Pass(), node)

    visit_ImportFrom = visit_Import  # noqa: N815 (ast's own name)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name, _, attribute = ast.unparse(node.func).partition(".")
        called = f"{self.names.get(name, '')}.{attribute}".rstrip(".")
        if called == "pdb.set_trace":
            node.func = ast.copy_location(ast.Name("breakpoint", ast.Load()), node.func)
        return node


def _keep_command(function: Callable) -> None:
    """Keep the text of `python -c TEXT` for what it defines, and for nothing else from a string."""
    code = getattr(function, "__code__", None)
    file = getattr(code, "co_filename", "")
    if file == "<string>" and "-c" in sys.orig_argv[:-1]:
        text = sys.orig_argv[sys.orig_argv.index("-c") + 1]
        command = len(text), None, text.splitlines(True), file
        kept = linecache.cache.setdefault(file, command)
        if kept == command and code not in _defined(text):  # a text that was given to `exec`
            del linecache.cache[file]


@lru_cache(maxsize=1)
def _defined(command: str) -> frozenset[CodeType]:
    """Return the codes of all functions that a command defines."""
    found, left = set(), [compile(command, "<string>", "exec", dont_inherit=True)]
    while left:
        inner = [part for part in left.pop().co_consts if isinstance(part, CodeType)]
        found.update(inner)
        left += inner
    return frozenset(found)


def _lambda(function: Callable, file: str) -> ast.FunctionDef:
    """Give a lambda as a function with the same line numbers; UnsupportedError for what is none."""
    try:
        module = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:  # a notebook's cell with commands of its own
        module = ast.Module([], [])
    found = [n for n in ast.walk(module) if isinstance(n, ast.Lambda) and _has_code(n, function)]
    if not found:
        raise UnsupportedError(f"{function!r} is not defined with def")
    innermost = max(found, key=lambda node: (node.lineno, node.col_offset))
    made = ast.parse("def _(): return 0").body[0]
    made.name, made.args = "lambda", innermost.args
    made.body = [ast.copy_location(ast.Return(innermost.body), innermost.body)]
    return ast.copy_location(made, innermost)


def _has_code(node: ast.Lambda, function: Callable) -> bool:
    """Say whether the code of `function` lies in the body of a lambda."""
    body, code = node.body, function.__code__
    first, last = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    places = [p for p in code.co_positions() if p[2] != p[3]]  # without what has no text
    inside = all(first <= (p[0], p[2]) and (p[1], p[3]) <= last for p in places)
    return node.lineno == code.co_firstlineno and inside
