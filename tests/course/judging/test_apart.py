"""Answers run apart from the notebook: nothing that they do reaches it."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from gemmlab import exercises
from gemmlab.course.judging import apart, copy_of_process, guard, integrity, matrices
from gemmlab.course.judging.apart import Ended, NotJudged
from gemmlab.course.judging.integrity import Other, difference, plain
from gemmlab.simt.races.memories import SharedShadow
from tests.course.answers import JUDGED, answers_of

forks = pytest.mark.skipif(not apart.copies(), reason="processes cannot be copied here")
linux = pytest.mark.skipif(sys.platform != "linux", reason="no file says who is asleep")


def test_values_come_back_as_copies():
    value = guard.attempt(lambda: (1, [2.5, "x"], np.arange(3), None)).value
    assert value[:2] == (1, [2.5, "x"])
    assert np.array_equal(value[2], np.arange(3))
    assert value[3] is None


@forks
def test_a_copy_forgets_what_only_a_judge_knows():
    """Neither in the frames below an answer nor in the exercise's module is a right result."""

    def looks(*arguments):
        frame, found = sys._getframe(), []
        while frame is not None:
            if frame.f_code.co_filename.startswith(copy_of_process._COURSE):
                known = {**frame.f_globals, **frame.f_locals}
                found += [n for n in ("expected", "reference") if known.get(n) is not None]
            frame = frame.f_back
        raise LookupError(", ".join(found))

    verdict = exercises.get("02.2").check(lambda device, dtype, flops, moved: looks())
    assert "LookupError: \n" in verdict.message
    assert "reference" in vars(sys.modules[exercises.get("02.2").task.judge.__module__])


@forks
def test_what_an_answer_does_stays_there():
    given, seen = [1, 2], []
    before, here = np.array([1.0, 2.0]), os.getpid()

    def spoils(a, x):
        a.append(3)
        x[:] = 0
        seen.append(1)
        np.array_equal = matrices.explain = None
        os.environ["SPOILT"] = "1"
        return os.getpid()

    outcome = guard.attempt(spoils, given, before)
    assert outcome.fault.diagnosis == "arguments-changed"
    assert given == [1, 2]
    assert before.tolist() == [1, 2]
    assert seen == []
    assert "SPOILT" not in os.environ
    assert os.getpid() == here


@forks
def test_a_check_leaves_the_course_as_it_was():
    parts = integrity.parts()
    names = answers_of("03.1")
    for label in ("simulator replaced", "NumPy replaced"):
        exercises.get("03.1").check(*names.FOOLING[label].answers)
    assert integrity.replaced(parts) == ""


def test_replaced_parts_are_found_and_put_back(monkeypatch):
    before = integrity.parts()
    monkeypatch.setattr(matrices, "explain", lambda *a: "passed")
    assert integrity.replaced(before) == "gemmlab.course.judging.matrices.explain"
    assert integrity.replaced(before) == ""


def test_a_part_that_is_taken_away_is_found(monkeypatch):
    """A class whose method is gone has another's, which may look away."""
    before = integrity.parts()
    monkeypatch.delattr(SharedShadow, "read")
    assert integrity.replaced(before) == "SharedShadow.read"
    assert "read" in vars(SharedShadow)


@forks
@pytest.mark.parametrize(
    ("how", "work"),
    [
        ("time", lambda: [... for _ in iter(int, 1)]),
        pytest.param("time", lambda: time.sleep(60), marks=linux),
        ("exit", lambda: os._exit(3)),
        ("crash", lambda: os.abort()),
        ("memory", lambda: os.kill(os.getpid(), 9)),
    ],
)
def test_ends(how, work):
    def steps():
        yield 1
        work()
        yield 2

    first, last = apart.apart(steps, seconds=1.0)
    assert first == 1
    assert isinstance(last, Ended)
    assert last.how == how
    if how == "time":
        assert os.path.basename(__file__) in {os.path.basename(file) for file, _ in last.where}


@forks
def test_no_process_is_left():
    def steps():
        yield os.getpid()
        time.sleep(60)

    work = apart.apart(steps)
    child = next(work)
    work.close()  # as when an interrupt comes while a check waits
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


@forks
def test_a_child_of_a_child_says_nothing():
    def steps():
        os.fork()
        yield 1

    assert list(apart.apart(steps)) == [1]


@forks
def test_beginning_of_what_is_printed_is_shown(capsys):
    def prints():
        for i in range(10_000):
            print("line", i)
        print("to stderr", file=sys.stderr)
        return 1

    assert guard.attempt(prints).value == 1
    out = capsys.readouterr().out
    assert out.startswith("line 0\nline 1\n")
    assert out.endswith("… (and more)\n")
    assert len(out) < copy_of_process.PRINTED + 100


@forks
def test_a_check_works_in_a_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(guard.attempt(lambda: 5).value))
    thread.start()
    thread.join()
    assert found == [5]


@forks
@pytest.mark.parametrize("pause", [0.0, pytest.param(0.2, marks=linux)])
def test_printing_does_not_win_time(pause):
    def steps():
        while True:
            print(".", end="")
            time.sleep(pause)
            if False:
                yield

    (last,) = apart.apart(steps, seconds=1.0)
    assert last.how == "time"


# ------------------------------------------------------------------------------- a busy machine


