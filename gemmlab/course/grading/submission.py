"""A notebook as data: its cells, their statements, and those that an answer needs.

Nothing of a notebook is run here. An answer is what is handed to ``q.check``; what it needs is
found backwards from there (`Submission.needed`): the functions, imports and assignments that it
refers to, and those that these refer to.
"""

import ast
import json
import re
import symtable
import textwrap
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from gemmlab.course import exercise_modules
from gemmlab.course.grading import allowed

LARGEST = 20 << 20  # bytes of a notebook, figures and all
CODE = 1 << 20  # characters of its code; a chapter has some thousands
STATEMENTS = 5_000
RUN = ("%%time", "%%capture", "%%prun", "%%memit")  # magics that run their cell as it stands
LEFT_OUT = 100  # lines of a cell that are left out


class UnreadableError(ValueError):
    """A file is no notebook."""


@dataclass(frozen=True)
class Cell:
    """A cell of code.

    number : among the cells of code, from 1 on; fault : why it is no Python, empty where it is
    """

    number: int
    source: str
    fault: str = ""

    @property
    def file(self) -> str:
        """What its code is called in tracebacks: the cell's own id may be any text."""
        return f"<submitted cell {self.number}>"


@dataclass(frozen=True)
class Statement:
    """A statement at the top of a cell, and what it has to do with names.

    binds : names that it gives a value; whole : whether all they held before is then gone
    touches : names whose value it may change in place
    now : names that it reads when it runs; later : names that functions in it read when called
    """

    cell: Cell
    node: ast.stmt
    binds: frozenset[str] = frozenset()
    whole: bool = True
    touches: frozenset[str] = frozenset()
    now: frozenset[str] = frozenset()
    later: frozenset[str] = frozenset()

    @property
    def place(self) -> str:
        """Where it stands, in words."""
        return f"cell {self.cell.number}, line {self.node.lineno}"


@dataclass(frozen=True)
class Check:
    """The last check of an exercise: the statement that it stands in, and what is handed to it."""

    exercise: str
    at: int
    arguments: tuple[ast.expr, ...]


@dataclass(frozen=True)
class Submission:
    """A notebook that could be read.

    checks : exercise -> its last check
    asked : exercise that the notebook has got at all -> the names that it gave it
    """

    cells: tuple[Cell, ...]
    statements: tuple[Statement, ...]
    checks: Mapping[str, Check] = field(default_factory=dict)
    asked: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        """The statements that bind a name, or may change what it holds, by the name."""
        places: dict[str, list[int]] = defaultdict(list)
        for at, statement in enumerate(self.statements):
            for name in statement.binds | statement.touches:
                places[name].append(at)
        return dict(places)

    def needed(self, check: Check) -> tuple[list[Statement], frozenset[str]]:
        """The statements that a check's answers need, in the notebook's order, and the names."""
        kept: set[int] = set()
        seen: set[tuple[str, int]] = set()
        names = {n for a in check.arguments for n in _names(ast.Expr(a))[1]}
        wanted = [(name, check.at) for name in names]
        while wanted:
            name, before = wanted.pop()
            if (name, before) in seen:
                continue
            seen.add((name, before))
            for at in self._makers(name, before):
                kept.add(at)
                statement = self.statements[at]
                wanted += [(n, at) for n in statement.now]
                wanted += [(n, before) for n in statement.later]
        return [self.statements[at] for at in sorted(kept)], frozenset(n for n, _ in seen)

    def _makers(self, name: str, before: int) -> Iterator[int]:
        """The statements that make what a name holds: the last that binds it, and changes since."""
        changes = []
        places = self._places.get(name, [])
        for at in reversed(places[: bisect_left(places, before)]):
            statement = self.statements[at]
            if name in statement.binds:
                yield at
                if not statement.whole:
                    continue
                if isinstance(statement.node, (ast.Assign, ast.AnnAssign)):
                    yield from changes  # in place, of what is no function and no module
                return
            if name in statement.touches:
                changes.append(at)

    def fault_of(self, exercise: str) -> str:
        """Why a cell that the exercise needs is no Python; empty where it needs none such.

        That is one which names the exercise, or one between an answer and its check that names the
        answer: what it would have changed is not known.
        """
        check = self.checks.get(exercise)
        names = {n for a in check.arguments for n in _names(ast.Expr(a))[1]} if check else set()
        found = []
        for cell in self.cells:
            words = set(re.findall(r"\w+(?:\.\d+)?", cell.source)) if cell.fault else set()
            stale = any(self._between(name, cell, check) for name in names & words if check)
            if stale or words & {exercise, *self.asked.get(exercise, ())}:
                found.append(f"cell {cell.number}, {cell.fault}")
        return "; ".join(found)

    def _between(self, name: str, cell: Cell, check: Check) -> bool:
        """Whether a cell stands below what makes a name, and above the check."""
        makers = [self.statements[at].cell.number for at in self._makers(name, check.at)]
        return max(makers, default=0) < cell.number < self.statements[check.at].cell.number


