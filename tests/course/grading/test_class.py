"""A class of thirty, made of the corpus, is graded: every mark as expected, and twice the same."""

import csv
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from gemmlab import exercises
from gemmlab.course.grading import processes, submission
from gemmlab.course.grading.judged import Judged
from gemmlab.course.grading.processes import Found, Grader, keys
from tests.course.answers import answers_of
from tests.course.grading.attacks import REFUSED
from tests.course.grading.notebooks import cells, code_of, notebook, solution, write
from tests.support.paths import ROOT

# Functions, which take no time to judge; of 04.1 there are the attacks. CLASS_OF=04 has kernels.
CHAPTER = os.environ.get("CLASS_OF", "11")
NAMES = [name for name in exercises.names() if name.startswith(CHAPTER)]
ATTACKED = "04.1"
ONLY = ",".join(dict.fromkeys([ATTACKED, *NAMES]))
SEED = "the seed of a class"


KNOWN = {"cuda", "float32", "np", "math", "range", "int", "float", "min", "max", "len", "abs"}


def usable(name, answers):
    """Whether an answer of the corpus stands by itself: called as asked for, of known names."""
    asked, *more = exercises.get(name).task.answers
    if more:
        return False
    try:
        code = code_of(answers[0])
    except (OSError, TypeError):
        return False
    known = KNOWN | {asked.__name__}
    return code.startswith(f"def {asked.__name__}(") and submission_names(code) <= known


def submission_names(code):
    """The names from elsewhere that a function uses."""
    (statement,) = submission.read(cells(code)).statements
    return statement.now | statement.later


def of_corpus():
    """Thirty notebooks, name -> (content, {exercise: (state, diagnosis)})."""
    solved = {name: solution(name) for name in NAMES}
    right, untouched = ("passed", "passed"), ("not attempted", "not-attempted")
    unreadable = dict.fromkeys(NAMES, ("unreadable", "unreadable"))
    made = {
        "solved": (notebook(CHAPTER, solved), dict.fromkeys(NAMES, right)),
        "renamed": (notebook(CHAPTER, solved, renamed=True), dict.fromkeys(NAMES, right)),
        "untouched": (notebook(CHAPTER, {}), dict.fromkeys(NAMES, untouched)),
        "empty": (cells(), dict.fromkeys(NAMES, ("missing", "missing"))),
        "no_file": (b"", unreadable),
        "broken": (b'{"cells": [', unreadable),
        "picture": (b"\x89PNG\r\n", unreadable),
        "exits": (notebook(CHAPTER, {}, "import os; os._exit(0)"), dict.fromkeys(NAMES, untouched)),
        "loops": (notebook(CHAPTER, {}, "while True: pass"), dict.fromkeys(NAMES, untouched)),
    }
    second = NAMES[1]
    broken = {**dict.fromkeys(NAMES, untouched), second: ("unreadable", "no-python")}
    made["syntax"] = notebook(CHAPTER, {second: "def build(T:"}), broken
    for number, attack in enumerate(list(REFUSED.values())[10:15]):
        expected = dict.fromkeys(NAMES, ("missing", "missing"))
        expected[ATTACKED] = attack.state, attack.diagnosis
        made[f"hostile{number}"] = cells(*attack.cells), expected
    wrong = {n: [w for w in answers_of(n).WRONG.values() if usable(n, w.answers)] for n in NAMES}
    for number in range(30 - len(made)):
        answers, expected = {}, dict.fromkeys(NAMES, untouched)
        for name in filter(wrong.get, NAMES):  # some are no text by themselves
            one = wrong[name][number % len(wrong[name])]
            answers[name] = code_of(one.answers[0])
            expected[name] = "not passed", one.diagnosis
        made[f"wrong{number:02}"] = notebook(CHAPTER, answers), expected
    return made


