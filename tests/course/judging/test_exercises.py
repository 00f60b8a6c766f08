"""Checks of the checks: wrong answers fail for their own reason, right ones pass."""

import copy
import importlib
import json
import subprocess
import sys
from functools import cache

import pytest

from gemmlab import exercises
from gemmlab.course import exercise_modules
from gemmlab.course.ch01_what_is_gemm import q4_linear_layer as linear_layer
from gemmlab.course.judging import guard, launches, matrices, source, timed
from gemmlab.course.judging.diagnoses import ERRORS, GENERAL, about
from gemmlab.course.judging.matrices import Case
from gemmlab.course.judging.verdict import DRAWN_ANEW, FAILING
from tests.course.answers import answers_of
from tests.support.paths import ROOT

ANSWERS = {name: answers_of(name) for name in exercises.names()}
COMPILED = ("time-over-limit", "work-left-out", "not-compiled")  # of the compiled code


def marked(name, label, wrong):
    """A wrong answer's place, for tests of those that the machine's tools can judge."""
    marks = [pytest.mark.ptxas, pytest.mark.slow] if wrong.diagnosis in COMPILED else []
    return pytest.param(name, label, marks=marks, id=f"{name}-{label}")


RIGHT = [(name, label) for name in ANSWERS for label in ANSWERS[name].RIGHT]
WRONG = [marked(name, *item) for name in ANSWERS for item in ANSWERS[name].WRONG.items()]
FOOLING = [marked(name, *item) for name in ANSWERS for item in ANSWERS[name].FOOLING.items()]
KERNELS = (
    *("04.1", "04.2", "04.4", "04.5", "05.1", "05.3"),
    *("06.1", "06.2", "09.1", "09.3"),
    *("10.1", "10.3"),
)
# Diagnoses of right results that cost too much, and of answers that are no kernels.
NO_PLACE = (
    *("-over-budget", "-not-coalesced", "-not-used", "-at-once", "-conflict", "tile-size-fixed"),
    *("few-threads-copy", "few-threads-multiply", "wrong-type", "-over-limit"),
    *("products-beyond-c", "products-beyond-k", "blocks-uneven"),
    *("part-too-long", "cut-inside-steps", "shares-uneven", "added-too-often"),
)


@pytest.fixture(autouse=True)
def untimed(request, monkeypatch):
    """Kernels are compiled in the tests that say so, which need the tools for it."""
    if not request.node.get_closest_marker("ptxas"):
        monkeypatch.setattr(timed, "lacking", lambda: "there is no compiler in this test")


@cache
def checked(name, label):
    """A wrong answer's verdict, and the exercise it was given to; nobody waits long for one that
    never ends.
    """
    q = exercises.get(name)
    with pytest.MonkeyPatch.context() as patched:
        if label.endswith("for ever"):
            patched.setattr(launches, "SECONDS", 2.0)
        verdict = q.check(*wrong_of(name, label).answers)
    return verdict, q


def wrong_of(name, label):
    """A wrong answer, or one that is meant to fool the check."""
    return {**ANSWERS[name].WRONG, **ANSWERS[name].FOOLING}[label]


def skeleton(name):
    """The answers that a notebook's untouched cell defines."""
    from tests.course.answers import cell

    task = exercises.get(name).task
    names = vars(importlib.import_module(exercise_modules()[name]))
    defined = cell(exercises.get(name).skeleton, names)
    return tuple(defined[a.__name__] for a in task.answers)


# ------------------------------------------------------------------------------------- kill matrix


@pytest.mark.parametrize(("name", "label"), WRONG)
def test_wrong_answer_gets_its_diagnosis(name, label, record_property):
    record_property("kill matrix", (name, "wrong answers rejected for their reason"))
    wrong, (verdict, _) = wrong_of(name, label), checked(name, label)
    assert not verdict.passed
    assert verdict.diagnosis == wrong.diagnosis, verdict.message


@pytest.mark.parametrize(("name", "label"), FOOLING)
def test_fooling_answer_gets_its_diagnosis(name, label, record_property):
    record_property("kill matrix", (name, "fooling answers rejected for their reason"))
    wrong, (verdict, _) = wrong_of(name, label), checked(name, label)
    assert not verdict.passed
    assert verdict.diagnosis == wrong.diagnosis, verdict.message
    assert len(verdict.message) < 1500


BY_HEART = [f for f in FOOLING if wrong_of(*f.values).diagnosis == "known-cases-only"]


@pytest.mark.parametrize(("name", "label"), BY_HEART)
def test_a_case_that_nobody_knew_is_called_drawn_anew(name, label):
    verdict, _ = checked(name, label)
    assert {text for text, _ in verdict.facts} & {FAILING, DRAWN_ANEW} == {DRAWN_ANEW}


def test_sizes_drawn_anew_are_none_that_a_case_has():
    cases = [matrices.case(m, n, k) for m, n, k in ((5, 8, 12), (7, 16, 20), (11, 32, 32))]
    drawn = [matrices.drawn_anew(cases).problem for _ in range(200)]
    for size, unit in (("m", 1), ("n", 4), ("k", 4)):
        sizes = {getattr(p, size) for p in drawn}
        assert len(sizes) > 3
        assert not sizes & {getattr(c.problem, size) for c in cases}
        assert all(s % unit == 0 for s in sizes)