def read(content: bytes) -> Submission:
    """The notebook in these bytes; UnreadableError, with the reason, for what is none."""
    cells = []
    statements: list[Statement] = []
    for number, text in enumerate(_sources(content), 1):
        tree, fault = _parsed(text)
        cell = Cell(number, _source(text), fault)
        cells.append(cell)
        statements += [_statement(cell, node) for node in _flat(tree.body)]
    if len(statements) > STATEMENTS:
        raise UnreadableError(f"{len(statements):,} statements; at most {STATEMENTS:,} are read")
    checks, asked = _checks(statements)
    return Submission(tuple(cells), tuple(statements), checks, asked)


def _sources(content: bytes) -> Iterator[str]:
    """The code of each cell."""
    if len(content) > LARGEST:
        raise UnreadableError(f"{len(content):,} bytes; at most {LARGEST:,} are read")
    try:
        notebook = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"no notebook: {_first_line(error)}") from None
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise UnreadableError("no notebook: it has no list of cells (nbformat 4)")
    left = CODE
    for cell in notebook["cells"]:
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        lines = cell.get("source", "")
        lines = lines if isinstance(lines, list) else [lines]
        if not all(isinstance(line, str) for line in lines):
            raise UnreadableError("no notebook: the source of a cell is no text")
        text = "".join(lines)
        left -= len(text)
        if left < 0:
            raise UnreadableError(f"more than {CODE:,} characters of code")
        yield text


# --------------------------------------------------------------------------------- names


def _flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements, with imports that are tried in the place of what tries them."""
    for node in body:
        tried = isinstance(node, ast.Try) and node.body
        if tried and all(isinstance(one, (ast.Import, ast.ImportFrom)) for one in node.body):
            yield from node.body
        else:
            yield node


def _statement(cell: Cell, node: ast.stmt) -> Statement:
    try:
        binds, now, later = _names(node)
    except (SyntaxError, ValueError, RecursionError):  # a return outside of a function, say
        return Statement(cell, node)
    simple = (ast.FunctionDef, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.ClassDef)
    whole = isinstance(node, simple)
    if not isinstance(node, ast.FunctionDef):
        now |= later  # it may call them
    return Statement(cell, node, binds, whole, frozenset(_touched(node)), now, later)


def _names(node: ast.stmt) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """The names that a statement binds, those that it reads, and those its functions read."""
    plain = ast.unparse(ast.Module([_without_hints(node)], []))
    code = ast.unparse(_Apart().visit(ast.parse(plain)))
    table = symtable.symtable(code, "<statement>", "exec")
    symbols = table.get_symbols()
    binds = {s.get_name() for s in symbols if s.is_assigned() or s.is_imported()}
    if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
        binds |= allowed.all_of(node.module or "")
    now = {s.get_name() for s in symbols if s.is_referenced()}
    if isinstance(node, ast.AugAssign):
        now |= binds
    return frozenset(binds), frozenset(now), frozenset(_inside(table))


def _without_hints(node: ast.stmt) -> ast.stmt:
    """A function or an assignment without its annotations, which nothing here evaluates."""
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        return ast.Assign([node.target], node.value, lineno=node.lineno)
    if isinstance(node, ast.FunctionDef):
        plain = ast.FunctionDef(node.name, bare(node.args), node.body, node.decorator_list, None)
        plain.type_params = getattr(node, "type_params", [])  # type: ignore[attr-defined]
        return ast.copy_location(plain, node)
    return node


def bare(args: ast.arguments) -> ast.arguments:
    """Parameters without their annotations, which Python would evaluate."""

    def each(argument: ast.arg) -> ast.arg:
        return ast.copy_location(ast.arg(argument.arg, None), argument)

    return ast.arguments(
        [each(a) for a in args.posonlyargs],
        [each(a) for a in args.args],
        args.vararg and each(args.vararg),
        [each(a) for a in args.kwonlyargs],
        args.kw_defaults,
        args.kwarg and each(args.kwarg),
        args.defaults,
    )


class _Apart(ast.NodeTransformer):
    """Comprehensions become generators, which have names of their own in every Python.

    Since Python 3.12 a list's are the surrounding code's, though they are nothing outside of it.
    """

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp) -> ast.expr:
        self.generic_visit(node)
        return ast.GeneratorExp(node.elt, node.generators)

    visit_SetComp = visit_ListComp  # noqa: N815

    def visit_DictComp(self, node: ast.DictComp) -> ast.expr:
        self.generic_visit(node)
        return ast.GeneratorExp(ast.Tuple([node.key, node.value], ast.Load()), node.generators)


def _inside(table: symtable.SymbolTable) -> Iterator[str]:
    """The global names that the functions of a table read or set."""
    for child in table.get_children():
        yield from (s.get_name() for s in child.get_symbols() if s.is_global())
        yield from _inside(child)


def _touched(node: ast.stmt) -> Iterator[str]:
    """The names whose values a statement may change: x of x[0] = 1, and of x.append(1)."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return
    for part in ast.walk(node):
        if isinstance(part, (ast.Subscript, ast.Attribute)) and not isinstance(part.ctx, ast.Load):
            yield from _root(part)
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
            yield from _root(part.func)