def crowd(folder, size):
    """As many notebooks of chapter 01, no two of which are the same."""
    names = ["01.1", "01.3"]
    wrong = {n: [w for w in answers_of(n).WRONG.values() if usable(n, w.answers)] for n in names}
    solved = {name: solution(name) for name in (*names, "01.2")}
    for number in range(size):
        answers = dict(solved) if number % 4 else {}
        for name in names[: number % 3]:
            answers[name] = code_of(wrong[name][number % len(wrong[name])].answers[0])
        content = notebook("01", answers, f"# of student {number}")
        write(folder, f"student{number:03}", content)


def grade(folder, out, *more, **options):
    command = [
        sys.executable,
        "-m",
        "gemmlab",
        "grade",
        str(folder),
        "--csv",
        str(out / "grades.csv"),
    ]
    command += ["--html", str(out / "pages"), "--seed", SEED, "--only", ONLY, *more]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, start_new_session=True, **options,
    )  # fmt: skip


def digest(out):
    """All that was written, but for seconds and what is kept."""
    files = [out / "grades.csv", *sorted((out / "pages").iterdir())]
    return hashlib.sha256(b"".join(f.name.encode() + f.read_bytes() for f in files)).hexdigest()


@pytest.mark.measuring
def test_a_class_of_thirty_is_graded_as_expected_and_twice_the_same(tmp_path, capsys):
    folder, made = tmp_path / "class", of_corpus()
    assert len(made) == 30
    for name, (content, _) in made.items():
        write(folder, name, content)
    first, again = tmp_path / "first", tmp_path / "again"
    began = time.monotonic()
    stopped = grade(folder, first)
    kept = first / "grades.kept"
    while len(list(kept.glob("*.json"))) < 5:
        assert stopped.poll() is None
        time.sleep(0.2)
    stopped.send_signal(signal.SIGINT)
    said = stopped.communicate()[1].splitlines()
    assert stopped.returncode == 130
    assert said[-1].startswith("gemmlab: interrupted: ")
    assert said[-1].endswith(f"the same command goes on from {kept}")
    before = {path: path.stat().st_mtime_ns for path in kept.glob("*.json")}
    resumed = grade(folder, first)
    out, err = resumed.communicate()
    assert resumed.returncode == 1, err  # three cannot be read
    assert {path: path.stat().st_mtime_ns for path in before} == before
    seconds = time.monotonic() - began
    with open(first / "grades.csv", newline="") as file:
        rows = {
            (r["student"], r["exercise"]): (r["state"], r["diagnosis"])
            for r in csv.DictReader(file)
        }
    expected = {(s, n): row for s, (_, of) in made.items() for n, row in of.items()}
    for student in made:  # what has no cells of it
        blank = "unreadable" if expected[student, NAMES[0]][0] == "unreadable" else "missing"
        expected.setdefault((student, ATTACKED), (blank, blank))
    assert {key: (rows[key], row) for key, row in expected.items() if rows[key] != row} == {}
    assert rows.keys() == expected.keys()
    # A fifth of what was found is found anew: what is kept is looked up by content alone.
    shutil.copytree(kept, again / "grades.kept")
    for path in sorted((again / "grades.kept").glob("*.json"))[::5]:
        path.unlink()
    grade(folder, again).communicate()
    assert digest(again) == digest(first)
    with capsys.disabled():
        print(f"\nthirty notebooks, interrupted and resumed: {seconds:.0f} s")
    assert "What to teach next week" in out


SIZE = int(os.environ.get("GEMMLAB_CLASS", 0))


