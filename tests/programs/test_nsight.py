"""`gemmlab predict --beside`: what Nsight Compute wrote on an H100, read and laid beside."""

import stat
import sys
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.forecast.compiled.cubins import kept
from gemmlab import device
from gemmlab.cli import main
from gemmlab.programs import nsight, predicted, predicting

TEXT = (Path(__file__).parent / "ncu.csv").read_text()  # two launches; the columns that are read


@pytest.fixture
def profiler(tmp_path, monkeypatch):
    """Return a function that puts a program in the place of ncu, and a GPU here."""

    def put(text, status=0):
        path = tmp_path / "ncu"
        path.write_text(f"#!{sys.executable}\nprint({text!r})\nraise SystemExit({status})\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setattr(nsight, "ncu", lambda: str(path))
        monkeypatch.setattr(nsight, "gpu_status", lambda: SimpleNamespace(works=True))
        for module in (nsight, predicting, predicted):
            monkeypatch.setattr(module, "detect", lambda: device("h100_sxm"))

    return put


def test_what_the_profiler_wrote_is_read(profiler):
    profiler(TEXT)
    turned, stencil = nsight.profile(["python", "program.py"])
    assert (turned.grid, turned.block) == ((64, 64, 1), (32, 32, 1))
    assert turned.seconds == pytest.approx(33.344e-6)
    assert turned.counts["shared_load_wavefronts"] == 4_218_163
    assert stencil.issuing == 0.5715
    assert sum(stencil.waits.values()) == pytest.approx(1)
    assert max(stencil.waits, key=stencil.waits.get) == "results"
    assert nsight.matching([turned, stencil], "stencil", (64, 256, 1), (32, 8, 1)) is stencil
    assert nsight.matching([turned, stencil], "stencil", (64, 64, 1), (32, 8, 1)) is None


def test_without_a_gpu_it_says_what_is_missing(capsys, monkeypatch):
    monkeypatch.setattr(nsight, "ncu", lambda: None)
    why = "no NVIDIA driver is installed"
    monkeypatch.setattr(nsight, "gpu_status", lambda: SimpleNamespace(works=False, reason=why))
    assert main(["predict", "any.py", "--beside"]) == predicting.NO_PROFILER == 6
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "no Nsight Compute (ncu) and no NVIDIA driver is installed" in said


@pytest.mark.parametrize(
    ("text", "status", "why"),
    [
        ("==ERROR== ERR_NVGPUCTRPERM - The user does not", 1, "may not read the GPU's counters"),
        ("ValueError: no such argument", 1, "status 1 and 0 rows: ValueError: no such argument"),
        ("==WARNING== No kernels were profiled.", 0, "status 0 and 0 rows"),
    ],
)
def test_a_profiler_that_fails_has_its_words_in_a_line(profiler, text, status, why):
    profiler(text, status)
    with pytest.raises(nsight.ProfilerError, match="ncu|counters") as found:
        nsight.profile(["python", "program.py"])
    assert why in str(found.value)


@pytest.mark.ptxas
@pytest.mark.measuring
def test_both_columns_are_printed(tmp_path, profiler, capsys):
    cubin, page = tmp_path / "saxpy.cubin", tmp_path / "page.html"
    cubin.write_bytes(kept()["saxpy"].cubin)
    asked = ["predict", str(cubin), "--beside", "--grid", "256", "--block", "256"]
    for one in ("int32:65536", "float32:2", "float32[65536]", "float32[65536]"):
        asked += ["--arg", one]
    seen = TEXT.replace("turned[", "saxpy[").replace("(64, 64, 1)", "(256, 1, 1)")
    profiler(seen.replace("(32, 32, 1)", "(256, 1, 1)"))
    assert main([*asked, "--html", str(page)]) == 0
    out = capsys.readouterr().out
    rows = {line[:36].strip(): line.split() for line in out.splitlines()}
    assert rows["global load requests"][-3:] == ["4,096", "131,072", "-97%"]
    assert rows["waits for a barrier"][-1] == "15%"
    assert "Measured on this machine's NVIDIA H100 SXM5 80 GB" in out
    assert "<td>global load requests<td>4,096<td>131,072" in page.read_text()
    profiler(TEXT)
    assert main(asked) == predicting.NO_PROFILER
    assert "saw other launches alone: turned[" in capsys.readouterr().err
    assert main([*asked, "--device", "h200"]) == predicting.NO_PROFILER
    assert "the GPU here is h100_sxm, and --device names others" in capsys.readouterr().err


def test_what_runs_is_told_what_the_command_was():
    asked = Namespace(target="a.cubin:f", grid="4", block=None, shared=64, arg=["int32:5"], rest=())
    command = nsight.command(asked, None)
    assert command[:3] == [sys.executable, "-m", "gemmlab.programs.launched"]
    assert command[3:] == ["a.cubin:f", "--grid", "4", "--shared", "64", "--arg", "int32:5"]
    asked.rest = ["-n", "3"]
    assert nsight.command(asked, "a.py") == [sys.executable, "a.py", "-n", "3"]
