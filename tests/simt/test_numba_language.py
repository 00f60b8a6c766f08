"""What Numba-CUDA compiles runs, and what it refuses is refused: kinds seen in public programs."""

import cmath
import enum
import linecache
import math
import subprocess
import sys

import numpy as np
import pytest

from gemmlab.simt import UnsupportedError, cuda, simulate
from tests.support.paths import ROOT


def made(body, name="kernel", **names):
    """A kernel of x and out with this body, and its text where `inspect` finds it."""
    lines = "\n    ".join(["i = cuda.threadIdx.x", *body.split("\n")])
    text, file = f"def {name}(x, out):\n    {lines}\n", f"<language {hash((body, name))}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope = {"cuda": cuda, "np": np, "math": math, "cmath": cmath, **names}
    exec(compile(text, file, "exec"), scope)
    return scope[name]


Color = enum.Enum("Color", {"RED": 3})
Sized = np.dtype([("a", np.int32), ("b", np.float32, (2,)), ("c", np.complex64)])


@pytest.mark.parametrize(
    ("body", "wants"),
    [
        ("row = cuda.shared.array((4, 2), np.float32)\nrow[i] = x[i], i\nout[i] = row[i, 1]", 2),
        ("if i == 0:\n    out[:3] = (7, 8, 9)", 9),
        ("cuda.atomic.add(out, math.floor(x[0] + 2), 5)", 20),
        ("cuda.atomic.max(out, 2, x[i] if i < 2 else math.nan)", 1.5),
        ("cuda.atomic.min(out, 2, math.nan)\ncuda.atomic.nanmax(out, 2, x[i])", 3.5),
        ("out[i] = x.ndim == 1 and x.ndim != 2", 1),
        ("out[i] = x[i, 0] if x.ndim == 2 else x[i]", 2.5),
        ("out[i] = pow(x[i], 2)", 6.25),
        ("out[i] = math.nextafter(1.0, 2.0) > 1", 1),
        ("out[i] = i.bit_count() + np.uint8(255).bit_count()", 9),
        ("out[i] = min(x) + max(x)", 4),
        ("out[i] = tuple((i, 1))[0]", 2),
        ("out[i] = color", 3),
        ("out[i] = cmath.cos(x[i]).real", math.cos(2.5)),
        ("out[i] = cmath.polar(3j)[0]", 3),
    ],
)
def test_what_runs(body, wants):
    x, out = np.arange(4) + 0.5, np.zeros(4)
    simulate(made(body, color=Color.RED), 1, 4, x, out)
    assert out[2] == pytest.approx(wants)


def test_parts_of_complex_arrays_are_views_whose_races_are_seen():
    x, out = np.zeros(4, np.complex128), np.zeros(4)
    simulate(made("cuda.atomic.add(x.imag, 1, i)\nout[i] = out.real[i]"), 1, 4, x, out)
    assert x.tolist() == [0, 6j, 0, 0]
    report = simulate(made("x.real[0] = i\nx.imag[i] = x.imag[0]"), 1, 64,
                      np.zeros(64, np.complex64), out, on_hazard="collect")  # fmt: skip
    assert {h.kind for h in report.hazards} == {"global-race"}
    quiet = simulate(made("x.real[i] = x.imag[i]"), 1, 4, x, out, on_hazard="collect")
    assert not quiet.hazards


def test_fields_that_are_arrays_and_records_as_arguments():
    records, out = np.zeros(2, Sized), np.zeros(4)
    body = "if i < 2:\n    x[i].a = i + 1\n    x[i].b[1] = 5\n    x[i].c = 2j\n    out[i] = x.a[i]"
    simulate(made(body), 1, 4, records, out)
    assert records["b"].tolist() == [[0, 5], [0, 5]]
    assert (records["a"].tolist(), records["c"][1], out[1]) == ([1, 2], 2j, 2)
    record = records[0]
    simulate(made("x.a = 9\nx['b'][0] = x[0]\nout[i] = x.b[1]"), 1, 1, record, out)
    assert (record["a"], record["b"][0], out[0]) == (9, 9, 5)


def test_values_are_those_of_the_moment_when_a_signature_compiles():
    scope = made("out[0] = SIZE", SIZE=1).__globals__
    first = cuda.jit("void(float64[:], float64[:])")(scope["kernel"])
    later = cuda.jit(scope["kernel"])
    scope["SIZE"] = 10
    x, out = np.zeros(1), np.zeros(1)
    first[1, 1](x, out)
    assert out[0] == 1
    later[1, 1](x, out)
    assert out[0] == 10


def test_a_command_of_python_is_its_source():
    """Kernels of `python -c TEXT` run, as their text is found."""
    text = "import numpy as np\nfrom gemmlab.simt import cuda\n@cuda.jit\ndef f(x):\n    x[0] = 7\n"
    text += "x = np.zeros(1)\nf[1, 1](x)\nprint(x[0])"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "7.0", done.stderr


def test_what_a_command_of_python_runs_as_text_has_no_source():
    """A function from a string is not looked for in the command's own text."""
    text = "from gemmlab import cuda, simulate\nimport numpy as np\nx = np.zeros(1)\n"
    text += "def f(x):\n    x[0] = 7\nscope = {}\nexec('def g(x):\\n    x[0] = 8', scope)\n"
    text += "for kernel in f, scope['g'], f:\n    try:\n        simulate(kernel, 1, 1, x)\n"
    text += "        print(x[0])\n    except Exception as error:\n        print(error)\n"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=ROOT)
    first, refused, last = done.stdout.splitlines()
    assert first == last == "7.0"
    assert "cannot be read" in refused


