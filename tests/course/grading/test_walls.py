"""The walls say what holds, and processes end with who started them."""

import os
import signal
import subprocess
import sys
import time

import pytest

from gemmlab.course.grading.processes import Grader
from gemmlab.course.grading.walls import Walls
from tests.course.grading.notebooks import cells
from tests.support.paths import ROOT


def test_what_holds_is_one_line():
    all_stand = Walls(("memory",)).told
    assert all_stand.endswith("no network, files and processes but its own.")
    some = Walls(("memory",), "unshare: Operation not permitted").told
    assert "none against files, network and processes (unshare: Operation not permitted)" in some
    assert "\n" not in all_stand + some


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone has these walls")
def test_a_process_that_judges_says_which_walls_stand():
    walls = Grader("seed").walls()
    assert set(walls.stand) == {"processor time", "memory", "files"}


@pytest.mark.measuring
def test_nothing_outlives_a_grade_that_is_killed(tmp_path):
    """The process that judges, and what an answer has started, end with the command."""
    endless = cells(
        "from gemmlab import exercises\nq = exercises.get('02.2')",
        "def f(*a):\n    return max(iter(int, 1))",
        "q.check(f)",
    )
    (tmp_path / "a.ipynb").write_bytes(endless)
    command = [sys.executable, "-m", "gemmlab", "grade", str(tmp_path), "--only", "02.2"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    grade = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    before = set()
    while len(before) < 3:  # one waits for the walls, one judges, and one runs the answer
        assert grade.poll() is None
        time.sleep(0.05)
        before = judging(grade.pid)
    grade.send_signal(signal.SIGKILL)
    grade.wait()
    end = time.monotonic() + 20
    while (left := {pid for pid in before if alive(pid)}) and time.monotonic() < end:
        time.sleep(0.05)
    assert left == set()


def judging(parent):
    """The processes that judge, below a process."""
    command = ["ps", "-ww", "-eo", "pid,ppid,args"]
    found = subprocess.run(command, capture_output=True, text=True).stdout
    lines = [line.split(None, 2) for line in found.splitlines()[1:]]
    below = {str(parent)}
    for _ in range(4):
        below |= {pid for pid, ppid, _ in lines if ppid in below}
    return {int(pid) for pid, _, args in lines if pid in below and "grading.worker" in args}


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
