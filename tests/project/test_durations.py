"""What the tests cost, as recorded: every file has its time, none is long, all fit a budget."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support import durations
from tests.support.durations import EVERYBODY, MEASURING, START, Clock, Recorder, longest_first
from tests.support.paths import ROOT

RECORDED = durations.recorded()
CORES = 2
MOST = 90  # CPU seconds of a file: one process has it
BUDGET = CORES * 8 * 60  # of `run.py test`
BUDGET_OF_CI = CORES * 12 * 60  # with what only measuring needs; lint and the site come on top
AGAIN = "on an idle machine: python3 run.py test --record-durations [the files that are new]"


def test_every_file_has_its_time_and_no_other_is_listed():
    listed = RECORDED[EVERYBODY].keys() | RECORDED[MEASURING].keys()
    assert sorted(listed) == sorted([*durations.files(), START]), AGAIN


def test_no_file_takes_long():
    for some in RECORDED.values():
        assert {name: seconds for name, seconds in some.items() if seconds > MOST} == {}, AGAIN


def total(*of):
    """CPU seconds of all processes; each one collects for itself."""
    return (
        sum(sum(RECORDED[kind].values()) for kind in of) + (CORES - 1) * RECORDED[EVERYBODY][START]
    )


def test_all_of_them_fit_into_the_budget():
    assert total(EVERYBODY) <= BUDGET
    assert total(EVERYBODY, MEASURING) <= BUDGET_OF_CI


def test_a_process_collects_in_seconds():
    assert RECORDED[EVERYBODY][START] <= 15


def test_the_longest_begin_first_and_before_them_the_unknown_and_exercises():
    exercises = "tests/course/test_d.py"
    names = ["tests/test_a.py", "notebooks/b.ipynb", "gemmlab/c.py", "tests/test_new.py", exercises]
    seconds = {"tests/test_a.py": 2.0, "notebooks/b.ipynb": 30.0, "gemmlab": 40.0, exercises: 1.0}
    paths = longest_first([ROOT / name for name in names], seconds)
    others = ["tests/test_new.py", "gemmlab/c.py", "notebooks/b.ipynb", "tests/test_a.py"]
    order = [exercises, *others]
    assert [path.relative_to(ROOT).as_posix() for path in paths] == order


STORE, TIDY = "tests/benchmarks/hardware/test_store.py", "tests/project/test_stderr.py"


def collected(*arguments):
    """Those of two files of which pytest collects tests, where they are all that there is."""
    only = ["-o", f"testpaths={STORE} {TIDY}", "-o", "addopts=--import-mode=importlib"]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:nbval", *only]
    command += arguments
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8")
    return {line.partition("::")[0] for line in answer.stdout.splitlines() if "::" in line}


def test_what_only_measuring_needs_is_left_out_unless_asked_for():
    assert collected() == {TIDY}
    assert collected("-m", "measuring") == {STORE}
    assert collected("-m", "measuring or not measuring") == {STORE, TIDY}
    assert collected(STORE) == {STORE}


def test_a_file_that_cannot_be_imported_is_no_file_without_tests(tmp_path):
    """pytest passes over it in silence where doctests ignore what they cannot import."""
    broken = tmp_path / "test_broken.py"
    broken.write_text("from gemmlab import no_such_name\n\n\ndef test_one():\n    pass\n", "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-c", ROOT / "pyproject.toml", broken]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8")
    assert answer.returncode == pytest.ExitCode.INTERRUPTED
    assert "cannot import name 'no_such_name'" in answer.stdout


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A record of its own, of three files."""
    path = tmp_path / "durations.json"
    monkeypatch.setattr(durations, "FILE", path)
    monkeypatch.setattr(durations, "files", lambda: ["gemmlab", "tests/a.py", "tests/b.py"])
    return path


def test_times_of_processes_are_added_and_those_of_files_that_did_not_run_stay(file):
    old = {EVERYBODY: {"tests/a.py": 9, "tests/gone.py": 1, START: 5}, MEASURING: {"tests/b.py": 7}}
    file.write_text(json.dumps(old), "utf-8")
    recorder = Recorder(all_collected=False)
    for of_each in ({"gemmlab": 1.26, START: 3.0}, {"gemmlab": 2.0, "tests/a.py": 4.0, START: 2.0}):
        node = SimpleNamespace(workeroutput={"durations": {EVERYBODY: of_each, MEASURING: {}}})
        recorder.pytest_testnodedown(node)
    recorder.pytest_unconfigure()
    assert durations.recorded() == {
        EVERYBODY: {"gemmlab": 3.3, START: 5, "tests/a.py": 4.0},
        MEASURING: {"tests/b.py": 7},
    }


@pytest.mark.parametrize("marker", [None, MEASURING])
def test_a_clock_counts_what_a_test_computes_with_its_children(marker):
    item = SimpleNamespace(
        path=Path(ROOT / "tests" / "a.py"), get_closest_marker=lambda name: marker
    )
    clock = Clock()
    running = clock.pytest_runtest_protocol(item)
    next(running)
    subprocess.run([sys.executable, "-c", "sum(range(10**7))"], check=True)
    with pytest.raises(StopIteration):
        next(running)
    of = marker or EVERYBODY
    assert clock.seconds[of]["tests/a.py"] > 0.05
    assert not any(some for kind, some in clock.seconds.items() if kind != of)
