"""What the simulator refuses: statements, launches and arguments that no GPU takes."""

import linecache
import math
import pickle
import re
import textwrap
import traceback

import numpy as np
import pytest
from numpy import float32

from benchmarks.samples.language_kernels import double
from gemmlab import cuda, simulate
from gemmlab.here.compilers import ptx
from gemmlab.simt import UnsupportedError


def _refused(statements, before=""):
    """A kernel around some statements, and the line of the one marked `# here`."""
    text = f"{before}\ndef kernel(x, out):\n    i = cuda.grid(1)\n"
    text += textwrap.indent(textwrap.dedent(statements).strip(), "    ") + "\n"
    file = f"<refused {hash(text)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope = {"cuda": cuda, "np": np, "math": math, "float32": float32, "W": 8}
    exec(compile(text, file, "exec"), scope)
    line = next((n for n, t in enumerate(text.splitlines(), 1) if "# here" in t), None)
    return scope["kernel"], line


REFUSED = {
    "try:  # here\n    x[0] = 1\nfinally:\n    pass": "check beforehand with if",
    "with x:  # here\n    pass": "write its effect out",
    "v = [j for j in range(3)]  # here": r"cuda\.local\.array in a loop",
    "v = sum(j for j in range(3))  # here": "write a loop",
    "v = lambda *a: a  # here": "use plain names",
    "def f(a=1): # here\n    pass": "use plain names",
    "import math  # here": "import outside",
    "from math import sqrt  # here": "import outside",
    "raise W  # here": "one of Python's own exceptions",
    "raise  # here": "one of Python's own exceptions",
    "v = {}  # here": "use arrays",
    "v = [1, 2]  # here": r"tuple or cuda\.local\.array",
    "v = f'{i}'  # here": "format text outside",
    "v = (w := 3)  # here": "line of its own",
    "del i  # here": "leave it out",
    "global g  # here\ng = 1": "pass an array",
    "print(i, sep=', ')  # here": "print values alone",
    "v = 'text'  # here": "use numbers",
    "kernel[1, 8](x, out)  # here": "launch it from the host",
    "return x[0]  # here": "write it to an array",
    "np.sin(x)  # here": r"write a loop with numpy\.sin\(x\[i\]\)",
    "cuda.shared.array((8, W + 1), float32)  # here": r"compute W \+ 1 outside of the kernel",
    "cuda.shared.array(shape=2 * W, dtype=float32)  # here": r"compute 2 \* W outside",
    "cuda.local.array(x.size, float32)  # here": r"compute x\.size outside",
    "n = W + 1\ncuda.shared.array(n, float32)  # here": "compute n outside",
    "n = 8\nif i > 2:\n    n = 9\ncuda.shared.array(n, float32)  # here": "compute n outside",
    "n = 8\nn += 1\ncuda.shared.array(n, float32)  # here": "compute n outside",
    "cuda.shared.array(int(W), float32)  # here": r"compute int\(W\) outside",
    "cuda.shared.array(8, float)  # here": "a type with a size, such as float32",
    "v = x @ x  # here": "loop over elements",
    "x @= x  # here": "loop over elements",
    "v = 1 < i in (1, 2)  # here": "join two comparisons by and",
    "v = x.mode  # here": r"\.shape, \.size, \.ndim and \.dtype",
    "x.name = 3  # here": "assign to a name or an element",
    "x.name += 3  # here": r"arrays have \.shape",
    "v = x.mode()  # here": r"arrays have \.shape",
    "v = max(*x)  # here": "write the values out",
    "v = max(**x)  # here": "write the arguments out",
    "cuda.nosuch(i)  # here": r"no such name\n",
    "cuda.syncthread()  # here": "did you mean cuda.syncthreads",
    "v = math.sqroot(x[0])  # here": "did you mean math.sqrt",
    "v = np.random.random()  # here": "draw with numba.cuda.random",
    "v = sorted((3, 1))  # here": "sort in a loop",
    "v = ord(i)  # here": "write one character",
    'v = ord("ab")  # here': "write one character",
    "v = cuda.shared.array(size=3, dtype=float32)  # here": "takes a shape and a dtype",
    "v = np.zeros(3)  # here": "make a cuda.local.array",
    "x.size = 3  # here": "assign to a name or an element",
    "x.size += 3  # here": "assign to a name or an element",
    "a, *b = 1, 2  # here": "assign to a name or an element",
    "v = x[...]  # here": "kernels can use",
    "yield i  # here": "another way",
    "v = cuda  # here": r"cuda\.grid",
}


@pytest.mark.parametrize("statements", REFUSED)
def test_refused(statements):
    kernel, line = _refused(statements)
    x = np.zeros(8, np.float32)
    with pytest.raises(UnsupportedError) as caught:
        simulate(kernel, 1, 8, x, x)
    message = str(caught.value)
    assert f"line {line}: " in message
    assert "# here" in message
    assert re.search(REFUSED[statements], message), message


