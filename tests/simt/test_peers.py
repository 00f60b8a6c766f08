"""The example programs of Numba-CUDA's documentation give the right results on the simulator.

The examples ship with the numba-cuda package, as tests: each defines kernels, launches them and
asserts what comes out. Here those very functions run, with the host's half of `numba.cuda` replaced
for the time by gemmlab's: `jit` makes a kernel that is simulated, and an array on the device is
NumPy's. `book/numba_examples.md` lists them with what became of each; a test compares.
"""

import ast
import contextlib
import importlib.util
import io
import re
import unittest
from pathlib import Path

import numpy as np
import pytest

from benchmarks.samples.numba_examples import EXAMPLES, FOUND, RIGHT
from gemmlab.simt import HazardError, cuda as stand_in
from gemmlab.simt.cuda.random import create_xoroshiro128p_states
from tests.support.paths import ROOT

PAGE = ROOT / "book" / "numba_examples.md"
FOLDER = ("numba", "cuda", "tests", "doc_examples")

# Sizes that the host assigns, made smaller: 453 million elements are many for a CPU.
SMALLER = {
    ("test_laplace", "test_ex_laplace"): {("niter",): 500},
    ("test_random", "test_ex_3d_grid"): {
        ("X", "Y", "Z"): (35, 45, 36),
        ("gx", "gy", "gz"): (2, 2, 2),
    },
}


@pytest.fixture
def host(monkeypatch):
    """The host's half of `numba.cuda`, in NumPy."""
    numba = pytest.importorskip("numba")
    pytest.importorskip("numba_cuda")
    from numba import cuda
    from numba.cuda import random

    assert numba.cuda is cuda
    for name in ("jit", "to_device", "device_array", "device_array_like", "reduce"):
        monkeypatch.setattr(cuda, name, getattr(stand_in, name))
    monkeypatch.setattr(random, "create_xoroshiro128p_states", create_xoroshiro128p_states)


def folder():
    """Where the installed package keeps its examples, or None."""
    found = importlib.util.find_spec("numba_cuda")
    if found is None:
        return None
    path = Path(found.origin).parent.joinpath(*FOLDER)
    return path if path.is_dir() else None


def functions(path):
    """The test functions of an example's file by name, without their decorators."""
    found = {}
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            node.decorator_list = []
            found[node.name] = node
    return found


def example(file, name):
    """An example as a function of no arguments; its kernels keep their file and lines."""
    path = folder() and folder() / f"{file}.py"
    if path is None or not path.exists() or name not in functions(path):
        pytest.skip(f"the numba-cuda that is installed has no example {name} in {file}.py")
    function = functions(path)[name]
    for names, sizes in SMALLER.get((file, name), {}).items():
        [assign] = [
            node
            for node in ast.walk(function)
            if isinstance(node, ast.Assign)
            and tuple(n.id for n in ast.walk(node.targets[0]) if isinstance(n, ast.Name)) == names
        ]
        assign.value = ast.copy_location(ast.parse(repr(sizes), mode="eval").body, assign.value)
    scope = {"np": np, "captured_stdout": lambda: contextlib.redirect_stdout(io.StringIO())}
    exec(compile(ast.fix_missing_locations(ast.Module([function], [])), str(path), "exec"), scope)
    arguments = [unittest.TestCase()] if function.args.args else []
    return lambda: scope[name](*arguments)


def having(*outcomes):
    keys = [key for key, (outcome, _) in EXAMPLES.items() if outcome in outcomes]
    return pytest.mark.parametrize(("file", "name"), keys, ids=[name for _, name in keys])


@having(RIGHT)
def test_an_example_gives_the_right_result(file, name, host):
    with contextlib.redirect_stdout(io.StringIO()):
        example(file, name)()


@having(FOUND)
def test_an_example_that_has_a_fault_is_told_so(file, name, host):
    with pytest.raises(HazardError, match=r"divergent-barrier(.|\n)*grid\.sync\(\)"):
        example(file, name)()


def test_every_example_of_the_package_is_listed():
    if folder() is None:
        pytest.skip("numba-cuda, whose examples run here, is not installed")
    there = {(p.stem, name) for p in folder().glob("test_*.py") for name in functions(p)}
    assert there <= set(EXAMPLES)
    assert len(there) >= 10


def test_the_page_lists_every_example_with_its_outcome():
    table = re.findall(r"^\| `(\w+)` \| `(\w+)` \| (.+?) \|(.*)\|$", PAGE.read_text("utf-8"), re.M)
    listed = {(file, name): (outcome, why.strip()) for file, name, outcome, why in table}
    assert listed == {key: (outcome, why) for key, (outcome, why) in EXAMPLES.items()}
