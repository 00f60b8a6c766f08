"""The campaigns of ``run.py record``: one at a time, listed without a GPU, kept as measured."""

import re
from types import SimpleNamespace

import pytest

from benchmarks import microbenchmarks
from benchmarks.microbenchmarks import running
from benchmarks.record import main
from gemmlab import cli, device
from gemmlab.measure import microbenchmarks as results, recording


@pytest.fixture
def gpu(monkeypatch):
    """Make the command see an H200, or no GPU at all."""

    def choose(works):
        status = SimpleNamespace(works=works, reason="no NVIDIA driver is installed")
        monkeypatch.setattr(recording, "gpu_status", lambda: status)
        monkeypatch.setattr(recording, "detect", lambda: device("h200"))

    return choose


def test_record_microbenchmarks_lists_their_facts(gpu, capsys):
    gpu(False)
    assert main(["--microbenchmarks", "--dry-run"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert len(listed) == len(microbenchmarks.LOOPS) + len(microbenchmarks.LAUNCHES)
    assert re.match(r"ffma_latency +cycles from FFMA to one that needs its result", listed[0])


def test_record_microbenchmarks_without_a_gpu_is_one_clear_message(gpu, capsys):
    gpu(False)
    assert main(["--microbenchmarks"]) == 1
    assert "needs an NVIDIA GPU" in capsys.readouterr().err


@pytest.mark.parametrize(("failures", "code"), [([], 0), (["ffma_rate: no"], 1)])
def test_record_microbenchmarks_keeps_what_was_measured(
    gpu, monkeypatch, capsys, tmp_path, failures, code
):
    gpu(True)
    found = results.Results(dict.fromkeys(results.REQUIRED, "told"), (), ())
    monkeypatch.setattr(running, "measure", lambda device, loops, launches: (found, failures))
    assert main(["--microbenchmarks", "--out", str(tmp_path / "new")]) == code
    assert results.read(tmp_path / "new" / results.FILE) == found
    assert f"{len(failures)} failed" in capsys.readouterr().out


def test_record_refuses_a_part_of_no_name(capsys):
    assert main(["--microbenchmarks", "besides/", "--dry-run"]) == 1
    assert "no microbenchmark has 'besides/' in its name" in capsys.readouterr().err


def test_what_names_no_campaign_is_the_command_of_the_library(monkeypatch):
    asked = []
    monkeypatch.setattr(cli, "main", lambda argv: asked.append(argv) or 3)
    assert main(["--kernels", "tiled", "--sizes", "64"]) == 3
    assert asked == [["record", "--kernels", "tiled", "--sizes", "64"]]


def test_its_help_tells_of_the_campaigns_and_of_the_librarys_command(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    told = capsys.readouterr().out
    for option in ("--held-out-families", "--microbenchmarks", "--figures", "--listings"):
        assert f"  {option} " in told


@pytest.mark.parametrize("more", [["--held-out"], ["--sizes", "64"]])
def test_one_campaign_at_a_time(capsys, more):
    with pytest.raises(SystemExit):
        main(["--figures", "5", *more])
    assert "do not go together" in capsys.readouterr().err


def test_ctrl_c_is_not_a_traceback(gpu, monkeypatch, capsys):
    gpu(True)

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "measure", interrupted)
    assert main(["--microbenchmarks"]) == 130
    assert "interrupted" in capsys.readouterr().err