def test_prints_of_places_and_own_exceptions(capsys):
    class MyError(Exception):
        pass

    simulate(made("print(cuda.threadIdx)\nprint()"), 1, 1, np.zeros(1), np.zeros(1))
    assert capsys.readouterr().out == "(0, 0, 0)\n\n"
    with pytest.raises(MyError, match=r"thread \(2"):
        simulate(made("if i == 2:\n    raise E('no')", E=MyError), 1, 4, np.zeros(1), np.zeros(1))


@pytest.mark.parametrize(
    ("body", "dtype", "said"),
    [
        ("cuda.atomic.add(x, 0, 1)", "i2", "takes no int16.*it takes int32"),
        ("cuda.atomic.add(x, 0, 1)", "f2", "takes no float16"),
        ("cuda.atomic.max(x, 0, 1)", "?", "takes no bool"),
        ("cuda.atomic.cas(x, 0, 1, 2)", "f4", "takes no float32"),
        ("cuda.atomic.exch(x, 0, 1)", "f8", "takes no float64"),
        ("cuda.atomic.inc(x, 0, 5)", "i4", "takes no int32.*uint32"),
        ("out[i] = cuda.shfl_sync(-1, x[i], 0)", "f2", r"takes no float16.*np\.float32"),
        ("out[i] = cuda.shfl_xor_sync(-1, x[i], 1)", "i1", r"takes no int8.*np\.int32"),
        ("v = cuda.shfl_down_sync(-1, x[i], 1)", "c8", "takes no complex64.*x.real"),
        ("out[i] = cuda.shfl_up_sync(-1, i > 3, 1)", "f4", "takes no bool"),
        ("out[i] = x[i > 3]", "f4", r"truth value.*int\(condition\)"),
    ],
)
def test_what_numba_does_not_compile(body, dtype, said):
    with pytest.raises(TypeError, match=said):
        simulate(made(body), 1, 32, np.ones(32, dtype), np.zeros(32))


@pytest.mark.parametrize(("dtype", "cure"), [(">f4", "newbyteorder"), ("g", "float64")])
def test_arrays_that_no_gpu_takes(dtype, cure):
    with pytest.raises(ValueError, match=f"Unsupported array dtype.*{cure}"):
        simulate(made("out[i] = x[i]"), 1, 1, np.ones(1, dtype), np.zeros(1))


def test_a_name_in_the_bounds_of_a_loop_that_is_nowhere_defined():
    with pytest.raises(NameError, match=r"name 'xs' is not defined[\s\S]*range\(i, xs"):
        simulate(made("for j in range(i, xs.size):\n    out[j] = 1"), 1, 1, *np.zeros((2, 1)))


def test_shapes_that_callers_of_device_functions_write_out():
    @cuda.jit(device=True)
    def sums(x, out, size, kind):
        part = cuda.shared.array(size, kind)
        part[cuda.threadIdx.x] = x[cuda.threadIdx.x]
        out[cuda.threadIdx.x] = part[cuda.threadIdx.x] * size

    out = np.zeros(4)
    simulate(made("sums(x, out, 4, np.float32)", sums=sums), 1, 4, np.ones(4), out)
    assert out.tolist() == [4] * 4
    with pytest.raises(UnsupportedError, match="a shape with out"):
        simulate(made("part = cuda.shared.array(out, np.float32)"), 1, 4, np.ones(4), 4)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("if i < 0:\n    x[0] = x[0, 0]", r"2 indices here[\s\S]*x\[0\] = x\[0, 0\]"),
        ("if i < 99:\n    out[i] = 1\nelse:\n    out[i] = x[0.5]", "use integers"),
        ("if i < 0:\n    for k in range(x.size):\n        out[i] = x + k", "x is no number"),
        ("if i < 0:\n    return\nif i > 99:\n    cuda.atomic.inc(x, 0, 1)", "takes no float64"),
        ("if i < 0:\n    while out[0] > 1:\n        out[i] = x[i] << 2", "LShift of float64"),
    ],
)
def test_types_are_wrong_where_no_thread_went(body, said):
    x, out = np.ones(32), np.zeros(32)
    with pytest.raises((TypeError, IndexError), match=said):
        simulate(made(body), 1, 32, x, out)
    assert not out.any()


@pytest.mark.parametrize(
    "body",
    [
        "if x.ndim == 2:\n    out[i] = x[i, 0]\nelse:\n    out[i] = x[i]",
        "if FLAG and i < 3:\n    out[i] = x[i, 0]\nelse:\n    out[i] = x[i]",
        "if not FLAG and x.ndim == 1:\n    out[i] = x[i]\nelse:\n    out[i] = x[i, 0]",
        "if FLAG:\n    out[i] = x[i, 0]\nelse:\n    out[i] = x[i]",
        "if i < 0:\n    t = x[i]\n    while t > 0:\n        t -= 1\nelse:\n    out[i] = 1",
        "if i < 0:\n    cuda.atomic.add(out, 0, x[i + 99])\n    raise ValueError('no')\nout[i] = 1",
        # behind a branch a variable has a type into which both ways fit, here int64 ...
        "if i > 99:\n    return\nw = 1\nif i == 0:\n    w = np.uint32(1)\n"
        "out[i] = cuda.shfl_sync(-1, w, 0)",
        # ... and within the branch its own
        "w = 1.0\nif i > 99:\n    w = int(x[i])\n    out[w] = 1\nout[i] = w",
    ],
)
def test_branches_that_no_thread_took_and_that_numba_compiles(body):
    x, out = np.ones(32), np.zeros(32)
    simulate(made(body, FLAG=False), 1, 32, x, out)
    assert out.all()
