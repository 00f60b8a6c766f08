"""No process of a program is missed, and none ends without an account."""

import json
import os
import select
import signal
import subprocess
import sys
import time

import pytest

from gemmlab.programs import following
from gemmlab.programs.running import Outcome
from tests.programs.test_simulate import program, simulate
from tests.support.paths import ROOT

__all__ = ["program"]  # a fixture
linux = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be copied here")

KERNELS = """
import multiprocessing, os, subprocess, sys, threading
import numpy as np
from numba import cuda

@cuda.jit
def racy(x):
    x[0] = cuda.threadIdx.x

@cuda.jit
def fine(x):
    x[cuda.grid(1)] = 1

@cuda.jit
def endless(x):
    for i in range(100_000_000):
        x[cuda.grid(1)] += 1
"""


@linux
def test_every_process_of_a_program_is_followed(program, tmp_path):
    """A copy, a process as pools start it, another program, and an end without a word."""
    program("from numba import cuda\nassert cuda.__name__ == 'gemmlab.simt.cuda'\n", "first.py")
    program(f"import first\n{KERNELS}\nracy[1, 2](np.zeros(1))\n", "other.py")
    program("import pathlib; pathlib.Path('ran').touch()\n", "sitecustomize.py")
    path = program(f"""{KERNELS}
def work(threads):
    racy[1, threads](np.zeros(1))

if __name__ == "__main__":
    fine[1, 3](np.zeros(3))
    for way, threads in (("fork", 4), ("spawn", 5)):
        process = multiprocessing.get_context(way).Process(target=work, args=(threads,))
        process.start()
        process.join()
    if not os.fork():
        os.execv(sys.executable, [sys.executable, "other.py"])
    os.wait()
    racy[1, 6](np.zeros(1))
    os._exit(0)
""")
    out = tmp_path / "account.json"
    before = f"import os; os.environ['PYTHONPATH'] += ':{tmp_path}'"
    answer = simulate("--format=json", f"--output={out}", path, cwd=tmp_path, before=before)
    assert answer.returncode == 1, answer.stderr
    told = json.loads(out.read_text("utf-8"))
    rows = [(row["kernel"], row["block"][0], len(row["hazards"])) for row in told["launches"]]
    assert rows == [("fine", 3, 0), *[("racy", n, 1) for n in (4, 5, 2, 6)]]
    assert (tmp_path / "ran").exists(), "the sitecustomize that there is"


@linux
def test_a_launch_that_had_not_ended_is_named(program):
    path = program(f"""{KERNELS}
import signal
fine[1, 32](np.zeros(32))
try:
    fine[1, 32]([1])
except TypeError:  # a launch that failed is none that had not ended
    pass
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
endless[1, 32](np.zeros(32))
""")
    answer = simulate(path)
    assert answer.returncode == 130
    assert "1 launch, 0 hazards, 1 launch had not ended; it ended with status 130" in answer.stderr
    assert "), grid 1, block 32: this launch had not ended" in answer.stderr


@pytest.mark.parametrize(
    ("launches", "status", "unended", "expected"),
    [(0, 0, 0, 5), (0, 4, 0, 4), (1, 0, 0, 0), (1, 0, 1, 1), (1, 9, 1, 9)],
)
def test_the_status_says_what_is_odd(launches, status, unended, expected, monkeypatch):
    from gemmlab import cli

    outcome = Outcome("program.py", (), status=status, unended=[None] * unended)
    monkeypatch.setattr("gemmlab.programs.running.Account.launches", launches)
    assert cli._verdict(outcome) == expected


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device here")
def test_an_account_that_nobody_gets_is_a_failure(program):
    path = program("print(1)")
    answer = simulate("--output", "/dev/full", path)
    assert answer.returncode == 3
    assert "the account cannot be written: [Errno 28]" in answer.stderr
    assert simulate(path, before="import os; os.close(2); sys.stderr = None").returncode == 3


def test_nothing_stands_in_the_way_where_nobody_reads_the_output(program):
    answer = simulate(program(f"{KERNELS}\nracy[1, 2](np.zeros(1))"), before="sys.stdout = None")
    assert (answer.returncode, "1 hazard" in answer.stderr) == (1, True)


def test_half_an_entry_is_none(tmp_path):
    spool = following.Spool(tmp_path)
    spool.write("numba", False)
    spool.write("numba", True)
    (own,) = tmp_path.iterdir()
    own.write_bytes(own.read_bytes()[:-1])
    assert [entry[2:] for entry in spool.read()] == [("numba", False)]


def test_many_launches_are_read_in_a_time_that_grows_as_they_do(tmp_path):
    """Of 100,000 launches in a loop, the account took longer than the launches."""
    spool = following.Spool(tmp_path)
    spool.write("numba", "x" * 1000)
    (own,) = tmp_path.iterdir()
    own.write_bytes(20_000 * own.read_bytes())
    start = time.process_time()
    assert sum(1 for _ in spool.read()) == 20_000
    assert time.process_time() - start < 3  # of 0.1 s; of 10 s if each entry copies the rest


def test_a_process_that_outlives_its_program_is_left_alone(monkeypatch, tmp_path):
    monkeypatch.setenv(following.SPOOL, str(tmp_path / "gone"))
    before = sys.modules.get("numba.cuda")
    following.follow()
    assert sys.modules.get("numba.cuda") is before


def test_a_program_ends_as_python_ends_it(program):
    """Threads and processes are waited for, then come the functions for the end."""
    path = program("""
import atexit, multiprocessing, threading, time

def late():
    time.sleep(0.2)
    print("late", flush=True)

if __name__ == "__main__":
    atexit.register(print, "bye")
    threading.Thread(target=late).start()
    multiprocessing.Process(target=late).start()
    raise SystemExit(4)
""")
    answer = simulate(path)
    assert (answer.returncode, answer.stdout) == (4, "late\nlate\nbye\n")


@linux
def test_ctrl_c_that_the_program_did_not_get_is_passed_on(program):
    """As of `kill -INT`: the first one leaves it time, the next ones tell it."""
    path = program("""
import time
try:
    print("ready", flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    print("told", flush=True)
    raise
""")
    code = (
        "import sys\nfrom gemmlab import cli\nfrom gemmlab.programs import following\n"
        "following.PATIENCE = 600\nsys.exit(cli.main(['simulate', sys.argv[1]]))"
    )
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout.readline() == b"ready\n"
        while not select.select([run.stdout], [], [], 0.5)[0]:  # until the program says so
            run.send_signal(signal.SIGINT)
        assert run.stdout.readline() == b"told\n"
        said = run.stderr.read().decode()
    assert run.returncode == 130
    assert "it ended with status 130" in said


@linux
def test_a_python_without_gemmlab_runs_as_it_does(program, tmp_path):
    """One of another version, say: its Numba is its own, and nothing is put before it."""
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    program("raise ImportError\n", "theirs/gemmlab.py")
    program("print('its own numba')\n", "theirs/numba.py")
    path = program("""
import os, subprocess, sys
first, *_ = os.environ["PYTHONPATH"].split(os.pathsep)
paths = os.pathsep.join([first, sys.argv[1]])
command = [sys.executable, "-c", "import numba"]
subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, cwd=sys.argv[1], check=True)
""")
    answer = simulate(path, theirs)
    assert (answer.returncode, answer.stdout) == (5, "its own numba\n"), answer.stderr
