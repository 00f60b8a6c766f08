"""`breakpoint()` in kernels and `--stop`: what the debugger shows of one thread."""

import io
import pdb
import re
import sys
import threading
from bdb import BdbQuit
from unittest import mock

import numpy as np
import pytest
from numpy import float32

from gemmlab import cli, cuda, simulate
from gemmlab.programs import running
from gemmlab.simt.machine.debugger import Stop
from gemmlab.simt.threads import rest


@cuda.jit(device=True)
def half_of(x, i):
    h = x[i] / 2
    return h


def sums(x, y):
    part = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    part[t] = x[i]
    cuda.syncthreads()
    acc = float32(0)
    for j in range(4):
        if j % 2 == t % 2:
            if t == 5:
                breakpoint()
            acc += part[(t + j) % 64]
    y[i] = acc + half_of(x, i)


def places(x, y):
    col, row = cuda.grid(2)
    own = cuda.local.array(2, float32)
    own[0] = 10 * row
    own[1] = col
    two = own[0], row
    if row == 1 and col == 2:
        from pdb import set_trace

        set_trace()
    y[row, col] = own[0] + own[1] + two[1] * x[row, col]


@pytest.fixture
def session(monkeypatch, capsys):
    """Runs a launch while somebody types; what the debugger has answered, command by command."""

    def run(commands, launch):
        monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(commands) + "\n"))
        launch()
        said = capsys.readouterr().out
        return [part.strip() for part in re.split(r"thread \S+ of block \S+ > |thread \(.+?\) of "
                                                  r"block \(.+?\) > ", said)]  # fmt: skip

    return run


def launched(kernel=sums, grid=2, block=64, shape=128):
    x = np.arange(np.prod(shape), dtype=float32).reshape(shape)
    y = np.zeros_like(x)
    return lambda: simulate(kernel, grid, block, x, y)


def test_it_stops_in_the_thread_that_runs_and_shows_its_values(session):
    answers = session(["t", "p acc", "x[3] + float32(1)", "cuda.blockIdx.x", "y", "c", "c"],
                      launched())  # fmt: skip
    assert "-> acc += part[(t + j) % 64]" in answers[0]
    assert answers[1:5] == ["5", "0.0", "4.0", "0"]
    assert answers[5].startswith("128 float32\n[0., 0., 0., ..., 0., 0., 0.]")
    assert "-> acc +=" in answers[6]  # two turns later, and in either block at once


def test_a_step_is_one_of_the_kernel_lines_and_says_who_takes_no_part(session):
    lines = session(["n"] * 5 + ["c"] * 9, launched())
    shown = [re.search(r"-> (.*)", line) for line in lines[:6]]
    assert [m[1] for m in shown] == [
        "acc += part[(t + j) % 64]", "for j in range(4):", "if j % 2 == t % 2:", "if t == 5:",
        "acc += part[(t + j) % 64]", "for j in range(4):",
    ]  # fmt: skip
    assert [line.startswith("thread (5) of block (0) takes no part") for line in lines[:6]] == [
        False, False, False, True, True, False,
    ]  # fmt: skip


def test_the_warp_and_shared_memory(session):
    answers = session(["lanes t", "lanes nothing", "shared", "lanes"] + ["c"] * 9, launched())
    lanes = answers[1].split()
    assert lanes[:6] == ["[0:", "0]", "1:", "1", "[2:", "2]"]  # the odd ones take part
    assert answers[2] == "*** NameError: name 'nothing' is not defined"  # of all lanes, once
    assert answers[3].startswith("part = 64 float32\n[ 0.,  1.,")
    assert "tell of what" in answers[4]


def test_another_thread_and_what_is_none(session):
    commands = ["thread 3 of block 1", "i", "thread 64", "thread 1 of block 2", "thread", "t = 5"]
    answers = session(commands + ["c"] * 9, launched())
    assert answers[2] == "67"
    assert all("blocks of (64, 1, 1) threads" in answer for answer in answers[3:5])
    assert "tell which" in answers[5]
    assert "not changed" in answers[6]


def test_a_thread_of_two_dimensions_its_own_memory_and_the_idiom_of_pdb(session):
    launch = launched(places, (1, 1), (4, 2), (2, 4))
    answers = session(["own", "two", "vars", "thread (1, 0)", "own[1]", "c"], launch)
    assert answers[1:3] == ["2 float32\n[10.,  2.]", "(10.0, 1)"]
    assert {"row = 1", "col = 2", f"two = {answers[2]}"} <= set(answers[3].splitlines())
    assert answers[5] == "1.0"


