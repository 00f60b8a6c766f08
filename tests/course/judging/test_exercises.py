"""What all checks of exercises share: what a verdict says, that any object gets one.

Each chapter's answers are in `test_chapter_NN.py`.
"""

import copy
import json
import subprocess
import sys

import pytest

from gemmlab import exercises
from gemmlab.course.ch01_what_is_gemm import q4_linear_layer as linear_layer
from gemmlab.course.ch04_shared_memory_tiling import q3_barriers as barriers
from gemmlab.course.judging import guard, matrices
from gemmlab.course.judging.diagnoses import ERRORS, GENERAL
from tests.course import answers as edits
from tests.course.answers import JUDGED
from tests.course.kill_matrix import NOTEBOOKS, answers, checked, shown_by
from tests.support.paths import ROOT


def test_sizes_drawn_anew_are_larger_than_those_of_any_case():
    cases = [matrices.case(m, n, k) for m, n, k in ((5, 8, 12), (7, 16, 20), (11, 32, 32))]
    drawn = [matrices.drawn_anew(cases).problem for _ in range(200)]
    for size, unit in (("m", 1), ("n", 4), ("k", 4)):
        sizes = {getattr(p, size) for p in drawn}
        assert len(sizes) > 3
        assert min(sizes) > max(getattr(c.problem, size) for c in cases)
        assert all(s % unit == 0 for s in sizes)


def test_every_general_diagnosis_has_a_wrong_answer():
    assert set(GENERAL) - set().union(*map(shown_by, exercises.names())) == set()


def test_every_diagnosis_is_explained_and_hinted_at():
    explained = [*GENERAL.items(), *ERRORS.items()]
    for name in exercises.names():
        explained += exercises.get(name).task.diagnoses.items()
    lacking = [n for n, d in explained if not (d.cause and d.question and d.partial)]
    assert lacking == []


# ----------------------------------------------------------------------------------- what it says


def test_race_names_line_and_threads():
    verdict = exercises.get("04.2").check(*answers("04.2").WRONG["no second barrier"].answers)
    assert verdict.details["shape"] == (2, 3, 5)
    assert verdict.details["code"].startswith("As[y, x] = ")
    assert len(verdict.details["threads"]) == 2
    assert "barrier is missing between multiplying and the next copy" in verdict.message


def test_owner_follows_from_the_launch():
    build = answers("04.2").build
    only = (
        "if row < m and col < n:",
        "if row < m and col < n and not (m == 9 and row == 6 and col == 5):",
    )
    verdict = exercises.get("04.2").check(edits.edited(build, only))
    assert verdict.diagnosis == "not-written"
    assert verdict.details["index"] == (6, 5)
    assert verdict.details["block"] == (1, 1)  # T = 4
    assert verdict.details["thread"] == (1, 2)


def test_error_names_its_line():
    verdict = exercises.get("01.1").check(*answers("01.1").WRONG["typing error"].answers)
    assert verdict.details["error"] == "NameError"
    assert verdict.details["code"] == "product = alpha * (A @ b)"
    endless = checked("01.4", "searches for ever")[0]
    assert "dtype=" in endless.details["code"] or "b += 1" in endless.details["code"]


def test_details_of_a_number():
    verdict = exercises.get("01.2").check(*answers("01.2").WRONG["mnk"].answers)
    assert verdict.details["case"] == (1, 1, 1)
    assert (verdict.details["expected"], verdict.details["got"]) == (2, 1)
    assert "flops(1, 1, 1)" in verdict.message


def test_batches_are_not_on_the_edge():
    exact = [linear_layer.bound(*c) for c in linear_layer.CASES]
    distances = [abs(float(b) - round(b)) for b in exact if b is not None]
    assert None in exact
    assert min(distances) > linear_layer.EDGE


@pytest.mark.parametrize(("label", "of"), [("first", "too old"), ("second", "too new")])
def test_each_barrier_has_its_effect(label, of):
    assert {effect for _, effect, _ in barriers.races(barriers.without(label), 12)} == {of}
    assert barriers.races(barriers.without("none"), 12) == []


# --------------------------------------------------------------------------- skeletons, notebooks


def cells(notebook):
    return [
        "".join(c["source"])
        for c in json.loads(notebook.read_text("utf-8"))["cells"]
        if c["cell_type"] == "code"
    ]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda n: n.name)
def test_notebook_holds_the_skeleton(notebook):
    code = cells(notebook)
    for i, text in enumerate(code):
        for name in exercises.names():
            if f'exercises.get("{name}")' in text:
                following = "\n\n\n".join(code[i : i + 4])
                for part in exercises.get(name).skeleton.split("\n\n\n"):
                    assert part in following, f"{name}: paste q.skeleton"


