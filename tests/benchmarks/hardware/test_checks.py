"""Checks on a stand-in for a GPU, the simulator: they find no difference, and one that is made."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.hardware import machine, profiler, store
from benchmarks.hardware.check import Comparison, UnavailableError
from benchmarks.hardware.checks import (
    CHECKS,
    counters,
    dot_products,
    instructions,
    ladder,
    sanitizer,
)
from gemmlab import simulate
from gemmlab.device import device
from tests.support.fake_gpu import installed

H200 = device("h200")
ANSWERED = ("instructions", "layouts", "dot_products", "products", "random_kernels", "language")
PIECES = [(name, piece) for name in ANSWERED for piece in CHECKS[name].quick]


def on_the_simulator(kernel, grid, block, arguments):
    after = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    simulate(kernel, grid, block, *after, device=H200)
    return after


@pytest.fixture
def launches(monkeypatch):
    """Launches on the simulator, of few warps."""
    monkeypatch.setattr(machine, "launch", on_the_simulator)
    monkeypatch.setattr(instructions, "BLOCKS", 5)
    monkeypatch.setattr(dot_products, "TILES", 20)


@pytest.mark.usefixtures("launches")
@pytest.mark.parametrize(("name", "piece"), PIECES)
def test_the_simulator_differs_in_nothing_from_itself(name, piece, monkeypatch):
    monkeypatch.setattr(
        "benchmarks.hardware.checks.language.with_device_functions", lambda kernel: kernel
    )
    check = CHECKS[name]
    measured = check.measure(piece, H200)
    found = check.compare(piece, measured, H200)
    assert found.compared > 0
    assert found.differing == 0, "\n".join(found.texts)
    again = check.compare(piece, check.kept(measured), H200)
    assert 0 < again.compared <= found.compared
    assert again.differing == 0


@pytest.mark.usefixtures("launches")
def test_what_is_kept_is_what_is_recorded_of_an_h200(monkeypatch):
    """Same keys, dtypes and, but for the number of tiles, shapes: `--record` changes no format."""
    monkeypatch.setattr(
        "benchmarks.hardware.checks.language.with_device_functions", lambda kernel: kernel
    )
    for name in ANSWERED[:-1]:
        piece = CHECKS[name].quick[0]
        kept = CHECKS[name].kept(CHECKS[name].measure(piece, H200))
        recorded = store.recorded("h200", name)[piece].measured
        assert set(kept) == set(recorded), name
        if name != "random_kernels":  # whose grammar has changed since
            for key, value in recorded.items():
                assert type(kept[key]) is type(value)
                assert getattr(kept[key], "shape", None) == getattr(value, "shape", None)
                assert getattr(kept[key], "dtype", None) == getattr(value, "dtype", None)


def test_a_wrong_bit_is_found_and_shown(launches, monkeypatch):
    def nearly(kernel, grid, block, arguments):
        *before, result = on_the_simulator(kernel, grid, block, arguments)
        result.view(np.uint32)[-1, -1, -1] ^= 1
        return [*before, result]

    monkeypatch.setattr(machine, "launch", nearly)
    for name, piece in (
        ("instructions", "cvt_rn_f16x2_f32"),
        ("dot_products", "m16n8k16.f32.f16"),
    ):
        found = CHECKS[name].compare(piece, CHECKS[name].measure(piece, H200), H200)
        assert found.differing > 0
        assert "operands" in found.texts[0] or "; a " in found.texts[0]


@pytest.mark.parametrize("piece", ladder.CHECK.quick[2:4])
def test_rungs_are_exact(piece, monkeypatch):
    for _ in installed(monkeypatch):
        measured = ladder.measure(piece, H200)
        found = ladder.compare(piece, measured, H200)
    assert found.compared > 5000
    assert found.differing == 0, "\n".join(found.texts)
    measured[next(iter(measured))][0, 0] += 1
    found = ladder.compare(piece, measured, H200)
    assert found.differing == 1
    assert "α = 1, β = 0[0, 0]: measured" in found.texts[0]


def test_resources_are_compared_with_the_model(monkeypatch):
    check = CHECKS["resources"]
    piece = check.quick[0]
    for _ in installed(monkeypatch):
        measured = check.measure(piece, H200)
    found = check.compare(piece, measured, H200)
    assert (found.compared, found.differing) == (2, 0)
    found = check.compare(piece, {**measured, "local_bytes": 8, "blocks_per_sm": 1}, H200)
    assert found.differing == 2


# ------------------------------------------------------------------------------------- comparing


def test_arrays_are_compared_to_the_bit():
    found = Comparison()
    x = np.array([0.0, np.nan, 1.0], np.float32)
    found.equal("x", x, x.copy())
    found.equal("x", x, np.array([-0.0, np.nan, 1.0], np.float32))
    assert (found.compared, found.differing) == (6, 1)
    assert found.texts == ["x[0]: measured 0.0 (0x0), here -0.0 (0x80000000)"]
    with pytest.raises(ValueError, match=r"x: measured float32 \(3,\), here float64 \(3,\)"):
        found.equal("x", x, x.astype(float))


def test_few_differences_are_put_into_words():
    found = Comparison()
    found.equal("x", np.zeros(1000, np.int8), np.ones(1000, np.int8))
    found.equal("y", 1, 2)
    assert (found.compared, found.differing, len(found.texts)) == (1001, 1001, 5)


# ----------------------------------------------------------------------------------- under a tool

NCU = '#!/bin/sh\nexec "{python}" -m tests.support.fake_ncu "$@"\n'


def program(folder, name, text, monkeypatch):
    """A program of this name, first on the PATH."""
    path = folder / name
    path.write_text(text.format(python=sys.executable), "utf-8")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    assert machine.tool(name) == str(path)


@pytest.mark.skipif(sys.platform == "win32", reason="a script is no program there")
def test_counters_are_read_from_the_profiler(tmp_path, monkeypatch):
    program(tmp_path, "ncu", NCU, monkeypatch)
    measured = counters.measure("banks", H200)
    known = store.recorded("h200", "counters")["banks"].measured
    assert list(measured) == list(known)
    assert measured["reduction"]["counters"].items() <= known["reduction"]["counters"].items()
    assert counters.compare("banks", measured, H200).differing == 0


@pytest.mark.skipif(sys.platform == "win32", reason="a script is no program there")
def test_a_profiler_that_may_not_or_cannot_is_told_apart(tmp_path, monkeypatch):
    program(tmp_path, "ncu", "#!/bin/sh\necho '==ERROR== ERR_NVGPUCTRPERM'\nexit 1\n", monkeypatch)
    with pytest.raises(UnavailableError, match="may not read counters"):
        profiler.profile("counters", "banks", counters.METRICS)
    program(tmp_path, "ncu", "#!/bin/sh\necho 'no such metric'\nexit 9\n", monkeypatch)
    with pytest.raises(RuntimeError, match="status 9:\nno such metric"):
        profiler.profile("counters", "banks", counters.METRICS)


SAID = """========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at tiled(float, Array)+0x1a0 in {file}.py:31
=========     by thread (0,4,0) in block (1,1,0)
========= Invalid __global__ read of size 4 bytes
=========     at tiled(float, Array)+0x1a0 in {file}.py:31
verdicts [true, false]
========= ERROR SUMMARY: 2 errors
"""


def test_what_a_sanitizer_says_is_read():
    found = sanitizer.diagnosis(SAID.format(file="tiled_guard_missing"), "tiled_guard_missing")
    assert found == {
        "compiled": False,
        "kinds": ["Invalid __global__ read"],
        "lines": [31],
        "summary": ["ERROR SUMMARY: 2 errors"],
        "verdicts": [True, False],
    }
    assert sanitizer.diagnosis(SAID.format(file="other"), "tiled_guard_missing")["lines"] == []


def test_a_right_kernel_that_a_tool_reports_differs():
    clean = store.recorded("h200", "sanitizer")["right_tiled"].measured
    assert sanitizer.compare("right_tiled", clean, H200).differing == 0
    said = {**clean["racecheck"], "kinds": ["Error"]}
    assert sanitizer.compare("right_tiled", {**clean, "racecheck": said}, H200).differing == 1
    wrong = {**clean["none"], "verdicts": [True, False]}
    assert sanitizer.compare("right_tiled", {**clean, "none": wrong}, H200).differing == 1
    endless = {**clean["none"], "ended": False, "verdicts": None}
    assert sanitizer.compare("right_tiled", {**clean, "none": endless}, H200).differing == 2


def test_a_wrong_kernel_that_is_not_compiled_differs():
    said = store.recorded("h200", "sanitizer")["tiled_guard_or"].measured
    assert sanitizer.compare("tiled_guard_or", said, H200).differing == 0
    ran = sanitizer.diagnosis(f"{sanitizer.COMPILED}\nverdicts [true]", "tiled_guard_or")
    assert ran["compiled"]
    refused = {**said, "none": {**said["none"], "compiled": False}}
    (text,) = sanitizer.compare("tiled_guard_or", refused, H200).texts
    assert text == "tiled_guard_or, none: it is not compiled"


SLEEPS = "import time, sys; print('begun', flush=True); open(sys.argv[1], 'x'); time.sleep(600)"
WAITS = """
import os, sys, time
while not all(map(os.path.exists, sys.argv[1:])):
    time.sleep(0.01)
print('done')
raise SystemExit(4)
"""


def test_programs_run_at_the_same_time_and_are_ended_in_time(monkeypatch, tmp_path):
    """The first ends once the others have begun; then their time is up."""
    one, other = (str(tmp_path / name) for name in "ab")
    python = [sys.executable, "-c"]
    clock = iter([0.0, -600.0, 10.0, 10.0])  # at the beginning, and before each wait
    monkeypatch.setattr(machine, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    programs = [[*python, WAITS, one, other], [*python, SLEEPS, one], [*python, SLEEPS, other]]
    ran = machine.run(programs, limit=3)
    assert [program.status for program in ran] == [4, None, None]
    assert [program.text.strip() for program in ran] == ["done", "begun", "begun"]
