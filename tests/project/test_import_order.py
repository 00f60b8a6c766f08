"""Imports, module by module: no cycle at run time, and in `simt` strictly downwards.

An import in a function counts as one at the top of a file does. One for type checkers alone makes
no cycle at run time, but it counts in `simt`.
"""

import ast
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Set
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import gemmlab
from tests.project.test_architecture import FILES, PACKAGE, home, name_of, tree

# The parts of the simulator: a module imports only from its own part and from those to the left.
SIMT = [
    *("numbers", "syntax", "races", "memory", "report", "builtins", "threads", "machine"),
    *("launch", "cuda"),
]


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path) for path in FILES}


def at_run_time(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below one, without those for type checkers."""
    if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
        children = node.orelse
    else:
        children = list(ast.iter_child_nodes(node))
    for child in children:
        yield child
        yield from at_run_time(child)


def imports(module: ast.Module, nodes: Callable = at_run_time) -> set[str]:
    """The modules of gemmlab that a file imports at run time, or in the `nodes` of its tree."""
    found = set()
    for node in nodes(module):
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names if a.name.split(".")[0] == "gemmlab"}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "gemmlab":
            found |= {source(node.module, alias.name) for alias in node.names}
    return found


def source(module: str, name: str) -> str:
    """The module that `from module import name` loads for it."""
    if f"{module}.{name}" in MODULES:
        return f"{module}.{name}"
    if module == "gemmlab":
        return f"gemmlab.{gemmlab._LAZY.get(name) or home(name)}"
    return module


def cycle(graph: Mapping[str, Set[str]]) -> list[str]:
    """Modules that import each other in a circle; none if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


@cache
def package() -> dict[str, frozenset[str]]:
    """What each module imports."""
    return {module_of(path): frozenset(imports(tree(path))) for path in FILES}


def test_no_module_imports_itself_by_way_of_others():
    graph = {name: set(found) for name, found in package().items()}
    assert set().union(*graph.values()) <= MODULES
    assert cycle(graph) == []


def test_no_module_needs_itself_for_its_annotations_either():
    graph = {module_of(path): imports(tree(path), ast.walk) for path in FILES}
    assert cycle({name: found - {name} for name, found in graph.items()}) == []
    module = ast.parse("if TYPE_CHECKING:\n from gemmlab.simt.machine.machine import Machine")
    graph["gemmlab.simt.memory.array"] |= imports(module, ast.walk)
    assert cycle(graph) != []  # the rule can fail


def test_few_lines_import():
    """One line in twenty at most: more would tell of parts that know too much of each other."""
    lines = [line.lstrip() for path in FILES for line in path.read_text("utf-8").splitlines()]
    assert sum(line.startswith(("import ", "from ")) for line in lines) <= len(lines) / 20


def test_few_modules_serve_one_other_alone():
    """Such a module needs a reason: it is a rung, a chapter, a backend or an idea of its own."""
    users = Counter(name for found in package().values() for name in found)
    assert sum(users[name] == 1 for name in MODULES) <= 90


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("from gemmlab.simt.numbers import lanes", False),
        ("from gemmlab.simt.machine.machine import Machine", True),
        ("import gemmlab.simt.machine.machine", True),
        ("def f():\n from gemmlab.simt.machine import machine", True),
        ("if TYPE_CHECKING:\n from gemmlab.simt.machine.machine import Machine", False),
        ("if TYPE_CHECKING:\n pass\nelse:\n from gemmlab.simt.machine import machine", True),
        ("from gemmlab import simulate", True),
        ("from gemmlab import Gemm", False),
    ],
)
def test_a_cycle_is_found(code, wrong):
    graph = {k: v for k, v in package().items() if k.startswith("gemmlab.simt")}
    graph["gemmlab.simt.memory.array"] |= imports(ast.parse(code))
    assert bool(cycle(graph)) == wrong


def upward(path: Path, module: ast.Module) -> list[str]:
    """What a file of the simulator imports from parts to the right, if only for types."""
    own = path.relative_to(PACKAGE / "simt").parts[0].removesuffix(".py")
    if own not in SIMT:
        return [f"{own} has no place in SIMT"]
    allowed = SIMT[: SIMT.index(own) + 1]
    found = imports(module, ast.walk)
    names = [name.split(".") for name in found if name.startswith("gemmlab.simt")]
    return [".".join(name) for name in names if len(name) < 3 or name[2] not in allowed]


SIMULATOR = [f for f in FILES if PACKAGE / "simt" in f.parents]


@pytest.mark.parametrize(
    "path", [f for f in SIMULATOR if f != PACKAGE / "simt" / "__init__.py"], ids=name_of
)
def test_imports_of_the_simulator_go_downwards(path):
    assert upward(path, tree(path)) == []


@pytest.mark.parametrize(
    ("file", "code", "wrong"),
    [
        ("memory/array.py", "from gemmlab.simt.races.release import Releases", 0),
        ("memory/array.py", "from gemmlab.simt.memory.access import load", 0),
        ("memory/array.py", "from gemmlab.model import transactions", 0),
        ("memory/array.py", "from gemmlab.simt.report.report import Report", 1),
        ("memory/array.py", "from gemmlab.simt import Report", 1),
        ("memory/array.py", "from gemmlab import simulate", 1),
        ("memory/access.py", "if TYPE_CHECKING:\n from gemmlab.simt.machine import machine", 1),
        ("launch.py", "def f():\n from gemmlab.simt.cuda import host", 1),
        ("cuda/host.py", "from gemmlab.simt.launch import simulate", 0),
        ("helpers/array.py", "", 1),
    ],
)
def test_the_order_of_the_simulator_can_fail(file, code, wrong):
    assert len(upward(PACKAGE / "simt" / file, ast.parse(code))) == wrong


def test_every_part_of_the_simulator_has_a_place():
    parts = {f.relative_to(PACKAGE / "simt").parts[0].removesuffix(".py") for f in SIMULATOR}
    assert parts - {"__init__"} == set(SIMT)