@pytest.mark.parametrize(("name", "label"), RIGHT)
def test_right_answer_passes(name, label, record_property):
    record_property("kill matrix", (name, "right answers accepted"))
    verdict = exercises.get(name).check(*ANSWERS[name].RIGHT[label])
    assert verdict.passed, verdict.message


@pytest.mark.parametrize("name", exercises.names())
def test_enough_answers(name):
    answers = ANSWERS[name]
    assert len(answers.WRONG) >= 6
    assert len(answers.FOOLING) >= 3
    assert not answers.WRONG.keys() & answers.FOOLING.keys(), "a label names one answer"
    assert len(answers.RIGHT) + 1 >= 3  # the solution is one more
    assert all(w.misconception for w in (*answers.WRONG.values(), *answers.FOOLING.values()))


@pytest.mark.parametrize("name", exercises.names())
def test_every_diagnosis_has_a_wrong_answer(name):
    shown = shown_by(name) | {"not-attempted"}
    if name in KERNELS:  # they share diagnoses
        shown |= set().union(*map(shown_by, KERNELS))
    assert set(exercises.get(name).task.diagnoses) - shown == set()


def shown_by(name):
    """The diagnoses that the wrong answers to an exercise get."""
    answers = (*ANSWERS[name].WRONG.values(), *ANSWERS[name].FOOLING.values())
    return {wrong.diagnosis for wrong in answers}


def test_every_general_diagnosis_has_a_wrong_answer():
    assert set(GENERAL) - set().union(*map(shown_by, ANSWERS)) == set()


def test_every_diagnosis_is_explained_and_hinted_at():
    explained = [*GENERAL.items(), *ERRORS.items()]
    for name in exercises.names():
        explained += exercises.get(name).task.diagnoses.items()
    lacking = [n for n, d in explained if not (d.cause and d.question and d.partial)]
    assert lacking == []


# ----------------------------------------------------------------------------------- what it says


@pytest.mark.parametrize(("name", "label"), [w for w in WRONG if w.values[0] in KERNELS])
def test_kernel_verdict_says_where_and_why(name, label):
    verdict, _ = checked(name, label)
    details, message = verdict.details, verdict.message
    assert "Likely cause" in message
    if verdict.diagnosis.endswith(NO_PLACE):
        return
    m, n, k = details["shape"]
    assert f"m={m}, n={n}, k={k}" in message
    if "index" in details:
        i, j = details["index"]
        assert f"C[{i}, {j}]" in message
        assert f" (x, y) = {details['block']}, thread (x, y) = {details['thread']}" in message
    if "kind" in details:
        assert details["kind"] in message
        assert f"line {details['line']}: {details['code']}" in message
        assert details["threads"]
    if not {"index", "kind", "error", "changed"} & set(details):  # the clock ended an endless run
        assert f"line {details['line']}: {details['code']}" in message


def test_race_names_line_and_threads():
    verdict = exercises.get("04.2").check(*ANSWERS["04.2"].WRONG["no second barrier"].answers)
    assert verdict.details["shape"] == (2, 3, 5)
    assert verdict.details["code"].startswith("As[y, x] = ")
    assert len(verdict.details["threads"]) == 2
    assert "barrier is missing between multiplying and the next copy" in verdict.message


def test_owner_follows_from_the_launch():
    edits = importlib.import_module("tests.course.answers")
    build = ANSWERS["04.2"].build
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
    verdict = exercises.get("01.1").check(*ANSWERS["01.1"].WRONG["typing error"].answers)
    assert verdict.details["error"] == "NameError"
    assert verdict.details["code"] == "product = alpha * (A @ b)"
    endless = checked("01.4", "searches for ever")[0]
    assert "dtype=" in endless.details["code"] or "b += 1" in endless.details["code"]


def test_details_of_a_number():
    verdict = exercises.get("01.2").check(*ANSWERS["01.2"].WRONG["mnk"].answers)
    assert verdict.details["case"] == (1, 1, 1)
    assert (verdict.details["expected"], verdict.details["got"]) == (2, 1)
    assert "flops(1, 1, 1)" in verdict.message


@pytest.mark.parametrize("name", exercises.names())
def test_cases_grow(name):
    module = importlib.import_module(exercise_modules()[name])
    cases = [c for c in getattr(module, "CASES", ()) if isinstance(c, Case)]
    sizes = [c.problem.m * c.problem.n * c.problem.k for c in cases]
    assert sizes == sorted(sizes)


def test_batches_are_not_on_the_edge():
    exact = [linear_layer.bound(*c) for c in linear_layer.CASES]
    distances = [abs(float(b) - round(b)) for b in exact if b is not None]
    assert None in exact
    assert min(distances) > linear_layer.EDGE


