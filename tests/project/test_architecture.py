"""Rules that keep the tree readable: who may import whom, what loads when, how long a file is."""

import ast
import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import pytest
from PIL import Image

import gemmlab
from book import rooms
from tests.support.paths import ROOT

PACKAGE = ROOT / "gemmlab"
FILES = sorted(PACKAGE.rglob("*.py"))
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

# Data moves one way: a module imports only what stands to its left.
ORDER = [
    *("arguments", "formats", "device", "here", "problem", "tiling"),
    *("model", "numerics"),
    *("instructions", "simt", "kernels"),
    *("measure", "compiled", "multiplication"),
    *("plots", "explorers", "course"),
    *("programs", "doctor", "cli", "__main__"),
]
FACADE_USERS = ("doctor", "cli", "__main__")  # `import gemmlab` may load anything to their left


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"), str(path))


def part(path: Path) -> str:
    """The entry of ORDER that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def home(name: str) -> str:
    """The entry of ORDER that `from gemmlab import name` reaches."""
    if name in gemmlab._LAZY:
        return gemmlab._LAZY[name].split(".")[0]
    if (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file():
        module = name
    for node in tree(PACKAGE / "__init__.py").body:
        if isinstance(node, ast.ImportFrom) and name in [alias.name for alias in node.names]:
            module = node.module.split(".")[1]
    return module


def imported(node: ast.AST) -> list[str]:
    """The entries of ORDER that one statement imports; "" is the package itself."""
    if isinstance(node, ast.Import):
        names = [alias.name.split(".") for alias in node.names]
        return [[*name, ""][1] for name in names if name[0] == "gemmlab"]
    if isinstance(node, ast.ImportFrom):
        if node.level:
            return ["a relative import"]
        names = (node.module or "").split(".")
        if names == ["gemmlab"]:
            return [home(alias.name) for alias in node.names]
        return [names[1]] if names[0] == "gemmlab" else []
    return []


def faults(path: Path, module: ast.Module) -> list[str]:
    """The imports of one file, at any depth, that go against ORDER."""
    own = part(path)
    if own not in ORDER:
        return [f"{own} has no place in ORDER"]
    found = []
    for node in ast.walk(module):
        for other in imported(node):
            if other == "":
                right = own in FACADE_USERS
            else:
                right = other in ORDER and ORDER.index(other) <= ORDER.index(own)
            if not right:
                found.append(f"{name_of(path)}:{node.lineno}: {own} imports {other or 'gemmlab'}")
    return found


def test_imports_point_to_the_left():
    files = [f for f in FILES if f != PACKAGE / "__init__.py"]
    assert [fault for path in files for fault in faults(path, tree(path))] == []


@pytest.mark.parametrize(
    ("file", "code", "wrong"),
    [
        ("model/traffic.py", "from gemmlab.problem import Gemm", 0),
        ("model/traffic.py", "from gemmlab import Gemm", 0),
        ("model/traffic.py", "from gemmlab.model import occupancy", 0),
        ("model/traffic.py", "def f():\n from gemmlab.kernels import naive", 1),
        ("model/traffic.py", "from gemmlab import run", 1),
        ("model/traffic.py", "import gemmlab", 1),
        ("model/traffic.py", "import gemmlab.plots", 1),
        ("model/traffic.py", "from . import occupancy", 1),
        ("kernels/naive.py", "from gemmlab import cuda", 0),
        ("simt/machine.py", "from gemmlab import kernels", 1),
        ("cli.py", "import gemmlab", 0),
        ("helpers.py", "", 1),
    ],
)
def test_the_import_rule_can_fail(file, code, wrong):
    assert len(faults(PACKAGE / file, ast.parse(code))) == wrong


def imported_from(module: ast.Module) -> set[str]:
    """The packages that a file imports, at any depth."""
    found = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
    return found


NUMBA = {"numba", "numba_cuda", "numba_cuda_mlir", "llvmlite"}
FOR_NUMBA = {PACKAGE / "instructions" / name for name in ("numba_cuda", "numba_cuda_mlir")}
OTHERS = [f for f in FILES if not FOR_NUMBA & set(f.parents)]


def test_what_an_instruction_is_knows_nothing_of_numba():
    instructions = [f for f in OTHERS if PACKAGE / "instructions" in f.parents]
    assert instructions
    assert [name_of(f) for f in instructions if imported_from(tree(f)) & NUMBA] == []


def test_the_rule_of_numba_can_fail():
    assert imported_from(ast.parse("def f():\n from numba.cuda import types")) & NUMBA
    assert imported_from(ast.parse("import llvmlite.ir")) & NUMBA
    for folder in FOR_NUMBA:
        assert any(imported_from(tree(f)) & NUMBA for f in folder.glob("*.py"))


def test_few_imports_lead_from_instructions_to_their_compilers():
    leading = [
        name_of(path)
        for path in OTHERS
        for node in ast.walk(tree(path))
        if "gemmlab.instructions.numba_cuda" in (getattr(node, "module", None) or "")
    ]
    assert sorted(leading) == ["instructions/__init__.py"] * 2


# ------------------------------------------------------------------------------------- what loads

ALLOWED = """
import sys
class OnlyNumPy:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names and top not in ("numpy", "gemmlab"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, OnlyNumPy())
"""


def python(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, encoding="utf-8"
    )


def test_import_is_light(capsys):
    answer = python("-X", "importtime", "-c", "import gemmlab")
    assert answer.returncode == 0, answer.stderr
    rows = re.findall(r"import time:\s+\d+ \|\s+(\d+) \|( *)(\S+)", answer.stderr)
    micros = {name: int(cumulative) for cumulative, _, name in rows}
    heavy = {"numba", "numba_cuda", "numba_cuda_mlir", "cupy", "matplotlib", "ipywidgets"}
    heavy |= {"IPython", "scipy", "tqdm"}
    assert {name.partition(".")[0] for name in micros} & heavy == set()
    with capsys.disabled():
        total, numpy = micros["gemmlab"] / 1e6, micros["numpy"] / 1e6
        print(f"\nimport gemmlab: {total:.3f} s, of which NumPy {numpy:.3f} s")


def test_numpy_alone_is_enough_for_model_and_simulator():
    code = """
