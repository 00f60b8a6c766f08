"""What comes back from an answer's process is read as data, and takes nobody's time."""

import os
import pickle
import subprocess
import sys
import time
from fractions import Fraction

import numpy as np
import pytest

from gemmlab import cuda, exercises, simulate
from gemmlab.course.judging import apart, copy_of_process, guard, messages
from gemmlab.course.judging.integrity import Other, plain

forks = pytest.mark.skipif(not apart.copies(), reason="processes cannot be copied here")
linux = pytest.mark.skipif(sys.platform != "linux", reason="no file names a process's children")


class Named:
    """A value whose pickle names a function and calls it."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize(
    "item",
    [
        None, True, 1, -1.5, 2j, "text", b"bytes", ..., Fraction(1, 3), [1, [2]], (1,), {"a": {1}},
        np.float32(1), np.int64(2), np.bool_(True), guard.Outcome(1), copy_of_process.Ended("time"),
    ],
)  # fmt: skip
def test_data_comes_back(item):
    assert messages.read(messages.written("yielded", item)[8:]) == ("yielded", item)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "i1", "u8", "?", ">f4"])
def test_arrays_come_back(dtype):
    for array in (np.arange(6).astype(dtype).reshape(2, 3), np.zeros((2, 0), dtype)):
        _, got = messages.read(messages.written("yielded", array.T)[8:])
        assert got.dtype == array.dtype
        assert np.array_equal(got, array.T)


@pytest.mark.parametrize(
    "item",
    [
        Named(exec, "1"), Named(os.system, "true"), Named(getattr, "a", "upper"), print, Named,
        [{"a": Named(eval, "1")}], np.array([Named(exec, "1")]), Named(__import__, "os"),
        Named(apart.apart, print), copy_of_process.Copy, Named(guard.attempt, print),
    ],
)  # fmt: skip
def test_nothing_that_acts_is_read(item):
    payload = pickle.dumps(("yielded", item))
    with pytest.raises(messages.UnreadableError, match="which is no data"):
        messages.read(payload)


@pytest.mark.parametrize("name", ["system", "ast.parse", "parse", "literal_eval", "sys.exit"])
def test_of_ast_only_nodes_are_read(name):
    payload = b"\x80\x04\x8c\x03ast" + b"\x8c" + bytes([len(name)]) + name.encode() + b"\x93."
    with pytest.raises(messages.UnreadableError, match="which is no data"):
        messages.read(payload)


def raises_a_flag(x, flag):
    x[cuda.grid(1)] = 1
    cuda.threadfence()
    cuda.atomic.add(flag, 0, 1)


def test_a_report_of_a_launch_with_fences_comes_back():
    report = simulate(raises_a_flag, 2, 32, np.zeros(64, np.int32), np.zeros(1, np.int32))
    assert report.releases.fences == 1
    _, found = messages.read(messages.written("", report)[8:])
    assert found.counters == report.counters
    assert found.releases.fences == 0  # the launch is over


@pytest.mark.parametrize(
    "payload", [b"", b".", b"\x80\x05.", b"\xff" * 40, pickle.dumps(1), pickle.dumps((1, 2))]
)
def test_what_is_no_message_is_said_to_be_none(payload):
    with pytest.raises(messages.UnreadableError, match="what came back"):
        messages.read(payload)


def test_a_long_message_is_not_written():
    with pytest.raises(messages.UnreadableError, match="33,554,432 are read"):
        messages.written("yielded", bytes(messages.MOST))


@forks
def test_a_long_message_is_not_waited_for():
    """Its length is refused before its bytes come, however many there are."""

    def floods():
        for file in range(3, 64):
            try:
                os.write(file, (messages.MOST + 1).to_bytes(8, "little"))
            except OSError:
                continue
        time.sleep(60)
        yield 1

    (last,) = apart.apart(floods)
    assert last.how == "error"
    assert "at most 33,554,432 are read" in last.what


def test_what_is_no_result_is_only_named():
    values = (
        "x" * 1_000_000, [0] * 1_000_000, [[0] * 60_000] * 2, 1 << 1_000_000,
        Fraction(1, 1 << 1_000_000), np.zeros(1_000_000), np.void(b"12"), np.datetime64("2026"),
        np.zeros((), [("a", object)])[()], np.str_("a"),
    )  # fmt: skip
    for value in values:
        copy = plain(value)
        assert isinstance(copy[-1] if type(copy) is list else copy, Other)
        assert len(messages.written("yielded", copy)) < 1_000_000


@forks
def test_a_text_of_fifty_million_characters_is_named():
    verdict = exercises.get("01.1").check(lambda alpha, A, B, beta, C: "x" * 50_000_000)
    assert verdict.diagnosis == "wrong-type"
    assert "a str of length 50,000,000" in verdict.message


@forks
def test_half_a_character_is_printed_as_a_question_mark(capsys):
    def prints():
        print("a \ud800 b")
        return 1

    assert guard.attempt(prints).value == 1
    assert capsys.readouterr().out == "a ? b\n"


def started(**options):
    """Start a process that would outlive a check by far."""
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    return subprocess.Popen(command, **options).pid


def ends(process):
    """Whether a process has ended, or does so at once."""
    for _ in range(100):
        try:
            os.kill(process, 0)
            with open(f"/proc/{process}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":  # it waits for its parent
                    return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def orphan():
    """Start a process whose parent has ended, in a session of its own."""
    code = "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', "
    code += "'import time; time.sleep(600)'], start_new_session=True, stdout=-3, stderr=-3).pid)"
    return int(subprocess.run([sys.executable, "-c", code], capture_output=True).stdout)


@forks
@linux
@pytest.mark.parametrize(
    "start",
    [started, lambda: started(start_new_session=True), orphan],
    ids=["", "session", "orphan"],
)
def test_what_an_answer_starts_ends_with_it(start):
    assert ends(guard.attempt(start).value)


@forks
def test_what_an_answer_starts_ends_though_it_leaves(tmp_path):
    def leaves():
        (tmp_path / "process").write_text(str(started()))
        os._exit(0)

    assert guard.attempt(leaves).fault.diagnosis == "exits"
    assert ends(int((tmp_path / "process").read_text()))


@forks
def test_a_copy_has_no_file_of_the_notebook(tmp_path):
    with open(tmp_path / "records", "w") as records:
        outcome = guard.attempt(lambda: os.write(records.fileno(), b"forged"))
    assert "OSError" in outcome.fault.facts[0][1]
    assert (tmp_path / "records").read_text() == ""
