"""The parts of run.py that touch neither network nor environment, and the promises made for it."""

import ast
import errno
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import types

import pytest

from tests.support.faults import RAISED, faults
from tests.support.paths import ROOT

SPEC = importlib.util.spec_from_file_location("run", ROOT / "run.py")
run = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(run)


VERBS = "lab test book lint record validate release doctor"


@pytest.fixture
def venv(tmp_path, monkeypatch):
    """A place for an environment that does not exist yet."""
    monkeypatch.setattr(run, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(run, "STATE", tmp_path / ".venv" / "gemmlab.json")
    return tmp_path / ".venv"


# ------------------------------------------------------------------------------------- the verbs


def test_no_verb_lists_every_verb(capsys):
    assert run.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("usage: python3 run.py")
    assert " ".join(line.split()[0] for line in lines[2:]) == VERBS
    assert all(len(line.split()) > 3 for line in lines[2:])


def test_unknown_verb_is_quoted_and_the_verbs_listed(capsys):
    assert run.main(["tests"]) == 2
    error = capsys.readouterr().err
    assert "'tests'" in error
    assert VERBS in error


def test_every_verb_has_its_lock_file():
    for lock, _, _ in run.VERBS.values():
        assert (ROOT / "requirements" / f"{lock}.txt").is_file()


def test_record_is_handed_to_the_campaigns(monkeypatch):
    calls = []
    monkeypatch.setattr(run, "set_up", lambda name: calls.append(name))
    monkeypatch.setattr(run, "set_up_cuda", lambda: calls.append("cuda"))
    monkeypatch.setattr(run, "call", lambda *command: calls.append(command) or 7)
    assert run.main(["record", "--quick"]) == 7
    assert calls == ["lab", "cuda", ("-m", "benchmarks.record", "--quick")]


def test_validate_is_handed_to_the_checks_against_hardware(monkeypatch):
    calls = []
    monkeypatch.setattr(run, "set_up", lambda name: calls.append(name))
    monkeypatch.setattr(run, "set_up_cuda", lambda: calls.append("cuda"))
    monkeypatch.setattr(run, "call", lambda *command: calls.append(command) or 3)
    assert run.main(["validate", "ladder", "--seconds", "60"]) == 3
    module = "benchmarks.hardware.validate"
    assert calls == ["test", "cuda", ("-m", module, "ladder", "--seconds", "60")]
    assert importlib.util.find_spec(module)


@pytest.mark.parametrize(
    ("tests", "checks", "status"), [(0, 0, 0), (1, 0, 1), (0, 3, 3), (1, 3, 3)]
)
def test_all_of_validate_begins_with_the_tests_of_its_programs(monkeypatch, tests, checks, status):
    calls = []
    answers = {"pytest": tests, "benchmarks.hardware.validate": checks}
    monkeypatch.setattr(run, "call", lambda *command: calls.append(command) or answers[command[1]])
    assert run.validate([]) == status
    (_, first, *asked), last = calls
    assert (first, asked[1:]) == ("pytest", ["-m", "measuring"])
    assert last == ("-m", "benchmarks.hardware.validate")


@pytest.mark.parametrize(("cores", "workers"), [(1, 1), (2, 2), (200, run.MOST_WORKERS)])
def test_tests_run_on_every_core_and_what_is_asked_for_comes_last(monkeypatch, cores, workers):
    calls = []
    monkeypatch.setattr(run, "call", lambda *command: calls.append(command) or 0)
    monkeypatch.setattr(run.os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
    assert run.test(["-n0", "tests/simt"]) == 0
    assert calls == [("-m", "pytest", f"--numprocesses={workers}", "-n0", "tests/simt")]


def test_lint_shows_both_checks_and_fails_if_either_does(monkeypatch):
    calls = []
    monkeypatch.setattr(run, "call", lambda *command: calls.append(command[2]) or 1)
    assert run.lint([]) == 1
    assert calls == ["check", "format"]
    monkeypatch.setattr(run, "call", lambda *command: int(command[2] == "check"))
    assert run.lint([]) == 1
    monkeypatch.setattr(run, "call", lambda *command: int(command[2] == "format"))
    assert run.lint([]) == 1
    monkeypatch.setattr(run, "call", lambda *command: 0)
    assert run.lint([]) == 0


def test_quick_is_the_cheapest_of_each_folder_and_the_doctests(monkeypatch, tmp_path):
    seconds = {
        "gemmlab": 30, "notebooks/a.ipynb": 1, "tests/test_a.py": 1, "tests/x/test_b.py": 3.5,
        "tests/x/test_c.py": 0.5, "tests/x/test_d.py": 3.6, "tests/y/test_e.py": 10.1, "start": 9,
    }  # fmt: skip
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "durations.json").write_text(json.dumps({"everybody": seconds}), "utf-8")
    calls = []
    monkeypatch.setattr(run, "ROOT", tmp_path)
    monkeypatch.setattr(run, "call", lambda *command: calls.append(command) or 0)
    assert run.test(["-x", "--quick"]) == 0
    chosen = ["gemmlab", "tests/x/test_c.py", "tests/test_a.py", "tests/x/test_b.py"]
    assert list(calls[0][3:]) == [*chosen, "-m", "not measuring", "-x"]


def test_quick_has_tests_of_every_folder():
    chosen = run.quick_files()
    assert all((ROOT / name).exists() for name in chosen)
    folders = {p.parent.relative_to(ROOT).as_posix() for p in (ROOT / "tests").rglob("test_*.py")}
    folders -= {folder for folder in folders if folder.startswith("tests/browser")}
    assert {name.rpartition("/")[0] for name in chosen[1:]} == folders


@pytest.mark.parametrize("command", ["python3 run.py lab", "python3 run.py test"])
def test_readme_and_ci_name_the_commands(command):
    assert command in (ROOT / "README.md").read_text("utf-8")
    if command.endswith("test"):
        assert command in (ROOT / ".ci" / "run").read_text("utf-8")


# ------------------------------------------------------------------------------------ old Pythons


def test_old_python_is_refused_in_one_line():
    with pytest.raises(SystemExit) as error:
        run.refuse_old_python((3, 10, 12), "/usr/bin/python3")
    assert "3.11" in error.value.code
    assert "/usr/bin/python3 is 3.10" in error.value.code
    assert "\n" not in error.value.code


@pytest.mark.parametrize("version", [(3, 11, 0), (3, 14, 1)])
def test_newer_python_is_accepted(version):
    run.refuse_old_python(version, "python3")


def test_an_old_python_can_read_the_file():
    ast.parse((ROOT / "run.py").read_text("utf-8"), feature_version=(3, 6))


def test_only_the_standard_library_is_imported():
    nodes = ast.walk(ast.parse((ROOT / "run.py").read_text("utf-8")))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    assert names
    assert names <= set(sys.stdlib_module_names)


# ----------------------------------------------------------------------------------------- stamps


def test_stamp_changes_with_each_of_its_parts():
    parts = ["numpy==2.4.6", "[project]", "3.11", "/home/me/gemmlab"]
    stamps = {run.stamp(*parts)}
    for i in range(len(parts)):
        stamps.add(run.stamp(*(part + "x" * (i == j) for j, part in enumerate(parts))))
    assert len(stamps) == 5
    assert run.stamp("ab", "c", "", "") != run.stamp("a", "bc", "", "")


def test_a_complete_set_is_not_installed_again(venv, monkeypatch):
    calls = []
    monkeypatch.setattr(run, "make_venv", lambda: venv.mkdir(exist_ok=True))
    monkeypatch.setattr(run, "install", calls.append)
    run.set_up("lab")
    assert len(calls) == 2
    assert calls[0] == run.pinned("build", "lab")
    assert calls[1][:3] == ["--no-deps", "--no-build-isolation", "-e"]
    run.set_up("lab")
    assert len(calls) == 2
    monkeypatch.setattr(run, "wanted", lambda name: "another lock file")
    run.set_up("lab")
    assert len(calls) == 4


def test_only_files_with_the_right_hashes_are_installed():
    pinned = run.pinned("build", "lab")
    assert pinned[0] == "--require-hashes"
    assert pinned[1::2] == ["-r", "-r"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be copied here")
def test_a_second_set_up_waits_for_the_first(venv, monkeypatch, capfd):
    """The second begins when the first has ended, however that ends."""
    monkeypatch.setattr(run, "make_venv", lambda: venv.mkdir(exist_ok=True))
    (reader, writer), (go, gone) = os.pipe(), os.pipe()
    if not (first := os.fork()):
        with run.alone():
            os.write(writer, b"1")
            os.read(go, 1)
            os.write(writer, b"2")
            os._exit(0)
    assert os.read(reader, 1) == b"1"
    monkeypatch.setattr(run, "say", lambda text: os.write(gone, b"."))
    monkeypatch.setattr(run, "install", lambda arguments: os.write(writer, b"3"))
    run.set_up("lab")
    assert os.read(reader, 3)[:2] == b"23"
    os.waitpid(first, 0)


def test_a_damaged_environment_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr(run, "set_up", lambda name: None)
    monkeypatch.setattr(run, "set_up_cuda", lambda: None)
    lost = "Traceback ...\nModuleNotFoundError: No module named 'numpy'\n"
    monkeypatch.setattr(run, "quietly", lambda command, env=None: (False, lost))
    assert run.main(["doctor"]) == 1
    told = capsys.readouterr().err
    assert "is damaged (ModuleNotFoundError: No module named 'numpy'). Delete it" in told


@pytest.mark.parametrize("end", [KeyboardInterrupt, run.SetupError])
def test_an_interrupted_set_up_is_not_believed_complete(venv, monkeypatch, end):
    venv.mkdir()
    run.write_state({"lab": run.wanted("lab"), "test": "the stamp of an older lock file"})

    def stop(arguments):
        raise end

    monkeypatch.setattr(run, "make_venv", lambda: None)
    monkeypatch.setattr(run, "install", stop)
    with pytest.raises(end):
        run.set_up("test")
    assert run.read_state() == {"lab": run.wanted("lab")}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be copied here")
def test_whatever_fails_the_state_is_the_old_one_or_the_new_one(venv, no_sync):
    """A set-up's own file: each of its writes fails in turn, disk full, Ctrl-C, or killed."""
    venv.mkdir(exist_ok=True)
    old, new, tried = {"lab": "old"}, {"lab": "new"}, 0
    run.write_state(old)
    for way, step, ended in faults(lambda: run.write_state(new)):
        tried += 1
        assert run.read_state() in (old, new), (way, step)
        assert way != "full" or run.read_state() == (old if ended == RAISED else new)
        run.write_state(old)
    assert tried >= 9


def test_a_damaged_state_counts_as_nothing_installed(venv):
    venv.mkdir()
    for text in ("", '{"lab": ', "[]"):
        run.STATE.write_text(text)
        assert run.read_state() == {}


def test_a_foreign_environment_is_left_alone(venv):
    venv.mkdir()
    (venv / "mine").touch()
    with pytest.raises(run.SetupError, match="not a virtual environment of Python"):
        run.make_venv()
    assert (venv / "mine").exists()


def test_a_half_made_environment_is_made_again(venv, monkeypatch):
    venv.mkdir()
    run.write_state({"lab": "a stamp"})
    (venv / "half").touch()
    made = subprocess.CompletedProcess([], 0, "", "")
    monkeypatch.setattr(run, "runs_this_python", lambda python: False)
    monkeypatch.setattr(run.subprocess, "run", lambda *_, **__: made)
    run.make_venv()
    assert not (venv / "half").exists()
    assert run.read_state() == {}


def test_a_compiler_is_kept_and_another_one_makes_the_environment_anew(venv, monkeypatch, capsys):
    calls = []
    monkeypatch.setattr(run, "set_up", lambda name: calls.append(name))
    monkeypatch.setattr(run, "set_up_cuda", lambda: calls.append(run.compiler()))
    monkeypatch.setattr(run, "call", lambda *command: calls.append(command) or 0)
    venv.mkdir()
    run.write_state({"lab": "a stamp"})
    (venv / "numba-cuda").touch()
    assert run.main(["lab", "--compiler", run.MLIR, "--port", "8"]) == 0
    assert calls == ["lab", run.MLIR, ("-m", "lab", "--port", "8")]
    assert not (venv / "numba-cuda").exists()
    assert "made anew, for numba-cuda-mlir" in capsys.readouterr().err
    run.write_state(run.read_state() | {"lab": "a stamp"})
    for arguments in ([], ["--compiler", run.MLIR]):
        assert run.main(["lab", *arguments]) == 0
        assert run.read_state() == {"compiler": run.MLIR, "lab": "a stamp"}
    assert run.main(["lab", "--compiler", run.NUMBA]) == 0
    assert run.read_state() == {"compiler": run.NUMBA}


@pytest.mark.parametrize("given", [["--compiler", "nvcc"], ["--compiler"]])
def test_an_unknown_compiler_is_quoted_and_both_are_listed(venv, capsys, given):
    assert run.main(["lab", *given]) == 1
    told = capsys.readouterr().err
    assert repr((*given, "")[1]) in told
    assert "numba-cuda numba-cuda-mlir" in told
    assert not venv.exists()


def test_an_environment_of_someone_else_gets_no_other_compiler(venv, capsys):
    venv.mkdir()
    (venv / "mine").touch()
    assert run.main(["lab", "--compiler", run.MLIR]) == 1
    assert "was not made by run.py" in capsys.readouterr().err
    assert (venv / "mine").exists()


def test_another_python_keeps_the_compiler(venv, monkeypatch):
    venv.mkdir()
    run.write_state({"lab": "a stamp", "compiler": run.MLIR})
    made = subprocess.CompletedProcess([], 0, "", "")
    monkeypatch.setattr(run, "runs_this_python", lambda python: False)
    monkeypatch.setattr(run.subprocess, "run", lambda *_, **__: made)
    run.make_venv()
    assert run.read_state() == {"compiler": run.MLIR}


def test_a_failed_venv_names_the_package_that_mends_it(venv, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "ensurepip is not available", "")
    monkeypatch.setattr(run, "runs_this_python", lambda python: False)
    monkeypatch.setattr(run.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(run.SetupError, match=r"ensurepip is not available.*python3-venv"):
        run.make_venv()


def test_a_venv_that_fails_on_a_full_disk_says_so(venv, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "ensurepip: exit status 1.", "")
    full = types.SimpleNamespace(free=1e6)
    monkeypatch.setattr(run, "runs_this_python", lambda python: False)
    monkeypatch.setattr(run.subprocess, "run", lambda *_, **__: failed)
    monkeypatch.setattr(run.shutil, "disk_usage", lambda place: full)
    with pytest.raises(OSError, match="No space left"):
        run.make_venv()


# ------------------------------------------------------------------------- what ends in one line


@pytest.fixture
def line(venv, monkeypatch, capsys):
    """A function: what goes wrong in making `.venv` -> exit status and the line on stderr."""

    def fail(error):
        def stop(*_, **__):
            raise error

        monkeypatch.setattr(run, "make_venv", stop)
        status = run.main(["lab"])
        (told,) = capsys.readouterr().err.splitlines()
        return status, told

    return fail


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.EPERM])
def test_a_folder_that_cannot_be_written_is_one_line(line, venv, number):
    status, told = line(OSError(number, os.strerror(number), str(venv)))
    assert status == 1
    assert str(venv) in told
    assert os.strerror(number) in told
    assert "where you may write" in told


def test_a_full_disk_is_one_line(line, venv):
    status, told = line(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(venv)))
    assert status == 1
    assert "the disk is full" in told
    assert "may write" not in told


def test_a_failed_set_up_is_one_line(line):
    status, told = line(run.SetupError(run.explain("one\ntwo\nthree.\n\n")))
    assert status == 1
    assert "(three). Mend" in told


def test_an_interrupt_is_one_line(line):
    status, told = line(KeyboardInterrupt())
    assert status == 130
    assert "interrupted" in told


def test_an_interrupt_before_a_verb_has_begun_is_one_line(monkeypatch, capsys):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "set_up", lambda name: None)
    monkeypatch.setattr(run, "set_up_cuda", lambda: None)
    monkeypatch.setattr(run.subprocess, "Popen", stop)
    assert run.main(["doctor"]) == 130
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_place_without_room_for_an_environment_is_one_line(tmp_path):
    """The whole script, as a process, where `.venv` cannot be made."""
    shutil.copy(ROOT / "run.py", tmp_path)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "requirements").mkdir()
    (tmp_path / ".venv").symlink_to(tmp_path / "nowhere" / "at" / "all")
    command = [sys.executable, str(tmp_path / "run.py"), "lab"]
    answer = subprocess.run(command, capture_output=True, text=True)
    assert answer.returncode == 1
    assert "Traceback" not in answer.stderr
    assert "cannot be written" in answer.stderr.splitlines()[-1]