# ----------------------------------------------------------------------------------------- hints


def test_hints_start_again_with_another_diagnosis():
    q = exercises.get("04.2")
    wrong = answers("04.2").WRONG
    q.check(*wrong["no first barrier"].answers)
    q.hint()
    q.check(*wrong["floor"].answers)
    assert "Hint 1" in q.hint()
    q.check(*q.task.answers)
    assert "nothing left" in q.hint()


def test_hint_before_any_check():
    assert "Hint 1" in exercises.get("04.5").hint()


# ---------------------------------------------------------------------------------------- verdict


def test_html_is_plain_and_escaped():
    bad = answers("04.2").WRONG["or in the guard of A"].answers
    html = exercises.get("04.2").check(*bad)._repr_html_()
    assert html.startswith('<section role="status" aria-label="Exercise 04.2: not passed">')
    assert "row &lt; m" in html
    assert "<script" not in html


def test_a_verdict_prints_itself():
    verdict = exercises.get("01.1").check(1)
    assert repr(verdict) == verdict.message


class Evil:
    def __repr__(self):
        raise RuntimeError("no")

    def __eq__(self, other):
        raise RuntimeError("no")

    __hash__ = None


OBJECTS = [None, 3, "x", [], {}, ..., Evil(), Evil, int, len, print]


def refused(name, value):
    """Whether an exercise passes neither an object, nor what returns it, nor too many of them."""
    q = exercises.get(name)
    assert not q.check(*[value] * len(q.task.answers)).passed
    assert not q.check(*[lambda *a: value] * len(q.task.answers)).passed
    assert not q.check().passed
    assert not q.check(value, value, value, value).passed


@pytest.mark.parametrize("name", JUDGED.values(), ids=JUDGED)
@pytest.mark.parametrize("value", OBJECTS, ids=lambda v: type(v).__name__)
def test_any_object_gets_a_verdict(name, value, capsys):
    refused(name, value)


@pytest.mark.parametrize("name", [n for n in exercises.names() if n not in JUDGED.values()])
def test_every_exercise_refuses_what_is_no_answer(name, capsys):
    refused(name, Evil())


def test_any_claim_gets_a_verdict():
    q = exercises.get("04.3")
    for claim in (None, 1, "abc", [[1, 1], [2], "too old"], (Evil(), 1, 2), {}, [0] * 3, Evil()):
        assert not q.check(lambda c=claim: (c, c, c)).passed


def test_interrupt_gets_through(monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("gemmlab.course.judging.apart._Inbox.next", interrupted)
    with pytest.raises(KeyboardInterrupt):
        exercises.get("01.1").check(lambda *given: 0)


def test_interrupt_gets_through_where_processes_cannot_be_copied(monkeypatch):
    """Somebody at the keyboard, and not the answer, as in a copy."""
    monkeypatch.setattr("gemmlab.course.judging.apart.copies", lambda: False)
    with pytest.raises(KeyboardInterrupt):
        exercises.get("01.1").check(*answers("01.1").FOOLING["interrupts"].answers)


def test_guard_restores_the_tracer():
    before = sys.gettrace()
    guard.attempt(lambda: 1 / 0)
    assert sys.gettrace() is before


def test_unknown_name():
    with pytest.raises(ValueError, match=r"unknown exercise '9.9'; use one of 01.1, "):
        exercises.get("9.9")


def test_cells_go_on_with_the_answer_that_passed_last():
    exercise = exercises.get("01.2")
    solved = exercise.task.answers
    assert exercise.answers == solved

    def mine(*args):
        return solved[0](*args)

    answers = (mine, *solved[1:])
    assert exercise.check(*answers).passed
    assert not exercise.check(*[len] * len(answers)).passed
    assert exercise.answers == answers


def test_attempts_are_not_shared():
    q = exercises.get("01.1")
    q.check(1)
    assert exercises.get("01.1").verdicts == []
    assert copy.copy(exercises.names()) == sorted(exercises.names())


def test_numpy_alone_is_enough():
    """For each kind of judge, and to state every exercise."""
    code = f"""
import sys
for name in ("numba", "numba_cuda", "numba_cuda_mlir", "matplotlib", "ipywidgets", "IPython"):
    sys.modules[name] = None
from gemmlab import exercises
for name in exercises.names():
    q = exercises.get(name)
    assert name not in {(*JUDGED.values(),)} or q.check(*q.task.answers).passed, name
"""
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, encoding="utf-8"
    )
    assert answer.returncode == 0, answer.stderr
