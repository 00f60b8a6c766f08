import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import gemmlab
from gemmlab import __main__, cli, device, doctor, records
from gemmlab.measure import recording

VERBS = ("doctor", "lab", "simulate", "grade", "class", "record", "check", "book")
TRUNCATED = '{"schema":1,"kernel":"ti'


@pytest.fixture
def gpu(monkeypatch):
    """Make the command line see an H200, or no GPU at all."""

    def choose(works):
        status = SimpleNamespace(works=works, reason="no NVIDIA driver is installed")
        monkeypatch.setattr(recording, "gpu_status", lambda: status)
        monkeypatch.setattr(recording, "detect", lambda: device("h200"))

    return choose


def test_without_arguments_the_verbs_are_listed(capsys):
    assert cli.main([]) == 0
    text = capsys.readouterr().out
    assert all(verb in text for verb in VERBS)


def test_an_unknown_verb_is_refused_with_the_known_ones(capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(["bench"])
    assert caught.value.code == 2
    text = capsys.readouterr().err
    assert "bench" in text
    assert all(verb in text for verb in VERBS)


def test_an_unknown_option_is_refused(capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(["record", "--fast"])
    assert caught.value.code == 2
    assert "--fast" in capsys.readouterr().err


def test_python_m_gemmlab_runs():
    root = str(Path(gemmlab.__file__).parents[1])
    answer = subprocess.run(
        [sys.executable, "-m", "gemmlab", "--version"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": root},
    )
    assert (answer.returncode, answer.stdout) == (0, f"gemmlab {gemmlab.__version__}\n")


def test_doctor_prints_the_report(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "report", lambda: "all is well")
    assert cli.main(["doctor"]) == 0
    assert capsys.readouterr().out == f"gemmlab {gemmlab.__version__}\nall is well\n"


# -------------------------------------------------------------------------------- lab and book


@pytest.mark.parametrize("verb", ["lab", "book"])
def test_lab_and_book_hand_over_to_run_py_of_a_clone(verb, tmp_path, monkeypatch, capfd):
    script = tmp_path / "run.py"
    script.write_text("def main(argv):\n    print(argv)\n    return 3\n", "utf-8")
    monkeypatch.setattr(cli, "RUN_PY", script)
    assert cli.main([verb, "--port", "8890"]) == 3
    assert capfd.readouterr().out == f"['{verb}', '--port', '8890']\n"


def test_without_a_clone_there_is_no_book(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cli, "RUN_PY", tmp_path / "run.py")
    assert cli.main(["book"]) == 1
    assert "python run.py book" in capsys.readouterr().err


def test_an_installed_package_without_jupyterlab_says_how_to_install_it(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(cli, "RUN_PY", tmp_path / "run.py")
    monkeypatch.setattr(cli, "find_spec", lambda name: None)
    assert cli.main(["lab"]) == 1
    assert 'pip install "gemmlab[lab]"' in capsys.readouterr().err


# --------------------------------------------------------------------------------------- record


def test_record_without_a_gpu_is_one_clear_message(gpu, capsys):
    gpu(False)
    assert cli.main(["record"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    for part in ("no NVIDIA driver is installed", "gemmlab doctor", "--dry-run"):
        assert part in err


def test_a_dry_run_needs_no_gpu_and_measures_nothing(gpu, capsys, tmp_path):
    gpu(False)
    options = ["--kernels", "tiled", "--sizes", "64,128", "--out", str(tmp_path), "--dry-run"]
    assert cli.main(["record", *options]) == 0
    head, *rows, _ = capsys.readouterr().out.splitlines()
    assert "H200" in head
    assert str(tmp_path) in head
    assert len(rows) == 2 * 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (recording.Outcome(2, 1, 0), 0),
        (recording.Outcome(2, 1, 0, ("tiled: no",)), 1),
        (recording.Outcome(1, 1, 0, interrupted=True), 130),
    ],
)
def test_record_hands_its_options_to_the_campaign(gpu, monkeypatch, capsys, outcome, code):
    gpu(True)
    calls = []

    def campaign(points, folder, name, *, repeats):
        calls.append((len(points), folder, name, repeats))
        return outcome

    monkeypatch.setattr(recording, "record", campaign)
    options = ["--kernels", "naive,cublas", "--sizes", "64", "--repeats", "9", "--budget", "5"]
    assert cli.main(["record", *options]) == code
    assert calls == [(2, records.ROOT / "h200", "h200", 9)]
    text = capsys.readouterr().out
    assert text.startswith(f"{outcome.measured} measured")
    assert ("goes on from here" in text) == outcome.interrupted


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sizes", "big"], "'big'"),
        (
            ["--kernels", "fast"],
            f"'fast' is not recorded; use {', '.join(k.name for k in recording.KERNELS)}",
        ),
    ],
)
def test_record_refuses_what_it_does_not_know(gpu, capsys, options, message):
    gpu(True)
    assert cli.main(["record", *options]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("repeats", ["0", "-1", "1.5", "many"])
def test_record_refuses_repeats_that_are_no_count(capsys, repeats):
    with pytest.raises(SystemExit):
        cli.main(["record", f"--repeats={repeats}"])
    assert repeats in capsys.readouterr().err


def test_ctrl_c_is_not_a_traceback(gpu, monkeypatch, capsys):
    gpu(True)

    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(recording, "plan", interrupted)
    monkeypatch.setattr("sys.argv", ["gemmlab", "record"])
    assert __main__.main() == 130
    assert "interrupted" in capsys.readouterr().err


# ---------------------------------------------------------------------------------------- check


def test_check_without_files_reads_what_is_shipped(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(records, "ROOT", tmp_path)
    assert cli.main(["check"]) == 1
    assert "no recorded measurements" in capsys.readouterr().err
    file = tmp_path / "h200" / "tiled.jsonl"
    file.parent.mkdir()
    file.write_text("", "utf-8")
    assert cli.main(["check"]) == 0
    assert "0 measurements in 1 files" in capsys.readouterr().out
    file = tmp_path / "h200" / "figures" / "tiled.jsonl"
    file.parent.mkdir()
    file.write_text(TRUNCATED, "utf-8")
    assert cli.main(["check"]) == 1
    assert f"{file}, line 1: truncated" in capsys.readouterr().err


def test_check_reads_the_files_that_are_named(tmp_path, capsys):
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    good.write_text("\n", "utf-8")
    bad.write_text(f"\n{TRUNCATED}\n", "utf-8")
    assert cli.main(["check", str(good)]) == 0
    assert cli.main(["check", str(good), str(bad)]) == 1
    assert f"{bad}, line 2: truncated" in capsys.readouterr().err
    assert cli.main(["check", str(tmp_path / "none.jsonl")]) == 1
    assert "none.jsonl" in capsys.readouterr().err


def test_everything_shipped_passes():
    if list(records.ROOT.glob("*/*.jsonl")):
        assert cli.main(["check"]) == 0


@pytest.mark.ptxas
def test_record_listings_keeps_compiled_code(tmp_path, capsys):
    assert cli.main(["record", "--listings", "--kernels", "naive", "--out", str(tmp_path)]) == 0
    path = tmp_path / "sm_90" / "naive.json.gz"
    assert capsys.readouterr().out == f"{path}: 16×16×1\n"
    assert path.is_file()


def test_record_listings_says_what_to_install(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(cli, "lacking", lambda: "there is no ptxas; install it")
    assert cli.main(["record", "--listings", "--out", str(tmp_path)]) == 1
    assert (
        "--listings compiles the kernels: there is no ptxas; install it" in capsys.readouterr().err
    )
    assert not list(tmp_path.iterdir())