def test_refused_functions():
    x = np.zeros(8)
    with pytest.raises(UnsupportedError, match="a value that a kernel returns"):
        simulate(lambda x: x[0], 1, 8, x)
    with pytest.raises(UnsupportedError, match=r"source of .* cannot be read"):
        simulate(np.add, 1, 8, x)
    for parameters in ("*x", "*, x", "x, /", "**x"):
        text = f"def kernel({parameters}):\n    pass\n"
        file = f"<parameters {parameters}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        scope = {}
        exec(compile(text, file, "exec"), scope)
        with pytest.raises(UnsupportedError, match="use plain names"):
            simulate(scope["kernel"], 1, 8, x)


@pytest.mark.parametrize(
    ("statements", "error", "text"),
    [
        ("out[i] = later\nlater = 1", NameError, "'later' is read before"),
        ("if later > 0:\n    out[i] = 1\nlater = 1", NameError, "'later' is read before"),
        ("out[later] = 1\nlater = 1", NameError, "'later' is read before"),
        ("if i < 3:\n    v = nothing", NameError, "'nothing' is not defined.*line 5"),
        ("out[i] = x[0, 0]", IndexError, "x has 1 dimension, and 2 indices here"),
        ("out[i] = x[i / 2]", TypeError, "x is indexed with float64"),
        (
            "out[:3] = x[:3]",
            TypeError,
            "the array x is not a number, and cannot be stored; write a loop",
        ),
        ("out[i] = None", TypeError, "None is not a number"),
        ("v = (1, 2)[2]", IndexError, "there is no item 2 in a tuple of 2"),
        ("v = (1, 2)[i - 3]", IndexError, "there is no item -3 in a tuple of 2"),
        ("v = (1, 2.0)[i % 2]", TypeError, "lanes pick from a tuple whose items differ"),
        ("a, b = x.shape", ValueError, "a tuple of 1 int64 has 1 items, which are not 2 names"),
        ("v = cuda.grid(4)", ValueError, "4 dimensions; use 1, 2 or 3"),
        ("for j in range(0, 8, 0):\n    pass", ValueError, "the step of range is 0"),
        ("for j in i:\n    pass", TypeError, "cannot iterate"),
        ("v = i\nif i < 3:\n    v = (1, 2)", TypeError, "'v' changes its type"),
        ("v = (1, 2)\nif i < 3:\n    v = (1, 2, 3)", TypeError, "'v' changes its length"),
        ("v = x\nif i < 3:\n    v = out\nv[i] = 1", TypeError, "'v' is one array in some"),
        ("if cuda.threadIdx == 0:\n    out[0] = 1", TypeError, r"write cuda\.threadIdx\.x"),
        ("v = cuda.blockDim * 2", TypeError, r"write cuda\.blockDim\.x, \.y or \.z"),
        ("out[i] = cuda.blockIdx", TypeError, r"write cuda\.blockIdx\.x"),
        ("v = -cuda.gridDim", TypeError, r"write cuda\.gridDim\.x"),
        ("v = x[None]", TypeError, "x is indexed with None; use integers"),
        ("v = x[cuda.threadIdx]", TypeError, r"write cuda\.threadIdx\.x"),
        ("if cuda.threadIdx:\n    out[0] = 1", TypeError, r"write cuda\.threadIdx\.x"),
        ("out[0] = x.shape", TypeError, "a tuple of 1 int64 is not a number"),
        ("out[0] = x", TypeError, "the array x is not a number"),
        ("if x:\n    out[0] = 1", TypeError, r"the array x is no condition.*x\.size > 0"),
        ("while x:\n    out[0] = 1", TypeError, "the array x is no condition"),
        ("v = 1 if x else 2", TypeError, "the array x is no condition"),
        ("v = not x", TypeError, "the array x is no condition"),
        ("v = i > 0 and x", TypeError, "changes its type"),
        ("v = ~x[0]", TypeError, "use an integer"),
        ("if x > 0:\n    v = 1", TypeError, r"array x cannot be compared with 0 .*x\.shape\[0\]"),
        ("v = x == 0", TypeError, "array x cannot be compared with 0"),
        ("v = i < x.shape", TypeError, "compared with a tuple of 1 int64"),
        ("v = x + 1", TypeError, r"array x is no number; compute with elements, as in x\[i\]"),
        ("for j in range(x[0]):\n    v = j", TypeError, "range takes integers, not .* use int"),
        ("out[i] = cuda.blockDim()", TypeError, r"write cuda\.blockDim\.x"),
        ("print(x)", TypeError, "print takes text, numbers and tuples, not the array x"),
        ("v = cuda.syncthreads_count(i < 3)", TypeError, r"no bool in .* int\(condition\)"),
        ("v = cuda.syncthreads_or(x[i])", TypeError, "no float32 in Numba-CUDA"),
        ("v = cuda.all_sync(0xFFFFFFFF, x[i])", TypeError, "no float32 in .* a comparison"),
        ("v = x.reshape(3, 3)", ValueError, r"8 elements, .* the shape \(3, 3\)"),
        ("v = x.reshape(i, 2)", TypeError, "the same in all threads"),
        ("a, b, c = x", ValueError, "the array x has 8 items, which are not 3 names"),
        ("a, b = i", TypeError, "cannot be unpacked into 2 names"),
    ],
)
def test_mistakes_that_python_would_find_too(statements, error, text):
    kernel, _ = _refused(statements)
    x, out = np.zeros((2, 8), np.float32)
    with pytest.raises(error) as caught:
        simulate(kernel, 1, 8, x, out)
    assert re.search(text, str(caught.value), re.DOTALL)
    assert len(re.findall(r"\bline \d", str(caught.value))) == 1
    assert not out.any()


