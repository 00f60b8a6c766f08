"""Whole programs of Numba-CUDA: with another import, under `gemmlab simulate`, and compiled."""

import contextlib
import io
import runpy
import subprocess
import sys

import numpy as np
import pytest

from benchmarks.hardware import machine
from benchmarks.samples.host_scripts import SCRIPTS, with_gemmlab, with_mlir
from benchmarks.simulator import by_name
from gemmlab.here.compilers import ptx
from gemmlab.programs.running import _for_the_gpu
from gemmlab.simt import cuda
from gemmlab.simt.cuda.kernels import SimulatedKernel
from tests.support.paths import ROOT


def each(scripts):
    return pytest.mark.parametrize("script", scripts, ids=lambda script: script.stem)


def printed_with_another_import(script, folder):
    copy = folder / script.name
    copy.write_text(with_gemmlab(script.read_text("utf-8")), "utf-8")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        runpy.run_path(str(copy), run_name="__main__")
    return out.getvalue()


def simulated(*arguments, before=""):
    code = f"{before}\nfrom gemmlab.cli import main\nsys.exit(main(sys.argv[1:]))"
    return subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}", "simulate", *map(str, arguments)],
        cwd=ROOT, capture_output=True, encoding="utf-8",
    )  # fmt: skip


@each(SCRIPTS)
def test_a_script_runs_with_its_import_changed_and_with_nothing_changed(script, tmp_path):
    printed = printed_with_another_import(script, tmp_path)
    answer = simulated(script)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == printed
    assert "0 hazards" in answer.stderr.splitlines()[0]


def test_numba_need_not_be_installed():
    """All in one process, in which it cannot be imported."""
    scripts = [str(s) for s in SCRIPTS]
    code = f"""
import sys
sys.modules["numba"] = None
from gemmlab.programs.running import run
for script in {scripts!r}:
    outcome = run(script)
    assert outcome.status == 0 and not outcome.numba and not outcome.account.hazards, script
    assert sys.modules["numba"] is None
"""
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, encoding="utf-8"
    )
    assert answer.returncode == 0, answer.stderr
    assert len(answer.stdout.splitlines()) >= len(scripts)


@pytest.mark.measuring
def test_the_second_compilers_name_does_as_well(tmp_path):
    """All in one process; that compiler need not be installed."""
    scripts = [tmp_path / script.name for script in SCRIPTS]
    for script, copy in zip(SCRIPTS, scripts, strict=True):
        copy.write_text(with_mlir(script.read_text("utf-8")), "utf-8")
        assert "numba_cuda_mlir" in copy.read_text("utf-8")
    code = f"""
from gemmlab.programs.running import run
for script in {[str(s) for s in scripts]!r}:
    outcome = run(script)
    assert outcome.status == 0 and not outcome.account.hazards, script
"""
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, encoding="utf-8"
    )
    assert answer.returncode == 0, answer.stderr


@pytest.fixture
def host(monkeypatch):
    """`numba.cuda` with the simulator's host half: kernels are written with Numba's own names."""
    import numba
    from numba import cuda as numbas

    with monkeypatch.context() as patch:
        for name in cuda.__all__:
            if hasattr(numbas, name) and name != "types":
                patch.setattr(numbas, name, getattr(cuda, name))
        patch.setattr(numba, "vectorize", _for_the_gpu(numba.vectorize, cuda.vectorize))
        yield patch


def numba_types(arguments):
    from numba.cuda import types
    from numba.cuda.np.numpy_support import from_dtype

    found = [from_dtype(np.dtype(a.dtype)) for a in arguments]
    return tuple(
        types.Array(t, a.ndim, "C") if a.ndim else t for t, a in zip(found, arguments, strict=True)
    )


@pytest.mark.numba_cuda
@pytest.mark.ptxas
@each(SCRIPTS)
def test_the_kernels_of_a_script_compile(script, host):
    with contextlib.redirect_stdout(io.StringIO()):
        names = runpy.run_path(str(script), run_name="__main__")
    host.undo()
    kernels = [value for value in names.values() if isinstance(value, SimulatedKernel)]
    for kernel in kernels:
        for signature in kernel.signatures:
            assert ".visible .entry" in ptx(kernel.py_func, numba_types(signature), (9, 0))
    assert kernels or script.stem in ("ufuncs",)


def test_there_are_ten():
    assert len(SCRIPTS) >= 10


def test_programs_of_others_do_by_the_second_name_what_they_do_by_the_first():
    """As recorded; those that need another package, or take long, are named there, and exercises
    that end with errors of their own.
    """
    programs = by_name.recorded().tables["programs"]
    ran = [one for one in programs if one.first in (by_name.ENDED, by_name.HAZARDS)]
    assert len(ran) >= 50
    assert all(one.alike for one in ran)
    assert {one.path.rpartition("/")[2] for one in programs if not one.alike} == {
        "Typing Exercises", "Typing Exercises with output",
    }  # fmt: skip


def test_what_came_out_of_a_program_is_told_in_a_few_words():
    def said(text, status=1):
        return by_name.told(machine.Ran(text, status))

    assert (said("", 0), said("", None)) == (by_name.ENDED, by_name.LATE)
    assert said("2 hazards found\nseconds are this computer's") == by_name.HAZARDS
    assert said("Traceback\nValueError: /tmp/x/y.npy is not there\n1 launch") == (
        "ValueError: y.npy is not there"
    )


def test_a_program_that_lacks_a_package_is_not_run(tmp_path):
    (tmp_path / "beside.py").write_text("")
    text = "import numpy\nfrom beside import x\nimport no_such_package.part\n"
    assert by_name.lacking(text, tmp_path) == "no_such_package"


@pytest.mark.parametrize(("line", "moved"), [
    ("from numba import cuda, njit, float32", "from numba_cuda_mlir import cuda\n"
     "from numba import njit\nfrom numba_cuda_mlir.cuda import float32"),
    ("from numba.cuda.random import f", "from numba_cuda_mlir.cuda.random import f"),
    ("import numba.cuda as c", "import numba_cuda_mlir.cuda as c"),
    ("import numba\nnumba.cuda.jit", "import numba\nimport numba_cuda_mlir\n"
     "numba_cuda_mlir.cuda.jit"),
])  # fmt: skip
def test_imports_move_to_the_second_name(line, moved):
    assert with_mlir(line) == moved