def _root(node: ast.expr) -> Iterator[str]:
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id


# --------------------------------------------------------------------------------- checks


def _checks(
    statements: list[Statement],
) -> tuple[dict[str, Check], dict[str, frozenset[str]]]:
    """The last check of each exercise, and the exercises that are got, by their names."""
    called: dict[str, str] = {}  # name -> exercise
    found: dict[str, Check] = {}
    asked: dict[str, frozenset[str]] = {}
    for at, statement in enumerate(statements):
        for node in ast.walk(statement.node):
            if isinstance(node, ast.Call) and (name := _exercise(node, called)):
                asked.setdefault(name, frozenset())
                if isinstance(node.func, ast.Attribute) and node.func.attr == "check":
                    found[name] = Check(name, at, tuple(node.args))
        if isinstance(statement.node, (ast.Assign, ast.AnnAssign)):
            name = _exercise(statement.node.value, called)
            for own in statement.binds:
                called.pop(own, None)
                if name:
                    called[own] = name
                    asked[name] |= {own}
    return found, asked


def _exercise(node: ast.expr | None, called: Mapping[str, str]) -> str:
    """The exercise that an expression gets, is called by, or checks; empty where it is none."""
    if isinstance(node, ast.Name):
        return called.get(node.id, "")
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Attribute) and node.func.attr == "check":
        return _exercise(node.func.value, called)
    named = getattr(node.func, "attr", getattr(node.func, "id", ""))
    first = node.args[0] if node.args else None
    if named == "get" and isinstance(first, ast.Constant) and isinstance(first.value, str):
        return first.value if first.value in exercise_modules() else ""
    return ""


# ------------------------------------------------------------------------------- IPython's lines
# Magics, shell commands and questions are left out where Python's parser stops at them, and nowhere
# else: `% b)` may go on with a remainder, and a comment may ask something. A cell that is handed on
# whole, to a shell or a browser, has no Python.


def _parsed(text: str) -> tuple[ast.Module, str]:
    """The statements of a cell, and why there are none; the text's lines stay where they are."""
    lines = _lines(text)
    fault = ""
    for _ in range(LEFT_OUT):
        try:
            return ast.parse("\n".join(lines)), ""
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            at = getattr(error, "lineno", None) or 0
            why = getattr(error, "msg", None) or _first_line(error)
            fault = f"line {at}: {why}" if at else why
        if not 0 < at <= len(lines) or not _left_out(lines, at - 1):
            break
    return ast.Module([], []), fault


def _first_line(error: BaseException) -> str:
    """The first line of what an error says."""
    return (str(error) or type(error).__name__).splitlines()[0][:200]


def _source(text: str) -> str:
    """A cell's text with the line ends and the margin with which it is read."""
    return "\n".join(_lines(text))


def _lines(text: str) -> list[str]:
    """The lines as Python counts them; IPython takes a margin that all of them have away."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    words = lines[first].split()
    if words and words[0].startswith("%%"):
        lines[first] = ""
        if words[0] not in RUN:
            return [""]
    elif lines[first][:1] in (" ", "\t"):
        lines = textwrap.dedent("\n".join(lines)).split("\n")
    return lines


def _left_out(lines: list[str], at: int) -> bool:
    """Put Python in the place of a line that is none of its own; whether there was such a line."""
    line = lines[at]
    code = line.lstrip()
    margin = line[: len(line) - len(code)]
    name, sign, value = code.partition("=")
    if code.startswith("%time ") and code.split(None, 1)[1:]:
        lines[at] = margin + code.split(None, 1)[1]
    elif code.startswith(("%", "!")) or code.rstrip().endswith("?") or code.startswith("?"):
        lines[at] = f"{margin}pass"
    elif sign and value.lstrip()[:1] in ("%", "!") and name.strip().isidentifier():
        lines[at] = f"{margin}{name.strip()} = None"
    else:
        return False
    while line.endswith("\\") and at + 1 < len(lines):  # a command of several lines
        at += 1
        line, lines[at] = lines[at], ""
    return True
