"""`gemmlab simulate`: a program is run as Python runs it, and what its kernels did is told."""

import json
import os
import re
import subprocess
import sys
from sys import path as search_path

import pytest

from gemmlab.programs import formats, running
from tests.support.paths import ROOT

RIGHT = """
import sys
import numpy as np
from numba import cuda, float32

@cuda.jit
def double(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= float32(2)

x = np.ones(100, np.float32)
double[2, 64](x)
double[2, 64](x)
double.forall(100)(x)
print(__name__, sys.argv[1:], x.sum())
"""
WRONG = RIGHT.replace("if i < x.size:", "if i <= x.size:")


@pytest.fixture
def program(tmp_path):
    """Write a program to a file."""

    def write(text, name="program.py"):
        path = tmp_path / name
        path.write_text(text, "utf-8")
        return path

    return write


def simulate(*arguments, cwd=ROOT, before=""):
    """The command in a process of its own, which finds gemmlab in any folder."""
    code = f"import sys\n{before}\nfrom gemmlab.cli import main\nsys.exit(main(sys.argv[1:]))"
    return subprocess.run(
        [sys.executable, "-c", code, "simulate", *map(str, arguments)],
        cwd=cwd, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, encoding="utf-8",
    )  # fmt: skip


def test_a_right_program_prints_and_ends_as_it_does_elsewhere(program):
    answer = simulate(program(RIGHT), "--format", "json", "-m")
    assert answer.returncode == 0
    assert answer.stdout == "__main__ ['--format', 'json', '-m'] 800.0\n"
    first, _, groups, head, *rows = answer.stderr.splitlines()
    assert first.endswith("3 launches, 0 hazards")
    assert groups.split() == ["warps", "global", "loads", "global", "stores"]
    assert re.split("  +", head) == [
        *("kernel", "defined at", "grid", "block", "launches", "seconds", "hazards"),
        *("instructions", "lanes", "sectors", "used", "sectors", "used"),
    ]
    cells = [[*row.split()[:5], *row.split()[6:]] for row in rows[:2]]
    assert cells == [
        ["double", "program.py:6", "2", "64", "2", "0", "40", "27.8", "26", "96%", "26", "96%"],
        ["double", "program.py:6", "1", "256", "1", "0", "28", "29.0", "13", "96%", "13", "96%"],
    ]
    assert "no GPU was timed" in rows[-1]


def test_hazards_have_their_lines_and_a_status(program):
    path = program(WRONG)
    answer = simulate(path)
    assert answer.returncode == 1
    assert "__main__ [] 800.0" in answer.stdout
    assert "out-of-bounds: x[100]" in answer.stderr
    assert f"{path}, line 10: x[i] *= float32(2)" in answer.stderr
    assert "[6 times in all]" in answer.stderr  # a load and a store in each of three launches


def test_json_is_data(program, tmp_path):
    out = tmp_path / "account.json"
    answer = simulate("--format", "json", "--output", out, program(WRONG), "a", "b")
    assert (answer.returncode, answer.stderr) == (1, "")
    told = json.loads(out.read_text("utf-8"))
    assert (told["status"], told["arguments"], told["simulated"]) == (0, ["a", "b"], True)
    twice, once = told["launches"]
    assert (twice["kernel"], twice["grid"], twice["launches"]) == ("double", [2, 1, 1], 2)
    assert twice["counters"]["global_load_bytes"] == 2 * once["counters"]["global_load_bytes"]
    (hazard,) = told["hazards"]
    assert (hazard["kind"], hazard["line"], hazard["index"]) == ("out-of-bounds", 10, [100])
    assert hazard["code"] == "x[i] *= float32(2)"


def test_html_needs_no_other_file(program, tmp_path):
    out = tmp_path / "account.html"
    simulate("--format=html", f"--output={out}", program(WRONG))
    page = out.read_text("utf-8")
    assert page.startswith("<!doctype html>")
    assert not any(word in page for word in ("http", "src=", "<script", "<link"))
    assert page.count("<details") == 2
    assert "x[i] *= float32(2)" in page
    assert "out-of-bounds" in page


@pytest.mark.parametrize(
    ("ending", "status", "told"),
    [
        ("sys.exit(3)", 3, ""),
        ("sys.exit()", 0, ""),
        ("sys.exit('enough')", 1, "enough"),
        ("raise ValueError('no more')", 1, "ValueError: no more"),
        ("raise KeyboardInterrupt", 130, "KeyboardInterrupt"),
        ("double[2, 64]([1])", 1, "TypeError: argument x=[1]"),
    ],
)
def test_a_program_that_ends_otherwise_still_gets_its_account(program, ending, status, told):
    answer = simulate(program(f"{RIGHT}\n{ending}\n"))
    assert answer.returncode == status
    assert told in answer.stderr
    assert "3 launches, 0 hazards" in answer.stderr
    assert "runpy" not in answer.stderr