def spins():
    yield 1
    while True:
        pass


def stopped():
    """As a copy looks that the machine does not get round to: it neither runs nor sleeps."""
    yield 1
    os.kill(os.getpid(), signal.SIGSTOP)
    yield 2


@forks
@pytest.mark.parametrize("work", [spins, stopped])
def test_the_clock_on_the_wall_says_nothing_of_the_work(monkeypatch, work):
    copy = apart.apart(work, seconds=1000.0)
    assert next(copy) == 1
    monkeypatch.setattr(apart, "WALL", 0.1)
    monkeypatch.setattr(apart, "GRACE", 0.1)
    with pytest.raises(NotJudged, match="had not ended after 0.1 s by the clock on the wall"):
        next(copy)


@forks
def test_what_the_copy_starts_counts_and_is_no_sleep():
    def steps():
        ended = subprocess.run([sys.executable, "-c", "while True: pass"])
        yield ended.returncode

    (last,) = apart.apart(steps, seconds=1.0)
    assert last == Ended("time", "it used more than 1 s of the processor")


def judged_in_no_time(monkeypatch, name, answers):
    """An exercise, and the verdict of a machine so busy that no copy comes to its end."""
    with monkeypatch.context() as busy:
        busy.setattr(apart, "WALL", -1.0)
        busy.setattr(apart, "LOOK", 1e-6)
        busy.setattr(apart, "GRACE", 0.0)
        q = exercises.get(name)
        return q, q.check(*answers)


@forks
@pytest.mark.parametrize("name", ["01.1", "02.3", "04.2", "06.2"])
def test_no_answer_fails_because_the_machine_is_busy(monkeypatch, name):
    answers = answers_of(name)
    for right in answers.RIGHT.values():
        _, verdict = judged_in_no_time(monkeypatch, name, right)
        assert verdict.diagnosis in ("not-judged", "passed")
    for wrong in answers.WRONG.values():
        _, verdict = judged_in_no_time(monkeypatch, name, wrong.answers)
        assert verdict.diagnosis in ("not-judged", wrong.diagnosis)
        assert not verdict.passed


@forks
def test_an_answer_that_is_not_judged_is_no_attempt(monkeypatch):
    def runs_on(alpha, A, B, beta, C):
        sum(iter(int, 1))

    q, verdict = judged_in_no_time(monkeypatch, "01.1", (runs_on,))
    assert not verdict.passed
    assert not verdict.attempted
    assert verdict.title == "Exercise 01.1: not judged"
    assert "neither passed nor failed: check it again" in verdict.message
    assert "cause" not in verdict.message
    assert "hint" not in verdict.message
    assert q.verdicts == []
    assert q.hint() == exercises.get("01.1").hint()


@pytest.fixture
def no_copies(monkeypatch):
    """A machine on which a process cannot be copied."""

    def never():
        return False

    monkeypatch.setattr(apart, "copies", never)
    monkeypatch.setattr("gemmlab.course.judging.integrity.copies", never)


@pytest.mark.parametrize("name", JUDGED.values())
def test_solutions_pass_where_processes_cannot_be_copied(name, no_copies):
    q = exercises.get(name)
    assert q.check(*q.task.answers).passed


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("01.1", "endless"), ("01.1", "A as workspace"), ("01.1", "leaves"), ("01.1", "yield"),
        ("01.1", "calls itself"), ("03.1", "A cleared"), ("03.1", "simulator replaced"),
        ("04.2", "endless"), ("11.2", "c appended"),
    ],
)  # fmt: skip
def test_verdicts_are_the_same_where_processes_cannot_be_copied(name, label, no_copies):
    answers, parts = answers_of(name), integrity.parts()
    wrong = {**answers.WRONG, **answers.FOOLING}[label]
    assert exercises.get(name).check(*wrong.answers).diagnosis == wrong.diagnosis
    assert integrity.replaced(parts) == ""


class Agrees(float):
    def __eq__(self, other):
        return True

    __hash__ = None


def test_plain_values_have_no_classes_of_their_own():
    assert type(plain(np.float32(2))) is np.float32
    for value in (Agrees(1), {}, np.ma.array([1]), np.array([None]), iter([]), range(3)):
        assert isinstance(plain(value), Other)
    nested = []
    nested.append(nested)
    assert "Other" not in repr(plain(nested))
    array = np.zeros(3)
    assert plain(array) is not array


def test_differences_in_words():
    nan = np.array([np.nan, 1.0])
    assert difference("A", nan, nan.copy()) == ""
    assert difference("A", nan, np.array([np.nan, 2.0])) == "A[1] was 1 and is 2"
    assert difference("a", [1, [2]], [1, [3]]) == "a[1][0] was 2 and is 3"
    assert difference("a", [1], [1, 2]) == "a had 1 elements and has 2"
    assert "dtype" in difference("A", nan, nan.astype("f4"))


@forks
def test_a_copy_leaves_the_child_of_another_to_its_original():
    """A copy has what was under way, and lets go of it: that must not end what still answers."""

    def twice():
        yield "first"
        yield "second"

    answers = apart.apart(twice)
    assert next(answers) == "first"

    def let_go():
        answers.close()
        yield "let go"

    assert list(apart.apart(let_go)) == ["let go"]
    assert list(answers) == ["second"]