def pick(out):
    i = cuda.threadIdx.x
    four = (i, 2 * i, 3 * i, 4 * i)
    if i < 12:
        out[i] = 100 * four[i // 4] + 10 * four[-1] + four[i % 4 - 4]


def test_lanes_pick_from_a_tuple():
    out = np.zeros(16, np.int64)
    simulate(pick, 1, 16, out)
    i = np.arange(12)
    assert out[:12].tolist() == (100 * i * (i // 4 + 1) + 40 * i + i * (i % 4 + 1)).tolist()
    assert not out[12:].any()


@pytest.mark.parametrize(
    ("grid", "block", "error", "text"),
    [
        (0, 32, ValueError, r"grid\[0\]=0"),
        (1, -1, ValueError, r"block\[0\]=-1"),
        (1, 1.5, TypeError, r"block\[0\]=1\.5"),
        ((1, 2, 3, 4), 1, ValueError, r"grid=\(1, 2, 3, 4\) has 4 dimensions"),
        (1, (), ValueError, r"block=\(\) has 0 dimensions"),
        (1, 1025, ValueError, "1025 threads is too large; use at most 1024"),
        (1, (33, 32), ValueError, "1056 threads"),
        (1, (1, 1, 65), ValueError, r"block=\(1, 1, 65\) is too deep; use at most 64"),
        ("1", 32, TypeError, r"grid\[0\]='1'"),
        ((1, 65536), 1, ValueError, r"grid=\(1, 65536, 1\) is too large; use at most 65535"),
        ((1, 1, 65536), 1, ValueError, "at most 65535 blocks along z"),
        (2**31, 1, ValueError, "at most 2147483647 blocks along x"),
    ],
)
def test_launches_that_no_gpu_takes(grid, block, error, text):
    with pytest.raises(error, match=text):
        simulate(double, grid, block, np.zeros(4))


def too_large(out):
    first = cuda.shared.array((64, 64), float32)
    second = cuda.shared.array((64, 129), float32)
    first[0, 0] = second[0, 0] = out[0] = 1


def test_shared_arrays_that_no_gpu_takes():
    with pytest.raises(ValueError, match="of 49408 B a block are too large; use at most 49152 B"):
        simulate(too_large, 1, 1, np.zeros(1))


def factorial(n):
    return 1 if n <= 1 else n * factorial(n - 1)


def endless(n):
    return endless(n - 1)


def test_recursion_ends_or_is_refused():
    def right(out):
        i = cuda.threadIdx.x
        out[i] = factorial(i)

    out = np.zeros(6, int)
    simulate(right, 1, 6, out)
    assert out.tolist() == [1, 1, 2, 6, 24, 120]

    def wrong(out):
        out[0] = endless(4)

    with pytest.raises(
        UnsupportedError,
        match=r"endless, which calls itself.*write a loop[\s\S]*endless\(n - 1\)",
    ):
        simulate(wrong, 1, 1, out)


def test_arguments_that_no_kernel_takes():
    with pytest.raises(TypeError, match=r"double takes 1 arguments \(x\), not 2"):
        simulate(double, 1, 1, np.zeros(1), 2)
    with pytest.raises(TypeError, match=r"argument x=\[1, 2\] is a list"):
        simulate(double, 1, 1, [1, 2])
    with pytest.raises(ValueError, match="x has dtype <U1"):
        simulate(double, 1, 1, np.array(["a"]))
    with pytest.raises(ValueError, match="x has strides"):
        simulate(double, 1, 1, np.zeros(3)[::-1])
    with pytest.raises(ValueError, match="on_hazard='ignore'.*raise.*collect"):
        simulate(double, 1, 1, np.zeros(3), on_hazard="ignore")


def test_arrays_that_the_host_protects_are_not_written():
    def reads(x, out):
        out[cuda.threadIdx.x] = x[cuda.threadIdx.x]

    def adds(x, out):
        cuda.atomic.add(out, 0, x[0])

    fixed, out = np.ones((2, 8), np.float32)
    fixed.flags.writeable = False
    assert simulate(reads, 1, 8, fixed, out).hazards == []
    for kernel in (reads, adds):
        with pytest.raises(ValueError, match="out is read-only on the host"):
            simulate(kernel, 1, 8, out, fixed)


SHAPES = [
    *("16", "T", "(T, T)", "(T, 17)", "(T,)", "(T, T + 1)", "2 * T", "T // 2", "16 * 2", "2**4"),
    *("(16, 16 + 1)", "(4 * 4, T)", "PAIR", "PAIR[0]", "int(T)", "min(T, 8)", "len(PAIR)"),
    *("x.shape[0]", "cuda.blockDim.x", "T << 1", "-(-T // 2)", "np.int32(16)", "x.size"),
    *("n:n = T", "n:n = 16", "n:n = (16, 17)", "n:n = T + 1", "(T, n):n = T + 1", "n:n, q = 8, 9"),
    *("n:n = 8\nn = 16", "n:n = 8\nif x[0] > 1:\n    n = 16", "n:n = (T, T)", "n:m = T\nn = m"),
]


@pytest.mark.numba_cuda
@pytest.mark.parametrize("space", ["shared", "local"])
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_are_taken_where_numba_takes_them(space, shape, tmp_path):
    compiler = pytest.importorskip("numba.cuda")
    numba = pytest.importorskip("numba")
    shape, _, before = shape.partition(":")
    lines = [*before.splitlines(), f"s = cuda.{space}.array({shape}, float32)", "x[0] = s.size"]
    path = tmp_path / "kernel.py"
    path.write_text("def kernel(x):\n    " + "\n    ".join(lines) + "\n")
    scope = {"cuda": compiler, "float32": float32, "np": np, "T": 16, "PAIR": (16, 17)}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    try:
        ptx(scope["kernel"], (numba.float32[:],), (9, 0))
    except numba.TypingError:
        with pytest.raises(UnsupportedError, match="Numba takes constants there"):
            simulate(scope["kernel"], 1, 1, np.zeros(4, float32))
    else:
        x = np.zeros(4, float32)
        simulate(scope["kernel"], 1, 1, x)
        assert x[0] > 0


def test_a_refusal_has_its_place_once():
    kernel, line = _refused("v = [1, 2]  # here")
    with pytest.raises(UnsupportedError) as caught:
        simulate(kernel, 1, 8, np.zeros(8), np.zeros(8))
    assert str(caught.value).endswith(f"line {line}: v = [1, 2]  # here")
    assert "".join(traceback.format_exception_only(caught.value)).count("# here") == 1
    *_, innermost = traceback.format_tb(caught.value.__traceback__)
    assert f"line {line}, in kernel" in innermost
    assert innermost.endswith("v = [1, 2]  # here\n")  # and no part of it is marked
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


NOTEBOOK = """
import numpy as np
from gemmlab import simulate
from gemmlab.simt import cuda

@cuda.jit
def kernel(x):
    {}

x = np.zeros(4)
"""


@pytest.mark.parametrize(
    ("statement", "launch", "frames"),
    [
        ("v = [1, 2]", "kernel[1, 1](x)", ["launch", "kernel"]),
        ("v = [1, 2]", "simulate(kernel, 1, 1, x)", ["launch", "kernel"]),
        ("v = x.mode()", "kernel[1, 1](x)", ["launch", "kernel"]),
        ("v = nothing", "kernel[1, 1](x)", ["launch", "kernel"]),
        ("x[x.size] = 1", "kernel[1, 1](x)", ["launch", "kernel"]),
        ("x[None] = 1", "simulate(kernel, 1, 1, x)", ["launch", "kernel"]),
    ],
)
def test_a_notebook_shows_the_frames_of_the_learner(statement, launch, frames, monkeypatch):
    shells = pytest.importorskip("IPython.core.interactiveshell")
    shell = shells.InteractiveShell()
    shell.run_cell(NOTEBOOK.format(statement))
    shown = []
    monkeypatch.setattr(shell, "_showtraceback", lambda *error: shown.extend(error[2]))
    shell.run_cell(launch)
    text = re.sub(r"\x1b\[[\d;]*m", "", "\n".join(shown))
    seen = re.findall(
        r"^(?:Cell In\[\d*\]|File .*?)(?:, |:)(?:line )?\d+(?:, in (\w+))?", text, re.M
    )
    assert [name or "launch" for name in seen] == frames, text