def test_hazards_outweigh_the_status_of_the_program(program):
    assert simulate(program(f"{WRONG}\nsys.exit(3)\n")).returncode == 1


def test_a_program_that_is_not_there_or_no_program(program, tmp_path):
    answer = simulate(tmp_path / "none.py")
    assert answer.returncode == 2
    assert "there is no file" in answer.stderr
    answer = simulate(program("def f(:\n"))
    assert answer.returncode == 1
    assert "SyntaxError" in answer.stderr
    assert simulate().returncode == 2


def test_a_module_and_its_neighbours(program, tmp_path):
    program("VALUE = 5\n", "beside.py")
    program("import sys, beside\nprint(__name__, beside.VALUE, sys.argv[1:])\n", "main.py")
    assert simulate(tmp_path / "main.py", "x").stdout == "__main__ 5 ['x']\n"
    assert simulate("-m", "main", "-x", cwd=tmp_path).stdout == "__main__ 5 ['-x']\n"


WAYS = {
    "from numba import cuda": "cuda",
    "import numba.cuda": "numba.cuda",
    "import numba": "numba.cuda",
    "import numba as nb; from numba import types": "nb.cuda",
    "import numba.cuda as gpu": "gpu",
    "from numba.cuda import jit, to_device; from numba import cuda as c": "c",
    "from numba import cuda, njit, float32, vectorize, prange": "cuda",
    "from numba.core.errors import NumbaPerformanceWarning; from numba import cuda, config": "cuda",
    "from numba.cuda.cudadrv.driver import CudaAPIError; from numba import cuda": "cuda",
    "from numba_cuda_mlir import cuda": "cuda",
    "import numba_cuda_mlir.cuda as gpu; from numba_cuda_mlir import types": "gpu",
    "from numba_cuda_mlir.cuda import jit, to_device; import numba_cuda_mlir as m": "m.cuda",
    "from numba_cuda_mlir.numba_cuda import types; from numba import cuda": "cuda",
}


@pytest.mark.parametrize("installed", [True, False], ids=["numba", "no numba"])
def test_numba_may_be_imported_in_any_way(program, installed):
    """Each way in a program of its own, in one process; Numba is as it was afterwards."""
    if installed:
        pytest.importorskip("numba")
    texts = [
        f"{way}\nx = [0.0]\nassert {cuda}.__name__ == 'gemmlab.simt.cuda'\n"
        f"@{cuda}.jit\ndef k(x):\n    x[{cuda}.grid(1)] = 1\n"
        f"import numpy\nx = numpy.zeros(8)\nk[1, 8](x)\nassert x.all()\n"
        for way, cuda in WAYS.items()
    ]
    paths = [str(program(text, f"way{i}.py")) for i, text in enumerate(texts)]
    code = f"""
import sys
installed = {installed}
if not installed:
    sys.modules["numba"] = None
from gemmlab.programs.running import run
for path in {paths!r}:
    outcome = run(path)
    assert (outcome.status, outcome.numba, outcome.account.launches) == (0, installed, 1), path
    assert not {{"numba.cuda", "numba_cuda_mlir", "numba_cuda_mlir.cuda"}} & sys.modules.keys()
"""
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, encoding="utf-8"
    )
    assert answer.returncode == 0, answer.stderr


def test_functions_of_njit_are_plain_python_without_numba(program):
    text = """
import numpy as np
from numba import cuda, njit, vectorize, float64

@njit(fastmath=True)
def square(x):
    return x * x

@vectorize
def cube(x):
    return x ** 3

@cuda.jit
def squares(x, out):
    i = cuda.grid(1)
    out[i] = square(x[i])

x, out = np.arange(4.0), np.zeros(4)
squares[1, 4](x, out)
assert out.tolist() == [square(v) for v in x]
assert cube(x).tolist() == [0, 1, 8, 27]
assert float64(3) == 3.0
"""
    answer = simulate(program(text), before='sys.modules["numba"] = None')
    assert answer.returncode == 0, answer.stderr
    assert "Numba is not installed" in answer.stderr
    assert simulate(program("print(1)")).stderr.count("Numba is not installed") == 0