def test_a_device_function_is_stepped_into(session):
    commands = ["b half_of", "c", "c", "n", "p h", "w", "u", "acc", "c"]
    answers = session(commands, launched())
    assert "-> h = x[i] / 2" in answers[3]
    assert answers[5] == "2.5"
    assert [line for line in answers[6].splitlines() if line.startswith("->")] == [
        "-> y[i] = acc + half_of(x, i)", "-> return h",
    ]  # fmt: skip
    assert answers[8] == "14.0"  # part[6] and part[8]


def branching(x, y):
    i = cuda.grid(1)
    breakpoint()
    for j in range(40):
        if i > 3:
            y[i] = j * x[i]
    y[i] += 1


@pytest.mark.parametrize(("thread", "stops"), [(0, 0), (5, 40)])
def test_a_breakpoint_stops_where_the_thread_comes_to_it_at_each_turn(session, thread, stops):
    """A long loop stays in lock-step while somebody looks."""
    line = branching.__code__.co_firstlineno + 5
    commands = [f"thread {thread}", f"b {line}", *["c"] * 60]
    with mock.patch.multiple(rest, ALONE=0, CALLED=0, TOGETHER=0, FIRST=2):
        answers = session(commands, launched(branching, 1, 1 if thread == 0 else 32, 32))
    assert sum("-> y[i] = j * x[i]" in answer for answer in answers) == stops


def test_to_quit_ends_the_launch(session):
    with pytest.raises(BdbQuit):
        session(["q"], launched())


def test_values_counts_and_hazards_are_those_of_a_launch_without_it(session):
    reports = []

    def kernel(x, y):
        i = cuda.grid(1)
        y[i // 2] = x[i]

    def stopped(x, y):
        i = cuda.grid(1)
        pdb.set_trace()
        y[i // 2] = x[i]

    for one in kernel, stopped:
        x, y = np.arange(64.0), np.zeros(32)
        session(["n", "n", "n"], lambda one=one, x=x, y=y: reports.append(
            (simulate(one, 1, 64, x, y, on_hazard="collect"), y.tolist())))  # fmt: skip
    (plain, values), (other, others) = reports
    assert values == others
    assert [h.kind for h in plain.hazards] == [h.kind for h in other.hazards] != []
    assert sys.gettrace() is None or "pdb" not in repr(sys.gettrace())
    assert plain.launch == other.launch
    assert plain.counters == other.counters


def test_where_nobody_answers_the_kernel_goes_on(session, monkeypatch):
    session([], launched())

    def refused(*_):
        raise NotImplementedError  # as IPython's kernel does without a front end

    monkeypatch.setattr("builtins.input", refused)
    launched()()
    monkeypatch.undo()
    thread = threading.Thread(target=launched())  # as explorers run kernels
    thread.start()
    thread.join(60)
    assert not thread.is_alive()


PROGRAM = """
import numpy as np
from numba import cuda

@cuda.jit
def kernel(x):
    i, j = cuda.grid(2)
    if i > 2:
        x[i, j] = 10 * i + j

kernel[(2, 2), (2, 4)](np.zeros((4, 8)))
"""


@pytest.mark.parametrize(
    ("stop", "stops"),
    [
        ("(1,1),(1,2):9", True),
        ("3,5:9", True),
        ("3,5:program.py:9", True),
        ("3,4:9", False),  # i is 2 there: the other way of the branch
        ("3,5:other.py:9", False),
        ("9,5:9", False),
        ("3,(2,0):9", False),
    ],
)
def test_a_thread_of_a_program_stops_at_a_line(session, tmp_path, capsys, stop, stops):
    file, errors = tmp_path / "program.py", []
    file.write_text(PROGRAM, "utf-8")

    def launch():
        running.run(str(file), stop=Stop.of(stop))
        errors.append(capsys.readouterr())

    session(["i", "j", "c"], launch)
    assert ("\n> " in errors[0].out) == stops
    assert ("no launch has had" in errors[0].err) == (not stops)
    if stops:
        assert "block (1, 1) > 3\n" in errors[0].out
        assert "block (1, 1) > 6\n" in errors[0].out


def test_the_command_reads_the_place(capsys):
    with pytest.raises(SystemExit):
        cli.main(["simulate", "--stop", "1:9", "program.py"])
    assert "'1:9' is no place" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "1", "1,2", "1,2:x", "a,2:3", "(1,2,3,4),2:3", "-1,2:3"])
def test_what_names_no_place(text):
    with pytest.raises(ValueError, match=f"{re.escape(repr(text))} is no place"):
        Stop.of(text)