import gemmlab
from gemmlab import Gemm, device, kernels, predict, run
p = Gemm(8, 8, 8)
print(predict(p, device("v100")).limiter)
print(run(kernels.tiled, p, backend="simulator").counters["global_load_sectors"])
"""
    answer = python("-c", ALLOWED + code)
    assert answer.returncode == 0, answer.stderr
    limiter, sectors = answer.stdout.split()
    assert limiter in ("math", "DRAM", "latency")
    assert int(sectors) > 0


def test_the_blocker_blocks():
    answer = python("-c", ALLOWED + "import matplotlib")
    assert "No module named 'matplotlib'" in answer.stderr


# ------------------------------------------------------------------------------------ public names


def in_order(names: list[str]) -> list[str]:
    """Constants, classes, functions; each by name, numbers in it by their value."""

    def key(name: str) -> tuple:
        kind = 0 if name.isupper() else 1 if name[0].isupper() else 2
        return kind, re.sub(r"\d+", lambda number: number[0].zfill(4), name)

    return sorted(names, key=key)


def listed(module: ast.Module) -> list[str]:
    """The names that a file's `__all__` spells out; none where it has no such list."""
    for node in module.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            names = getattr(node.value, "elts", [])  # a call spells nothing out
            return [name.value for name in names if isinstance(name, ast.Constant)]
    return []


def test_all_is_sorted():
    every = {name_of(path): listed(tree(path)) for path in FILES}
    assert sum(map(bool, every.values())) > 20
    assert {name: names for name, names in every.items() if names != in_order(names)} == {}
    assert [name for name, names in every.items() if len(names) > len(set(names))] == []


def test_the_order_of_names_can_be_wrong():
    assert listed(ast.parse('X = 1\n__all__ = ["b", "a"]')) == ["b", "a"] != in_order(["b", "a"])
    assert in_order(["f16", "f8", "Gemm", "PEAK"]) == ["PEAK", "Gemm", "f8", "f16"]