def test_parts_that_are_not_simulated_are_named(program):
    answer = simulate(program("import numba.cuda.libdevicefuncs\n"))
    assert answer.returncode == 1
    assert "numba.cuda.libdevicefuncs is not a part of the simulated GPU" in answer.stderr
    answer = simulate(program("from numba_cuda_mlir.cuda import intrin\n"))
    assert answer.returncode == 1
    assert "cannot import name 'intrin'" in answer.stderr
    answer = simulate(program("import numba_cuda_mlir.lowering\n"))
    assert "numba_cuda_mlir.lowering is not a part of the simulated GPU" in answer.stderr


def test_a_cluster_is_launched_as_the_second_compiler_does(program):
    text = """
import numpy as np
from numba_cuda_mlir import cuda
from gemmlab.instructions import cluster_sync

@cuda.jit(opt_level=3, fast_math=False)
def exchange(x, y):
    other = cuda.blockIdx.x + 1 - 2 * (cuda.blockIdx.x % 2)
    x[cuda.blockIdx.x, cuda.threadIdx.x] = cuda.blockIdx.x
    cluster_sync()
    y[cuda.blockIdx.x, cuda.threadIdx.x] = x[other, cuda.threadIdx.x]

x, y = np.zeros((4, 32)), np.zeros((4, 32))
exchange[4, 32, None, None, 2](x, y)
assert y[:, 5].tolist() == [1, 0, 3, 2]
exchange.configure(4, 32, cluster=(2, 1, 1))(x, y)
"""
    answer = simulate(program(text))
    assert answer.returncode == 0, answer.stderr
    assert "2 launches, 0 hazards" in answer.stderr


def test_gemmlabs_own_cuda_is_the_same(program):
    text = "from gemmlab import cuda\nfrom numba import cuda as numbas\nassert cuda is numbas\n"
    answer = simulate(program(text))
    assert "no kernel was launched" in answer.stderr
    assert answer.returncode == 5, answer.stderr


def test_a_run_leaves_the_process_as_it_was(program):
    before = sys.argv, list(search_path), list(sys.meta_path), sys.modules.get("numba.cuda")
    outcome = running.run(str(program("import sys\nsys.argv = [1]\n")))
    assert (outcome.status, outcome.account.rows) == (0, [])
    assert before == (sys.argv, search_path, sys.meta_path, sys.modules.get("numba.cuda"))
    assert "0 launches" in formats.as_text(outcome)


def test_a_table_too_wide_goes_on_below_and_tells_kernels_of_one_name_apart(program, monkeypatch):
    monkeypatch.setattr(formats, "WIDEST", 118)
    made = """
import numpy as np
from numba import cuda, float32

def kernel(stride):
    def call(out):
        part = cuda.shared.array(1024, float32)
        t = cuda.threadIdx.x
        part[stride * t] = t
        cuda.atomic.add(out, 0, part[stride * t])
    return cuda.jit(call)

def other(x):
    def call(x):
        x[cuda.threadIdx.x] = 1
    return cuda.jit(call)

x = np.zeros(32, np.float32)
kernel(32)[1, 32](x)
other(x)[1, 32](x)
"""
    text = formats.as_text(running.run(str(program(made))))
    _, first, second, *_ = text.split("\n\n")
    assert max(map(len, (first + "\n" + second).splitlines())) <= 118
    _, _, one, two = first.splitlines()
    assert one.split()[:2] == ["call", "program.py:6"]
    assert two.split()[:2] == ["call", "program.py:14"]
    groups, names, one, two = second.splitlines()
    assert groups.split() == ["shared", "memory"]
    assert names.split()[-5:] == ["wavefronts", "conflicts", "per", "access", "atomics"]
    assert one.split()[-4:] == ["32", "31", "31.00", "1"]
    assert two.split() == ["call", "program.py:14", "1", "32"]


def test_what_is_made_of_functions_has_their_names_and_lines(program):
    text = """
import numpy as np
from numba import cuda, vectorize

@cuda.reduce
def total(a, b):
    return a + b

@vectorize(["float64(float64)"], target="cuda")
def twice(x):
    return 2 * x

x = np.arange(10.0)
total(x), cuda.reduce(lambda a, b: max(a, b))(x), twice(x)
"""
    rows = running.run(str(program(text))).account.rows
    assert [(row.kernel, row.place) for row in rows] == [
        ("total", "program.py:5"),
        ("<lambda>", "program.py:14"),
        ("twice", "program.py:9"),
    ]
    assert [row.report.why_slow() for row in rows] == [()] * 3