@pytest.mark.parametrize(("label", "of"), [("first", "too old"), ("second", "too new")])
def test_each_barrier_has_its_effect(label, of):
    from gemmlab.course.ch04_shared_memory_tiling import q3_barriers as barriers

    assert {effect for _, effect, _ in barriers.races(barriers.without(label), 12)} == {of}
    assert barriers.races(barriers.without("none"), 12) == []


# --------------------------------------------------------------------------- skeletons, notebooks


@pytest.mark.parametrize("name", exercises.names())
def test_skeleton_is_no_attempt(name):
    q = exercises.get(name)
    answers = skeleton(name)
    for _ in range(2):
        verdict = q.check(*answers)
        assert not verdict.passed
        assert not verdict.attempted
        assert verdict.title.endswith("not attempted yet")
    assert q.hint()


@pytest.mark.parametrize("name", exercises.names())
def test_solution_is_the_tested_code(name):
    q = exercises.get(name)
    assert q.check(*q.task.answers).passed
    text = q.solution()
    for answer in q.task.answers:
        assert source.solution(answer) in text
    assert "[answer]" not in text + q.skeleton
    assert "[end]" not in text + q.skeleton
    assert q.skeleton not in text


def cells(notebook):
    return [
        "".join(c["source"])
        for c in json.loads(notebook.read_text("utf-8"))["cells"]
        if c["cell_type"] == "code"
    ]


NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda n: n.name)
def test_notebook_holds_the_skeleton(notebook):
    code = cells(notebook)
    for i, text in enumerate(code):
        for name in exercises.names():
            if f'exercises.get("{name}")' in text:
                following = "\n\n\n".join(code[i : i + 4])
                for part in exercises.get(name).skeleton.split("\n\n\n"):
                    assert part in following, f"{name}: paste q.skeleton"


@pytest.mark.parametrize("name", exercises.names())
def test_section_is_in_the_notebook(name):
    chapter, _, heading = exercises.get(name).task.section.partition(", ")
    number = chapter.removeprefix("chapter ")
    files = [n for n in NOTEBOOKS if n.name.startswith(number)]
    if not files:
        pytest.skip(f"{chapter} is not written yet")
    text = [line for c in json.loads(files[0].read_text("utf-8"))["cells"] for line in c["source"]]
    headings = [line.strip() for line in text if line.startswith("##")]
    assert any(h.endswith(f" {heading}") for h in headings), headings


# ----------------------------------------------------------------------------------------- hints


@pytest.mark.parametrize(("name", "label"), WRONG + FOOLING)
def test_hints_follow_the_diagnosis(name, label):
    verdict, q = checked(name, label)
    said = about(verdict.diagnosis, verdict.details, q.task.diagnoses)
    first, second, third = q.hint(), q.hint(), q.hint()
    assert said.question in first
    if verdict.attempted:
        assert all(text in second for label, text in verdict.facts[1:-2])
    if said.partial:
        assert said.partial in third
    assert f"{q.called}.solution()" in q.hint()


def test_hints_start_again_with_another_diagnosis():
    q = exercises.get("04.2")
    wrong = ANSWERS["04.2"].WRONG
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
    bad = ANSWERS["04.2"].WRONG["or in the guard of A"].answers
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


@pytest.mark.parametrize("name", exercises.names())
@pytest.mark.parametrize(
    "value",
    [None, 3, "x", [], {}, ..., Evil(), Evil, int, len, print],
    ids=lambda v: type(v).__name__,
)
def test_any_object_gets_a_verdict(name, value, capsys):
    q = exercises.get(name)
    assert not q.check(*[value] * len(q.task.answers)).passed
    assert not q.check(*[lambda *a: value] * len(q.task.answers)).passed
    assert not q.check().passed
    assert not q.check(value, value, value, value).passed


def test_any_claim_gets_a_verdict():
    q = exercises.get("04.3")
    for claim in (None, 1, "abc", [[1, 1], [2], "too old"], (Evil(), 1, 2), {}, [0] * 3, Evil()):
        assert not q.check(lambda c=claim: (c, c, c)).passed


def test_interrupt_gets_through():
    def interrupted(*args):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        exercises.get("01.1").check(interrupted)


def test_guard_restores_the_tracer():
    before = sys.gettrace()
    guard.attempt(lambda: 1 / 0)
    assert sys.gettrace() is before


def test_unknown_name():
    with pytest.raises(ValueError, match=r"unknown exercise '9.9'; use one of 01.1, "):
        exercises.get("9.9")


def test_attempts_are_not_shared():
    q = exercises.get("01.1")
    q.check(1)
    assert exercises.get("01.1").verdicts == []
    assert copy.copy(exercises.names()) == sorted(exercises.names())


def test_numpy_alone_is_enough():
    code = """
import sys
for name in ("numba", "numba_cuda", "matplotlib", "ipywidgets", "IPython"):
    sys.modules[name] = None
from gemmlab import exercises
from gemmlab.course import exercise_modules
from tests.course.answers import answers_of
for name in exercises.names():
    q = exercises.get(name)
    assert q.check(*q.task.answers).passed, name
"""
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, encoding="utf-8"
    )
    assert answer.returncode == 0, answer.stderr