def test_public_names_exist():
    for name in gemmlab.__all__:
        assert getattr(gemmlab, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        gemmlab.no_such_name  # noqa: B018


# ------------------------------------------------------------------------------------------- files


def place_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def longer(paths: list[Path], most: int) -> dict[str, int]:
    """The files of more than so many lines, with theirs."""
    lines = {place_of(path): path.read_text("utf-8").count("\n") for path in paths}
    return {name: count for name, count in lines.items() if count > most}


def test_files_are_short():
    assert longer(FILES, 500) == {}
    assert len(longer(FILES, 290)) > 0  # the rule can fail


def folders(root: Path, most: int) -> dict[str, int]:
    """The folders with more than so many Python files of their own, with theirs."""
    count = Counter(path.parent for path in root.rglob("*.py"))
    return {place_of(path): n for path, n in count.items() if n > most}


def test_folders_can_be_surveyed():
    assert folders(PACKAGE, 20) == {}
    assert folders(PACKAGE, 10) != {}  # the rule can fail
    assert len(list(PACKAGE.glob("*.py"))) <= 9


def test_rooms_and_arrows_are_few_and_the_picture_shows_them():
    """Who adds an arrow draws again, and looks at it: ``python -m book.rooms``."""
    assert len(rooms.rooms()) <= 26
    assert len(rooms.arrows()) <= 135
    with Image.open(rooms.PICTURE) as picture:
        assert picture.text["Description"] == rooms.told(), "run: python -m book.rooms"


def test_no_room_imports_tests():
    """What measures, and what is shipped, is made without its tests; none of them is a program."""
    others = [*FILES, *(ROOT / "benchmarks").rglob("*.py"), *(ROOT / "book").glob("*.py")]
    assert [place_of(path) for path in others if "tests" in imported_from(tree(path))] == []


TESTS = sorted((ROOT / "tests").rglob("*.py"))
BENCHMARKS = sorted((ROOT / "benchmarks").glob("*.py"))
SCRIPTS = TESTS + BENCHMARKS


def test_test_files_are_short():
    assert longer(TESTS, 500) == {}


def test_the_search_path_of_modules_is_left_alone():
    """pytest, and `python -m` in the root of the repository, find `tests` and `benchmarks`."""
    word = "sys" + ".path"
    assert [place_of(path) for path in SCRIPTS if word in path.read_text("utf-8")] == []


def environment_used(module: ast.Module) -> list[int]:
    """The lines of a file that read environment variables."""
    names = {"environ", "environb", "getenv", "getenvb"}
    found = []
    for node in ast.walk(module):
        used = getattr(node, "attr", None) or getattr(node, "id", None)
        if isinstance(node, ast.ImportFrom) and node.module == "os":
            used = next((alias.name for alias in node.names if alias.name in names), None)
        if used in names:
            found.append(node.lineno)
    return found


def test_no_environment_variable_is_read():
    """A program's processes alone are told by it where their account is."""
    following = ("programs/following.py", "programs/started/sitecustomize.py")
    found = {name_of(path): environment_used(tree(path)) for path in FILES}
    assert all(found.pop(name) for name in following)
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "code", ["os.environ['X']", "from os import path, getenv", "import os as o\no.getenv('X')"]
)
def test_reading_one_would_be_found(code):
    assert environment_used(ast.parse(code))


def functions(notebook: Path) -> set[str]:
    """The functions that a notebook's cells define at their outermost level."""
    found = set()
    for cell in json.loads(notebook.read_text("utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            source = "".join(cell["source"])
            code = "\n".join("" if line[:1] in "%!" else line for line in source.splitlines())
            found |= {n.name for n in ast.parse(code).body if isinstance(n, ast.FunctionDef)}
    return found


def test_notebooks_share_no_helper():
    assert NOTEBOOKS
    homes = defaultdict(list)
    for notebook in NOTEBOOKS:
        for function in functions(notebook):
            homes[function].append(notebook.name)
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}