@pytest.mark.measuring
@pytest.mark.skipif(not SIZE, reason="GEMMLAB_CLASS says of how many; 6 take a minute, 300 five")
def test_jobs_that_share_what_is_kept_make_the_table_of_one_command(tmp_path, capsys):
    folder, jobs, alone = tmp_path / "class", tmp_path / "jobs", tmp_path / "alone"
    crowd(folder, SIZE)
    took = []
    for start in (
        lambda: [grade(folder, jobs, "--part", f"{i}/3", "--workers", "1") for i in (1, 2, 3)],
        lambda: [grade(folder, jobs)],
        lambda: [grade(folder, alone)],
    ):
        began = time.monotonic()
        for process in start():
            _, said = process.communicate()
            assert process.returncode == 0, said
        took.append(time.monotonic() - began)
    assert digest(jobs) == digest(alone)
    with open(jobs / "grades.csv", newline="") as file:
        assert len({row["student"] for row in csv.DictReader(file)}) == SIZE
    assert len(list((jobs / "grades.kept").glob("*.json"))) == SIZE
    with capsys.disabled():
        three, again, one = took
        print(
            f"\n{SIZE} notebooks: three jobs {three:.0f} s, the table of what they found "
            f"{again:.0f} s; one command {one:.0f} s"
        )


# --------------------------------------------------------------------------------- what is kept


class Counting(Grader):
    """A grader whose process is a list of what it says."""

    def _run(self, job):
        said.append(job)
        return answers.pop(0)


said: list = []
answers: list = []


@pytest.fixture(autouse=True)
def silent():
    said.clear()
    answers.clear()


def outcome(exercise, state="passed"):
    return ["judged", Judged(exercise, state, state, stages=("small",), every=("small",)).data]


def test_what_was_found_is_kept_and_taken_again(tmp_path, no_sync):
    answers.append(
        [("begin", ""), ("asked", ["01.1"]), ("begin", "01.1"), outcome("01.1"), ("end", None)]
    )
    one = Counting("seed", kept=tmp_path).one(b"notebook")
    assert one.judged["01.1"].state == "passed"
    assert Counting("seed", kept=tmp_path).one(b"notebook") == one
    assert len(said) == 1
    for other in (Counting("other", kept=tmp_path), Counting("seed", ("01.1",), kept=tmp_path)):
        answers.append([("begin", ""), ("asked", []), ("end", None)])
        assert other.one(b"notebook") == Found()
    assert len(said) == 3
    assert len(list(tmp_path.glob("*.json"))) == 3


def test_what_is_kept_and_spoilt_is_found_again(tmp_path, no_sync):
    grader = Counting("seed", kept=tmp_path)
    for _ in range(2):
        answers.append([("begin", ""), ("asked", []), ("end", None)])
        assert grader.one(b"notebook") == Found()
        next(tmp_path.glob("*.json")).write_bytes(b"{half")
    assert len(said) == 2


def test_a_process_that_ends_costs_the_exercise_that_it_was_at(tmp_path):
    answers.append([("begin", ""), ("asked", ["01.1", "01.2", "01.3"]), ("begin", "01.1"),
                    outcome("01.1"), ("begin", "01.2")])  # fmt: skip
    answers.append([("begin", ""), ("asked", ["01.1", "01.2", "01.3"]), ("begin", "01.3"),
                    outcome("01.3"), ("end", None)])  # fmt: skip
    found = Counting("seed").one(b"notebook")
    states = {name: one.state for name, one in found.judged.items()}
    assert states == {"01.1": "passed", "01.2": "error", "01.3": "passed"}
    assert said[1]["done"] == ["01.1", "01.2"]


def test_a_process_that_ends_while_it_reads_makes_the_notebook_unreadable():
    answers.append([("begin", "")])
    assert "ended before its time" in Counting("seed").one(b"notebook").fault


def test_what_was_not_judged_is_not_kept(tmp_path, no_sync):
    answers.append([("begin", ""), ("asked", ["01.1"]), ("begin", "01.1"),
                    outcome("01.1", "not judged"), ("end", None)])  # fmt: skip
    Counting("seed", kept=tmp_path).one(b"notebook")
    assert not list(tmp_path.iterdir())


def test_the_seed_of_a_class_decides_each_exercise_apart():
    assert keys("a") == keys("a")
    assert len({*keys("a").values(), *keys("b").values()}) == 2 * len(keys("a"))
    assert processes.version() == processes.version()
